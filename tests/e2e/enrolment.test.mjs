// How a machine becomes an agent, changes its key, and stops being one.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, afterEach, before, test } from 'node:test';

import { Hive, eventually, isAlive, run, text } from './support/hive.mjs';

let hive;
const agents = [];
before(async () => { hive = await Hive.start({ agents: 1 }); });
after(() => hive.stop());
afterEach(async () => {
  for (const agent of agents.splice(0)) {
    agent.kill('SIGTERM');
    await eventually('the agent has ended', () => agent.exitCode !== null || agent.signalCode !== null);
  }
});

const keysFile = () => JSON.parse(fs.readFileSync(path.join(hive.dir, 'gateway/gateway_config.json'), 'utf8'))
  .authorized_keys_path;
const absoluteKeysFile = () => path.resolve(hive.dir, 'gateway', keysFile());
const gatewayAddress = () => {
  const config = fs.readdirSync(hive.dir, { recursive: true }).find((name) => /agent_config\.json$/.test(name));
  const { gateway_addr: one, gateway_addrs: many } = JSON.parse(fs.readFileSync(path.join(hive.dir, config), 'utf8'));
  return one ?? many[0];
};
const withoutToken = { MYRMEX_TOKEN: '', MYRMEX_TOKEN_FILE: '' };

async function mint(id, ...options) {
  const result = await hive.myrmex(['enroll-token', '--agent-id', id, ...options]);
  assert.equal(result.code, 0, result.stderr);
  return result.stdout.trim();
}

// Bootstraps into a folder of its own and returns what was printed as JSON.
async function bootstrap(id, token) {
  const folder = fs.mkdtempSync(path.join(hive.base, `${id}-`));
  const result = await hive.myrmex(['bootstrap', '--agent-id', id, '--gateway-addr', gatewayAddress(),
    '--key-out', 'id_ed25519', '--config-out', 'agent.json', '-o', 'json'],
  { cwd: folder, env: token === undefined ? {} : { ...withoutToken, MYRMEX_JOIN_TOKEN: token } });
  return { folder, result, made: result.code === 0 ? JSON.parse(result.stdout) : null };
}

// Starts an agent, with these commands allowed.
function startAgent(made, commands = []) {
  const config = JSON.parse(fs.readFileSync(made.config_path, 'utf8'));
  config.allowed_commands = commands;
  fs.writeFileSync(made.config_path, JSON.stringify(config));
  const log = fs.openSync(`${made.config_path}.log`, 'a');
  const child = spawn('myrmex-agent', ['--config', made.config_path], { env: hive.env, stdio: ['ignore', log, log] });
  agents.push(child);
  return child;
}

const online = (id) => eventually(`${id} is online`, () => hive.online(id));

// The agent has dialled again and its key was turned down.
const returnRefused = (made) => eventually('its return is refused', () =>
  /not connected to a gateway .*key/.test(fs.readFileSync(`${made.config_path}.log`, 'utf8').split('\n')
    .filter((line) => !line.includes('not admitted')).join('\n')));

async function fleetEntry(id) {
  const response = await hive.fetch('/api/fleet');
  return (await response.json()).find((agent) => agent.id === id);
}

async function post(route, body, options = {}) {
  return hive.fetch(route, { method: 'POST', body: JSON.stringify(body), ...options });
}

