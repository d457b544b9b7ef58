// MCP over HTTP as raw messages, in both eras. Every message that comes back is held against the official schema.

import assert from 'node:assert/strict';

import { assertValid } from './mcp_schema.mjs';

const meta = 'io.modelcontextprotocol/';
export const MODERN = '2026-07-28';
export const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const both = 'application/json, text/event-stream';

// The events of a stream as they come: { event, id, data }. Ends when the stream does.
export async function* eventsOf(response) {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const event = { data: '' };
      for (const line of text.slice(0, end).split('\n')) {
        const [, name, value] = /^([a-z]*): ?(.*)$/s.exec(line) ?? [];
        if (name === 'data') event.data += value;
        else if (name) event[name] = value;
      }
      text = text.slice(end + 2);
      yield event;
    }
  }
}

// The messages of a response, whether it is one JSON body or a stream, until the answer of `id` or the end.
async function collect(response, { id, onMessage, revision, method }) {
  const messages = [];
  const take = (message) => {
    for (const one of [message].flat()) {
      const answers = one.method === undefined;
      assertValid(revision, one, answers ? method : undefined);
      messages.push(one);
      onMessage?.(one);
    }
  };
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
    for await (const { data } of eventsOf(response)) {
      if (!data) continue;
      take(JSON.parse(data));
      if (messages.at(-1).method === undefined && messages.at(-1).id === id) {
        // What follows the answer would be a fault: the stream must end here.
        continue;
      }
    }
  } else {
    const text = await response.text();
    if (text) take(JSON.parse(text));
  }
  return messages;
}

function reply(response, messages, id) {
  const answers = messages.filter((message) => message.method === undefined);
  assert.ok(answers.length <= 1, `${answers.length} answers: ${JSON.stringify(answers)}`);
  const message = answers[0];
  if (message) {
    assert.equal(messages.indexOf(message), messages.length - 1, 'something follows the answer');
    if (id !== undefined && 'id' in message) assert.equal(message.id, id);
  }
  return {
    status: response.status,
    headers: response.headers,
    message,
    result: message?.result,
    error: message?.error,
    notifications: messages.filter((one) => one.method !== undefined && !('id' in one)),
  };
}

class Client {
  constructor(hive, { token = hive.env.MYRMEX_TOKEN, path = '/mcp' } = {}) {
    Object.assign(this, { hive, token, path, next: 1 });
  }

  post(body, { headers = {}, signal, path = this.path } = {}) {
    return this.hive.fetch(path, {
      method: 'POST',
      token: this.token,
      signal,
      body: typeof body === 'string' ? body : JSON.stringify(body),
      headers: { 'content-type': 'application/json', accept: both, ...headers },
    });
  }

  async call(name, args = {}, options) {
    return this.request('tools/call', { name, arguments: args }, options);
  }

  // All pages of a list.
  async list(kind) {
    const all = [];
    const key = kind === 'resources/templates' ? 'resourceTemplates' : kind;
    for (let cursor, pages = 0; pages < 100; pages++) {
      const { result, error } = await this.request(`${kind}/list`, cursor === undefined ? {} : { cursor });
      assert.ok(result, `${kind}/list: ${JSON.stringify(error)}`);
      all.push(...result[key]);
      cursor = result.nextCursor;
      if (cursor === undefined) return all;
    }
    return assert.fail(`${kind}/list never ends`);
  }
}

// A session of the older revisions.
export class LegacyClient extends Client {
  static async open(hive, { revision = '2025-11-25', capabilities = {}, ...options } = {}) {
    const client = new LegacyClient(hive, options);
    client.revision = revision;
    const { message, headers, status } = await client.request('initialize',
      { protocolVersion: revision, capabilities, clientInfo: { name: 'e2e', version: '1' } });
    assert.equal(status, 200, JSON.stringify(message));
    assert.equal(message.result?.protocolVersion, revision, JSON.stringify(message));
    client.session = headers.get('mcp-session-id');
    assert.match(client.session, /^[\x21-\x7e]+$/);
    client.server = message.result;
    assert.equal((await client.post({ jsonrpc: '2.0', method: 'notifications/initialized' }, { headers: client.headers() })).status, 202);
    return client;
  }

