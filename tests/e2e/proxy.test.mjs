// An agent behind a proxy: real ones, one that cuts what is quiet, and ones that refuse.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, afterEach, before, test } from 'node:test';

import { OwnAgent, start } from './support/agent.mjs';
import { Hive, cannotRun, eventually, hasProgram, run } from './support/hive.mjs';

const password = 'correct-horse-battery';
let hive;
let agent;
before(async () => {
  // Both ends probe a tunnel; here every second.
  hive = await Hive.start({ agents: 0, gateway: { keepalive_seconds: 1 } });
  agent = await OwnAgent.create(hive, 'behind-proxy');
});
after(() => hive.stop());
afterEach(() => agent.end());

async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const { port } = server.address();
  await new Promise((resolve) => { server.close(resolve); });
  return port;
}

const accepts = (port) => new Promise((resolve) => {
  const socket = net.connect(port, '127.0.0.1');
  socket.once('connect', () => { socket.destroy(); resolve(true); });
  socket.once('error', () => resolve(false));
});

// A real proxy on a free port of the loopback.
async function realProxy(program, args) {
  const port = await freePort();
  const proxy = start(program, args(port));
  await eventually(`${program} listens`, async () => {
    assert.equal(proxy.child.exitCode, null, `${program} has ended: ${proxy.lines.join('\n')}`);
    return accepts(port);
  }, { within: 60_000 });
  return { ...proxy, port };
}

const tinyproxy = (...extra) => realProxy('tinyproxy', (port) => {
  const file = path.join(hive.base, `tinyproxy-${port}.conf`);
  const [, sshPort] = hive.env.MYRMEX_SSH_ADDR.split(':');
  fs.writeFileSync(file, [`Port ${port}`, 'Listen 127.0.0.1', 'Timeout 600', 'Allow 127.0.0.1', `ConnectPort ${sshPort}`,
    'LogLevel Info', ...extra, ''].join('\n'));
  return ['-d', '-c', file];
});

