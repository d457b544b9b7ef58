// The fleet as MCP, seen by the official clients of both eras on every transport.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';

import { Hive, eventually, processesWith } from './support/hive.mjs';
import { LegacyClient, ModernClient, eventsOf } from './support/mcp.mjs';
import { assertValid } from './support/mcp_schema.mjs';
import { SdkClient, kinds } from './support/mcp_sdk.mjs';

const mark = `HIVE_E2E_MARK=mcp-${process.pid}`;
const tokens = { alice: 'a'.repeat(48), bob: 'b'.repeat(48) };
const scripts = {};

let hive;
before(async () => {
  hive = await Hive.start({
    agents: 2,
    profile: (made) => {
      scripts.steps = made.script('steps', 'for i in 1 2 3 4; do echo "step $i"; sleep 0.4; done');
      scripts.waits = made.script('waits', `export ${mark}\nsh -c "sleep 600; :" & sh -c "echo waiting; sleep 600; :"`);
      scripts.restart = made.script('restart', `echo "$@" >> ${path.join(made.base, 'restarts')}; echo restarted`);
      scripts.fails = made.script('fails', 'echo out; exit 3');
      return [...Object.values(scripts).map((name) => ({ name, args_regex: '^[a-z0-9-]*$', timeout_seconds: 600 })),
        { name: 'echo', args_regex: '^[a-z0-9-]*$' }];
    },
    gateway: (made) => {
      const file = JSON.parse(fs.readFileSync(path.join(made.dir, 'gateway/gateway_config.json'), 'utf8'));
      return {
        tokens: {
          ...file.tokens,
          [tokens.alice]: { role: 'operator', identity: 'alice' },
          [tokens.bob]: { role: 'admin', identity: 'bob' },
        },
        risk_tiers: { [`run_command:${scripts.restart}`]: 'admin' },
        require_approval_tiers: ['admin'],
      };
    },
  });
});
after(() => hive.stop());

// The outcome of a call on this surface that was not in the log before.
const outcomeOn = (surface, known, what) => hive.entry('the outcome', (entry) => entry.kind === 'outcome' && entry.seq > known &&
  entry.surface === surface && Object.entries(what).every(([field, value]) => entry[field] === value));
const lastEntry = async () => (await hive.settledAudit()).at(-1).seq;
const runs = (client, name, options, args) => client.call('agent-1__run_command', { name, ...(args ? { args } : {}) }, options);
const textOf = (result) => result.content.map((block) => block.text ?? '').join('');

