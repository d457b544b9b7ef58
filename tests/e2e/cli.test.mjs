// What an operator sees with nothing but DIR/env sourced: right text, right exit code, right audit outcome.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';

import { Hive, eventually } from './support/hive.mjs';

let hive;
before(async () => {
  hive = await Hive.start({
    agents: 3,
    profile: [
      { name: 'echo', args_regex: '^[a-z]+( [a-z]+)*$' },
      { name: 'false', args_regex: '' },
    ],
  });
});
after(() => hive.stop());

// What the audit log has of the one run_command of this file with these arguments: its intent, and its outcome.
async function recorded(args) {
  const intent = await hive.entry(`the intent of ${JSON.stringify(args)}`, (entry) => entry.kind === 'intent' &&
    entry.tool === 'run_command' && isDeepStrictEqual(JSON.parse(entry.arguments), args));
  const outcome = await hive.entry('its outcome', (entry) => entry.kind === 'outcome' && entry.call_id === intent.call_id);
  return { intent, outcome };
}

test('status and agents name every agent', async () => {
  for (const command of ['status', 'agents']) {
    const { code, stdout } = await hive.myrmex([command]);
    assert.equal(code, 0);
    for (const agent of ['agent-1', 'agent-2', 'agent-3']) assert.match(stdout, new RegExp(`\\b${agent}\\b`));
  }
});

test('agents as JSON is an array of all three, online', async () => {
  const { code, stdout } = await hive.myrmex(['agents', '-o', 'json']);
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(stdout).map((agent) => [agent.id, agent.online]).sort(),
    [['agent-1', true], ['agent-2', true], ['agent-3', true]]);
});

test('tools lists nine tools of each agent', async () => {
  const { code, stdout } = await hive.myrmex(['tools', '-o', 'json']);
  assert.equal(code, 0);
  const names = JSON.parse(stdout).tools.map((tool) => tool.name);
  for (const agent of ['agent-1', 'agent-2', 'agent-3']) {
    assert.equal(names.filter((name) => name.startsWith(`${agent}__`)).length, 9);
  }
});

test('get_metrics as JSON gives a number for the CPU', async () => {
  const { code, stdout } = await hive.myrmex(['call', 'agent-2__get_metrics', '-o', 'json']);
  assert.equal(code, 0);
  assert.equal(typeof JSON.parse(stdout).cpu_usage_percent, 'number');
});

test('a permitted command exits 0 and stands in the log as success, its intent before it', async () => {
  const { code, stdout } = await hive.myrmex(['call', 'agent-1__run_command', 'name=echo', 'args=hello', 'args=hive']);
  assert.equal(code, 0);
  assert.equal(stdout.trim(), 'hello hive');
  const { intent, outcome } = await recorded({ name: 'echo', args: ['hello', 'hive'] });
  assert.equal(outcome.outcome, 'success');
  assert.ok(intent.seq < outcome.seq);
});

test('a refused command exits 3 and is recorded as denied', async () => {
  const { code, stdout, stderr } = await hive.myrmex(['call', 'agent-1__run_command', 'name=rm', 'args=-rf', 'args=/']);
  assert.equal(code, 3);
  assert.match(stderr, /is not in the approved allowlist/);
  assert.equal(stdout, '');
  assert.equal((await recorded({ name: 'rm', args: ['-rf', '/'] })).outcome.outcome, 'denied');
});

test('refused arguments exit 3 and do not tell the pattern', async () => {
  const { code, stdout, stderr } = await hive.myrmex(['call', 'agent-1__run_command', 'name=echo', 'args=$(id)']);
  assert.equal(code, 3);
  assert.match(stdout + stderr, /do not match the approved pattern/);
  assert.doesNotMatch(stdout + stderr, /\[a-z\]/);
});

test('a failing command exits 4 and is recorded as failure', async () => {
  const { code, stdout, stderr } = await hive.myrmex(['call', 'agent-1__run_command', 'name=false']);
  assert.equal(code, 4);
  assert.match(stdout + stderr, /exit status 1/);
  assert.equal((await recorded({ name: 'false' })).outcome.outcome, 'failure');
});

test('the small default allowlist: uptime, df -h, words, a sleep of at most 120 seconds', async () => {
  const dry = (name, ...args) => hive.call('agent-2__run_command', { name, args, dry_run: true });
  for (const [name, ...args] of [['uptime'], ['df', '-h'], ['echo', 'some', 'words'], ['sleep', '120']]) {
    assert.equal((await dry(name, ...args)).outcome, 'success', name);
  }
  for (const [name, ...args] of [['uptime', '-p'], ['df', '/'], ['echo', '-e'], ['sleep', '121'], ['sleep', '0'], ['id']]) {
    assert.equal((await dry(name, ...args)).outcome, 'denied', name);
  }
});

test('an agent that is gone: exit 5, and the log says that nothing ran', async () => {
  await hive.end('agent-3', 'SIGKILL');
  await eventually('agent-3 is offline', async () => !(await hive.online('agent-3')));
  const { code, stderr } = await hive.myrmex(['call', 'agent-3__get_metrics']);
  assert.equal(code, 5);
  assert.match(stderr, /agent-3/);
  const outcome = await hive.entry('its outcome', (entry) => entry.kind === 'outcome' && entry.agent === 'agent-3' && entry.tool === 'get_metrics');
  assert.notEqual(outcome.outcome, 'success');
});

test('an agent that never was: exit 5', async () => {
  const { code, stderr } = await hive.myrmex(['call', 'nobody__get_metrics']);
  assert.equal(code, 5);
  assert.match(stderr, /nobody/);
});

test('a gateway that cannot be reached: exit 5', async () => {
  const { code, stderr } = await hive.myrmex(['status'], { env: { MYRMEX_URL: 'https://127.0.0.1:1' } });
  assert.equal(code, 5);
  assert.match(stderr, /127\.0\.0\.1:1/);
});

test('a wrong token: exit 7, and the token is not printed', async () => {
  const { code, stdout, stderr } = await hive.myrmex(['status'], { env: { MYRMEX_TOKEN: 'not-the-token' } });
  assert.equal(code, 7);
  assert.doesNotMatch(stdout + stderr, /not-the-token/);
});

test('doctor finds nothing wrong', async () => {
  const { code, stdout, stderr } = await hive.myrmex(['doctor']);
  assert.equal(code, 0, stdout + stderr);
});

test('arguments from standard input', async () => {
  const { code, stdout } = await hive.myrmex(['call', 'agent-1__run_command', '--arguments', '-'],
    { input: '{"name":"echo","args":["from","stdin"]}' });
  assert.equal(code, 0);
  assert.equal(stdout.trim(), 'from stdin');
});

test('the log verifies', () => hive.assertLogVerifies());
