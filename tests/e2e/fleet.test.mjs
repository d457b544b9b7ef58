// What the gateway knows of its fleet: over a restart, while an agent is away, page by page, and of a key that is used
// twice.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { Hive, eventually } from './support/hive.mjs';

let hive;
before(async () => { hive = await Hive.start({ agents: 3 }); });
after(() => hive.stop());

async function fleet(query) {
  const response = await hive.fetch(`/api/fleet?${query}`);
  const body = await response.json();
  assert.equal(response.status, 200, JSON.stringify(body));
  return body;
}

const entry = async (id) => (await fleet(`limit=1&id=${id}`)).agents[0];
const described = (id) => eventually(`${id} has described itself`, async () => {
  const agent = await entry(id);
  return agent?.online && agent.agent_version !== '' && agent;
});

const offline = (id) => eventually(`${id} is offline`, async () => {
  const agent = await entry(id);
  return agent.status === 'offline' && agent;
});

test('a filter and pages show what they are asked for, and each agent once', async () => {
  const seen = [];
  let cursor = '';
  do {
    const page = await fleet(`limit=1&status=online${cursor && `&cursor=${cursor}`}`);
    assert.equal(page.total, 3);
    seen.push(...page.agents.map(({ id }) => id));
    cursor = page.next_cursor ?? '';
  } while (cursor !== '');
  assert.deepEqual(seen, ['agent-1', 'agent-2', 'agent-3']);
  assert.deepEqual((await fleet('limit=9&id=*-2')).agents.map(({ id }) => id), ['agent-2']);
  const { code, stdout } = await hive.myrmex(['agents', '--match', '*-3', '--status', 'online', '-o', 'json']);
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(stdout).map(({ id }) => id), ['agent-3']);
});

test('a call for an agent that is away waits, runs once when it is back, and is recorded once', async () => {
  await hive.end('agent-2', 'SIGTERM');
  await offline('agent-2');
  const waiting = hive.fetch('/api/call', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'agent-2__run_command', arguments: { name: 'echo', args: ['back'] }, wait_seconds: 300 }),
  });
  const line = hive.myrmex(['call', 'agent-2__run_command', 'name=echo', 'args=again', '--wait-online', '5m']);
  await hive.up('--agents', '3');
  const answer = await waiting;
  assert.equal(answer.headers.get('myrmex-outcome'), 'success', await answer.text());
  const { code, stdout, stderr } = await line;
  assert.equal(code, 0, stderr);
  assert.match(stdout, /again/);
  const entries = await hive.entries(answer.headers.get('myrmex-request-id'));
  assert.deepEqual(entries.map(({ kind }) => kind), ['intent', 'outcome']);
});

test('a call whose agent does not come back ends as offline, and nothing ran', async () => {
  await hive.end('agent-2', 'SIGTERM');
  await offline('agent-2');
  const answer = await hive.fetch('/api/call', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'agent-2__get_metrics', wait_seconds: 1 }),
  });
  assert.equal(answer.headers.get('myrmex-reason'), 'agent_offline', await answer.text());
  assert.equal(answer.headers.get('myrmex-outcome'), 'denied');
  await hive.up('--agents', '3');
});

test('a gateway that starts shows the agents of the last run as offline, with what it knew of them', async () => {
  const before = await described('agent-1');
  await hive.end('agent-1', 'SIGTERM');
  await offline('agent-1');
  // This one is online when the gateway ends, and does not come back by itself.
  await described('agent-3');
  process.kill(hive.pid('agent-3'), 'SIGSTOP');
  const { child, exit } = await hive.ownGateway();
  const known = await entry('agent-1');
  assert.equal(known.online, false);
  assert.equal(known.status, 'offline');
  for (const member of ['ip', 'os', 'services', 'agent_version', 'key_fingerprint', 'first_seen', 'connections']) {
    assert.deepEqual(known[member], before[member], member);
  }
  assert.ok(Date.parse(known.offline_since) >= Date.parse(before.connected_at));
  const stopped = await entry('agent-3');
  assert.equal(stopped.status, 'offline');
  assert.match(stopped.offline_reason, /gateway/);
  const shown = await hive.myrmex(['agents', '--status', 'offline']);
  assert.match(shown.stdout, /agent-1 +offline since 20/);
  process.kill(hive.pid('agent-3'), 'SIGCONT');
  child.kill('SIGTERM');
  await exit;
  await hive.up('--agents', '3');
  for (const id of ['agent-1', 'agent-3']) await described(id);
  assert.ok((await entry('agent-1')).connections > before.connections);
});

test('an agent that has a key and never connected is listed as such, and a revoked one is forgotten', async () => {
  const key = fs.readFileSync(path.join(hive.dir, 'gateway/authorized_keys'), 'utf8').split('\n')[0].split(' ')[1];
  assert.ok(key.startsWith('AAAA'));
  // Another key than the three that are there: its last byte differs.
  const bytes = Buffer.from(key, 'base64');
  bytes[bytes.length - 1] ^= 1;
  const added = await hive.fetch('/api/keys', {
    method: 'POST',
    token: hive.token('admin'),
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ agent_id: 'planned-1', public_key: `ssh-ed25519 ${bytes.toString('base64')}` }),
  });
  assert.equal(added.status, 200, await added.text());
  await eventually('it is listed', async () => (await entry('planned-1'))?.status === 'never_connected');
  assert.match((await hive.myrmex(['agents'])).stdout, /planned-1 +never connected/);
  const revoked = await hive.fetch('/api/agents/revoke', {
    method: 'POST',
    token: hive.token('admin'),
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ agent_id: 'planned-1' }),
  });
  assert.equal(revoked.status, 200, await revoked.text());
  await eventually('it is gone', async () => (await entry('planned-1')) === undefined);
});

test('a key that two machines use is reported in the lists and in the audit log', async () => {
  await described('agent-1');
  const twin = path.join(hive.base, 'twin');
  fs.cpSync(path.join(hive.dir, 'agents/agent-1'), twin, { recursive: true });
  const config = fs.readFileSync(path.join(twin, 'agent_config.json'), 'utf8');
  fs.writeFileSync(path.join(twin, 'agent_config.json'),
    config.replaceAll(path.join(hive.dir, 'agents/agent-1'), twin), { mode: 0o600 });
  const child = spawn('myrmex-agent', ['--config', path.join(twin, 'agent_config.json')],
    { env: hive.env, stdio: 'ignore' });
  const exit = new Promise((resolve) => child.once('exit', resolve));
  try {
    const flapping = await eventually('agent-1 is reported', async () => {
      const page = await fleet('limit=9&status=flapping');
      return page.agents.find(({ id }) => id === 'agent-1');
    }, { within: 180_000 });
    assert.ok(flapping.flapping.connections >= 6);
    assert.ok(flapping.replacements >= 3);
    assert.ok(!Number.isNaN(Date.parse(flapping.flapping.since)));
    assert.match((await hive.myrmex(['agents'])).stdout, /agent-1 .*flapping since 20/);
    const told = await hive.entry('the flapping', ({ action, agent }) => action === 'agent_flapping' && agent === 'agent-1');
    assert.match(told.detail, /connections within 10 minutes, since .* replaced one that stood/);
  } finally {
    child.kill('SIGTERM');
    await exit;
  }
});
