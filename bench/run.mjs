// The figures of ./hive bench: ours next to other programs in the same run, as ratios. Started by tools/bench.sh.
//
// What is compared is measured in turn within a round, and the ratio is the median of the rounds' ratios: machines drift
// by ten per cent and more within minutes, and a ratio of neighbours in time does not.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { sessionLoad, startEverything, startMcpProxy, startMinimal, startNginx, startSupergateway, statelessLoad } from './peers.mjs';
import { openStreams } from './streams.mjs';
import { folder, forkExec, median, memoryOf, root, run, settledMemory, wrk } from './measure.mjs';
import { BenchHive } from './hive.mjs';
import { mebibytes, milliseconds, printTargets, rate, round1, table, target } from './report.mjs';
import { fanOut } from './fan_out.mjs';
import { network, path100 } from './network.mjs';
import { salvage } from './salvage.mjs';
import { swarmBenches } from './swarm/benches.mjs';

const { values: options, positionals } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false }, rounds: { type: 'string' }, seconds: { type: 'string' },
    agents: { type: 'string' }, connections: { type: 'string' },
  },
  allowPositionals: true,
});
const rounds = Number(options.rounds ?? (options.quick ? 1 : 3));
const seconds = Number(options.seconds ?? (options.quick ? 2 : 4));
const callerCounts = [1, 16, 64];
const idleAgents = options.quick ? 200 : 500;

// Measures every subject at every number of callers, in turn, `rounds` times.
async function inTurn(subjects) {
  const results = new Map();
  for (let round = 0; round < rounds; round++) {
    for (const callers of callerCounts) {
      for (const [name, measure] of Object.entries(subjects)) {
        const key = `${name} ${callers}`;
        if (!results.has(key)) results.set(key, []);
        results.get(key).push(await measure(callers, seconds));
      }
    }
  }
  const of = (name, callers) => results.get(`${name} ${callers}`);
  return {
    median: (name, callers, field) => median(of(name, callers).map((result) => result[field])),
    ratio: (name, other, callers) => median(of(name, callers).map((result, i) => result.rate / of(other, callers)[i].rate)),
  };
}

function figuresOf(measured, names, reference) {
  const rows = [];
  for (const callers of callerCounts) {
    for (const name of names) {
      rows.push({
        callers,
        what: name,
        'calls/s': rate(measured.median(name, callers, 'rate')),
        'p50 ms': milliseconds(measured.median(name, callers, 'p50')),
        'p99 ms': milliseconds(measured.median(name, callers, 'p99')),
        'ours : it': name === reference ? '' : measured.ratio(reference, name, callers).toFixed(2),
      });
    }
  }
  return rows.map(({ what, ...rest }) => ({ what, ...rest }));
}

