// The benchmarks of a large fleet. The gateway, the swarm and the callers share the machine's cores.

import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { BenchHive } from '../hive.mjs';
import { cpuOf, descriptorsOf, folder, memoryOf, settledMemory, wrk } from '../measure.mjs';
import { mebibytes, milliseconds, rate, round1, table, target } from '../report.mjs';
import { Callers } from './callers.mjs';
import { Swarm } from './swarm.mjs';

const thousands = (value) => value.toLocaleString('en-US');
const percent = (share) => `${round1(share * 100)} %`;

// A busy machine takes its time; what it took is in the figures.
const patience = 300_000;

// Agents that are strewn over a network do not all start in one second either.
const spread = (agents) => ['--spread-ms', Math.max(1000, agents)];

function callOf(hive, agent) {
  return {
    url: `${hive.env.MYRMEX_HTTP_URL}/api/call`,
    headers: { Authorization: `Bearer ${hive.env.MYRMEX_TOKEN}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ name: `${agent}__get_metrics`, arguments: {} }),
  };
}

async function usedCpu(pid, work) {
  const before = cpuOf(pid);
  const start = performance.now();
  const result = await work();
  return { ...result, cpu: cpuOf(pid) - before, took: (performance.now() - start) / 1000 };
}

// What a fleet costs that does nothing, and how soon one of it answers.
async function online({ agents, seconds }) {
  const hive = await BenchHive.start();
  try {
    const gateway = hive.pid('gateway');
    const base = await settledMemory(gateway);
    const alone = await wrk({ ...callOf(hive, 'agent-1'), callers: 1, seconds });
    const swarm = await hive.swarm(agents, spread(agents));
    const all = await swarm.allOnline({ within: patience });
    const memory = await settledMemory(gateway);
    const ofSwarm = memoryOf(swarm.pid);
    // Two keepalive periods of 15 s.
    const idle = await usedCpu(gateway, () => delay(30_000));
    const among = await wrk({ ...callOf(hive, `swarm-${agents >> 1}`), callers: 1, seconds });
    // Every agent was called once: what a call leaves behind.
    await wrk({ ...callOf(hive, 'swarm-%AGENT%'), agents, callers: 64, seconds: Math.max(seconds, agents / 2000) });
    const called = await settledMemory(gateway);
    await swarm.stop();
    await hive.waitUntil('the gateway has noticed that they are gone', () => descriptorsOf(gateway) < 100);
    // Memory of tunnels that have ended is given back a little later.
    await delay(15_000);
    const gone = await settledMemory(gateway);
    await hive.verifyLog();

    const each = (of) => `${round1((of.pss - base.pss) / agents / 1024)} KiB`;
    table(`${thousands(agents)} agents in one gateway, all online after ${round1(all.wave_seconds)} s`, [
      { what: 'gateway, 1 agent', 'PSS MiB': mebibytes(base.pss), 'RSS MiB': mebibytes(base.rss), 'each agent': '' },
      { what: `gateway, ${thousands(agents + 1)} agents`, 'PSS MiB': mebibytes(memory.pss), 'RSS MiB': mebibytes(memory.rss), 'each agent': each(memory) },
      { what: 'the same, after a call to each', 'PSS MiB': mebibytes(called.pss), 'RSS MiB': mebibytes(called.rss), 'each agent': each(called) },
      { what: 'the same, when they have gone', 'PSS MiB': mebibytes(gone.pss), 'RSS MiB': mebibytes(gone.rss), 'each agent': each(gone) },
      { what: 'the swarm itself', 'PSS MiB': mebibytes(ofSwarm.pss), 'RSS MiB': mebibytes(ofSwarm.rss), 'each agent': `${round1(ofSwarm.pss / agents / 1024)} KiB` },
    ]);
    table('One caller, a cheap call to one of them', [
      { agents: 1, 'calls/s': rate(alone.rate), 'p50 ms': milliseconds(alone.p50), 'p99 ms': milliseconds(alone.p99) },
      { agents: thousands(agents + 1), 'calls/s': rate(among.rate), 'p50 ms': milliseconds(among.p50), 'p99 ms': milliseconds(among.p99) },
    ]);
    const bytes = Math.max(memory.pss, called.pss) - base.pss;
    target(`gateway memory for each of ${thousands(agents)} agents`, `${round1(bytes / agents / 1024)} KiB`, bytes <= agents * 32 * 1024, 'at most 32 KiB');
    target(`idle gateway with ${thousands(agents)} agents`, `${percent(idle.cpu / idle.took)} of a core`, idle.cpu / idle.took < 0.1, 'under 10 %');
    target(`a call to one of ${thousands(agents)}, p99`, `${milliseconds(among.p99)} ms`, among.p99 < 5000, 'under 5 ms');
  } finally {
    await hive.stop();
  }
}

// Dials of each stretch of time, as a row of blocks.
function histogram(perSecond) {
  const blocks = ' ▁▂▃▄▅▆▇█';
  const most = Math.max(...perSecond);
  return perSecond.map((count) => blocks[count === 0 ? 0 : Math.ceil(count / most * 8)]).join('');
}

// How a fleet comes back from a gateway that ended, and what callers see meanwhile.
async function restart({ agents }) {
  const hive = await BenchHive.start();
  const rows = [];
  const seen = [];
  try {
    const swarm = await hive.swarm(agents, spread(agents));
    await swarm.allOnline({ within: patience });
    for (const [how, signal] of [['killed', 'SIGKILL'], ['stopped in good order', 'SIGTERM']]) {
      const after = swarm.events.length;
      const callers = Callers.start(hive, agents);
      await hive.endGateway(signal);
      await hive.up();
      const back = performance.now();
      const all = await swarm.allOnline({ after, within: patience });
      const cpu = cpuOf(hive.pid('gateway'));
      const took = (performance.now() - back) / 1000;
      await callers.stop();
      const { agents: known } = await (await hive.fetch('/api/status')).json();
      const lost = agents + 1 - known.filter((agent) => agent.online).length;
      const busiest = Math.max(...all.dials_each_second);
      rows.push({
        gateway: how, 'all back s': round1(all.wave_seconds), 'half back s': round1(all.return_ms.p50 / 1000), 'lost': lost,
        dials: thousands(all.dials), 'refused or failed': thousands(all.failed_dials), 'busiest second': thousands(busiest), 'gateway CPU s': round1(cpu),
      });
      console.log(`\n  dials each second, the gateway ${how}: |${histogram(all.dials_each_second)}|`);
      for (const [reason, count] of Object.entries(all.reasons).sort((a, b) => b[1] - a[1])) console.log(`    ${thousands(count)}  ${reason}`);
      seen.push(...callers.rows().map((row) => ({ gateway: how, ...row })));
      target(`${thousands(agents)} agents back after the gateway was ${how}`, `${round1(all.wave_seconds)} s, ${lost} lost, ready for ${round1(took)} s`,
        all.wave_seconds < 60 && lost === 0, 'all within 60 s');
    }
    await hive.verifyLog();
    await swarm.stop();
    table(`${thousands(agents)} agents and a gateway that ends and starts again`, rows);
    table('What 16 callers see meanwhile, a call every 50 ms each', seen);
  } finally {
    await hive.stop();
  }
}

// Calls that are spread over many agents share nothing but the gateway.
async function scattered({ agents, seconds }) {
  const rows = [];
  const costs = new Map();
  for (const count of [...new Set([100, 1000, agents])].filter((size) => size <= agents)) {
    const hive = await BenchHive.start();
    try {
      const swarm = await hive.swarm(count, spread(count));
      await swarm.allOnline({ within: patience });
      const gateway = hive.pid('gateway');
      const load = { ...callOf(hive, 'swarm-%AGENT%'), agents: count, callers: 64 };
      await wrk({ ...load, seconds: Math.max(2, Math.ceil(count / 4000)) }); // every agent has been called when the clock runs
      const cpuOfSwarm = cpuOf(swarm.pid);
      const measured = await usedCpu(gateway, () => wrk({ ...load, seconds: 2 * seconds }));
      const swarmCpu = cpuOf(swarm.pid) - cpuOfSwarm;
      await hive.verifyLog();
      await swarm.stop();
      const cost = measured.cpu / measured.requests * 1e6;
      costs.set(count, { cost, rate: measured.rate });
      rows.push({
        agents: thousands(count), 'calls/s': rate(measured.rate), 'p50 ms': milliseconds(measured.p50), 'p99 ms': milliseconds(measured.p99),
        'gateway CPU µs a call': round1(cost), 'of 100 agents': (cost / costs.get(100).cost).toFixed(2), 'swarm CPU µs a call': round1(swarmCpu / measured.requests * 1e6),
      });
    } finally {
      await hive.stop();
    }
  }
  table('Cheap calls of 64 callers, each to the next agent', rows);
  const most = [...costs.keys()].at(-1);
  if (costs.has(1000)) target('calls a second at 64 callers over 1,000 agents', rate(costs.get(1000).rate), costs.get(1000).rate >= 12_000, 'at least 12,000');
  const ratio = costs.get(most).cost / costs.get(100).cost;
  target(`CPU of a call among ${thousands(most)} agents, to that among 100`, `${ratio.toFixed(2)} times`, ratio <= 1.25, 'at most 1.25 times');
}

// Whether connections that came and went, and dials that failed, leave anything behind.
async function churn({ connections }) {
  const agents = 500;
  const parts = 10;
  const hive = await BenchHive.start();
  try {
    const gateway = hive.pid('gateway');
    const swarm = await hive.swarm(agents, ['--churn', 50, '--backoff-base-ms', 400, '--backoff-cap-ms', 400, '--connections', connections]);
    const rows = [];
    const start = performance.now();
    for (let part = 1; part <= parts; part++) {
      await swarm.until(`${part} of ${parts} parts`, () => swarm.counts.connections >= connections * part / parts || swarm.code === 0, { within: 600_000 });
      rows.push({ connections: swarm.counts.connections, ...memoryOf(gateway), descriptors: descriptorsOf(gateway) });
    }
    const took = (performance.now() - start) / 1000;
    await swarm.ended;
    await hive.waitForAgents(1);
    const after = await settledMemory(gateway);
    rows.push({ connections: 'afterwards', ...after, descriptors: descriptorsOf(gateway) });
    await hive.verifyLog();
    table(`${thousands(connections)} connections of ${agents} agents that come and go, ${rate(connections / took)} a second`, rows.map((row) => ({
      connections: row.connections.toLocaleString('en-US'), 'own MiB': mebibytes(row.own), 'RSS MiB': mebibytes(row.rss), descriptors: row.descriptors,
    })));
    // Half of the way is long enough for everything that is kept on purpose, such as the offline agents, to be there.
    const grown = rows[parts - 1].own - rows[parts / 2 - 1].own;
    target(`gateway memory, second half of ${thousands(connections)} connections`, `${mebibytes(grown)} MiB more`, grown < 2 << 20, 'under 2 MiB more');
    target('descriptors after them', String(rows.at(-1).descriptors), rows.at(-1).descriptors < 100, 'under 100');
    await failedDials(hive);
  } finally {
    await hive.stop();
  }
}

// One agent against a gateway that is not there, its backoff shortened a thousand times.
async function failedDials(hive) {
  const dials = 10_000;
  const swarm = await Swarm.start({
    program: path.join(folder, 'swarm'), folder: hive.base, prefix: 'away', count: 1, authorise: async () => {},
    config: path.join(hive.dir, 'agents/agent-1/agent_config.json'),
    options: ['--gateway', '127.0.0.1:1', '--backoff-base-ms', 1, '--backoff-cap-ms', 2],
  });
  const rows = [];
  for (const part of [0.1, 0.4, 0.7, 1]) {
    await swarm.until(`${part * dials} dials`, () => swarm.counts.failed_dials >= part * dials, { within: 300_000 });
    rows.push({ failed: swarm.counts.failed_dials, ...memoryOf(swarm.pid), descriptors: descriptorsOf(swarm.pid) });
  }
  await swarm.stop();
  table('An agent and a gateway that is not there', rows.map((row) => ({
    'failed dials': thousands(row.failed), 'own MiB': mebibytes(row.own), 'RSS MiB': mebibytes(row.rss), descriptors: row.descriptors,
  })));
  const grown = rows.at(-1).own - rows[0].own;
  target(`agent memory, ${thousands(dials)} failed dials`, `${mebibytes(grown)} MiB more`, grown < 1 << 20, 'under 1 MiB more');
  target('descriptors after them', `${rows.at(-1).descriptors - rows[0].descriptors} more`, rows.at(-1).descriptors <= rows[0].descriptors + 2, 'none more');
}

// The benchmarks by name; `agents`, `connections` and `seconds` say how large and how long.
export function swarmBenches(size) {
  return {
    online: () => online(size),
    restart: () => restart(size),
    scattered: () => scattered(size),
    churn: () => churn(size),
  };
}
