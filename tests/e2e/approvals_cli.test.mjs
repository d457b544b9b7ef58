// The two-person restart from both chairs, with nothing but the command line.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { Hive, eventually } from './support/hive.mjs';

// Alice and Bob get their tokens as people do: from `myrmex token new`, and the configuration knows the hashes.
let hive;
let restart;
let config;
const people = {};
before(async () => {
  hive = await Hive.start({
    agents: 1,
    profile: (made) => {
      restart = made.script('restart-web', `echo "$@" >> ${path.join(made.base, 'restarts')}; echo "restarted $1"`);
      return [{ name: restart, args_regex: '^[a-z0-9-]*$' }];
    },
  });
  config = path.join(hive.dir, 'gateway/gateway_config.json');
  const values = JSON.parse(fs.readFileSync(config, 'utf8'));
  for (const [identity, role] of [['alice', 'operator'], ['bob', 'admin']]) {
    const made = await hive.myrmex(['token', 'new', '--role', role, '--identity', identity, '-o', 'json'],
      { shows: ({ stdout }) => JSON.parse(stdout).token });
    people[identity] = JSON.parse(made.stdout);
    Object.assign(values.tokens, people[identity].tokens);
  }
  values.risk_tiers = { [`run_command:${restart}`]: 'admin' };
  values.require_approval_tiers = ['admin'];
  fs.writeFileSync(config, JSON.stringify(values, null, 2), { mode: 0o600 });
  await restartGateway();
});
after(() => hive.stop());

async function restartGateway() {
  await hive.end('gateway', 'SIGTERM');
  await hive.up('--agents', '1');
  await eventually('agent-1 is back', () => hive.online('agent-1'));
}

const as = (who, ...args) => hive.myrmex(args, { env: { MYRMEX_TOKEN: people[who].token } });
const call = (site) => ['agent-1__run_command', `name=${restart}`, `args=${site}`];
const restarts = () => (fs.existsSync(path.join(hive.base, 'restarts'))
  ? fs.readFileSync(path.join(hive.base, 'restarts'), 'utf8').split('\n').filter(Boolean) : []);
const pending = async () => JSON.parse((await as('bob', 'approvals', '-o', 'json')).stdout);

test('the hash of a token is that of token new', async () => {
  const hashed = await hive.myrmex(['token', 'hash'], { input: `${people.alice.token}\n` });
  assert.equal(hashed.stdout, `${people.alice.hash}\n`);
  assert.match(hashed.stderr, new RegExp(people.alice.principal));
});