const benches = {
  async calls() {
    const hive = await BenchHive.start();
    const url = `${hive.env.MYRMEX_HTTP_URL}/api/call`;
    const headers = { Authorization: `Bearer ${hive.env.MYRMEX_TOKEN}`, 'Content-Type': 'application/json' };
    const body = JSON.stringify({ name: 'agent-1__get_metrics', arguments: {} });
    const size = await hive.checkedCall('agent-1__get_metrics', {});
    const nginx = await startNginx(size);
    const everything = await startEverything();
    try {
      const measured = await inTurn({
        'hive get_metrics': (callers, time) => wrk({ url, headers, body, callers, seconds: time }),
        'server-everything echo': (callers, time) => wrk({ ...everything.load, callers, seconds: time }),
        'nginx static file': (callers, time) => wrk({ url: nginx.url, callers, seconds: time }),
      });
      table(`A cheap tool through the whole path (HTTP, gates, audit log on, SSH tunnel, agent); answers of ${size} bytes`,
        figuresOf(measured, ['hive get_metrics', 'server-everything echo', 'nginx static file'], 'hive get_metrics'));
      const ratio = measured.ratio('hive get_metrics', 'server-everything echo', 64);
      target('cheap calls at 64 callers, to server-everything', `${round1(ratio)} times`, ratio >= 12, 'at least 12 times');
      await hive.verifyLog();
    } finally {
      everything.stop();
      nginx.stop();
      await hive.stop();
    }
  },

  async mcp() {
    const hive = await BenchHive.start();
    const ours = {
      url: `${hive.env.MYRMEX_HTTP_URL}/mcp`,
      headers: { Authorization: `Bearer ${hive.env.MYRMEX_TOKEN}` },
      tool: 'agent-1__get_metrics',
      expect: /"structuredContent"/,
    };
    const peers = [];
    try {
      const session = await sessionLoad(ours);
      const stateless = await statelessLoad(ours);
      const started = async (start) => {
        peers.push(await start());
        return peers.at(-1).load;
      };
      const loads = {
        'hive get_metrics, in a session': session,
        'hive get_metrics, 2026-07-28': stateless,
        'SDK, minimal server, JSON': await started(startMinimal),
        'server-everything': await started(startEverything),
        'supergateway, minimal server': await started(startSupergateway),
        'mcp-proxy, minimal server': await started(startMcpProxy),
      };
      const measured = await inTurn(Object.fromEntries(Object.entries(loads)
        .map(([name, load]) => [name, (callers, time) => wrk({ ...load, callers, seconds: time })])));
      const [reference] = Object.keys(loads);
      table(`tools/call over /mcp: ours through the whole path, the others echo a word from memory; our answers have ${session.bytes} bytes`,
        figuresOf(measured, Object.keys(loads), reference));
      const ratio = measured.ratio(reference, 'SDK, minimal server, JSON', 64);
      target('tools/call at 64 callers, to the minimal SDK server', `${round1(ratio)} times`, ratio >= 4, 'at least 4 times');
      const p99 = measured.median(reference, 64, 'p99');
      target('tools/call at 64 callers, p99', `${milliseconds(p99)} ms`, p99 < 20_000, 'under 20 ms');
      await hive.verifyLog();
    } finally {
      for (const peer of peers) peer.stop();
      await hive.stop();
    }
  },

  async streams() {
    const count = 1000;
    const rows = [];
    for (const [what, era] of [['sessions with an event stream', 'legacy'], ['subscriptions/listen of 2026-07-28', 'modern']]) {
      const hive = await BenchHive.start();
      try {
        const tokens = await hive.addIdentities(20);
        const gateway = hive.pid('gateway');
        const before = await settledMemory(gateway);
        const streams = await openStreams({ url: `${hive.env.MYRMEX_HTTP_URL}/mcp`, tokens, count, era });
        const after = await settledMemory(gateway);
        streams.close();
        const grown = after.pss - before.pss;
        rows.push({ what: `${count} ${what}`, 'PSS before MiB': mebibytes(before.pss), 'PSS with them MiB': mebibytes(after.pss), 'KiB each': (grown / count / 1024).toFixed(1) });
        target(`memory for ${count} ${what}`, `${mebibytes(grown)} MiB`, grown < 40 * (1 << 20), 'under 40 MiB');
      } finally {
        await hive.stop();
      }
    }
    table('Open event streams', rows);
  },

  async lists() {
    const hive = await BenchHive.start();
    try {
      const swarm = await hive.swarm(idleAgents);
      await hive.waitForAgents(idleAgents + 1);
      const all = await hive.listTools();
      // Nothing of the swarm runs while its tools are listed: no agent is asked.
      process.kill(swarm.pid, 'SIGSTOP');
      const times = { page: [], all: [] };
      for (let i = 0; i < 15; i++) {
        const listed = await hive.listTools();
        if (listed.tools !== all.tools) throw new Error(`${listed.tools} tools instead of ${all.tools}`);
        times.page.push(listed.firstPage);
        times.all.push(listed.took);
      }
      process.kill(swarm.pid, 'SIGCONT');
      await swarm.stop();
      table(`tools/list of ${idleAgents + 1} agents, ${all.tools} tools on ${all.pages} pages, ${Math.round(all.bytes / 1024)} KiB; the agents are stopped meanwhile`, [
        { what: 'first page', 'median ms': median(times.page).toFixed(2), 'slowest ms': Math.max(...times.page).toFixed(2) },
        { what: 'all pages, one after the other', 'median ms': median(times.all).toFixed(2), 'slowest ms': Math.max(...times.all).toFixed(2) },
      ]);
      target(`tools/list of ${idleAgents} agents, a page`, `${median(times.page).toFixed(1)} ms`, median(times.page) < 20, 'under 20 ms');
    } finally {
      await hive.stop();
    }
  },

  async commands() {
    const hive = await BenchHive.start();
    const url = `${hive.env.MYRMEX_HTTP_URL}/api/call`;
    const headers = { Authorization: `Bearer ${hive.env.MYRMEX_TOKEN}`, 'Content-Type': 'application/json' };
    const body = JSON.stringify({ name: 'agent-1__run_command', arguments: { name: 'uptime' } });
    try {
      await hive.checkedCall('agent-1__run_command', { name: 'uptime' });
      const measured = await inTurn({
        'hive run_command uptime': (callers, time) => wrk({ url, headers, body, callers, seconds: time }),
        'plain fork and exec of it': (callers, time) => forkExec(callers, time, 'uptime'),
      });
      table('Running a command, with a durable intent record before and an outcome record after it',
        figuresOf(measured, ['hive run_command uptime', 'plain fork and exec of it'], 'hive run_command uptime'));
      const ratio = measured.ratio('hive run_command uptime', 'plain fork and exec of it', 64);
      target('run_command at 64 callers, to plain fork and exec', `${Math.round(ratio * 100)} %`, ratio >= 0.8, 'at least 80 %');
      await hive.verifyLog();
    } finally {
      await hive.stop();
    }
  },

  'fan-out': () => fanOut({ rounds, few: options.quick ? 20 : 50, many: options.quick ? 200 : 1000 }),

  async memory() {
    const hive = await BenchHive.start();
    try {
      const agent = hive.pid('agent-1');
      const fresh = memoryOf(agent);
      // 5 s after its start the agent lets go of the code that only the start needed; what calls need they take again.
      await delay(7000);
      for (let i = 0; i < 200; i++) await hive.checkedCall('agent-1__get_metrics', {});
      for (let i = 0; i < 50; i++) await hive.checkedCall('agent-1__run_command', { name: 'uptime' });
      const used = memoryOf(agent);
  
      const gateway = hive.pid('gateway');
      const before = await settledMemory(gateway);
      const swarm = await hive.swarm(idleAgents);
      await hive.waitForAgents(idleAgents + 1);
      const after = await settledMemory(gateway);
      await swarm.stop();
      const each = (after.pss - before.pss) / idleAgents / 1024;
      table('Memory (PSS: what is shared counts once; RSS: what top shows)', [
        { what: 'agent after its start', 'PSS MiB': mebibytes(fresh.pss), 'RSS MiB': mebibytes(fresh.rss) },
        { what: 'agent after 10 s and 250 calls', 'PSS MiB': mebibytes(used.pss), 'RSS MiB': mebibytes(used.rss) },
        { what: 'gateway, 1 agent', 'PSS MiB': mebibytes(before.pss), 'RSS MiB': mebibytes(before.rss) },
        { what: `gateway, ${idleAgents + 1} agents`, 'PSS MiB': mebibytes(after.pss), 'RSS MiB': mebibytes(after.rss) },
      ]);
      target(`gateway memory for each of ${idleAgents} idle agents`, `${round1(each)} KiB`, each <= 24, 'at most 24 KiB');
      target('RSS of an agent', `${mebibytes(used.rss)} MiB`, used.rss <= 8 * (1 << 20), 'at most 8 MiB');
    } finally {
      await hive.stop();
    }
  },

  async audit() {
    const program = path.join(folder, 'audit_bench');
    console.log('\nAudit log');
    const output = await run(program, options.quick ? ['--quick'] : []);
    for (const line of output.trimEnd().split('\n')) console.log(`  ${line}`);
    const verified = output.match(/verif[^\n]*?([\d][\d,_.]*)\s*(?:entries)?\/s/i);
    const perSecond = verified ? Number(verified[1].replace(/[,_]/g, '')) : NaN;
    target('audit entries verified a second on one core', rate(perSecond), perSecond >= 300_000, 'at least 300,000');
  },

  async policy() {
    console.log('\nPolicy decisions on one core: token, tier and four gates');
    const output = await run(path.join(folder, 'policy_bench'), options.quick ? ['--quick'] : []);
    for (const line of output.trimEnd().split('\n')) console.log(`  ${line}`);
    const most = output.match(/^ *10000 tokens.*no rate limit\s+(\d+) decisions\/s\s+([\d.]+) of the first/m);
    const perSecond = Number(most?.[1]);
    const flat = Number(most?.[2]);
    target('policy decisions a second with 10,000 tokens and agents', rate(perSecond), perSecond >= 100_000, 'at least 100,000');
    // A thousand times as many cost a few more misses of the processor's caches and nothing else.
    target('of the decisions a second with 10 of each', `${Math.round(flat * 100)} %`, flat >= 0.3, 'at least 30 %');
  },

  async fleet() {
    console.log('\nLooking at the fleet, processor time of one core');
    const output = await run(path.join(folder, 'fleet_bench'), options.quick ? ['--quick'] : []);
    for (const line of output.trimEnd().split('\n')) console.log(`  ${line}`);
    const milliseconds = (what) => Number(output.match(new RegExp(`^ *10000 agents +${what} +([\\d.]+) ms`, 'm'))?.[1]);
    for (const [what, text, limit] of [
      ['a change and the snapshot after it', 'a change and the snapshot after it', 2],
      ['a page of 100 of 10,000 agents', 'GET /api/fleet\\?limit=100', 5],
      ['the first page of tools/list after a change', 'tools/list after a change, its first page', 10],
      ['10,000 agents read at the start', 'read at the start', 500],
    ]) {
      const cost = milliseconds(text);
      target(what, `${cost} ms`, cost <= limit, `at most ${limit} ms`);
    }
  },
};

