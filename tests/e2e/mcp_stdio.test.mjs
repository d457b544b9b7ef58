// MCP over standard input and output: the gateway itself (--mcp-stdio), and `myrmex mcp` in front of a remote one.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import { after, before, test } from 'node:test';

import { eventually, Hive } from './support/hive.mjs';

let hive;
let slow;
before(async () => {
  hive = await Hive.start({
    profile: (self) => {
      slow = self.script('slow', 'echo started; sleep 300');
      return [{ name: slow, args_regex: '', timeout_seconds: 300 }];
    },
  });
});
after(() => hive.stop());

// A program that speaks MCP on its standard input and output.
class Speaker {
  constructor(program, args, env) {
    this.child = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    this.stderr = '';
    this.messages = [];
    this.noise = [];
    this.child.stderr.on('data', (data) => { this.stderr += data; });
    this.child.stdin.on('error', () => {});
    readline.createInterface({ input: this.child.stdout }).on('line', (line) => {
      try {
        this.messages.push(JSON.parse(line));
      } catch {
        this.noise.push(line);
      }
    });
    this.exit = new Promise((resolve) => this.child.once('exit', (code, signal) => resolve({ code, signal })));
  }

  send(message) {
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  async answer(id) {
    return eventually(`an answer to ${id}; ${this.stderr}`, () => this.messages.find((message) => message.id === id && !message.method));
  }

  async request(id, method, params = {}) {
    this.send({ id, method, params });
    return this.answer(id);
  }

  modern(id, method, params = {}) {
    return this.request(id, method, {
      ...params,
      _meta: {
        ...params._meta,
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
        'io.modelcontextprotocol/clientInfo': { name: 'e2e', version: '1' },
      },
    });
  }

  async initialize() {
    const { result } = await this.request('init', 'initialize',
      { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'e2e', version: '1' } });
    assert.equal(result.protocolVersion, '2025-11-25');
    this.send({ method: 'notifications/initialized' });
  }

  async ends() {
    const ended = await this.exit;
    assert.deepEqual(this.noise, [], 'only MCP on standard output');
    return ended;
  }
}

async function useBothEras(speaker) {
  await speaker.initialize();
  const listed = await eventually('the agent offers its tools', async () => {
    const { result } = await speaker.request(`list-${Date.now()}`, 'tools/list');
    return result.tools.find((tool) => tool.name === 'agent-1__get_system_info');
  });
  assert.equal(listed.annotations.readOnlyHint, true);
  const legacy = await speaker.request(1, 'tools/call', { name: 'agent-1__get_system_info', arguments: {} });
  const modern = await speaker.modern('m', 'tools/call', { name: 'agent-1__get_system_info', arguments: {} });
  for (const { result } of [legacy, modern]) assert.match(result.content[0].text, /agent_version|os/i);
  assert.equal(modern.result.resultType, 'complete');
  const unknown = await speaker.request(0, 'no/such/method');
  assert.equal(unknown.error.code, -32601);
}

async function stdioGateway() {
  await hive.end('gateway', 'SIGTERM');
  const speaker = new Speaker('myrmex-gateway', ['--mcp-stdio', '--config', path.join(hive.dir, 'gateway/gateway_config.json')], hive.env);
  await eventually('agent-1 is back', () => hive.online('agent-1'));
  return speaker;
}

test('the gateway speaks MCP on its standard input and output', async (t) => {
  t.after(() => hive.up('--agents', '1'));
  const speaker = await stdioGateway();
  await useBothEras(speaker);
  speaker.child.stdin.end();
  const { code } = await speaker.ends();
  assert.equal(code, 0);
  const calls = hive.audit().filter((entry) => entry.surface === 'mcp-stdio' && entry.tool === 'get_system_info');
  assert.ok(calls.length >= 2);
  for (const entry of calls) assert.deepEqual([entry.principal, entry.role], ['stdio', 'operator']);
  await hive.assertLogVerifies();
});

for (const how of ['the end of the input', 'SIGTERM']) {
  test(`with a call that hangs it still ends after ${how}`, async (t) => {
    t.after(() => hive.up('--agents', '1'));
    const speaker = await stdioGateway();
    await speaker.initialize();
    const known = (await hive.settledAudit()).at(-1).seq;
    speaker.send({ id: 1, method: 'tools/call', params: { name: 'agent-1__run_command', arguments: { name: slow } } });
    const { call_id: call } = await hive.entry(`the intent; ${speaker.stderr}`, (entry) =>
      entry.kind === 'intent' && entry.surface === 'mcp-stdio' && entry.seq > known);
    if (how === 'SIGTERM') speaker.child.kill('SIGTERM');
    else speaker.child.stdin.end();
    const { code } = await speaker.ends();
    assert.equal(code, 0);
    const { outcome } = await hive.entry('its outcome', (entry) => entry.kind === 'outcome' && entry.call_id === call);
    assert.ok(['cancelled', 'unknown'].includes(outcome), `nobody waited for its end: ${outcome}`);
    await hive.assertLogVerifies();
  });
}

test('myrmex mcp carries both eras to a gateway', async () => {
  const token = path.join(hive.base, 'token');
  fs.writeFileSync(token, hive.env.MYRMEX_TOKEN, { mode: 0o600 });
  const printed = await hive.myrmex(['mcp', '--print-config', 'claude-desktop', '--token-file', token]);
  assert.equal(printed.code, 0, printed.stderr);
  const { command, args } = JSON.parse(printed.stdout).mcpServers.myrmex;
  // A client gives its servers little of its own environment.
  const speaker = new Speaker(command, args, { HOME: hive.base, PATH: process.env.PATH });
  await useBothEras(speaker);
  speaker.child.stdin.end();
  const { code } = await speaker.ends();
  assert.equal(code, 0);
});

test('myrmex mcp outlives a restart of the gateway, and its client does not notice', async () => {
  const speaker = new Speaker('myrmex', ['mcp'], hive.env);
  await speaker.initialize();
  assert.ok((await speaker.request(1, 'tools/list')).result);
  await hive.end('gateway', 'SIGTERM');
  speaker.send({ id: 2, method: 'tools/list' });
  await hive.up('--agents', '1');
  assert.ok((await speaker.answer(2)).result, 'answered by the gateway that is there now');
  await eventually('agent-1 is back', () => hive.online('agent-1'));
  assert.ok((await speaker.request(3, 'tools/call', { name: 'agent-1__get_system_info' })).result);
  speaker.child.kill('SIGTERM');
  await speaker.ends();
});
