// How the gateway ends and reloads.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { Hive, eventually, isAlive, run } from './support/hive.mjs';

let hive;
let config;
before(async () => {
  hive = await Hive.start({ agents: 1 });
  config = path.join(hive.dir, 'gateway/gateway_config.json');
});
after(() => hive.stop());

const edit = (change) => {
  const values = JSON.parse(fs.readFileSync(config, 'utf8'));
  change(values);
  fs.writeFileSync(config, JSON.stringify(values, null, 2), { mode: 0o600 });
};

const statusWith = async (token) => (await hive.fetch('/api/status', { token })).status;

test('SIGHUP takes a changed configuration over', async () => {
  const added = 'a'.repeat(64);
  assert.equal(await statusWith(added), 401);
  edit((values) => { values.tokens[added] = 'read-only'; });
  await hive.reload();
  assert.equal(await statusWith(added), 200);

  edit((values) => { delete values.tokens[added]; });
  await hive.reload();
  assert.equal(await statusWith(added), 401, 'a token that was taken away works no longer');
});

test('SIGHUP with a faulty configuration changes nothing at all, and says what is wrong', async () => {
  const added = 'b'.repeat(64);
  const good = fs.readFileSync(config, 'utf8');
  edit((values) => {
    values.tokens[added] = 'read-only';
    values.tokens['c'.repeat(64)] = 'emperor';
  });
  const said = await hive.reload();
  assert.match(said, /emperor|role/);
  assert.equal(await statusWith(added), 401, 'not even the right half was taken over');
  assert.equal(await statusWith(hive.token('operator')), 200);
  fs.writeFileSync(config, good);
  await hive.reload();
});

test('the running tunnel outlives a reload', async () => {
  const agent = (await hive.agents()).find(({ id }) => id === 'agent-1');
  await hive.reload();
  const now = (await hive.agents()).find(({ id }) => id === 'agent-1');
  assert.deepEqual([now.online, now.connected_at], [true, agent.connected_at]);
});

test('a second gateway on the same audit log is refused by name', async () => {
  const other = path.join(hive.base, 'second.json');
  const values = JSON.parse(fs.readFileSync(config, 'utf8'));
  Object.assign(values, { listen_addr: '127.0.0.1:0', http_addr: '127.0.0.1:0', plaintext_http_addr: '127.0.0.1:0' });
  fs.writeFileSync(other, JSON.stringify(values), { mode: 0o600 });
  const { code, stderr } = await run('myrmex-gateway', ['--config', other], { env: hive.env });
  assert.equal(code, 1);
  assert.match(stderr, /audit\.log/);
});

test('SIGTERM: no new calls, the running one ends well, exit 0, and every intent has its outcome', async () => {
  const { child, exit } = await hive.ownGateway();
  await eventually('agent-1 is back', () => hive.online('agent-1'));
  const running = hive.call('agent-1__run_command', { name: 'sleep', args: ['2'] });
  await eventually('its intent is recorded', () => hive.audit().some((entry) =>
    entry.kind === 'intent' && JSON.stringify(entry.arguments).includes('sleep')));
  child.kill('SIGTERM');
  await eventually('new calls are refused', async () => {
    try {
      return (await hive.call('agent-1__get_metrics', {})).status === 503;
    } catch {
      return true;
    }
  });
  assert.equal((await running).outcome, 'success');
  assert.deepEqual(await exit, { code: 0, signal: null });

  const entries = hive.audit();
  const ended = new Set(entries.filter((entry) => entry.kind === 'outcome').map((entry) => entry.call_id));
  assert.deepEqual(entries.filter((entry) => entry.kind === 'intent' && !ended.has(entry.call_id)), []);
  await hive.assertLogVerifies();
  await hive.up();
});

test('SIGTERM to the agent ends it, also in the middle of a command, whose outcome is recorded', async () => {
  const pid = hive.pid('agent-1');
  const seen = hive.audit().length;
  const running = hive.call('agent-1__run_command', { name: 'sleep', args: ['100'] });
  await eventually('its intent is recorded', () => hive.audit().slice(seen).some((entry) => entry.kind === 'intent'));
  process.kill(pid, 'SIGTERM');
  await eventually('the agent has ended', () => !isAlive(pid));
  const answer = await running;
  assert.notEqual(answer.outcome, 'success');
  assert.equal((await hive.outcome(answer.requestId)).outcome, answer.outcome);
  await hive.up();
});