test('one asks, another approves, and who asked fetches the result', async () => {
  const explained = await as('alice', 'explain', ...call('shop'));
  assert.equal(explained.code, 6, explained.stderr);
  assert.match(explained.stdout, /approval +ask +\S*gateway_config\.json:\d+: require_approval_tiers/);

  const asked = await as('alice', 'call', ...call('shop'));
  assert.equal(asked.code, 6, asked.stderr);
  const [, id] = asked.stderr.match(/waits as ([0-9a-f]{32}) /);
  assert.deepEqual(restarts(), []);

  const shown = await as('bob', 'approvals', 'show', id.slice(0, 8));
  assert.match(shown.stdout, /"shop"/);
  assert.match(shown.stdout, /asked by +alice \(token:/);
  assert.equal((await as('alice', 'approvals', 'approve', id, '--yes')).code, 3);
  assert.equal((await as('alice', 'approvals', 'result', id)).code, 6);

  const approved = await as('bob', 'approvals', 'approve', id.slice(0, 8), '--yes', '--comment', 'change 4711');
  assert.equal(approved.code, 0, approved.stderr);
  const result = await as('alice', 'approvals', 'result', id.slice(0, 8), '--wait=30');
  assert.deepEqual([result.code, result.stdout], [0, 'restarted shop\n'], result.stderr);
  assert.deepEqual(restarts(), ['shop']);

  assert.equal((await as('bob', 'approvals', 'approve', id, '--yes')).code, 1);
  assert.match((await as('bob', 'approvals', 'list', '--all')).stdout, /approved, success +alice/);
  const granted = await as('bob', 'audit', 'list', '--gateway', '--action', 'approval_granted', '-o', 'json');
  assert.match(granted.stdout, /change 4711/);
});

test('a call that waits comes through a restart of the gateway', async () => {
  const waiting = as('alice', 'call', ...call('blog'), '--wait=120');
  const [request] = await eventually('the request', async () => {
    const list = await pending();
    return list.length === 1 && list;
  });
  await restartGateway();
  assert.equal((await as('bob', 'approvals', 'approve', request.id, '--yes')).code, 0);
  const ended = await waiting;
  assert.deepEqual([ended.code, ended.stdout], [0, 'restarted blog\n'], ended.stderr);
});

test('a denial reaches who waits, with its reason', async () => {
  const waiting = as('alice', 'call', ...call('news'), '--wait', '-o', 'json');
  const [request] = await eventually('the request', async () => {
    const list = await pending();
    return list.length === 1 && list;
  });
  const denied = await as('bob', 'approvals', 'deny', request.id.slice(0, 8), '--yes', '--comment', 'not during the sale');
  assert.equal(denied.code, 0, denied.stderr);
  const ended = await waiting;
  assert.equal(ended.code, 3, ended.stderr);
  assert.match(JSON.parse(ended.stdout).message, /not during the sale/);
  assert.ok(!restarts().includes('news'));
});

test('Ctrl-C leaves the request in place, and it can be taken back', async () => {
  const child = spawn('myrmex', ['call', ...call('wiki'), '--wait'],
    { env: { ...hive.env, MYRMEX_TOKEN: people.alice.token }, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (data) => { said += data; });
  const code = new Promise((resolve) => { child.on('close', resolve); });
  await eventually('it waits', () => said.includes('waiting'));
  child.kill('SIGINT');
  assert.equal(await code, 130);
  assert.match(said, /the request stays in place/);
  const [request] = await pending();
  assert.equal((await as('alice', 'approvals', 'withdraw', request.id)).code, 0);
  assert.deepEqual(await pending(), []);
  assert.notEqual((await as('alice', 'approvals', 'result', request.id)).code, 0);
  assert.ok(!restarts().includes('wiki'));
});

test('watch tells each step as it happens', async () => {
  const child = spawn('myrmex', ['approvals', 'watch', '-o', 'json'],
    { env: { ...hive.env, MYRMEX_TOKEN: people.bob.token }, stdio: ['ignore', 'pipe', 'ignore'] });
  let told = '';
  child.stdout.on('data', (data) => { told += data; });
  const code = new Promise((resolve) => { child.on('close', resolve); });
  const events = () => told.split('\n').filter(Boolean).map((line) => JSON.parse(line));
  await as('alice', 'call', ...call('docs'));
  await eventually('the request is told', () => events().some((event) => event.event === 'new'));
  const [request] = await pending();
  await as('bob', 'approvals', 'approve', request.id, '--yes');
  await eventually('its end is told', () => events().some((event) => event.event === 'ended'));
  const own = events().filter((event) => event.approval.id === request.id);
  assert.deepEqual(own.map((event) => event.event), ['new', 'approved', 'ended']);
  assert.equal(own.at(-1).approval.outcome, 'success');
  child.kill('SIGINT');
  assert.equal(await code, 130);
});

test('a file of cases is decided alike by the configuration and by the gateway', async () => {
  const file = path.join(hive.base, 'access.test');
  fs.writeFileSync(file, `as role=operator identity=alice
agent-1__run_command name=${restart} args=shop -> ask approval_required tier=admin
agent-1__get_metrics -> allow tier=read
as role=read-only
agent-1__run_command name=${restart} args=shop -> deny role
as role=operator agents=agent-2
agent-1__get_metrics -> deny scope
`);
  for (const where of [['--config', config], []]) {
    const tested = await as('bob', 'policy', 'test', file, ...where);
    assert.deepEqual([tested.code, tested.stdout], [0, '4 cases, 0 failed\n'], tested.stdout + tested.stderr);
  }
  fs.writeFileSync(file, `as token=alice\nagent-1__run_command name=${restart} -> allow\n`);
  const failed = await as('bob', 'policy', 'test', file, '--config', config);
  assert.equal(failed.code, 1);
  assert.match(failed.stdout, /FAIL .*access\.test:2: .*\n.*as token=alice\n.*got ask approval_required/);
});
