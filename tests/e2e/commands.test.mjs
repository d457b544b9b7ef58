// Commands that misbehave: each ends in time with a truthful result, and no process is left.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Hive, eventually, memory, processesWith, run, text } from './support/hive.mjs';

const mark = `HIVE_E2E_MARK=${process.pid}`;
let hive;
const programs = {};

before(async () => {
  hive = await Hive.start({
    profile: (self) => {
      const marked = (name, body) => { programs[name] = self.script(name, `export ${mark}\n${body}`); };
      // Shells started by the marked ones carry the mark in their environment, as do the programs that those run.
      marked('stubborn', `exec sh -c "trap '' TERM; while :; do sleep 0.2; done"`);
      marked('polite', `exec sh -c "trap 'echo cleaned up; exit 7' TERM; echo started; while :; do sleep 0.1; done"`);
      marked('background', 'sh -c "sleep 300; :" & echo parent is done');
      marked('flood', 'yes "a line of the flood" | head -c 5000000000');
      marked('broken', String.raw`printf 'before\377\376\300\257 after \342\202'`);
      marked('binary', 'head -c 3000 /dev/urandom');
      marked('fails', 'echo out; echo err >&2; exit 3');
      marked('waits', 'exec sh -c "echo waiting; sleep 60; :"');
      return Object.entries(programs).map(([name, file]) => ({
        name: file,
        args_regex: '',
        timeout_seconds: { stubborn: 1, polite: 5, flood: 250 }[name] ?? 120,
      }));
    },
  });
});
after(() => hive.stop());

const runs = (name, options) => hive.call('agent-1__run_command', { name: programs[name] }, options);
const noneLeft = () => eventually('no process is left', () => processesWith(mark).length === 0);

test('a command that ignores TERM is killed after its deadline, and the result says so', async () => {
  const answer = await runs('stubborn');
  assert.equal(answer.outcome, 'failure');
  assert.match(text(answer), /timed out/);
  assert.match(text(answer), /SIGKILL/);
  await noneLeft();
});

test('a command that heeds TERM runs its clean-up, and its last words are in the result', async () => {
  const answer = await runs('polite');
  assert.equal(answer.outcome, 'failure');
  assert.match(text(answer), /timed out/);
  assert.match(text(answer), /cleaned up/);
  await noneLeft();
});

test('a background child that holds the output does not hold the call, and does not stay', async () => {
  // Held, it would end by its deadline.
  const answer = await runs('background');
  assert.equal(answer.outcome, 'success', text(answer));
  assert.match(text(answer), /parent is done/);
  assert.ok(answer.body.result.structuredContent.leftover_processes_killed >= 1);
  await noneLeft();
});

test('5 GB of output: bounded memory, other calls go on, the result says how much was cut', async () => {
  const agent = hive.pid('agent-1');
  let flooding = true;
  const flood = runs('flood').finally(() => { flooding = false; });
  assert.equal((await hive.call('agent-1__get_metrics', {})).outcome, 'success');
  assert.ok(flooding, 'the call beside the flood did not wait for its end');
  const answer = await flood;
  assert.equal(answer.outcome, 'success', text(answer).slice(0, 200));
  assert.ok(text(answer).length < (8 << 20));
  const { output_bytes: printed, omitted_bytes: omitted } = answer.body.result.structuredContent;
  assert.equal(printed, 5_000_000_000);
  assert.ok(omitted > 4_990_000_000 && text(answer).includes(String(omitted)), `${omitted} bytes were cut`);
  assert.ok(memory(agent).peak < (100 << 20), `the agent took ${memory(agent).peak} bytes`);
  assert.ok(memory(hive.pid('gateway')).peak < (300 << 20));
  await noneLeft();
});

test('broken UTF-8 arrives as valid text, with everything readable in it', async () => {
  const answer = await runs('broken');
  assert.equal(answer.outcome, 'success');
  assert.match(text(answer), /^before\ufffd+.* after \ufffd+$/s);
});

test('binary output is flagged and can be had exactly', async () => {
  const answer = await runs('binary');
  assert.equal(answer.outcome, 'success');
  assert.equal(Buffer.from(answer.body.result.structuredContent.output_base64, 'base64').length, 3000);
});

test('an exit status is told, with what came on both streams', async () => {
  const answer = await runs('fails');
  assert.equal(answer.outcome, 'failure');
  assert.match(text(answer), /^Command failed\/rejected: .*exit status 3/);
  assert.match(text(answer), /out/);
  assert.match(text(answer), /err/);
});

test('a caller that goes away cancels its command', async () => {
  const abort = new AbortController();
  const call = runs('waits', { signal: abort.signal });
  await eventually('the command runs', () => processesWith(mark).length > 0);
  abort.abort();
  await assert.rejects(call);
  await noneLeft();
  const outcome = await hive.entry('the outcome', (entry) => entry.kind === 'outcome' && entry.outcome === 'cancelled');
  assert.equal(outcome.tool, 'run_command');
});

test('64 commands at once all end well', async () => {
  const answers = await Promise.all(Array.from({ length: 64 }, () => runs('fails')));
  assert.deepEqual([...new Set(answers.map((answer) => answer.outcome))], ['failure']);
  await noneLeft();
});

test('the agent has no zombie and the log verifies', async () => {
  const agent = String(hive.pid('agent-1'));
  const { stdout } = await run('ps', ['-o', 'stat=', '--ppid', agent]);
  assert.doesNotMatch(stdout, /Z/);
  await hive.assertLogVerifies();
});
