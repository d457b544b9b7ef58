// What the programs tell systemd, and what stays when its watchdog ends one of them.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { OwnAgent, start } from './support/agent.mjs';
import { Hive, cannotRun, eventually, hasProgram, root, run } from './support/hive.mjs';

const patient = { within: 60_000 };
let hive;
before(async () => { hive = await Hive.start({ agents: 0 }); });
after(() => hive.stop());

// Stands in for systemd: a socket, and what comes in on it, a line an assignment.
async function manager(t, name) {
  const file = path.join(hive.base, `${name}.notify`);
  const socat = start('socat', ['-u', `UNIX-RECV:${file}`, 'STDOUT']);
  t.after(() => socat.end());
  await eventually('the socket is there', () => fs.existsSync(file), patient);
  const count = (line) => socat.lines.filter((other) => other === line).length;
  return {
    lines: socat.lines,
    count,
    env: (usec) => ({ ...process.env, NOTIFY_SOCKET: file, ...(usec ? { WATCHDOG_USEC: String(usec) } : {}) }),
    says: (what, line) => eventually(what, () => socat.lines.some((other) => other.match(line)), patient),
    async beats() {
      const before = count('WATCHDOG=1');
      await eventually('three more signs of life', () => count('WATCHDOG=1') >= before + 3, patient);
    },
  };
}

test('an agent says that it runs, what it is connected to, and that its loop turns', async (t) => {
  if (!hasProgram('socat')) return cannotRun(t, 'socat is not installed');
  const systemd = await manager(t, 'agent');
  const agent = await OwnAgent.create(hive, 'watched', { allowed_commands: [{ name: 'env' }] });
  t.after(() => agent.end());
  const running = agent.start({ env: systemd.env(400_000) });
  await systemd.says('readiness', /^READY=1$/);
  await systemd.says('the connection', /^STATUS=connected to 127\.0\.0\.1:\d+$/);
  await systemd.beats();

  const variables = await hive.call('watched__run_command', { name: 'env' });
  assert.doesNotMatch(JSON.stringify(variables.body), /NOTIFY_SOCKET|WATCHDOG_USEC/, 'commands cannot speak for the agent');

  running.child.kill('SIGHUP');
  await systemd.says('the reload', /^RELOADING=1$/);
  await eventually('readiness again', () => systemd.count('READY=1') === 2, patient);

  running.child.kill('SIGSTOP');
  running.child.kill('SIGCONT');
  await systemd.beats();

  await agent.end();
  await systemd.says('the end', /^STOPPING=1$/);
});

test('an agent without a gateway is ready all the same, and says what it waits for', async (t) => {
  if (!hasProgram('socat')) return cannotRun(t, 'socat is not installed');
  const systemd = await manager(t, 'lonely');
  const agent = await OwnAgent.create(hive, 'lonely', { gateway_addr: '127.0.0.1:1' });
  t.after(() => agent.end());
  agent.start({ env: systemd.env(400_000) });
  await systemd.says('readiness', /^READY=1$/);
  await systemd.says('the reason', /^STATUS=not connected: cannot connect to 127\.0\.0\.1:1: .*Connection refused; next try in \d+ s$/);
  await systemd.beats();
});

test('a gateway is ready when its listeners are open, and counts its agents', async (t) => {
  if (!hasProgram('socat')) return cannotRun(t, 'socat is not installed');
  const systemd = await manager(t, 'gateway');
  const agent = await OwnAgent.create(hive, 'counted');
  t.after(() => agent.end());
  await hive.end('gateway', 'SIGTERM');
  const file = path.join(hive.dir, 'gateway/gateway_config.json');
  const gateway = start('myrmex-gateway', ['--config', file], { env: { ...hive.env, ...systemd.env(400_000) } });
  t.after(async () => {
    await gateway.end();
    await hive.up('--agents', '0');
  });
  await systemd.says('readiness', /^READY=1$/);
  assert.equal((await hive.fetch('/readyz')).status, 200, 'who waits for readiness can use it at once');
  await systemd.says('nobody is there', /^STATUS=0 agents online, 0 calls running$/);
  agent.start();
  await systemd.says('one is there', /^STATUS=1 agent online, 0 calls running$/);
  await systemd.beats();
  gateway.child.kill('SIGHUP');
  await systemd.says('the reload', /^RELOADING=1$/);
  await eventually('readiness again', () => systemd.count('READY=1') === 2, patient);
  await gateway.end();
  await systemd.says('the end', /^STOPPING=1$/);
});

test('what the watchdog does to an agent costs no fault its undo', async (t) => {
  const state = path.join(hive.base, 'chaos');
  fs.mkdirSync(state, { mode: 0o700 });
  const chaos = path.join(root, 'harness/chaos.sh');
  const settings = { CHAOS_STATE_DIR: state, CHAOS_PROTECT: 'none', CHAOS_CONF: path.join(hive.base, 'chaos.conf') };
  fs.writeFileSync(settings.CHAOS_CONF, '', { mode: 0o600 });
  const agent = await OwnAgent.create(hive, 'aborted', {
    allowed_commands: [{ name: chaos, args_regex: 'cpu 30 1|status', env: settings }],
  });
  const ask = async (...args) => JSON.stringify((await hive.call('aborted__run_command', { name: chaos, args })).body);
  const local = async () => (await run(chaos, ['status'], { env: { ...process.env, ...settings } })).stdout;
  t.after(async () => {
    await agent.end();
    await run(chaos, ['stop'], { env: { ...process.env, ...settings } });
  });
  agent.start();
  await agent.online();
  assert.match(await ask('cpu', '30', '1'), /reverts by itself/);
  // The signal of systemd's watchdog.
  assert.equal((await agent.process.end('SIGABRT')).signal, 'SIGABRT');
  assert.match(await local(), /cpu-1 .* left, keeper \d+, watcher \d+/, 'the fault goes on, and so do those who end it');
  agent.start();
  await agent.online();
  await eventually('the fault has ended in its own time', async () => /cpu-1 .*ran its time/.test(await ask('status')), { within: 120_000, every: 500 });
});
