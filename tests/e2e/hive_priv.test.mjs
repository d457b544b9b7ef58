// hive-priv as it is installed: started by its socket, asked over it, its check before a start as a program, and what its
// system calls say of the paths that a guest has made.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';

import { cannotRun, eventually, hasProgram, root, run } from './support/hive.mjs';

const program = path.join(process.env.HIVE_BIN ?? path.join(root, 'build/release/bin'), 'hive-priv');
const agents = '/var/lib/hyperhive/agents/iris';
const flagsRequest = {
  op: 'write_nspawn_flags',
  container: 'h-iris',
  binds: ['state', 'work', 'harness', 'claude'].map((dir) => ({
    host_path: `${agents}/${dir}`,
    container_path: dir === 'claude' ? '/home/iris/.claude' : `/agents/iris/${dir}`,
    read_only: false,
  })),
  isolation: { bridge: 'hive0', gateway_ip: '10.42.0.1' },
};
const folders = [];

function isRoot(t) {
  if (process.getuid() === 0) return true;
  cannotRun(t, 'hive-priv changes owners, which needs root');
  return false;
}

after(() => {
  for (const folder of folders) fs.rmSync(folder, { recursive: true, force: true });
});

// A host in a folder, with a root that persists and holds what a hostile guest would leave.
function makeHost() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'hive-priv-e2e-'));
  folders.push(folder);
  const host = path.join(folder, 'host');
  const at = (name) => path.join(host, name);
  for (const dir of ['etc/nixos-containers', 'var/lib/nixos-containers/h-iris/home/iris', 'var/lib/hive-priv', 'nix/var/nix/profiles', 'var/log/journal']) {
    fs.mkdirSync(at(dir), { recursive: true });
  }
  for (const dir of ['state', 'work', 'harness', 'claude']) fs.mkdirSync(at(`${agents}/${dir}`), { recursive: true });
  fs.writeFileSync(at('etc/nixos-containers/h-iris.conf'), 'AUTO_START=0\n');
  const guest = (name) => at(`var/lib/nixos-containers/h-iris/${name}`);
  fs.writeFileSync(guest('home/iris/pre-switch.txt'), 'pre-switch\n');
  fs.mkdirSync(guest('home/iris/.local/state/nix/profiles'), { recursive: true });
  fs.symlinkSync('/nix/store/abc-env', guest('home/iris/.local/state/nix/profiles/profile-1-link'));
  fs.mkdirSync(guest('evil/deep/er'), { recursive: true });
  fs.symlinkSync('/etc/passwd', guest('evil/passwd'));
  fs.linkSync(guest('home/iris/pre-switch.txt'), guest('evil/hard'));
  fs.writeFileSync(guest('evil/deep/er/suid'), 'x', { mode: 0o4755 });
  return { folder, host, at, guest, socket: path.join(folder, 'priv.sock') };
}

// Sends one line, closes its half, and returns the last line of what comes back.
function ask(socket, request) {
  return new Promise((resolve, reject) => {
    let text = '';
    const connection = net.connect({ path: socket, allowHalfOpen: true }, () => connection.end(`${JSON.stringify(request)}\n`));
    connection.on('data', (data) => { text += data; });
    connection.on('end', () => resolve(JSON.parse(text.trimEnd().split('\n').at(-1))));
    connection.on('error', reject);
  });
}

async function started(command, args, socket, env = process.env) {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
  let said = '';
  child.stderr.on('data', (data) => { said += data; });
  const ended = new Promise((resolve) => child.on('close', (code) => resolve(code)));
  await eventually(`${command} listens; it said: ${said}`, () => fs.existsSync(socket));
  return { child, ended, said: () => said };
}

test('S01 S06 S08 S12-S24: started by its socket, it switches a container once and ends when nobody comes', async (t) => {
  if (!isRoot(t)) return;
  if (!hasProgram('systemd-socket-activate')) return cannotRun(t, 'systemd-socket-activate is missing');
  const host = makeHost();
  fs.writeFileSync(host.at('etc/hive-priv.json'), '{"idle_exit_seconds":1,"peer_groups":["0"]}');
  const activator = await started('systemd-socket-activate', ['-l', host.socket, program, '--root', host.host], host.socket);
  try {
    const first = await ask(host.socket, flagsRequest);
    assert.equal(first.ok, true, JSON.stringify(first));
    assert.equal(first.result.switched, true);
    assert.equal(first.result.salvage, 'done');
    assert.equal(fs.readFileSync(path.join(host.at(first.result.salvage_path), 'home/iris/pre-switch.txt'), 'utf8'), 'pre-switch\n');
    assert.equal(fs.statSync(path.join(host.at(first.result.salvage_path), 'evil/deep/er/suid')).mode & 0o7777, 0o755);
    assert.equal(fs.readFileSync(path.join(host.at(first.result.old_root), 'home/iris/pre-switch.txt'), 'utf8'), 'pre-switch\n');
    const conf = fs.readFileSync(host.at('etc/nixos-containers/h-iris.conf'), 'utf8');
    assert.equal(conf.split('--ephemeral').length, 2);
    // systemd-socket-activate becomes the program, so its end is the program's.
    assert.equal(await activator.ended, 0, activator.said());
  } finally {
    activator.child.kill('SIGKILL');
  }
  const second = await started(program, ['serve', '--root', host.host, '--listen', `${host.socket}2`], `${host.socket}2`);
  try {
    const again = await ask(`${host.socket}2`, flagsRequest);
    assert.deepEqual(again, { ok: true, result: { switched: false, salvage: 'none', conf_changed: false } });
    assert.match(second.said(), /op=write_nspawn_flags container=h-iris result=ok peer_uid=0/);
  } finally {
    second.child.kill('SIGTERM');
  }
  assert.equal(await second.ended, 0);
});

