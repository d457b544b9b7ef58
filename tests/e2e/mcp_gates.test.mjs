// The gates hold on MCP as they do on REST: the same refusals, the same reasons, and an entry of the audit log each.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Hive } from './support/hive.mjs';
import { LegacyClient, ModernClient, outcomeOf, reasonOf, textOf } from './support/mcp.mjs';

const tokens = Object.fromEntries(['alice', 'bob', 'looker', 'fenced', 'metrics', 'hasty'].map((name, i) => [name, String(i + 3).repeat(48)]));
let hive;
let restart;

before(async () => {
  hive = await Hive.start({
    agents: 2,
    profile: (made) => {
      restart = made.script('restart', 'echo restarted');
      return [{ name: 'uptime', args_regex: '^$' }, { name: restart, args_regex: '^[a-z]+$' }];
    },
    gateway: (made) => ({
      tokens: {
        ...JSON.parse(fs.readFileSync(path.join(made.dir, 'gateway/gateway_config.json'), 'utf8')).tokens,
        [tokens.alice]: { role: 'operator', identity: 'alice' },
        [tokens.bob]: { role: 'admin', identity: 'bob' },
        [tokens.looker]: { role: 'read-only', identity: 'looker' },
        [tokens.hasty]: { role: 'operator', identity: 'hasty' },
      },
      scoped_tokens: [
        { token: tokens.fenced, role: 'operator', identity: 'fenced', agents: ['agent-2'], tools: ['*'] },
        { token: tokens.metrics, role: 'operator', identity: 'metrics', agents: ['*'], tools: ['get_*'] },
      ],
      risk_tiers: { [`run_command:${restart}`]: 'admin' },
      require_approval_tiers: ['admin'],
      rate_limit_per_minute: 20,
    }),
  });
});
after(() => hive.stop());

const surfaces = {
  legacy: { open: (token) => LegacyClient.open(hive, { token }), name: 'mcp-http' },
  modern: { open: (token) => ModernClient.open(hive, { token }), name: 'mcp-http' },
};

// What each gate refuses: token, tool, arguments.
const refusals = {
  'identity and role': { token: tokens.looker, tool: 'agent-1__run_command', args: () => ({ name: 'uptime' }), reason: 'role' },
  'scope: the agent': { token: tokens.fenced, tool: 'agent-1__get_metrics', args: () => ({}), reason: 'scope' },
  'scope: the tool': { token: tokens.metrics, tool: 'agent-1__run_command', args: () => ({ name: 'uptime' }), reason: 'scope' },
  'approval': { token: tokens.alice, tool: 'agent-1__run_command', args: () => ({ name: restart, args: ['nginx'] }), reason: 'approval_required' },
  'the allowlist of the agent': { token: tokens.alice, tool: 'agent-1__run_command', args: () => ({ name: 'uptime', args: ['--help'] }) },
  'the allowlist: another program': { token: tokens.alice, tool: 'agent-1__run_command', args: () => ({ name: 'rm', args: ['-rf', '/'] }) },
  'an agent that is nowhere': { token: tokens.bob, tool: 'agent-9__get_metrics', args: () => ({}), mayBeUnknown: true },
};

const requestOf = (answer) => answer.headers.get('myrmex-request-id');

for (const [gate, { token, tool, args, reason, mayBeUnknown }] of Object.entries(refusals)) {
  test(`${gate}: refused over MCP as over REST`, async () => {
    const rest = await hive.call(tool, args(), { token });
    if (reason) assert.equal(rest.reason, reason);
    assert.notEqual(rest.outcome, 'success');
    for (const [era, { open, name }] of Object.entries(surfaces)) {
      const client = await open(token);
      const answer = await client.call(tool, args());
      if (mayBeUnknown && answer.error) {
        assert.equal(answer.error.code, -32602, era);
        assert.match(answer.error.message, /agent-9__get_metrics/);
        continue;
      }
      assert.equal(answer.result?.isError, true, `${era}: ${JSON.stringify(answer.message)}`);
      assert.equal(reasonOf(answer), rest.reason, era);
      assert.match(textOf(answer), /\w+ \w+/);
      if (rest.reason === 'approval_required') continue; // It has not ended.
      assert.equal(outcomeOf(answer), rest.outcome, era);
      const restEntry = await hive.outcome(rest.requestId);
      const entry = await hive.outcome(requestOf(answer));
      for (const field of ['outcome', 'reason', 'principal', 'role', 'agent', 'tool', 'tier']) assert.equal(entry[field], restEntry[field], `${era}: ${field}`);
      assert.equal(entry.surface, name);
      assert.equal(restEntry.surface, 'rest');
      await client.close();
    }
  });
}