// A proxy for CONNECT in the test's own hands. `idle`: milliseconds after which a quiet tunnel is cut.
async function ownProxy({ idle } = {}) {
  const tunnels = [];
  const server = net.createServer((near) => {
    let head = '';
    const onHead = (piece) => {
      head += piece.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      near.off('data', onHead);
      const [, host, port] = head.match(/^CONNECT ([^ ]+):(\d+) HTTP\/1\.1\r\n/);
      const far = net.connect(Number(port), host, () => {
        near.write('HTTP/1.1 200 OK\r\n\r\n');
        near.pipe(far).pipe(near);
      });
      const tunnel = { near, far, open: true, cut: false };
      tunnels.push(tunnel);
      const close = () => { tunnel.open = false; near.destroy(); far.destroy(); };
      let timer;
      const touch = () => {
        clearTimeout(timer);
        if (idle && tunnel.open) timer = setTimeout(() => { tunnel.cut = true; close(); }, idle);
      };
      for (const side of [near, far]) {
        side.on('data', touch);
        side.on('error', close);
        side.on('close', () => { clearTimeout(timer); close(); });
      }
      touch();
    };
    near.on('data', onHead);
    near.on('error', () => {});
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return {
    tunnels,
    port: server.address().port,
    async end() {
      for (const tunnel of tunnels) tunnel.near.destroy();
      await new Promise((resolve) => { server.close(resolve); });
    },
  };
}

const callWorks = async () => {
  const answer = await hive.call('behind-proxy__run_command', { name: 'uptime' });
  assert.equal(answer.outcome, 'success', JSON.stringify(answer.body));
};

test('a tunnel goes through tinyproxy, with user and password', async (t) => {
  if (!hasProgram('tinyproxy')) return cannotRun(t, 'tinyproxy is not installed');
  const proxy = await tinyproxy(`BasicAuth agents ${password}`);
  t.after(() => proxy.end());
  fs.writeFileSync(path.join(hive.base, 'proxy_password'), password, { mode: 0o600 });
  agent.configure({
    proxy: `http://agents@127.0.0.1:${proxy.port}`,
    proxy_password: `file:${path.join(hive.base, 'proxy_password')}`,
  });
  const running = agent.start();
  await agent.online();
  await callWorks();
  assert.ok(!running.lines.join('\n').includes(password), 'the log shows no password');
  const shown = await run('myrmex-agent', ['--check-config', agent.file]);
  assert.match(shown.stdout, /proxy +http:\/\/127\.0\.0\.1:\d+, as "agents"/);
  assert.ok(!(shown.stdout + shown.stderr).includes(password), 'neither does the check');
});

test('what tinyproxy refuses is told with its own words', async (t) => {
  if (!hasProgram('tinyproxy')) return cannotRun(t, 'tinyproxy is not installed');
  const proxy = await tinyproxy(`BasicAuth agents ${password}`);
  t.after(() => proxy.end());
  agent.configure({ proxy: `http://127.0.0.1:${proxy.port}` });
  const running = agent.start();
  await eventually('the refusal is in the log', () =>
    running.said(/proxy http:\/\/127\.0\.0\.1:\d+ refused CONNECT 127\.0\.0\.1:\d+: 407 .*; set the user in proxy/), { within: 60_000 });
  await agent.end();

  agent.configure({ proxy: `http://agents:${password}@127.0.0.1:${proxy.port}`, gateway_addr: '127.0.0.1:1' });
  const other = agent.start();
  await eventually('another port is refused', () => other.said(/refused CONNECT 127\.0\.0\.1:1: 403 .*allow CONNECT/), { within: 60_000 });
  assert.ok(!other.lines.join('\n').includes(password));
});

for (const scheme of ['socks5', 'socks5h']) {
  test(`a tunnel goes through microsocks by ${scheme}, with user and password`, async (t) => {
    if (!hasProgram('microsocks')) return cannotRun(t, 'microsocks is not installed');
    const proxy = await realProxy('microsocks', (port) => ['-i', '127.0.0.1', '-p', String(port), '-u', 'agents', '-P', password]);
    t.after(() => proxy.end());
    const [, port] = hive.env.MYRMEX_SSH_ADDR.split(':');
    agent.configure({ proxy: `${scheme}://agents:${password}@127.0.0.1:${proxy.port}`, gateway_addr: `localhost:${port}` });
    const running = agent.start();
    await agent.online();
    await callWorks();
    assert.ok(!running.lines.join('\n').includes(password), 'the log shows no password');
  });
}

test('a wrong password is refused by microsocks, and said so', async (t) => {
  if (!hasProgram('microsocks')) return cannotRun(t, 'microsocks is not installed');
  const proxy = await realProxy('microsocks', (port) => ['-i', '127.0.0.1', '-p', String(port), '-u', 'agents', '-P', password]);
  t.after(() => proxy.end());
  agent.configure({ proxy: `socks5h://agents:not-the-password@127.0.0.1:${proxy.port}` });
  const running = agent.start();
  await eventually('the refusal is in the log', () =>
    running.said(/proxy socks5h:\/\/127\.0\.0\.1:\d+ refused user and password/), { within: 60_000 });
  assert.ok(!running.lines.join('\n').includes('not-the-password'));
});

test('no_proxy dials directly', async () => {
  agent.configure({ proxy: 'http://127.0.0.1:1', no_proxy: ['127.0.0.1'] });
  agent.start();
  await agent.online();
  await callWorks();
});

test('variables of the environment do not move the way', async () => {
  agent.configure({});
  const nowhere = 'http://127.0.0.1:1';
  agent.start({ env: { ...process.env, HTTPS_PROXY: nowhere, https_proxy: nowhere, ALL_PROXY: nowhere, all_proxy: nowhere } });
  await agent.online();
});

test('keepalives carry a tunnel through a proxy that cuts what is quiet', async (t) => {
  const proxy = await ownProxy({ idle: 15_000 });
  t.after(() => proxy.end());
  agent.configure({ proxy: `http://127.0.0.1:${proxy.port}`, keepalive_seconds: 1 });
  agent.start();
  await agent.online();
  const [tunnel] = proxy.tunnels;
  // A second tunnel, younger than the agent's, to a port where nobody speaks.
  const quiet = net.createServer();
  await new Promise((resolve) => { quiet.listen(0, '127.0.0.1', resolve); });
  t.after(() => quiet.close());
  const silent = net.connect(proxy.port, '127.0.0.1');
  silent.on('error', () => {});
  silent.write(`CONNECT 127.0.0.1:${quiet.address().port} HTTP/1.1\r\n\r\n`);
  await eventually('the quiet tunnel is cut', () => proxy.tunnels.some((other) => other !== tunnel && other.cut), { within: 120_000 });
  assert.ok(tunnel.open, 'the older one of the agent stands');
  await callWorks();
});

test('an agent whose tunnel a proxy cuts comes back through it', async (t) => {
  const proxy = await ownProxy();
  t.after(() => proxy.end());
  agent.configure({ proxy: `http://127.0.0.1:${proxy.port}` });
  agent.start();
  await agent.online();
  proxy.tunnels[0].near.destroy();
  proxy.tunnels[0].far.destroy();
  await eventually('a second tunnel', () => proxy.tunnels.length > 1, { within: 60_000 });
  await agent.online();
  await eventually('calls work again', async () =>
    (await hive.call('behind-proxy__run_command', { name: 'uptime' })).outcome === 'success', { within: 60_000 });
});

test('a proxy that accepts and closes at once is not hammered', async (t) => {
  let connections = 0;
  const server = net.createServer((socket) => {
    ++connections;
    socket.on('error', () => {});
    socket.once('data', () => { socket.end('HTTP/1.1 200 OK\r\n\r\n'); });
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => server.close());
  agent.configure({ proxy: `http://127.0.0.1:${server.address().port}` });
  const running = agent.start();
  const waits = () => running.lines.map((line) => line.match(/retry_in_ms=(\d+)/)).filter(Boolean).map((found) => Number(found[1]));
  await eventually('three tries', () => waits().length >= 3, { within: 120_000 });
  assert.ok(connections <= waits().length + 1, 'one connection a try');
});
