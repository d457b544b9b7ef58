// What a gateway and an agent make of a network that misbehaves: how long until each end notices, and until calls
// succeed again once it is mended; and how much of a long fat path a tunnel fills. Needs root, for network namespaces.

import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { agentAddress, obstacle } from '../tests/e2e/support/network.mjs';
import { RemoteAgent } from '../tests/e2e/support/remote_agent.mjs';
import { median } from './measure.mjs';

const seconds = (ms) => (ms === null ? '' : (ms / 1000).toFixed(1));

async function outages(here, keepalive) {
  const { agent, router, network, hive } = here;
  const rows = [];
  const add = (what, { gateway_noticed, agent_noticed, recovered, running }) => rows.push({
    what, 'gateway notices, s': seconds(gateway_noticed), 'agent notices, s': seconds(agent_noticed), 'calls again, s': seconds(recovered), 'the running call': running.outcome,
  });
  add('all packets lost', await agent.outage({ breaks: () => router.lose(100), mends: () => router.heal() }));
  add('the agent has another address', await agent.outage({ breaks: () => network.setAgentAddress('198.18.2.77'), mends: () => {} }));
  await network.setAgentAddress(agentAddress);
  await agent.works();
  add('the agent\'s machine is gone', await agent.machineLoss());

  // Half open: the gateway's machine went without a word and is back before the agent has noticed.
  const broken = Date.now();
  await router.lose(100);
  await hive.end('gateway', 'SIGKILL');
  await hive.up('--agents', '0');
  await router.heal();
  const noticed = await agent.says(/not connected to a gateway/, broken);
  await agent.works();
  rows.push({ what: 'half open: the gateway\'s machine is another', 'gateway notices, s': '', 'agent notices, s': seconds(noticed - broken), 'calls again, s': seconds(Date.now() - noticed), 'the running call': '' });

  const big = () => agent.call('run_command', { name: 'head', args: ['-c', '60000', '/dev/zero'] });
  const began = Date.now();
  await router.blackHole(1280);
  while ((await big()).outcome !== 'success') await delay(100);
  rows.push({ what: 'packets over 1,280 bytes vanish', 'gateway notices, s': '', 'agent notices, s': '', 'calls again, s': seconds(Date.now() - began), 'the running call': '' });
  await router.heal();
  await agent.works();

  const pid = hive.pid('gateway');
  const frozen = Date.now();
  process.kill(pid, 'SIGSTOP');
  await agent.says(/not connected to a gateway/, frozen, 10 * keepalive * 1000 + 60_000).then((at) => {
    rows.push({ what: 'the gateway stands still', 'gateway notices, s': '', 'agent notices, s': seconds(at - frozen), 'calls again, s': '', 'the running call': '' });
  });
  process.kill(pid, 'SIGCONT');
  const thawed = Date.now();
  await agent.works();
  rows.at(-1)['calls again, s'] = seconds(Date.now() - thawed);
  return rows;
}

// A relay that ends connections on which nothing was sent for a while, as proxies and NAT do.
function idlingRelay(idle_ms) {
  const state = { cut: 0 };
  state.server = net.createServer((near) => {
    const far = net.connect(state.target);
    for (const [from, to] of [[near, far], [far, near]]) {
      from.setTimeout(idle_ms, () => {
        state.cut += 1;
        near.destroy();
        far.destroy();
      });
      from.on('error', () => to.destroy()).on('close', () => to.destroy()).pipe(to);
    }
  });
  return state;
}

async function idleProxy(keepalive, idle_ms, wait_ms) {
  const relay = idlingRelay(idle_ms);
  await new Promise((resolve) => relay.server.listen(0, resolve));
  const here = await RemoteAgent.lab('namespace', {
    keepalive_seconds: keepalive,
    relay: (host, port) => {
      relay.target = { host: '127.0.0.1', port: Number(port) };
      return `${host}:${relay.server.address().port}`;
    },
  });
  try {
    await delay(wait_ms);
    await here.agent.works();
    return { cut: relay.cut };
  } finally {
    await here.stop();
    relay.server.close();
  }
}

