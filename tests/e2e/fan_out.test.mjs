// One call for many agents, on every surface: each agent ends in one named outcome, whatever has become of it, and all of
// them stand in the audit log under one id.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import { after, before, test } from 'node:test';

import { Hive, eventually } from './support/hive.mjs';
import { ModernClient } from './support/mcp.mjs';

const fenced = randomBytes(32).toString('hex');
const all = [1, 2, 3, 4, 5].map((i) => `agent-${i}`);
let hive;

before(async () => {
  hive = await Hive.start({
    agents: 5,
    gateway: {
      // A process that is stopped for a moment is silent, and not yet taken for dead.
      keepalive_seconds: 60,
      agent_tags: { 'agent-1': ['web'], 'agent-2': ['web'], 'agent-5': ['lab'] },
      scoped_tokens: [{ token: fenced, role: 'operator', identity: 'fenced', agents: ['agent-1', 'agent-2', 'agent-3', 'agent-4'], tools: ['*'] }],
    },
  });
  for (const id of all) await eventually(`${id} is back`, () => hive.online(id));
  await hive.end('agent-4', 'SIGTERM');
  await eventually('agent-4 is offline', async () => !(await hive.online('agent-4')));
});
after(() => hive.stop());

// Runs `action` while a process does not.
async function whileStopped(pid, action) {
  process.kill(pid, 'SIGSTOP');
  try {
    await eventually('the process stands still', () => fs.readdirSync(`/proc/${pid}/task`)
      .every((task) => / \(.*\) T /s.test(fs.readFileSync(`/proc/${pid}/task/${task}/stat`, 'latin1'))), { within: 60_000 });
    return await action();
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

async function fanOut(body, options = {}) {
  const response = await hive.fetch('/api/fan-out', {
    method: 'POST', body: JSON.stringify(body), ...options, headers: { 'content-type': 'application/json', ...options.headers },
  });
  return { status: response.status, requestId: response.headers.get('myrmex-request-id'), body: await response.json() };
}

const outcomes = (results) => Object.fromEntries(results.map((result) => [result.agent, result.reason ? `${result.outcome} ${result.reason}` : result.outcome]));
const calls = (requestId) => hive.audit().filter((entry) => entry.request_id === requestId);

test('each of five agents ends in its own outcome, and the log has them under one id', async () => {
  const answer = await whileStopped(hive.pid('agent-3'),
    () => fanOut({ agents: all, tool: 'get_metrics', timeout_ms: 10_000 }, { token: fenced }));
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.deepEqual(outcomes(answer.body.results), {
    'agent-1': 'success',
    'agent-2': 'success',
    'agent-3': 'unknown timed_out',
    'agent-4': 'denied agent_offline',
    'agent-5': 'denied scope',
  });
  assert.deepEqual(answer.body.results.map((result) => result.agent), all, 'in the order of the request');
  assert.equal(answer.body.counts.success, 2);
  assert.equal(answer.body.fan_out, answer.requestId);
  await hive.entry('the end of the fan-out', (entry) => entry.request_id === answer.requestId && entry.action === 'fan_out_ended');
  const entries = calls(answer.requestId);
  assert.equal(entries.filter((entry) => entry.kind === 'outcome').length, 5);
  assert.equal(entries.filter((entry) => entry.action === 'fan_out_started').length, 1);
  assert.match(entries.find((entry) => entry.action === 'fan_out_ended').detail, /^5 agents: 2 success, 2 denied, 1 unknown$/);

  const page = await hive.fetch(`/api/audit?request_id=${answer.requestId}`);
  assert.equal(page.status, 200);
  assert.deepEqual((await page.json()).entries, entries.toReversed(), 'the log is asked for this id, the newest entry first');
  const none = await hive.fetch(`/api/audit?request_id=${answer.requestId}0`);
  assert.deepEqual(await none.json(), { entries: [], next_before: null }, 'the whole id, not its beginning');
});

test('--all means who is online and in scope, and tells how many are not online', async () => {
  const run = await hive.myrmex(['call', '--all', 'get_metrics', '-o', 'json'], { env: { MYRMEX_TOKEN: fenced } });
  const lines = run.stdout.trim().split('\n').map((line) => JSON.parse(line));
  assert.deepEqual(lines.map((line) => line.agent).sort(), ['agent-1', 'agent-2', 'agent-3']);
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.stderr, /1 more is offline and left out/);
});

test('tags and globs: a line an agent, or each output once', async () => {
  const lines = await hive.myrmex(['call', '--tag', 'web,lab', 'run_command', 'name=echo', 'args=hello', '--yes']);
  assert.equal(lines.code, 0, lines.stderr);
  assert.deepEqual(lines.stdout.trim().split('\n').map((line) => line.split(/ {2,}/)[0]).sort(), ['agent-1', 'agent-2', 'agent-5']);
  assert.match(lines.stdout, /^agent-1 .*success .* hello$/m);
  const grouped = await hive.myrmex(['call', '--agents', 'agent-1,agent-[25],agent-2*', 'run_command', 'name=echo', 'args=hello', '--yes', '--group']);
  assert.notEqual(grouped.code, 0, 'brackets are no glob here, and what matches nothing is an error');
  const group = await hive.myrmex(['call', '--agents', 'agent-1,agent-2*', 'run_command', 'name=echo', 'args=hello', '--yes', '--group']);
  assert.equal(group.stdout, '--- agent-1, agent-2 (2): success\nhello\n');
});

test('what changes several agents is asked for first, and a dry run shows whom it means', async () => {
  const refused = await hive.myrmex(['call', '--tag', 'web', 'run_command', 'name=echo', 'args=hello']);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /tier write and would run on 2 agents/);
  const shown = await hive.myrmex(['call', '--agents', 'agent-1,agent-5', 'run_command', 'name=echo', 'args=hello', '--dry-run'], { env: { MYRMEX_TOKEN: fenced } });
  assert.match(shown.stdout, /^agent-1 +online +allow$/m);
  assert.match(shown.stdout, /^agent-5 +- +deny +/m);
  assert.equal(shown.code, 0, shown.stderr);
});