for (const [name, kind] of Object.entries(kinds)) {
  describe(name, () => {
    let client;
    beforeEach(async () => { client = await SdkClient.open(kind, hive, tokens.alice); });
    afterEach(() => client.close());

    test('lists the tools of the fleet, described for models, in a stable order', async () => {
      const tools = await client.tools();
      const names = tools.map((tool) => tool.name);
      for (const agent of ['agent-1', 'agent-2']) {
        for (const tool of ['get_metrics', 'run_command']) assert.ok(names.includes(`${agent}__${tool}`), names.join(' '));
      }
      assert.equal(new Set(names).size, names.length);
      for (const tool of tools) {
        assert.match(tool.name, /^[A-Za-z0-9_.-]{1,64}$/);
        assert.ok(tool.description.length > 10, tool.name);
        assert.equal(tool.inputSchema.type, 'object');
      }
      const find = (wanted) => tools.find((tool) => tool.name === wanted);
      assert.equal(find('agent-1__get_metrics').annotations.readOnlyHint, true);
      assert.equal(find('agent-1__run_command').annotations.readOnlyHint, false);
      assert.equal(find('agent-1__run_command').annotations.destructiveHint, true);
      if (client.revision >= '2025-06-18') {
        assert.match(find('agent-2__get_metrics').title, /agent-2/);
        assert.equal(find('agent-1__get_metrics').outputSchema.type, 'object');
      }
      assert.deepEqual((await client.tools()).map((tool) => tool.name), names);
    });

    test('calls a tool, and its structured result fits its schema', async () => {
      const known = await lastEntry();
      await client.tools(); // The SDK then checks results against the output schemas.
      const result = await client.call('agent-1__get_metrics');
      assert.ok(!result.isError, textOf(result));
      assert.equal(typeof result.structuredContent, 'object');
      const entry = await outcomeOn(kind.surface, known, { agent: 'agent-1', tool: 'get_metrics' });
      assert.deepEqual([entry.role, entry.outcome], ['operator', 'success']);
    });

    test('a command that fails is a result that says so', async () => {
      const result = await runs(client, scripts.fails);
      assert.equal(result.isError, true);
      assert.match(textOf(result), /exit status 3/);
    });

    test('shows the progress of a command, before its result', async () => {
      const seen = [];
      const from = client.log.length;
      const result = await runs(client, scripts.steps, { onprogress: (update) => seen.push(update) });
      assert.match(textOf(result), /step 1[\s\S]*step 4/);
      assert.ok(seen.length >= 2, `${seen.length} notifications`);
      for (let i = 1; i < seen.length; i++) assert.ok(seen[i].progress > seen[i - 1].progress);
      assert.ok(seen.some(({ message }) => /step [123]/.test(message ?? '')), JSON.stringify(seen));
      const raw = client.log.slice(from);
      const { message: request } = raw.find(({ out, message }) => out && message.method === 'tools/call');
      const answered = raw.findIndex(({ out, message }) => !out && message.method === undefined && message.id === request.id);
      assert.ok(!raw.slice(answered).some(({ message }) => message.method === 'notifications/progress'));
    });

    test('a cancelled command is gone with all its children, and no result comes', async () => {
      const known = await lastEntry();
      const from = client.log.length;
      const abort = new AbortController();
      const pending = assert.rejects(runs(client, scripts.waits, { signal: abort.signal }));
      await eventually('the command and its child run', () => processesWith(mark).length >= 2);
      abort.abort('no longer wanted');
      await pending;
      await eventually('no process is left', () => processesWith(mark).length === 0);
      assert.equal((await outcomeOn(kind.surface, known, { tool: 'run_command' })).outcome, 'cancelled');
      assert.ok(!(await client.call('agent-1__get_metrics')).isError, 'the connection goes on');
      const raw = client.log.slice(from);
      const { message: request } = raw.find(({ out, message }) => out && message.params?.name === 'agent-1__run_command');
      assert.ok(!raw.some(({ out, message }) => !out && message.method === undefined && message.id === request.id));
    });

    test('a call that needs another person: pending, approved, and its result fetched', async () => {
      await client.tools();
      const asked = await runs(client, scripts.restart, undefined, ['nginx']);
      assert.match(textOf(asked), /waits for the approval/);
      const id = asked._meta['myrmex-hive/approval_id'];
      const waiting = await client.call('gateway__approval_result', { id });
      assert.match(textOf(waiting), /[Ss]till waiting/);
      const fetched = client.call('gateway__approval_result', { id, wait_seconds: 50 });
      const decided = await hive.fetch('/api/approvals', { method: 'POST', token: tokens.bob, body: JSON.stringify({ id, decision: 'approve' }) });
      assert.equal(decided.status, 200, await decided.text());
      const result = await fetched;
      assert.ok(!result.isError, textOf(result));
      assert.match(textOf(result), /restarted/);
    });
  });
}

describe('many clients at once', () => {
  test('twelve clients with one and the same id each get their own answer', async () => {
    for (const Client of [LegacyClient, ModernClient]) {
      const clients = await Promise.all(Array.from({ length: 12 }, () => Client.open(hive, { token: tokens.alice })));
      const answers = await Promise.all(clients.map((client, i) => client.call('agent-1__run_command', { name: 'echo', args: [`client-${i}`] }, { id: 1 })));
      for (const [i, { message }] of answers.entries()) {
        assert.equal(message.id, 1);
        assert.equal(message.result.content[0].text.trim(), `client-${i}`);
      }
      await Promise.all(clients.map((client) => client.close()));
    }
  });
});

