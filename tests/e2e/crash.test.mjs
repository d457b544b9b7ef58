// kill -9 of the gateway under load: the agents come back by themselves, the log verifies, no acknowledged call is
// missing from it, and nothing was changed without its intent record.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { Hive, eventually } from './support/hive.mjs';

let hive;
let effects;
let append;

before(async () => {
  hive = await Hive.start({
    agents: 2,
    profile: (self) => {
      effects = path.join(self.base, 'effects');
      append = self.script('append', `echo "$1" >>${effects}`);
      return [{ name: append, args_regex: '^[a-z0-9-]+$' }];
    },
  });
});
after(() => hive.stop());

// Calls without pause from several callers until stopped: commands that change something, and reads.
function load(callers, round) {
  const acknowledged = { requests: [], effects: [] };
  let running = true;
  let counter = 0;
  const caller = async (number) => {
    while (running) {
      const effect = `round${round}-caller${number}-${counter++}`;
      try {
        const answer = number % 2 === 0
          ? await hive.call('agent-1__run_command', { name: append, args: [effect] })
          : await hive.call('agent-2__get_metrics', {});
        if (answer.status !== 200 || answer.outcome !== 'success') continue;
        acknowledged.requests.push(answer.requestId);
        if (number % 2 === 0) acknowledged.effects.push(effect);
      } catch {
        // The connection broke: this call was not acknowledged. Without a gateway there is nothing more to do.
        if (!running) return;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }
  };
  const done = Promise.all(Array.from({ length: callers }, (_, number) => caller(number)));
  return { acknowledged, stop: () => { running = false; return done; } };
}

test('three times: killed under load, and nothing is lost', async () => {
  const agents = [hive.pid('agent-1'), hive.pid('agent-2')];
  const all = { requests: [], effects: [] };
  for (let round = 1; round <= 3; round++) {
    const { acknowledged, stop } = load(12, round);
    await eventually('enough calls were acknowledged',
      () => acknowledged.effects.length >= 60 && acknowledged.requests.length >= 200, { within: 180_000 });
    await hive.end('gateway', 'SIGKILL');
    await stop();
    all.requests.push(...acknowledged.requests);
    all.effects.push(...acknowledged.effects);

    await hive.up();
    assert.deepEqual([hive.pid('agent-1'), hive.pid('agent-2')], agents, 'the agents were not restarted');
    assert.equal((await hive.call('agent-1__get_metrics', {})).outcome, 'success');
  }

  await hive.assertLogVerifies();
  const entries = hive.audit();
  const outcomes = new Set(entries.filter((entry) => entry.kind === 'outcome').map((entry) => entry.request_id));
  assert.deepEqual(all.requests.filter((id) => !outcomes.has(id)), [], 'acknowledged calls without an outcome in the log');

  const intents = entries.filter((entry) => entry.kind === 'intent').map((entry) => JSON.stringify(entry.arguments));
  const intended = new Set(intents.map((args) => args.match(/round\d+-caller\d+-\d+/)?.[0]).filter(Boolean));
  const happened = fs.readFileSync(effects, 'utf8').split('\n').filter(Boolean);
  assert.deepEqual(happened.filter((effect) => !intended.has(effect)), [], 'changes without an intent record');
  assert.equal(new Set(happened).size, happened.length, 'a change that happened twice');
  const seen = new Set(happened);
  assert.deepEqual(all.effects.filter((effect) => !seen.has(effect)), [], 'acknowledged changes that did not happen');
});