test('S34-S37: the check before a start, as container@.service runs it', async (t) => {
  if (!isRoot(t)) return;
  const host = makeHost();
  const check = (...args) => run(program, ['check-rootfs', ...args, '--root', host.host]);
  assert.deepEqual(await check('h-iris'), { code: 0, signal: null, stdout: '', stderr: '' });
  fs.symlinkSync(host.folder, host.guest('root'));
  const refused = await check('h-iris');
  assert.equal(refused.code, 1);
  assert.equal(refused.stderr, `check-rootfs: refusing to start: ${host.guest('root')} is a symlink\n`);
  assert.ok(fs.lstatSync(host.guest('root')).isSymbolicLink());
  fs.unlinkSync(host.guest('root'));
  fs.mkdirSync(host.guest('root'), { mode: 0o700 });
  assert.equal((await check('h-iris')).code, 0);
  assert.equal((await check('../h-iris')).code, 2);
  assert.equal((await run(program, ['check-rootfs'])).code, 2);
  fs.writeFileSync(host.at('etc/hive-priv.json'), '{"bridge":1}');
  const unreadable = await check('h-iris');
  assert.equal(unreadable.code, 1, 'settings that cannot be read refuse the start');
  assert.match(unreadable.stderr, /hive-priv\.json: unknown key "bridge"; is "bridges" meant\?/);
});

test('the command line says what it is for and what is wrong', async () => {
  const help = await run(program, ['--help']);
  assert.equal(help.code, 0);
  assert.match(help.stdout, /Examples:/);
  for (const args of [['nonsense'], ['--nonsense'], ['serve', '--listen'], ['serve', '--root', 'relative'], ['check-rootfs', 'a', 'b']]) {
    const wrong = await run(program, args);
    assert.equal(wrong.code, 2, args.join(' '));
    assert.match(wrong.stderr, /see hive-priv --help/);
  }
  const alone = await run(program, ['serve']);
  assert.equal(alone.code, 1);
  assert.match(alone.stderr, /start hive-priv\.socket, or give --listen PATH/);
});

test('a switch makes no system call with a path of the guest\'s after the first descriptor', async (t) => {
  if (!isRoot(t)) return;
  if (!hasProgram('strace')) return cannotRun(t, 'strace is missing');
  if ((await run('strace', ['-o', '/dev/null', 'true'])).code !== 0) return t.skip('nothing may be traced here');
  const host = makeHost();
  const trace = path.join(host.folder, 'trace');
  const traced = await started('strace', ['-f', '-o', trace, '-s', '4096', '-e', 'trace=%file,%desc,accept4', program, 'serve', '--root', host.host, '--listen', host.socket], host.socket);
  let answer;
  try {
    answer = await ask(host.socket, flagsRequest);
  } finally {
    // SIGTERM to strace is passed on to nobody; the program is its only child.
    const children = fs.readFileSync(`/proc/${traced.child.pid}/task/${traced.child.pid}/children`, 'utf8').trim().split(' ');
    process.kill(Number(children[0]), 'SIGTERM');
    await traced.ended;
  }
  assert.equal(answer.result?.switched, true, JSON.stringify(answer));
  const lines = fs.readFileSync(trace, 'utf8').split('\n');
  const calls = lines.slice(lines.findIndex((line) => line.includes('accept4(')));
  const openat2 = calls.filter((line) => line.includes(' openat2('));
  assert.ok(openat2.length > 20, 'the trace shows the walk');
  for (const line of openat2) assert.match(line, /RESOLVE_NO_MAGICLINKS\|RESOLVE_NO_SYMLINKS\|RESOLVE_BENEATH/, line);
  // Every other call that takes a name: the first descriptor, what the system's libraries and /proc are asked, or one name
  // in an open folder.
  for (const line of calls) {
    const call = line.match(/^\d+\s+(\w+)\((.*)$/);
    if (!call || call[1] === 'openat2' || !/^(open|creat|stat|lstat|access|readlink|chmod|chown|lchown|rename|link|symlink|unlink|mkdir|rmdir|mknod|truncate|\w+at2?|utime\w*|\w+xattr)$/.test(call[1])) continue;
    if (/^f\w+xattr$/.test(call[1])) continue;
    const names = [...call[2].matchAll(/(AT_FDCWD|\d+), "((?:[^"\\]|\\.)*)"/g)];
    for (const [, folder, name] of names) {
      if (folder === 'AT_FDCWD') {
        assert.match(name, new RegExp(`^(${host.host}|/proc/self/fd/\\d+|/proc/\\d+/cgroup|/(etc|usr|proc/sys|sys|lib)/.*)$`), line);
      } else {
        assert.ok(!name.includes('/'), line);
      }
    }
    // What a new link says is no path that is looked up.
    if (call[1] !== 'symlinkat') assert.doesNotMatch(call[2], /^"/, `a call without a folder: ${line}`);
  }
});