benches.salvage = () => salvage({ target, quick: options.quick });

benches.network = () => network({ table, target, quick: options.quick });
benches.path = () => path100({ table, target });

const swarms = swarmBenches({
  agents: Number(options.agents ?? (options.quick ? 1000 : 10_000)),
  connections: Number(options.connections ?? (options.quick ? 3000 : 20_000)),
  seconds,
});
Object.assign(benches, swarms);

const asked = positionals.flatMap((name) => (name === 'swarm' ? Object.keys(swarms) : [name]));
// The large fleet is asked for by name: it takes as long as all the others.
const chosen = asked.length > 0 ? asked : Object.keys(benches).filter((name) => !(name in swarms));
for (const name of chosen) {
  if (!(name in benches)) {
    console.error(`hive: bench: no benchmark '${name}'; there are: ${Object.keys(benches).join(' ')} swarm`);
    process.exit(2);
  }
}

const cpu = fs.readFileSync('/proc/cpuinfo', 'utf8').match(/^model name\s*:\s*(.*)$/m)?.[1] ?? os.arch();
console.log(`${os.cpus().length} cores of ${cpu}, ${Math.round(os.totalmem() / 2 ** 30)} GiB, Linux ${os.release()}, ` +
  `load ${os.loadavg()[0].toFixed(1)}; Node ${process.version} for server-everything`);
console.log(`${rounds} round${rounds === 1 ? '' : 's'} of ${seconds} s each; load generator, gateway and agent share the cores` +
  `; built from ${(await run('git', ['-C', root, 'describe', '--always', '--dirty'])).trim()}`);
for (const name of chosen) await benches[name]();
printTargets();