test('the rate limit counts the calls of all surfaces together', async () => {
  const { hasty } = tokens;
  const clients = [await surfaces.legacy.open(hasty), await surfaces.modern.open(hasty)];
  const outcomes = [];
  for (let i = 0; i < 20; i++) outcomes.push(outcomeOf(await clients[i % 2].call('agent-1__get_metrics')));
  assert.ok(!outcomes.includes('denied'), outcomes.join(' '));
  // A slow machine may have earned another call in the meantime, but not many.
  const refusalOf = async (what, call, reason) => {
    for (let i = 0; i < 20; i++) {
      const answer = await call();
      if (reason(answer) === 'rate_limited') return answer;
    }
    return assert.fail(`20 more calls over ${what} and no limit`);
  };
  await refusalOf('REST', () => hive.call('agent-1__get_metrics', {}, { token: hasty }), ({ reason }) => reason);
  for (const client of clients) {
    const answer = await refusalOf('MCP', () => client.call('agent-1__get_metrics'), reasonOf);
    assert.equal(answer.result.isError, true);
    assert.equal((await hive.outcome(requestOf(answer))).surface, 'mcp-http');
    assert.equal(outcomeOf(await client.call('agent-2__get_metrics')), 'success', 'another agent is counted apart');
    await client.close();
  }
});

test('a call that changes something has its intent in the log before its outcome', async () => {
  for (const [era, { open, name }] of Object.entries(surfaces)) {
    const client = await open(tokens.alice);
    const answer = await client.call('agent-1__run_command', { name: 'uptime' });
    assert.ok(!answer.result.isError, era);
    const entries = await hive.entries(requestOf(answer));
    assert.deepEqual(entries.map(({ kind, surface, outcome }) => [kind, surface, outcome]), [['intent', name, undefined], ['outcome', name, 'success']]);
    await client.close();
  }
});

test('an approved call is the call that was asked for, and stands in the log with who approved it', async () => {
  for (const { open } of Object.values(surfaces)) {
    const client = await open(tokens.alice);
    const asked = await client.call('agent-1__run_command', { name: restart, args: ['nginx'] });
    const id = asked.result._meta['myrmex-hive/approval_id'];
    const decide = (token) => hive.fetch('/api/approvals', { method: 'POST', token, body: JSON.stringify({ id, decision: 'approve' }) });
    assert.equal((await decide(tokens.alice)).status, 403, 'nobody approves their own request');
    assert.equal((await decide(tokens.bob)).status, 200);
    const result = await client.call('gateway__approval_result', { id, wait_seconds: 50 });
    assert.match(textOf(result), /restarted/);
    const foreign = await (await open(tokens.hasty)).call('gateway__approval_result', { id });
    assert.equal(foreign.result.isError, true, 'the result is for who asked');
    await client.close();
  }
});

describe('who may see what', () => {
  test('a list has what the credential reaches, and nothing else', async () => {
    for (const { open } of Object.values(surfaces)) {
      const fenced = await open(tokens.fenced);
      const agents = (await fenced.list('tools')).map(({ name }) => name.split('__')[0]).filter((name) => name !== 'gateway');
      assert.deepEqual([...new Set(agents)], ['agent-2']);
      const metrics = await open(tokens.metrics);
      for (const { name } of await metrics.list('tools')) assert.match(name, /^(gateway|agent-[12]__get_)/);
      const { result } = await fenced.request('resources/read', { uri: 'hive://fleet' });
      assert.doesNotMatch(JSON.stringify(result), /agent-1/);
      const hidden = await fenced.request('resources/read', { uri: 'hive://agents/agent-1' });
      const nowhere = await fenced.request('resources/read', { uri: 'hive://agents/agent-7' });
      assert.equal(JSON.stringify(hidden.error).replaceAll('agent-1', ''), JSON.stringify(nowhere.error).replaceAll('agent-7', ''));
      await fenced.close();
      await metrics.close();
    }
  });

  test('without a credential: 401, and where to get one', async () => {
    for (const token of [null, 'not-a-token-of-this-gateway']) {
      for (const [method, route] of [['POST', '/mcp'], ['GET', '/mcp'], ['DELETE', '/mcp'], ['GET', '/sse'], ['POST', '/message']]) {
        const response = await hive.fetch(route, { method, token, ...(method === 'POST' ? { body: '{}', headers: { 'content-type': 'application/json' } } : {}) });
        assert.equal(response.status, 401, `${method} ${route}`);
        assert.match(response.headers.get('www-authenticate'), /^Bearer\b/i, `${method} ${route}`);
      }
    }
    await hive.entry('the refusal', (entry) => entry.action === 'authentication_failed');
  });

  test('a session belongs to the identity that opened it', async () => {
    const session = await LegacyClient.open(hive, { token: tokens.alice });
    const thief = Object.assign(Object.create(LegacyClient.prototype), session, { token: tokens.bob });
    assert.equal((await thief.post({ jsonrpc: '2.0', id: 1, method: 'ping' }, { headers: thief.headers() })).status, 404);
    assert.equal((await thief.listen()).status, 404);
    assert.equal((await hive.fetch('/mcp', { method: 'DELETE', token: tokens.bob, headers: thief.headers() })).status, 404);
    assert.deepEqual((await session.request('ping')).result, {});
    await hive.entry('the attempt', (entry) => entry.reason === 'foreign_session' && entry.role === 'admin');
    await session.close();
  });
});

test('the log of all this verifies', () => hive.assertLogVerifies());