test('from nothing to a call, with a join token alone', async () => {
  const token = await mint('zero-1');
  const { folder, result, made } = await bootstrap('zero-1', token);
  assert.equal(result.code, 0, result.stderr);
  assert.equal(fs.statSync(made.key_path).mode & 0o777, 0o600);
  assert.equal(fs.statSync(made.config_path).mode & 0o777, 0o600);
  assert.ok(path.isAbsolute(made.key_path));
  assert.match(fs.readFileSync(`${made.key_path}.pub`, 'utf8'), /^ssh-ed25519 \S+ zero-1\n$/);
  const config = JSON.parse(fs.readFileSync(made.config_path, 'utf8'));
  assert.match(config.gateway_host_key, /^ssh-ed25519 /);
  const check = await run('myrmex-agent', ['--check-config', made.config_path], { env: hive.env });
  assert.equal(check.code, 0, check.stdout + check.stderr);
  startAgent(made, [{ name: 'uptime' }]);
  await online('zero-1');
  assert.equal((await hive.call('zero-1__run_command', { name: 'uptime' })).outcome, 'success');
  assert.deepEqual(fs.readdirSync(folder).sort(), ['agent.json', 'agent.json.log', 'id_ed25519', 'id_ed25519.pub']);
  for (const action of ['enroll_token_created', 'agent_enrolled']) {
    await hive.entry(action, (entry) => entry.agent === 'zero-1' && entry.action === action);
  }
  assert.ok(!fs.readFileSync(hive.env.MYRMEX_AUDIT_LOG, 'utf8').includes(token));
  assert.ok(!hive.gatewayLog().includes(token));
});

test('bootstrap with an admin\'s token makes the join token itself, and overwrites nothing', async () => {
  const { folder, result, made } = await bootstrap('zero-2');
  assert.equal(result.code, 0, result.stderr);
  const before = fs.readFileSync(made.key_path, 'utf8');
  const again = await hive.myrmex(['bootstrap', '--agent-id', 'zero-2', '--gateway-addr', gatewayAddress(),
    '--config-out', 'other.json'], { cwd: folder });
  assert.notEqual(again.code, 0);
  assert.match(again.stderr, /exists and is not overwritten/);
  assert.equal(fs.readFileSync(made.key_path, 'utf8'), before);
  assert.deepEqual(fs.readdirSync(folder).sort(), ['agent.json', 'id_ed25519', 'id_ed25519.pub']);
});

