// A gateway that stood still for a while, and clocks that are set anew under load: nothing is lost, nothing runs twice.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import { Hive, cannotRun, eventually } from './support/hive.mjs';

const keepalive_seconds = 1;
const faketime = ['/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1', '/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1'].find((file) => fs.existsSync(file));

let hive;
let ran;
before(async () => {
  hive = await Hive.start({
    agents: 1,
    profile: (each) => [{ name: each.script('note', `echo "$1" >>${path.join(each.base, 'ran')}`), args_regex: '^[a-z0-9-]+$' }],
    gateway: { keepalive_seconds },
  });
  const config = path.join(hive.dir, 'agents/agent-1/agent_config.json');
  fs.writeFileSync(config, JSON.stringify({ ...JSON.parse(fs.readFileSync(config, 'utf8')), keepalive_seconds }), { mode: 0o600 });
  await hive.end('agent-1', 'SIGTERM');
  await hive.up('--agents', '1');
  await online();
  ran = () => fs.existsSync(path.join(hive.base, 'ran')) ? fs.readFileSync(path.join(hive.base, 'ran'), 'utf8').split('\n').filter(Boolean) : [];
});
after(() => hive?.stop());

const online = () => eventually('agent-1 is online', () => hive.online('agent-1'), { within: 60_000 });

// Callers that go on until they are told to stop; every call has a name that the agent notes when it runs.
function load(prefix, callers = 8) {
  const calls = new Map();
  let going = true;
  const note = path.join(hive.base, 'note');
  const caller = async (number) => {
    for (let i = 0; going; i++) {
      const name = `${prefix}-${number}-${i}`;
      const answer = await hive.call('agent-1__run_command', { name: note, args: [name] }).catch((error) => ({ outcome: 'no answer', reason: String(error) }));
      calls.set(name, answer);
      if (answer.outcome !== 'success') await delay(20);
    }
  };
  const all = Promise.all(Array.from({ length: callers }, (_, number) => caller(number)));
  return {
    calls,
    async end() {
      going = false;
      await all;
      return calls;
    },
  };
}

// Holds what the callers were told against what the agent ran and what the log says.
async function assertKept(calls) {
  const times = new Map();
  for (const name of ran()) times.set(name, (times.get(name) ?? 0) + 1);
  const logged = new Map();
  await eventually('every call has its outcome in the log', () => {
    for (const entry of hive.audit()) if (entry.kind === 'outcome') logged.set(entry.request_id, entry.outcome);
    return [...calls.values()].every(({ requestId }) => !requestId || logged.has(requestId));
  }, { within: 60_000 });
  for (const [name, { outcome, requestId, reason }] of calls) {
    const count = times.get(name) ?? 0;
    assert.ok(count <= 1, `${name} ran ${count} times`);
    if (outcome === 'success') assert.equal(count, 1, `${name} was told as a success`);
    if (outcome === 'denied') assert.equal(count, 0, `${name} was denied (${reason})`);
    if (requestId) assert.equal(logged.get(requestId), outcome, `${name}: what the log says`);
  }
}

test('a gateway that stood still under load goes on where it was', async () => {
  const running = load('stopped');
  await eventually('calls succeed', () => running.calls.size > 50);
  const pid = hive.pid('gateway');
  process.kill(pid, 'SIGSTOP');
  await delay((process.env.HIVE_FULL === '1' ? 60 : 8 * keepalive_seconds) * 1000);
  process.kill(pid, 'SIGCONT');
  const before = running.calls.size;
  await online();
  await eventually('calls succeed again', () => running.calls.size > before + 50 && [...running.calls.values()].at(-1).outcome === 'success', { within: 60_000 });
  const calls = await running.end();
  await assertKept(calls);
  assert.ok(![...calls.values()].some(({ outcome }) => outcome === 'no answer'), 'no caller was left without an answer');
});

test('an agent that stood still under load is noticed, and comes back', async () => {
  const running = load('frozen');
  await eventually('calls succeed', () => running.calls.size > 50);
  const pid = hive.pid('agent-1');
  process.kill(pid, 'SIGSTOP');
  await eventually('the gateway notices', async () => !(await hive.online('agent-1')), { within: 60_000 });
  process.kill(pid, 'SIGCONT');
  await online();
  await eventually('calls succeed again', () => [...running.calls.values()].at(-1).outcome === 'success', { within: 60_000 });
  await assertKept(await running.end());
});

test('clocks that jump by an hour either way disturb nobody', async (t) => {
  if (!faketime) return cannotRun(t, 'libfaketime is missing; run ./hive setup test');
  const clock = path.join(hive.base, 'clock');
  fs.writeFileSync(clock, '+0');
  const env = { ...hive.env, LD_PRELOAD: faketime, FAKETIME_TIMESTAMP_FILE: clock, FAKETIME_CACHE_DURATION: '1', DONT_FAKE_MONOTONIC: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' };
  await hive.end('gateway', 'SIGTERM');
  await hive.end('agent-1', 'SIGTERM');
  const log = fs.openSync(path.join(hive.dir, 'log/gateway.log'), 'a');
  const children = [['myrmex-gateway', 'gateway/gateway_config.json'], ['myrmex-agent', 'agents/agent-1/agent_config.json']]
    .map(([program, config]) => spawn(program, ['--config', path.join(hive.dir, config)], { env, stdio: ['ignore', 'ignore', log] }));
  try {
    await online();
    const running = load('clock', 4);
    for (const step of ['+3600', '-3600', '+0']) {
      const { length } = hive.gatewayLog();
      fs.writeFileSync(clock, step);
      const seen = running.calls.size;
      await eventually(`the gateway's clock has gone to ${step}`, async () => {
        const { time } = await (await hive.fetch('/api/whoami')).json();
        return Math.abs(Date.parse(time) - Date.now() - Number(step) * 1000) < 60_000;
      });
      // Longer than the time in which a silent peer would be given up.
      await delay(6 * keepalive_seconds * 1000);
      assert.ok(running.calls.size > seen, 'calls go on');
      assert.doesNotMatch(hive.gatewayLog().slice(length), /offline|silent|lost/, `nobody is given up at ${step}`);
    }
    const calls = await running.end();
    for (const [name, { outcome, reason }] of calls) assert.equal(outcome, 'success', `${name}: ${reason}`);
    await assertKept(calls);
  } finally {
    const ended = children.map((child) => new Promise((resolve) => child.once('exit', resolve)));
    for (const child of children) child.kill('SIGTERM');
    await Promise.all(ended);
    await hive.up('--agents', '1');
  }
  await hive.assertLogVerifies();
});
