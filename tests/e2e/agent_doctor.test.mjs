// myrmex-agent doctor: what it says of a healthy agent, and of each way in which the way to the gateway can be broken.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { OwnAgent } from './support/agent.mjs';
import { Hive, eventually, run } from './support/hive.mjs';

let hive;
let agent;
before(async () => {
  hive = await Hive.start({ agents: 0 });
  agent = await OwnAgent.create(hive, 'patient');
});
after(async () => {
  await agent.end();
  await hive.stop();
});

// The report as a map from "group/check" to the check.
async function examine(...words) {
  const result = await agent.doctor('-o', 'json', ...words);
  assert.equal(result.stderr, '');
  const report = JSON.parse(result.stdout);
  assert.equal(report.exit_code, result.code);
  assert.equal(report.ok, result.code === 0);
  const checks = {};
  for (const group of report.groups) {
    const kind = group.title.split(' ')[0].toLowerCase();
    for (const check of group.checks) checks[`${kind}/${check.name}`] = check;
  }
  return { code: result.code, report, checks, status: (name) => checks[name]?.status };
}

const order = ['name', 'tcp', 'proxy', 'ssh', 'host key', 'login', 'question', 'clock'];

// Everything before the failed step is fine, everything after it is not reached.
function assertEndsAt({ checks, status }, failed) {
  const at = order.indexOf(failed);
  order.forEach((name, index) => {
    const found = status(`gateway/${name}`);
    if (index < at) assert.ok(['ok', 'warning', 'skipped'].includes(found), `${name}: ${found}`);
    if (index === at) assert.equal(found, 'failed', JSON.stringify(checks[`gateway/${name}`]));
    if (index > at) assert.equal(checks[`gateway/${name}`].detail, 'not reached', name);
  });
  assert.ok(checks[`gateway/${failed}`].remedy, 'a failure comes with a remedy');
}

test('a healthy agent is found healthy, and its tunnel is left alone', async () => {
  agent.configure({});
  agent.start();
  await agent.online();
  const connectedAt = (await hive.agents()).find((other) => other.id === 'patient').connected_at;
  const { code, checks } = await examine();
  assert.equal(code, 0, JSON.stringify(checks, null, 2));
  assert.match(checks['gateway/login'].detail, /^the key SHA256:\S+ is accepted for patient/);
  assert.match(checks['gateway/host key'].detail, /as gateway_host_key says/);
  assert.equal(checks['gateway/clock'].detail, 'the clocks agree within a second');
  assert.match(checks['the/tunnel'].detail, /^online at 127\.0\.0\.1:\d+, from 127\.0\.0\.1$/);
  const after = (await hive.agents()).find((other) => other.id === 'patient');
  assert.ok(after.online);
  assert.equal(after.connected_at, connectedAt, 'it is the same connection');
  assert.equal(hive.audit().filter((entry) => entry.action === 'agent_offline' && entry.agent === 'patient').length, 0);

  const text = await agent.doctor();
  assert.equal(text.code, 0);
  assert.match(text.stdout, /^Gateway 127\.0\.0\.1:\d+$/m);
  assert.match(text.stdout, /^ok {8}login {7}the key/m);
  assert.doesNotMatch(text.stdout, /\x1b/);
  await agent.end();
});

test('an agent that does not run is missed', async () => {
  await eventually('it is offline', async () => !(await hive.online('patient')), { within: 60_000 });
  const { code, checks } = await examine();
  assert.equal(code, 1);
  assert.equal(checks['the/tunnel'].status, 'warning');
  assert.match(checks['the/tunnel'].remedy, /systemctl start myrmex-agent/);
  assert.ok(!(await hive.online('patient')), 'the doctor is not taken for the agent');
});

test('a host without address', async () => {
  agent.configure({ gateway_addr: 'no-such-host.invalid:2222' });
  const found = await examine();
  assert.equal(found.code, 5);
  assertEndsAt(found, 'name');
  // Without a name server in reach it takes longer than a step may.
  assert.match(found.checks['gateway/name'].detail, /no-such-host\.invalid/);
});

test('a port where nobody listens', async () => {
  agent.configure({ gateway_addr: '127.0.0.1:1' });
  const found = await examine();
  assert.equal(found.code, 5);
  assertEndsAt(found, 'tcp');
  assert.match(found.checks['gateway/tcp'].detail, /Connection refused/);
});

test('the web port in place of the SSH port', async () => {
  agent.configure({ gateway_addr: new URL(hive.env.MYRMEX_HTTP_URL).host });
  const found = await examine('--timeout', '20');
  assert.equal(found.code, 5);
  assertEndsAt(found, 'ssh');
  assert.match(found.checks['gateway/ssh'].remedy, /SSH port/);
});

test('a proxy that is not there, and one that refuses', async (t) => {
  agent.configure({ proxy: 'http://127.0.0.1:1' });
  const missing = await examine();
  assert.equal(missing.code, 5);
  assertEndsAt(missing, 'tcp');
  assert.match(missing.checks['gateway/tcp'].detail, /proxy http:\/\/127\.0\.0\.1:1 cannot be reached/);

  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n'));
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => server.close());
  agent.configure({ proxy: `http://me:hunter2@127.0.0.1:${server.address().port}` });
  const refusing = await examine();
  assert.equal(refusing.code, 5);
  assertEndsAt(refusing, 'proxy');
  assert.match(refusing.checks['gateway/proxy'].detail, /407 Proxy Authentication Required; check the user/);
  assert.ok(!JSON.stringify(refusing.report).includes('hunter2'));
});