test('stops after an error and accounts for the agents that were not asked', async () => {
  const answer = await fanOut({ agents: ['agent-4', 'agent-1', 'agent-2'], tool: 'get_metrics', concurrency: 1, stop_after_errors: 1 });
  assert.deepEqual(outcomes(answer.body.results), {
    'agent-4': 'denied agent_offline', 'agent-1': 'cancelled fan_out_stopped', 'agent-2': 'cancelled fan_out_stopped',
  });
  const end = await hive.entry('the end of it', (entry) => entry.request_id === answer.requestId && entry.action === 'fan_out_ended');
  assert.equal(end.reason, 'fan_out_stopped');
  assert.match(end.detail, /2 of them were not started/);
});

test('at the deadline what runs is ended on the agents', async () => {
  const answer = await fanOut({ agents: ['agent-1', 'agent-2'], tool: 'run_command', arguments: { name: 'sleep', args: ['100'] }, concurrency: 1, deadline_ms: 1000 });
  assert.deepEqual(outcomes(answer.body.results)['agent-2'], 'expired fan_out_deadline');
  assert.match(outcomes(answer.body.results)['agent-1'], /^(cancelled|unknown)/); // unknown: the agent did not say in time that it stopped
});

test('Ctrl-C ends what runs on the agents', async () => {
  const child = spawn('myrmex', ['call', '--tag', 'web', '--yes', 'run_command', 'name=sleep', 'args=110'],
    { env: { ...hive.env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stderr.on('data', (data) => { said += data; });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const sleeping = () => fs.readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8') === 'sleep\u0000110\u0000';
    } catch {
      return false;
    }
  }).length;
  await eventually('both commands run', () => sleeping() >= 2, { within: 60_000 });
  child.kill('SIGINT');
  assert.equal(await ended, 130, said);
  await eventually('no command is left', () => sleeping() === 0, { within: 60_000 });
  await hive.entry('that the caller withdrew it', (entry) => entry.action === 'fan_out_ended' && entry.reason === 'fan_out_cancelled');
});

test('a model calls many agents by one tool of the gateway', async () => {
  const client = await ModernClient.open(hive, { token: fenced });
  const answer = await client.call('gateway__call_agents', { agents: ['agent-1', 'agent-2', 'agent-5'], tool: 'get_metrics' });
  const { results, counts } = answer.result.structuredContent;
  assert.deepEqual(outcomes(results), { 'agent-1': 'success', 'agent-2': 'success', 'agent-5': 'denied scope' });
  assert.equal(counts.success, 2);
  assert.match(answer.result.content[0].text, /^3 agents/);
});

test('--wait-online waits for who is away, and the others do not wait for it', async () => {
  const child = spawn('myrmex', ['call', '--agents', 'agent-1,agent-4', 'run_command', 'name=echo', 'args=here', '--yes', '--wait-online', '10m'],
    { env: { ...hive.env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let said = '';
  child.stdout.on('data', (data) => { out += data; });
  child.stderr.on('data', (data) => { said += data; });
  const ended = new Promise((resolve) => child.once('close', resolve));
  await eventually('agent-1 has answered', () => /^agent-1 .*success .* here$/m.test(out) || child.exitCode !== null);
  assert.doesNotMatch(out, /agent-4/, said);
  assert.equal(child.exitCode, null, said);
  await hive.up('--agents', '5');
  assert.equal(await ended, 0, out + said);
  assert.match(out, /^agent-4 .*success .* here$/m);
});

test('nobody at all is an error', async () => {
  const answer = await fanOut({ tags: ['nowhere'], tool: 'get_metrics' });
  assert.equal(answer.status, 422);
  assert.equal(answer.body.code, 'no_target');
  const run = await hive.myrmex(['call', '--agents', 'web-*', 'get_metrics']);
  assert.equal(run.code, 3);
  assert.match(run.stderr, /no agent that this credential reaches matches "web-\*"/);
});

test('the log verifies after all of it', () => hive.assertLogVerifies());
