// A hundred agents at once: nobody is lost when the gateway goes away and comes back.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';

import { Swarm } from '../../bench/swarm/swarm.mjs';
import { cannotRun, eventually, Hive, root } from './support/hive.mjs';

const count = 100;
const program = path.join(process.env.HIVE_BIN ?? path.join(root, 'build/release/bin'), 'swarm');
const names = Array.from({ length: count }, (_, i) => `swarm-${i + 1}`);

let hive;
let swarm;

after(async () => {
  await swarm?.stop();
  await hive?.stop();
});

// Everybody answers for itself, ten at a time.
async function callAll() {
  const left = [...names];
  await Promise.all(Array.from({ length: 10 }, async () => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) {
      const { outcome, reason } = await hive.call(`${name}__get_metrics`, {});
      assert.equal(outcome, 'success', `${name}: ${reason}`);
    }
  }));
}

async function allKnown() {
  const online = new Set((await hive.agents()).filter((agent) => agent.online).map((agent) => agent.id));
  return names.every((name) => online.has(name));
}

test('a hundred agents connect, answer, and come back from a gateway that was killed', async (t) => {
  if (!fs.existsSync(program)) return cannotRun(t, `${program} is missing`);
  hive = await Hive.start();
  swarm = await Swarm.start({
    program, folder: hive.base, count, config: path.join(hive.dir, 'agents/agent-1/agent_config.json'),
    // The wait grows with every refusal; a test need not wait as long as a fleet may.
    options: ['--backoff-base-ms', 200, '--backoff-cap-ms', 2000],
    authorise: async (lines) => {
      fs.appendFileSync(path.join(hive.dir, 'gateway/authorized_keys'), lines);
      await hive.reload();
    },
  });
  await swarm.allOnline();
  assert.equal(await allKnown(), true);
  await callAll();

  const told = swarm.events.length;
  await hive.end('gateway', 'SIGKILL');
  await hive.up();
  const { online, return_ms: away } = await swarm.allOnline({ after: told });
  assert.equal(online, count);
  assert.ok(away.p50 <= away.p99 && away.p99 <= away.max);
  await eventually('the gateway knows all of them', allKnown, { within: 60_000 });
  await callAll();
  const verified = await hive.myrmex(['audit', 'verify']);
  assert.equal(verified.code, 0, verified.stderr);
});
