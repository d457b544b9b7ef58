// The official TypeScript SDKs as clients: 1.x speaks the revisions with sessions, 2.x is pinned to 2026-07-28. What they
// receive is held against the official schemas when they close.

import assert from 'node:assert/strict';

import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { problemsOf } from './mcp_schema.mjs';

const info = { name: 'e2e', version: '1' };
const withToken = (token) => ({ requestInit: { headers: { authorization: `Bearer ${token}` } } });

function bridge(hive, token) {
  return { command: 'myrmex', args: ['mcp'], env: { ...hive.env, MYRMEX_TOKEN: token }, stderr: 'pipe' };
}

// How each client reaches a hive, and under which name its calls stand in the audit log.
export const kinds = {
  'SDK 1 on Streamable HTTP': {
    modern: false, surface: 'mcp-http',
    transport: (hive, token) => new StreamableHTTPClientTransport(new URL(`${hive.env.MYRMEX_HTTP_URL}/mcp`), withToken(token)),
  },
  'SDK 1 on HTTP with SSE': {
    modern: false, surface: 'mcp-sse',
    transport: (hive, token) => new SSEClientTransport(new URL(`${hive.env.MYRMEX_HTTP_URL}/sse`), withToken(token)),
  },
  'SDK 1 on stdio through myrmex mcp': {
    modern: false, surface: 'mcp-http',
    transport: (hive, token) => new StdioClientTransport(bridge(hive, token)),
  },
  'SDK 2 on HTTP, 2026-07-28': {
    modern: true, surface: 'mcp-http',
    transport: (hive, token) => new ModernHttp(new URL(`${hive.env.MYRMEX_HTTP_URL}/mcp`), withToken(token)),
  },
  'SDK 2 on stdio through myrmex mcp, 2026-07-28': {
    modern: true, surface: 'mcp-http',
    transport: (hive, token) => new ModernStdio(bridge(hive, token)),
  },
};

// Notes every message in both directions.
function tap(transport) {
  const log = [];
  const send = transport.send.bind(transport);
  transport.send = (message, ...rest) => {
    for (const one of [message].flat()) log.push({ out: true, message: one });
    return send(message, ...rest);
  };
  let handler;
  Object.defineProperty(transport, 'onmessage', {
    configurable: true,
    get: () => handler && ((message, ...rest) => {
      log.push({ out: false, message });
      handler(message, ...rest);
    }),
    set: (given) => { handler = given; },
  });
  return log;
}

export class SdkClient {
  static async open(kind, hive, token = hive.env.MYRMEX_TOKEN) {
    const self = new SdkClient();
    Object.assign(self, { kind, transport: kind.transport(hive, token) });
    self.log = tap(self.transport);
    self.client = kind.modern
      ? new ModernClient(info, { capabilities: {}, versionNegotiation: { mode: { pin: '2026-07-28' } } })
      : new Client(info, { capabilities: {} });
    self.failures = [];
    self.client.onerror = (error) => self.failures.push(error);
    await self.client.connect(self.transport);
    const initialized = self.log.find(({ out, message }) => !out && message.result?.protocolVersion);
    self.revision = kind.modern ? '2026-07-28' : initialized.message.result.protocolVersion;
    return self;
  }

  async tools() {
    const tools = [];
    for (let cursor; ;) {
      const page = await this.client.listTools(cursor === undefined ? undefined : { cursor });
      tools.push(...page.tools);
      cursor = page.nextCursor;
      if (cursor === undefined) return tools;
    }
  }

  call(name, args = {}, options = {}) {
    const params = { name, arguments: args };
    return this.kind.modern ? this.client.callTool(params, options) : this.client.callTool(params, undefined, options);
  }

  // Messages of the server that break its schema.
  problems() {
    const methods = new Map(this.log.filter(({ out, message }) => out && message.method !== undefined && 'id' in message)
      .map(({ message }) => [JSON.stringify(message.id), message.method]));
    return this.log.filter(({ out }) => !out)
      .flatMap(({ message }) => problemsOf(this.revision, message, methods.get(JSON.stringify(message.id))));
  }

  async close() {
    await this.transport.terminateSession?.();
    await this.client.close();
    assert.deepEqual(this.problems(), []);
  }
}