  headers() {
    const version = this.revision >= '2025-06-18' ? { 'mcp-protocol-version': this.revision } : {};
    return this.session ? { 'mcp-session-id': this.session, ...version } : {};
  }

  async request(method, params, { id = this.next++, headers = {}, onMessage, signal, meta: more } = {}) {
    const message = { jsonrpc: '2.0', id, method, params: more ? { ...params, _meta: more } : params };
    const response = await this.post(message, { headers: { ...this.headers(), ...headers }, signal });
    return reply(response, await collect(response, { id, onMessage, revision: this.revision, method }), id);
  }

  async notify(method, params) {
    const response = await this.post({ jsonrpc: '2.0', method, params }, { headers: this.headers() });
    assert.equal(response.status, 202, await response.text());
  }

  // The stream for what belongs to no request.
  listen({ lastEventId, signal } = {}) {
    return this.hive.fetch(this.path, {
      token: this.token,
      signal,
      headers: { accept: 'text/event-stream', ...this.headers(), ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }) },
    });
  }

  async close() {
    const response = await this.hive.fetch(this.path, { method: 'DELETE', token: this.token, headers: this.headers() });
    assert.ok([200, 204].includes(response.status), `DELETE: ${response.status}`);
  }
}

// 2026-07-28: every request is complete in itself.
export class ModernClient extends Client {
  revision = MODERN;
  capabilities = {};

  static async open(hive, options = {}) {
    const client = new ModernClient(hive, options);
    Object.assign(client, options.capabilities ? { capabilities: options.capabilities } : {});
    return client;
  }

  message(method, params, { id = this.next++, meta: more = {} } = {}) {
    return {
      jsonrpc: '2.0', id, method,
      params: {
        ...params,
        _meta: {
          [`${meta}protocolVersion`]: MODERN,
          [`${meta}clientInfo`]: { name: 'e2e', version: '1' },
          [`${meta}clientCapabilities`]: this.capabilities,
          ...more,
        },
      },
    };
  }

  headers(message) {
    const name = message.params?.name ?? message.params?.uri;
    const named = ['tools/call', 'prompts/get', 'resources/read'].includes(message.method) && typeof name === 'string';
    return {
      'mcp-protocol-version': MODERN,
      'mcp-method': message.method,
      ...(named ? { 'mcp-name': /^[\x21-\x7e]+$/.test(name) ? name : `=?base64?${Buffer.from(name).toString('base64')}?=` } : {}),
    };
  }

  async send(message, { headers = {}, onMessage, signal } = {}) {
    const merged = { ...this.headers(message), ...headers };
    for (const [name, value] of Object.entries(merged)) if (value === undefined) delete merged[name];
    const response = await this.post(message, { headers: merged, signal });
    const messages = await collect(response, { id: message.id, onMessage, revision: MODERN, method: message.method });
    return reply(response, messages, message.id);
  }

  request(method, params, { id, meta: more, ...options } = {}) {
    return this.send(this.message(method, params, { ...(id === undefined ? {} : { id }), meta: more }), options);
  }

  async close() {}
}

export const eras = { 'legacy (2025-11-25)': LegacyClient, 'modern (2026-07-28)': ModernClient };

// Text of the first content block of a tool's result.
export function textOf(answer) {
  assert.ok(answer.result, `no result: ${JSON.stringify(answer.message)}`);
  return answer.result.content[0].text;
}

export const reasonOf = (answer) => answer.result?._meta?.['myrmex-hive/reason'] ?? answer.error?.data?.reason;
export const outcomeOf = (answer) => answer.result?._meta?.['myrmex-hive/outcome'] ?? answer.error?.data?.outcome;