describe('an agent that goes and comes back', () => {
  const changed = 'notifications/tools/list_changed';

  // Messages of a stream as they come, held against the schema of the revision.
  function follow(response, revision) {
    const seen = [];
    (async () => {
      for await (const { data } of eventsOf(response)) if (data) seen.push(JSON.parse(data));
    })().catch(() => {});
    return { seen, count: () => seen.filter((message) => message.method === changed).length, check: () => { for (const message of seen) assertValid(revision, message, 'subscriptions/listen'); } };
  }

  test('listeners of both eras are told, calls say since when it is away, others work', async () => {
    const end = new AbortController();
    const legacy = await LegacyClient.open(hive, { token: tokens.alice });
    const modern = await ModernClient.open(hive, { token: tokens.alice });
    const response = await legacy.listen({ signal: end.signal });
    assert.equal(response.status, 200);
    const old = follow(response, legacy.revision);
    const message = modern.message('subscriptions/listen', { notifications: { toolsListChanged: true } });
    const subscribed = await modern.post(message, { headers: modern.headers(message), signal: end.signal });
    assert.match(subscribed.headers.get('content-type'), /^text\/event-stream/);
    const fresh = follow(subscribed, modern.revision);
    await eventually('the subscription is acknowledged', () => fresh.seen[0]?.method === 'notifications/subscriptions/acknowledged');

    await hive.end('agent-2', 'SIGTERM');
    await eventually('both are told', () => old.count() > 0 && fresh.count() > 0);
    for (const client of [legacy, modern]) {
      const { result } = await client.call('agent-2__get_metrics');
      assert.equal(result.isError, true);
      assert.match(result.content[0].text, /agent-2.*(offline|not connected).*since/s);
      assert.equal(result._meta['myrmex-hive/reason'], 'agent_offline');
      assert.ok(!(await client.call('agent-1__get_metrics')).result.isError);
      const names = (await client.list('tools')).map((tool) => tool.name);
      assert.ok(names.includes('agent-1__get_metrics') && names.includes('gateway__list_agents'));
      const listed = (await client.call('gateway__list_agents')).result.structuredContent.agents;
      assert.deepEqual(listed.map(({ id, online }) => [id, online]), [['agent-1', true], ['agent-2', false]]);
    }

    const counts = [old.count(), fresh.count()];
    await hive.up('--agents', '2');
    await eventually('both are told again', () => old.count() > counts[0] && fresh.count() > counts[1]);
    await eventually('its tools are listed again', async () => (await modern.list('tools')).some((tool) => tool.name === 'agent-2__get_metrics'));
    assert.ok(!(await legacy.call('agent-2__get_metrics')).result.isError);
    old.check();
    fresh.check();
    await legacy.close();
    end.abort();
  });
});

describe('resources and prompts of the fleet', () => {
  for (const Client of [LegacyClient, ModernClient]) {
    test(`${Client.name}: fleet, agent, metrics, audit entry, prompts`, async () => {
      const admin = await Client.open(hive, { token: tokens.bob });
      const read = async (uri, client = admin) => {
        const { result, error } = await client.request('resources/read', { uri });
        assert.ok(result, JSON.stringify(error));
        assert.equal(result.contents[0].uri, uri);
        return JSON.parse(result.contents[0].text);
      };
      assert.ok((await admin.list('resources')).some(({ uri }) => uri === 'hive://fleet'));
      const templates = (await admin.list('resources/templates')).map(({ uriTemplate }) => uriTemplate);
      for (const part of ['hive://agents/{', '/metrics', 'hive://audit/{']) assert.ok(templates.some((each) => each.includes(part)), part);
      assert.deepEqual((await read('hive://fleet')).agents.map(({ id }) => id), ['agent-1', 'agent-2']);
      assert.equal((await read('hive://agents/agent-1')).id, 'agent-1');
      assert.equal(typeof await read('hive://agents/agent-1/metrics'), 'object');
      assert.equal((await read('hive://audit/3')).seq, 3);
      const operator = await Client.open(hive, { token: tokens.alice });
      const refused = await operator.request('resources/read', { uri: 'hive://audit/3' });
      assert.ok(refused.error, 'the log is for admins');
      assert.equal((await admin.request('resources/read', { uri: 'hive://agents/nobody' })).error.code, Client === ModernClient ? -32602 : -32002);
      const prompts = (await admin.list('prompts')).map(({ name }) => name);
      assert.deepEqual(prompts, ['triage', 'service_test']);
      for (const prompt of prompts) {
        const { result } = await admin.request('prompts/get', { name: prompt, arguments: { agent: 'agent-1', service: 'nginx' } });
        assert.match(result.messages[0].content.text, /agent-1/);
      }
      await admin.close();
      await operator.close();
    });
  }
});

test('the log of all this verifies', () => hive.assertLogVerifies());
