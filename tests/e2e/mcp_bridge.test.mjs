// MCP on standard input and output, as desktop clients start it: what they write, and how they end.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, test } from 'node:test';

import { Hive, isAlive } from './support/hive.mjs';
import { assertValid } from './support/mcp_schema.mjs';

let hive;
before(async () => { hive = await Hive.start({ agents: 1 }); });
after(() => hive.stop());

const initialize = JSON.stringify({
  jsonrpc: '2.0', id: 'i', method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'e2e', version: '1' } },
});
const initialized = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
const ping = (id) => JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' });

// `myrmex mcp` in the hands of a client. Every line of its output must be a message.
class Bridge {
  constructor() {
    this.child = spawn('myrmex', ['mcp'], { env: hive.env, stdio: 'pipe' });
    this.messages = [];
    this.waiting = [];
    this.said = '';
    let rest = '';
    this.child.stdout.on('data', (data) => {
      rest += data;
      for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
        this.messages.push(JSON.parse(rest.slice(0, end)));
        rest = rest.slice(end + 1);
      }
      for (const look of this.waiting) look();
    });
    this.child.stderr.on('data', (data) => { this.said += data; });
    this.child.stdin.on('error', () => {});
    this.ended = new Promise((resolve) => this.child.on('exit', (code, signal) => resolve({ code, signal, rest })));
  }

  write(text) {
    this.child.stdin.write(text);
  }

  // The first message for which `wanted` holds.
  message(wanted, within = 60_000) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no such message within ${within} ms: ${JSON.stringify(this.messages)} ${this.said}`)), within);
      const look = () => {
        const found = this.messages.find(wanted);
        if (!found) return;
        clearTimeout(timer);
        this.waiting = this.waiting.filter((each) => each !== look);
        resolve(found);
      };
      this.waiting.push(look);
      look();
    });
  }

  answer(id) {
    return this.message((message) => message.id === id);
  }

  async open() {
    this.write(`${initialize}\n`);
    const answer = await this.answer('i');
    assertValid('2025-11-25', answer, 'initialize');
    this.write(`${initialized}\n`);
  }

  async close() {
    this.child.stdin.end();
    return this.ended;
  }
}

test('lines that end in CRLF, and a last line without an end, are answered', async () => {
  const bridge = new Bridge();
  bridge.write(`${initialize}\r\n`);
  await bridge.answer('i');
  bridge.write(`${initialized}\r\n${ping(1)}\r\n`);
  assert.deepEqual((await bridge.answer(1)).result, {});
  bridge.child.stdin.end(ping(2));
  const [{ code, rest }] = [await bridge.ended];
  assert.equal(code, 0, bridge.said);
  assert.equal(rest, '');
  assert.deepEqual(bridge.messages.find(({ id }) => id === 2)?.result, {});
});

test('what is no JSON is told as such, and the stream goes on', async () => {
  const bridge = new Bridge();
  await bridge.open();
  for (const line of [`\ufeff${ping(1)}`, 'log text of somebody', '{"jsonrpc":"2.0",']) {
    const before = bridge.messages.length;
    bridge.write(`${line}\n`);
    const answer = await bridge.message((message, i) => i >= before && message.error);
    assert.equal(answer.error.code, -32700, line);
  }
  bridge.write(`\n${ping(3)}\n`);
  assert.deepEqual((await bridge.answer(3)).result, {});
  assert.equal((await bridge.close()).code, 0);
});

test('a line of 64 MB is refused, and the next one is answered', async () => {
  const bridge = new Bridge();
  await bridge.open();
  const before = bridge.messages.length;
  const chunk = 'x'.repeat(1 << 20);
  bridge.write('{"jsonrpc":"2.0","id":9,"method":"ping","params":{"filler":"');
  for (let i = 0; i < 64; i++) bridge.write(chunk);
  bridge.write(`"}}\n${ping(10)}\n`);
  assert.deepEqual((await bridge.message(({ id }) => id === 10)).result, {});
  assert.ok(bridge.messages.slice(before).some(({ error }) => error), 'the long line has an error');
  assert.equal((await bridge.close()).code, 0);
});

test('closing its input ends it, and the call that it is in the middle of', async () => {
  const bridge = new Bridge();
  await bridge.open();
  bridge.write(`${JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'agent-1__run_command', arguments: { name: 'sleep', args: ['60'] } } })}\n`);
  const { call_id: call } = await hive.entry('its intent', (entry) => entry.kind === 'intent' && entry.tool === 'run_command');
  assert.equal((await bridge.close()).code, 0, bridge.said);
  const { outcome } = await hive.entry('its outcome', (entry) => entry.kind === 'outcome' && entry.call_id === call);
  assert.equal(outcome, 'cancelled', 'nobody waited for its end');
});

test('SIGTERM alone ends it', async () => {
  const bridge = new Bridge();
  await bridge.open();
  bridge.child.kill('SIGTERM');
  const { signal, code } = await bridge.ended;
  assert.ok(code !== null || signal === 'SIGTERM');
  assert.ok(!isAlive(bridge.child.pid));
});