// Bytes a second of a plain TCP connection from the agent's side to here.
async function plainTcp(here, bytes) {
  const source = 'const [port, bytes] = process.argv.slice(1).map(Number); require("net").createServer((s) => {' +
    'let left = bytes; const piece = Buffer.alloc(65536, 120); const more = () => { while (left > 0) { left -= piece.length; if (!s.write(piece)) return s.once("drain", more); } s.end(); }; more(); }).listen(port, () => console.log("ready"))';
  const child = here.network.spawn(process.execPath, ['-e', source, '47001', String(bytes)], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const began = Date.now();
  let got = 0;
  await new Promise((resolve, reject) => net.connect(47001, agentAddress).on('data', (data) => { got += data.length; }).on('end', resolve).on('error', reject));
  const rate = got / (Date.now() - began) * 1000;
  child.kill('SIGTERM');
  return rate;
}

async function longPath(here, target) {
  const { agent, router, hive } = here;
  const file = path.join(hive.base, 'lines');
  fs.writeFileSync(file, `${'x'.repeat(99)}\n`.repeat(10_000));
  const { size } = fs.statSync(file);
  await router.shape({ delay_ms: 50, rate_mbit: 100 });
  // TCP has learnt the path as it was, and may hold to that for long: another connection.
  await agent.stop();
  agent.run();
  await agent.works();

  const times = [];
  for (let i = 0; i < 20; i++) {
    const began = performance.now();
    await agent.call('get_metrics', {});
    times.push(performance.now() - began);
  }
  const fetchAll = async (count, callers) => {
    let left = count;
    let carried = 0;
    const began = Date.now();
    await Promise.all(Array.from({ length: callers }, async () => {
      while (left-- > 0) {
        const answer = await agent.call('run_command', { name: 'cat', args: [file] });
        if (answer.outcome !== 'success') throw new Error(`${answer.outcome}: ${answer.reason}`);
        // What the tunnel carries is the answer, in which the output stands as text and as data.
        carried += Buffer.byteLength(JSON.stringify(answer.body));
      }
    }));
    return carried / (Date.now() - began) * 1000;
  };
  await fetchAll(8, 4);
  const ours = await fetchAll(48, 8);
  const plain = await plainTcp(here, 48 * size);
  target('goodput of a tunnel over 100 ms at 100 Mbit/s, to plain TCP', (ours / plain).toFixed(2), ours / plain >= 0.8, 'at least 0.8');

  await router.shape({ delay_ms: 50, loss_percent: 30 });
  const lossy = [];
  const outcomes = {};
  for (let i = 0; i < 20; i++) {
    const began = performance.now();
    const { outcome } = await agent.call('get_metrics', {});
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    lossy.push(performance.now() - began);
  }
  await router.heal();
  const mbit = (rate) => (rate * 8 / 1e6).toFixed(1);
  return [
    { what: 'one call, 100 ms there and back', figure: `p50 ${median(times).toFixed(0)} ms, slowest ${Math.max(...times).toFixed(0)} ms` },
    { what: 'answers to 1 MB of output, 8 callers, 100 ms at 100 Mbit/s', figure: `${mbit(ours)} Mbit/s` },
    { what: 'plain TCP on the same path', figure: `${mbit(plain)} Mbit/s` },
    { what: 'one call, 100 ms and 30 % of the packets lost each way', figure: `p50 ${median(lossy).toFixed(0)} ms, slowest ${(Math.max(...lossy) / 1000).toFixed(1)} s; ${Object.entries(outcomes).map(([outcome, count]) => `${count} ${outcome}`).join(', ')}` },
  ];
}

function demand(...kinds) {
  for (const kind of kinds) {
    const reason = obstacle(kind);
    if (reason) throw new Error(reason);
  }
}

export async function network({ table, target, quick }) {
  demand('namespace');
  const keepalive = quick ? 3 : 15;
  const here = await RemoteAgent.lab('namespace', { keepalive_seconds: keepalive });
  let rows;
  try {
    rows = await outages(here, keepalive);
  } finally {
    await here.stop();
  }
  table(`A network that misbehaves, keepalive_seconds ${keepalive}`, rows);
  const slowest = Math.max(...rows.flatMap((row) => [row['gateway notices, s'], row['agent notices, s']]).filter(Boolean).map(Number));
  target('a silent peer is noticed', `${slowest} s`, slowest <= 3 * keepalive + 1, `within three intervals, ${3 * keepalive} s`);

  const idle = quick ? 6 : 30;
  const { cut } = await idleProxy(keepalive, idle * 1000, idle * 2500);
  target(`a proxy that ends what is idle for ${idle} s, over ${idle * 2.5} s`, `${cut} connections cut`, cut === 0, 'none');
}

export async function path100({ table, target }) {
  demand('namespace', 'guest');
  const far = await RemoteAgent.lab('guest', { keepalive_seconds: 15 });
  try {
    table('A long path (netem in a virtual router)', await longPath(far, target));
  } finally {
    await far.stop();
  }
}
