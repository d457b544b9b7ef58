// ./hive up and down themselves: they start what is asked, and stop exactly what they started.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { Hive, eventually, isAlive, root, run } from './support/hive.mjs';

const hive = (args, options) => run('bash', [path.join(root, 'hive'), ...args], { timeout: 300_000, ...options });

test('a hive that runs is not started twice', async () => {
  const mine = await Hive.start({ agents: 1 });
  try {
    const again = await hive(['up', '--dir', mine.dir]);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /already runs/);
    assert.ok(isAlive(mine.pid('gateway')) && isAlive(mine.pid('agent-1')));
  } finally {
    await mine.stop();
  }
});

test('down stops all, is repeatable, and up goes on with the same keys, token and log', async () => {
  const mine = await Hive.start({ agents: 2 });
  try {
    const pids = ['gateway', 'agent-1', 'agent-2'].map((name) => mine.pid(name));
    const token = mine.env.MYRMEX_TOKEN;
    const { requestId } = await mine.call('agent-1__get_metrics', {});
    await mine.outcome(requestId);
    const entries = mine.audit().length;

    assert.equal((await mine.down()).code, 0);
    assert.deepEqual(pids.filter(isAlive), []);
    assert.equal((await mine.down()).code, 0);

    await mine.up();
    assert.equal(mine.env.MYRMEX_TOKEN, token);
    assert.equal((await mine.agents()).filter((agent) => agent.online).length, 2);
    await eventually('the log goes on', () => mine.audit().length > entries);
    await mine.assertLogVerifies();
  } finally {
    await mine.stop();
  }
});

test('down works when something has died already', async () => {
  const mine = await Hive.start({ agents: 2 });
  const agent = mine.pid('agent-2');
  await mine.end('gateway', 'SIGKILL');
  await mine.end('agent-1', 'SIGKILL');
  await mine.stop();
  assert.ok(!isAlive(agent));
});

test('down never signals a number that belongs to somebody else now', async () => {
  const mine = await Hive.start({ agents: 1 });
  const stranger = spawn('sleep', ['60'], { stdio: 'ignore' });
  try {
    await mine.end('agent-1', 'SIGKILL');
    const file = path.join(mine.dir, 'pids/agent-1.pid');
    const [, started, boot] = fs.readFileSync(file, 'utf8').trim().split(' ');
    fs.writeFileSync(file, `${stranger.pid} ${started} ${boot}\n`);
    await mine.stop();
    assert.ok(isAlive(stranger.pid));
  } finally {
    stranger.kill();
  }
});

test('a folder that holds something else is left alone', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'hive-e2e-'));
  try {
    fs.writeFileSync(path.join(folder, 'precious'), 'data');
    for (const command of [['up', '--dir', folder], ['down', '--dir', folder, '--remove']]) {
      const { code, stderr } = await hive(command);
      assert.equal(code, 1);
      assert.match(stderr, /not (empty|a folder)/);
    }
    assert.equal(fs.readFileSync(path.join(folder, 'precious'), 'utf8'), 'data');
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});

test('a folder with a space and a quote in its name, from another working directory', async () => {
  const base = fs.mkdtempSync(path.join(os.tmpdir(), 'hive-e2e-'));
  const dir = path.join(base, "it's a hive");
  try {
    const up = await hive(['up', '--dir', "it's a hive"], { cwd: base });
    assert.equal(up.code, 0, up.stderr);
    const { code, stdout, stderr } = await run('sh', ['-c', '. "$1" && myrmex status && myrmex audit verify', 'sh',
      path.join(dir, 'env')]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /agent-1/);
  } finally {
    assert.equal((await hive(['down', '--dir', dir, '--remove'])).code, 0);
    fs.rmSync(base, { recursive: true, force: true });
  }
});

test('wrong command lines are told in one line, exit 2', async () => {
  for (const args of [['frobnicate'], ['up', '--agents', 'many'], ['up', '--agents'], ['up', '--agents', '-1'],
    ['down', 'now'], ['build', '--preset', 'fast'], ['test', 'nothing'], ['lint', '--hard'], ['setup', 'kitchen'],
    ['up', '--agent-profile', '/does/not/exist']]) {
    const { code, stderr } = await hive(args, { env: { ...process.env, NO_COLOR: '1' } });
    assert.equal(code, 2, args.join(' '));
    assert.match(stderr, /^hive: [^\n]+\n$/, args.join(' '));
  }
});

test('every command explains itself', async () => {
  for (const command of ['setup', 'build', 'demo', 'test', 'bench', 'lint', 'up', 'down']) {
    const { code, stdout } = await hive([command, '--help']);
    assert.equal(code, 0, command);
    assert.match(stdout, /^Usage: \.\/hive /, command);
    assert.match(stdout, /Examples?:/, command);
  }
});