test('a wrong, used, expired or foreign token enrols nobody and leaves no file', async () => {
  const used = await mint('wrong-1');
  assert.equal((await bootstrap('wrong-1', used)).result.code, 0);
  const expired = await mint('wrong-1', '--ttl', '1');
  const foreign = await mint('wrong-2');
  await new Promise((resolve) => { setTimeout(resolve, 1100); });
  const messages = new Set();
  for (const token of [used, expired, foreign, 'a'.repeat(64)]) {
    const { folder, result } = await bootstrap('wrong-1', token);
    assert.equal(result.code, 3, result.stderr);
    messages.add(result.stderr.match(/the join token does not[^(]*/)?.[0]);
    assert.deepEqual(fs.readdirSync(folder), []);
  }
  assert.equal(messages.size, 1, [...messages].join('\n'));
  // It was not burnt by the wrong agent.
  assert.equal((await bootstrap('wrong-2', foreign)).result.code, 0);
});

test('an unused join token survives a restart of the gateway, and a used one stays used', async () => {
  const [used, unused] = [await mint('restart-1'), await mint('restart-1')];
  assert.equal((await bootstrap('restart-1', used)).result.code, 0);
  await hive.end('gateway', 'SIGKILL');
  await hive.up();
  assert.equal((await bootstrap('restart-1', used)).result.code, 3);
  assert.equal((await bootstrap('restart-1', unused)).result.code, 0);
});

test('a revoked agent is gone at once and cannot return', async () => {
  const { made } = await bootstrap('gone-1');
  const open = await mint('gone-1');
  startAgent(made);
  await online('gone-1');
  const revoked = await hive.myrmex(['agents', 'revoke', 'gone-1', '--yes', '-o', 'json']);
  assert.equal(revoked.code, 0, revoked.stderr);
  const answer = JSON.parse(revoked.stdout);
  assert.equal(answer.keys_removed, 1);
  assert.equal(answer.session_dropped, true);
  assert.equal(answer.join_tokens_revoked, 1);
  await eventually('gone-1 is offline', async () => !(await hive.online('gone-1')));
  await returnRefused(made);
  assert.equal(await hive.online('gone-1'), false);
  assert.equal((await bootstrap('gone-1', open)).result.code, 3);
  await hive.entry('the revocation', (entry) => entry.action === 'agent_revoked' && entry.agent === 'gone-1');
});

test('a key that is taken out of the file by hand ends its session too', async () => {
  const { made } = await bootstrap('gone-2');
  startAgent(made);
  await online('gone-2');
  const file = absoluteKeysFile();
  const kept = fs.readFileSync(file, 'utf8').split('\n').filter((line) => !line.endsWith(' gone-2')).join('\n');
  fs.writeFileSync(file, kept);
  await eventually('gone-2 is offline', async () => !(await hive.online('gone-2')));
  await returnRefused(made);
  assert.equal(await hive.online('agent-1'), true);
});

test('a rotation under load drops no call, and the old key is worth nothing afterwards', async () => {
  const { made, folder } = await bootstrap('turn-1');
  const slow = hive.script('slow.sh', 'sleep 2; echo done');
  const agent = startAgent(made, [{ name: 'uptime' }, { name: slow }]);
  await online('turn-1');
  const oldKey = fs.readFileSync(made.key_path);
  let running = true;
  const outcomes = [];
  const loops = Array.from({ length: 4 }, async () => {
    while (running) outcomes.push((await hive.call('turn-1__run_command', { name: 'uptime' })).outcome);
  });
  const long = hive.call('turn-1__run_command', { name: slow });
  await eventually('the slow call runs', async () => (await fleetEntry('turn-1')).calls_in_flight > 0);
  const rotated = await hive.myrmex(['rotate', '--config', made.config_path, '--agent-pid', String(agent.pid),
    '--revoke-old', '--wait', '60', '-o', 'json'], { cwd: folder });
  assert.equal(rotated.code, 0, rotated.stderr);
  assert.equal(text(await long).includes('done'), true);
  running = false;
  await Promise.all(loops);
  assert.ok(outcomes.length >= loops.length, `${outcomes.length} calls`);
  assert.deepEqual([...new Set(outcomes)], ['success']);

  const report = JSON.parse(rotated.stdout);
  assert.equal(report.revoked, true);
  assert.equal(report.revocation.keys_removed, 1);
  assert.equal((await fleetEntry('turn-1')).key_fingerprint, report.fingerprint);
  assert.ok(isAlive(agent.pid));
  assert.deepEqual(fs.readFileSync(`${made.key_path}.old`), oldKey);
  assert.equal(fs.statSync(made.key_path).mode & 0o777, 0o600);
  const keys = await (await hive.fetch('/api/keys')).json();
  const mine = keys.entries.filter((entry) => entry.agent_id === 'turn-1').map((entry) => entry.fingerprint);
  assert.deepEqual(mine, [report.fingerprint]);
});

test('enrolments are whole or absent, whenever the gateway dies', async () => {
  const done = [];
  for (let round = 0; round < 3; ++round) {
    const id = `crash-${round}`;
    const token = await mint(id);
    const key = await run('ssh-keygen', ['-t', 'ed25519', '-N', '', '-q', '-C', id, '-f', path.join(hive.base, id)]);
    assert.equal(key.code, 0, key.stderr);
    const publicKey = fs.readFileSync(path.join(hive.base, `${id}.pub`), 'utf8');
    const body = { join_token: token, agent_id: id, public_key: publicKey };
    const first = post('/api/enroll', body, { token: null }).then((response) => response.status, () => 'lost');
    await new Promise((resolve) => { setTimeout(resolve, round * 3); });
    await hive.end('gateway', 'SIGKILL');
    await hive.up();
    await first;
    // Whatever became of it, the same request again succeeds, and the key stands there once.
    const second = await post('/api/enroll', body, { token: null });
    assert.equal(second.status, 200, await second.text());
    done.push(id);
  }
  const lines = fs.readFileSync(absoluteKeysFile(), 'utf8').split('\n');
  for (const id of done) assert.equal(lines.filter((line) => line.endsWith(` ${id}`)).length, 1, id);
  await hive.assertLogVerifies();
});