test('a key that the gateway does not know', async () => {
  const key = path.join(agent.folder, 'unknown');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'patient', '-f', key]);
  agent.configure({ private_key_path: key });
  const found = await examine();
  assert.equal(found.code, 3);
  assertEndsAt(found, 'login');
  assert.ok(found.checks['gateway/login'].remedy.endsWith(fs.readFileSync(`${key}.pub`, 'utf8').trim()),
    'the remedy is the line to add');
});

test('a key that is not there, or that others can read', async () => {
  agent.configure({ private_key_path: path.join(agent.folder, 'missing') });
  const missing = await examine();
  assert.equal(missing.code, 1);
  assert.equal(missing.status('this/key'), 'failed');
  assert.match(missing.checks['this/key'].remedy, /ssh-keygen -t ed25519/);
  assert.equal(missing.status('gateway/host key'), 'ok', 'the way is looked at as far as it goes without a key');
  assert.equal(missing.status('gateway/login'), 'skipped');

  const loose = path.join(agent.folder, 'loose');
  fs.copyFileSync(agent.key, loose);
  fs.chmodSync(loose, 0o644);
  agent.configure({ private_key_path: loose });
  const open = await examine();
  assert.equal(open.code, 1);
  assert.match(JSON.stringify(open.checks), /chmod/);
});

test('another host key than the one that is known, and none at all', async () => {
  const other = path.join(agent.folder, 'other_host_key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', other]);
  const [host, port] = hive.env.MYRMEX_SSH_ADDR.split(':');
  const known = path.join(agent.folder, 'known_hosts');
  fs.writeFileSync(known, `[${host}]:${port} ${fs.readFileSync(`${other}.pub`, 'utf8')}`);
  agent.configure({ gateway_host_key: undefined, known_host_key_path: known });
  const changed = await examine();
  assert.equal(changed.code, 3);
  assertEndsAt(changed, 'host key');
  const fingerprint = (file) => execFileSync('ssh-keygen', ['-lf', file], { encoding: 'utf8' }).split(' ')[1];
  assert.ok(changed.checks['gateway/host key'].detail.includes(fingerprint(`${other}.pub`)), 'the one that is known');
  assert.ok(changed.checks['gateway/host key'].detail.includes(fingerprint(hive.env.MYRMEX_HOST_KEY)), 'the one that is shown');

  fs.rmSync(known);
  const unknown = await examine();
  assert.equal(unknown.code, 1);
  assert.equal(unknown.status('gateway/host key'), 'warning');
  assert.equal(unknown.status('gateway/login'), 'ok');
  assert.ok(!fs.existsSync(known), 'nothing is written');
});

test('one gateway of two', async () => {
  agent.configure({ gateway_addr: undefined, gateway_addrs: ['127.0.0.1:1', hive.env.MYRMEX_SSH_ADDR] });
  agent.start();
  await agent.online();
  const both = await agent.doctor('-o', 'json');
  assert.equal(both.code, 5);
  const groups = JSON.parse(both.stdout).groups;
  assert.equal(groups.length, 4);
  assert.equal(groups[3].checks[0].status, 'ok', 'one of them has the agent');
  assert.equal((await agent.doctor('--gateway', hive.env.MYRMEX_SSH_ADDR)).code, 0);
  await agent.end();
});

test('a configuration that does not load', async () => {
  fs.writeFileSync(agent.file, '{"agent_id": "patient", "gatway_addr": "x"}', { mode: 0o600 });
  const result = await agent.doctor();
  assert.equal(result.code, 1);
  assert.match(result.stdout, /^failed +config +.*gatway_addr: unknown key; did you mean "gateway_addr"\?/m);
  assert.match(result.stdout, /-> see: myrmex-agent --check-config/);
});

test('mistakes on the command line, help and completion', async () => {
  for (const words of [['--colour'], ['--timeout', '0'], ['--timeout', 'soon'], ['-o', 'xml'], ['--gateway', 'a b'], ['--config']]) {
    const result = await run('myrmex-agent', ['doctor', ...words]);
    assert.equal(result.code, 2, words.join(' '));
    assert.match(result.stderr, /^myrmex-agent doctor: /);
  }
  const help = await run('myrmex-agent', ['doctor', '--help']);
  assert.equal(help.code, 0);
  assert.match(help.stdout, /Exit codes:/);
  for (const shell of ['bash', 'zsh', 'fish']) {
    const script = await run('myrmex-agent', ['completion', shell]);
    assert.equal(script.code, 0);
    assert.match(script.stdout, /doctor/);
  }
  assert.equal((await run('myrmex-agent', ['completion', 'tcsh'])).code, 2);
  const offered = await run('bash', ['-c', `source <(myrmex-agent completion bash)
    COMP_WORDS=(myrmex-agent doctor --g) COMP_CWORD=2; _myrmex_agent; echo "\${COMPREPLY[@]}"`]);
  assert.equal(offered.stdout.trim(), '--gateway');
});
