// What happens between a gateway and an agent when the network between them does what networks do.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { cannotRun, eventually } from './support/hive.mjs';
import { agentAddress, obstacle } from './support/network.mjs';
import { RemoteAgent } from './support/remote_agent.mjs';

const keepalive_seconds = 1;

describe('a router between', { skip: process.env.HIVE_REQUIRE_ALL !== '1' && obstacle() }, () => {
  let here;
  before(async () => { here = await RemoteAgent.lab('namespace', { keepalive_seconds }); });
  after(() => here?.stop());

  const endedByName = ({ running }) => assert.deepEqual(running.outcome, 'unknown', JSON.stringify(running));

  test('all packets are lost: both ends notice, the running call ends as unknown, and all is well when they come through again', async () => {
    const { agent, router } = here;
    endedByName(await agent.outage({ breaks: () => router.lose(100), mends: () => router.heal() }));
  });

  test('the agent gets another address: it is back by itself', async () => {
    const { agent, network } = here;
    endedByName(await agent.outage({ breaks: () => network.setAgentAddress('198.18.2.77'), mends: () => {} }));
    const fleet = await (await here.hive.fetch('/api/fleet')).json();
    assert.match(fleet.find(({ id }) => id === 'agent-1').ip, /^198\.18\.2\.77/);
    await network.setAgentAddress(agentAddress);
    await agent.works();
  });

  test('the agent\'s machine is gone without a word: the gateway notices', async () => {
    const { agent } = here;
    endedByName(await agent.machineLoss());
  });

  test('the gateway\'s machine is gone without a word, and comes back: the agent is not stuck on a half-open connection', async () => {
    const { agent, router, hive } = here;
    await router.lose(100);
    const broken = Date.now();
    await hive.end('gateway', 'SIGKILL');
    await agent.says(/not connected to a gateway/, broken);
    await hive.up('--agents', '0');
    await router.heal();
    await agent.works();
  });

  test('a third of all packets is lost: calls are slow, and none is lost', async () => {
    const { agent, router } = here;
    await router.lose(30);
    const answers = await Promise.all(Array.from({ length: 8 }, () => agent.call('run_command', { name: 'uptime' })));
    await router.heal();
    for (const { outcome } of answers) assert.ok(['success', 'unknown', 'failure', 'denied'].includes(outcome), outcome);
    await agent.works();
  });

  test('large packets vanish and nobody says so: the agent finds a size that passes', async () => {
    const { agent, router } = here;
    await router.blackHole(1280);
    const big = () => agent.call('run_command', { name: 'head', args: ['-c', '60000', '/dev/zero'] });
    await eventually('a large answer comes through', async () => (await big()).outcome === 'success', { within: 120_000, every: 200 });
    await router.heal();
    await agent.works();
  });

  test('the log of all this verifies', () => here.hive.assertLogVerifies());
});

describe('a router with another kernel between', { skip: process.env.HIVE_FULL !== '1' && 'a virtual machine: ./hive test --full' }, () => {
  let here;
  before(async (t) => {
    const reason = obstacle('guest');
    if (reason) return cannotRun(t, reason);
    here = await RemoteAgent.lab('guest', { keepalive_seconds });
  });
  after(() => here?.stop());

  test('a path of 100 ms: calls take one round trip, and no more', async () => {
    const { agent, router } = here;
    await router.shape({ delay_ms: 50 });
    const began = Date.now();
    for (let i = 0; i < 10; i++) assert.equal((await agent.call('get_metrics', {})).outcome, 'success');
    assert.ok(Date.now() - began >= 10 * 100);
    await router.heal();
  });

  test('30 % of the packets lost on a path of 100 ms: every call ends by name', async () => {
    const { agent, router } = here;
    await router.shape({ delay_ms: 50, loss_percent: 30 });
    for (let i = 0; i < 5; i++) assert.match((await agent.call('run_command', { name: 'uptime' })).outcome, /^(success|unknown|failure|denied)$/);
    await router.heal();
    await agent.works();
  });
});
