// Calls that need a second person: from the question to the result, and everything that must not get through.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { Hive, eventually, text } from './support/hive.mjs';

// Alice asks; she has an admin's credential as well. Bob and Carol are admins. Dave reaches agent-2 alone.
const tokens = Object.fromEntries(['alice', 'aliceAdmin', 'bob', 'carol', 'dave', 'eve']
  .map((name, i) => [name, String(i + 1).repeat(48)]));

let hive;
let config;
let restart;
before(async () => {
  hive = await Hive.start({
    agents: 2,
    profile: (made) => {
      restart = made.script('restart-nginx', `echo "$@" >> ${path.join(made.base, 'restarts')}; echo restarted`);
      return [{ name: restart, args_regex: '^[a-z0-9-]*$' }, { name: 'uptime', args_regex: '^$' }];
    },
  });
  config = path.join(hive.dir, 'gateway/gateway_config.json');
  const values = JSON.parse(fs.readFileSync(config, 'utf8'));
  Object.assign(values.tokens, {
    [tokens.alice]: { role: 'operator', identity: 'alice' },
    [tokens.aliceAdmin]: { role: 'admin', identity: 'alice' },
    [tokens.bob]: { role: 'admin', identity: 'bob' },
    [tokens.carol]: { role: 'admin', identity: 'carol' },
  });
  values.scoped_tokens = [
    { token: tokens.dave, role: 'admin', identity: 'dave', agents: ['agent-2'], tools: ['*'] },
    { token: tokens.eve, role: 'operator', identity: 'eve', agents: ['agent-2'], tools: ['get_*'] },
  ];
  values.risk_tiers = { [`run_command:${restart}`]: 'admin', 'run_command:uptime': 'read' };
  values.require_approval_tiers = ['admin'];
  fs.writeFileSync(config, JSON.stringify(values, null, 2), { mode: 0o600 });
  await restartGateway('SIGTERM');
});
after(() => hive.stop());

async function restartGateway(signal) {
  await hive.end('gateway', signal);
  await hive.up('--agents', '2');
}

const restarts = () => {
  try {
    return fs.readFileSync(path.join(hive.base, 'restarts'), 'utf8').split('\n').filter(Boolean);
  } catch {
    return [];
  }
};

const json = async (response) => ({
  status: response.status,
  reason: response.headers.get('myrmex-reason'),
  outcome: response.headers.get('myrmex-outcome'),
  body: await response.json(),
});

const get = async (route, token) => json(await hive.fetch(route, { token }));
const post = async (route, body, token) => json(await hive.fetch(route, { method: 'POST', token, body: JSON.stringify(body) }));
const decide = (id, decision, token, more = {}) => post('/api/approvals', { id, decision, ...more }, token);
const result = (id, token, wait = 30_000) => get(`/api/approvals/${id}/result?wait_ms=${wait}`, token);
const setUp = (values) => post('/api/config', values, tokens.bob);
// Changes the file as an administrator of the host does.
async function edit(values) {
  const reloads = () => events('config_reload').length;
  const before = reloads();
  const file = JSON.parse(fs.readFileSync(config, 'utf8'));
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined) delete file[key];
    else file[key] = value;
  }
  fs.writeFileSync(config, JSON.stringify(file, null, 2));
  process.kill(hive.pid('gateway'), 'SIGHUP');
  await eventually('the gateway has reloaded', () => reloads() > before);
}
const settings = async () => (await get('/api/config', tokens.bob)).body;

// Asks for a restart as Alice and returns the id of the request.
async function ask(what, { agent = 'agent-1', token = tokens.alice } = {}) {
  const answer = await hive.call(`${agent}__run_command`, { name: restart, args: [what] }, { token });
  assert.equal(answer.status, 202, JSON.stringify(answer.body));
  assert.equal(answer.body.status, 'pending_approval');
  assert.equal(answer.body.tier, 'admin');
  assert.match(answer.body.approval_id, /^[0-9a-f]{32}$/);
  return answer.body.approval_id;
}

function refused(answer, status, reason) {
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  assert.equal(answer.body.code, reason);
  assert.equal(answer.reason, reason);
}

const events = (action) => hive.audit().filter((entry) => entry.action === action);

test('what needs nobody runs at once', async () => {
  const answer = await hive.call('agent-1__run_command', { name: 'uptime' }, { token: tokens.alice });
  assert.equal(answer.outcome, 'success');
});

test('the two-person restart: one asks, another approves, it runs once, and who asked gets the result', async () => {
  const id = await ask('nginx');
  assert.deepEqual(restarts(), []);
  assert.equal((await get('/api/status', tokens.bob)).body.pending_approvals, 1);

  const seen = (await get('/api/approvals', tokens.bob)).body;
  assert.equal(seen.length, 1);
  assert.equal(seen[0].id, id);
  assert.equal(seen[0].identity, 'alice');
  assert.deepEqual(JSON.parse(seen[0].args), { name: restart, args: ['nginx'] });

  const waiting = result(id, tokens.alice);
  refused(await decide(id, 'approve', tokens.alice), 403, 'role');
  refused(await decide(id, 'approve', tokens.aliceAdmin), 403, 'own_request');
  refused(await decide(id, 'approve', tokens.dave), 403, 'scope');
  refused(await decide(id, 'approve', tokens.bob, { digest: '0'.repeat(64) }), 409, 'digest_differs');
  assert.deepEqual(restarts(), []);

  const approved = await decide(id, 'approve', tokens.bob, { digest: seen[0].digest, comment: 'go ahead' });
  assert.equal(approved.status, 200);
  assert.deepEqual(approved.body, { id, status: 'approved', approvals: 1, required: 1 });
  const answer = await waiting;
  assert.equal(answer.status, 200);
  assert.equal(answer.outcome, 'success');
  assert.match(text(answer), /restarted/);
  assert.deepEqual(restarts(), ['nginx']);

  refused(await decide(id, 'approve', tokens.carol), 409, 'approval_decided');
  refused(await decide(id, 'reject', tokens.bob), 409, 'approval_decided');
  assert.match(text(await result(id, tokens.alice, 0)), /restarted/, 'the result can be fetched again');
  assert.match(text(await result(id, tokens.aliceAdmin, 0)), /restarted/, 'by any credential of the same person');
  assert.equal((await result(id, tokens.eve, 0)).status, 404);
  assert.deepEqual(restarts(), ['nginx'], 'it ran once');
  assert.equal((await get('/api/status', tokens.bob)).body.pending_approvals, 0);

  for (const reason of ['role', 'own_request', 'scope', 'digest_differs', 'approval_decided']) {
    await hive.entry(`the refusal for ${reason}`, (entry) => entry.action === 'approval_refused' && entry.reason === reason);
  }
  await hive.entry('the approval', (entry) => entry.action === 'approval_granted');
  assert.equal(events('approval_granted').length, 1);
});

test('asking twice for the same is one request', async () => {
  const id = await ask('twice');
  assert.equal(await ask('twice'), id);
  assert.equal((await decide(id, 'withdraw', tokens.alice)).body.status, 'withdrawn');
  const other = await ask('other');
  assert.notEqual(other, id);
  assert.equal((await decide(other, 'withdraw', tokens.alice)).status, 200);
});

test('many who approve at once are one approval, and the call runs once', async () => {
  const id = await ask('raced');
  const answers = await Promise.all(Array.from({ length: 10 }, (_, i) =>
    decide(id, 'approve', i % 2 === 0 ? tokens.bob : tokens.carol)));
  assert.equal(answers.filter((answer) => answer.status === 200).length, 1);
  for (const answer of answers.filter((each) => each.status !== 200)) refused(answer, 409, 'approval_decided');
  assert.match(text(await result(id, tokens.alice)), /restarted/);
  assert.equal(restarts().filter((line) => line === 'raced').length, 1);
});

test('who asks for a stream is told by the status that other people are needed', async () => {
  const answer = await hive.call('agent-1__run_command', { name: restart, args: ['streamed'] },
    { token: tokens.alice, headers: { accept: 'text/event-stream' } });
  assert.equal(answer.status, 202);
  assert.equal((await decide(answer.body.approval_id, 'withdraw', tokens.alice)).status, 200);
});

test('a rejected request does not run and says who said no', async () => {
  const id = await ask('rejected');
  assert.equal((await decide(id, 'reject', tokens.bob, { comment: 'not on a Friday' })).body.status, 'rejected');
  const answer = await result(id, tokens.alice);
  refused(answer, 403, 'approval_rejected');
  assert.match(answer.body.detail, /not on a Friday/);
  const kept = (await get(`/api/approvals/${id}`, tokens.alice)).body;
  assert.equal(kept.refusal.identity, 'bob');
  assert.equal(kept.outcome, 'denied');
});

test('only who asked withdraws', async () => {
  const id = await ask('withdrawn');
  assert.equal((await decide(id, 'withdraw', tokens.bob)).status, 403);
  assert.equal((await decide(id, 'withdraw', tokens.alice)).status, 200);
  refused(await decide(id, 'approve', tokens.bob), 409, 'approval_decided');
  refused(await result(id, tokens.alice), 409, 'approval_withdrawn');
  assert.ok(!restarts().includes('withdrawn'));
});

test('a credential sees the requests within its reach', async () => {
  const far = await ask('far');
  const near = await ask('near', { agent: 'agent-2' });
  const ids = (await get('/api/approvals', tokens.dave)).body.map((entry) => entry.id);
  assert.deepEqual(ids, [near]);
  assert.equal((await get(`/api/approvals/${far}`, tokens.dave)).status, 404);
  assert.equal((await get('/api/status', tokens.dave)).body.pending_approvals, 1);
  for (const id of [far, near]) assert.equal((await decide(id, 'withdraw', tokens.alice)).status, 200);
});

test('what a list does not show to its end is approved by its digest only', async () => {
  const id = await ask('x'.repeat(6000));
  const [listed] = (await get('/api/approvals', tokens.bob)).body.filter((entry) => entry.id === id);
  assert.equal(listed.args.length, 4096);
  assert.equal(listed.args_hidden_bytes, listed.args_bytes - 4096);
  refused(await decide(id, 'approve', tokens.bob), 409, 'digest_required');
  const whole = (await get(`/api/approvals/${id}`, tokens.bob)).body;
  assert.equal(JSON.parse(whole.args).args[0].length, 6000);
  assert.equal((await decide(id, 'approve', tokens.bob, { digest: whole.digest })).status, 200);
  assert.equal((await result(id, tokens.alice)).status, 200);
});

test('requests survive a restart of the gateway, also a sudden one, and can be approved afterwards', async () => {
  const first = await ask('graceful');
  await restartGateway('SIGTERM');
  const second = await ask('sudden');
  await restartGateway('SIGKILL');
  const ids = (await get('/api/approvals', tokens.bob)).body.map((entry) => entry.id);
  assert.ok(ids.includes(first) && ids.includes(second));
  for (const id of [first, second]) {
    assert.equal((await decide(id, 'approve', tokens.bob)).status, 200);
    assert.match(text(await result(id, tokens.alice)), /restarted/);
  }
  assert.ok(restarts().includes('graceful') && restarts().includes('sudden'));
  refused(await decide(first, 'approve', tokens.carol), 409, 'approval_decided');
});

test('an approval does not hold for an agent that has come back with another key', async () => {
  const id = await ask('rekeyed', { agent: 'agent-2' });
  const folder = path.join(hive.dir, 'agents/agent-2');
  const keys = path.join(hive.dir, 'gateway/authorized_keys');
  await hive.end('agent-2', 'SIGTERM');
  fs.rmSync(path.join(folder, 'id_ed25519'));
  fs.rmSync(path.join(folder, 'id_ed25519.pub'), { force: true });
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'agent-2', '-f', path.join(folder, 'id_ed25519')]);
  const lines = fs.readFileSync(keys, 'utf8').split('\n').filter((line) => line && !/ agent-2$/.test(line));
  lines.push(fs.readFileSync(path.join(folder, 'id_ed25519.pub'), 'utf8').trim());
  fs.writeFileSync(keys, `${lines.join('\n')}\n`);
  await hive.up('--agents', '2');
  await eventually('agent-2 is back', () => hive.online('agent-2'));
  assert.equal((await decide(id, 'approve', tokens.bob)).status, 200);
  refused(await result(id, tokens.alice), 409, 'agent_key_changed');
  assert.ok(!restarts().includes('rekeyed'));
});

test('an approval does not hold under other rules than those it was asked under', async () => {
  const id = await ask('ruled');
  await edit({ rate_limit_per_minute: 500 });
  assert.equal((await decide(id, 'approve', tokens.bob)).status, 200);
  refused(await result(id, tokens.alice), 409, 'policy_changed');
  assert.ok(!restarts().includes('ruled'));
  await edit({ rate_limit_per_minute: undefined });
});

test('one admin cannot lift the rules for two over the API', async () => {
  const shown = await settings();
  for (const change of [
    { require_approval_tiers: [] },
    { tokens: { ...shown.tokens, ['e'.repeat(40)]: { role: 'admin', identity: 'nobody' } } },
    { risk_tiers: { run_command: 'read' } },
  ]) {
    const answer = await setUp({ ...shown, ...change });
    refused(answer, 400, 'invalid_config');
    assert.match(answer.body.detail, /cannot be changed over the API while require_approval_tiers/);
  }
  assert.equal((await setUp(shown)).status, 200);
});

test('some calls need several people of a group', async () => {
  await edit({
    approvals_required: { admin: { count: 2, groups: ['web'] } },
    approval_groups: { web: ['bob', 'carol'] },
  });
  const id = await ask('two');
  refused(await decide(id, 'approve', hive.token('admin')), 403, 'group');
  const one = await decide(id, 'approve', tokens.bob);
  assert.deepEqual(one.body, { id, status: 'pending', approvals: 1, required: 2 });
  assert.equal((await decide(id, 'approve', tokens.bob)).status, 409, 'one person is one');
  assert.ok(!restarts().includes('two'));
  assert.equal((await decide(id, 'approve', tokens.carol)).body.status, 'approved');
  assert.match(text(await result(id, tokens.alice)), /restarted/);
  await edit({ approvals_required: undefined, approval_groups: undefined });
});

test('a request that nobody decides runs out by itself', async () => {
  const rules = await settings();
  assert.equal((await setUp({ ...rules, approval_ttl_seconds: 10 })).status, 200);
  const id = await ask('late');
  await eventually('the request has run out', async () =>
    (await get(`/api/approvals/${id}`, tokens.alice)).body.status === 'expired', { every: 200 });
  assert.equal((await get('/api/status', tokens.bob)).body.pending_approvals, 0);
  refused(await decide(id, 'approve', tokens.bob), 410, 'approval_expired');
  refused(await result(id, tokens.alice), 410, 'approval_expired');
  assert.ok(!restarts().includes('late'));
  assert.equal((await setUp(rules)).status, 200);
});

test('explain says for each gate what it would say, and which line decides', async () => {
  const explain = async (call, token) => {
    const answer = await post('/api/explain', call, token);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return { ...answer.body, gates: Object.fromEntries(answer.body.gates.map((gate) => [gate.gate, gate])) };
  };
  const call = { name: 'agent-1__run_command', arguments: { name: restart, args: ['nginx'] } };
  const asked = await explain(call, tokens.alice);
  assert.equal(asked.verdict, 'ask');
  assert.equal(asked.reason, 'approval_required');
  assert.equal(asked.tier, 'admin');
  assert.match(asked.tier_rule, /gateway_config\.json:\d+: risk_tiers/);
  assert.match(asked.gates.approval.rule, /gateway_config\.json:\d+: require_approval_tiers/);
  assert.equal(asked.gates.allowlist.verdict, 'allow');

  const role = await explain(call, hive.token('read-only'));
  assert.equal(role.reason, 'role');
  assert.match(role.gates.role.rule, /gateway_config\.json:\d+/);
  assert.equal(role.gates.allowlist.verdict, 'unknown', 'who may not call an agent does not make it think');

  const scope = await explain(call, tokens.dave);
  assert.equal(scope.reason, 'scope');
  assert.match(scope.gates.scope.rule, /gateway_config\.json:\d+: scoped_tokens\[0\]/);

  const other = await explain({ ...call, as: { role: 'operator', identity: 'alice', agents: ['agent-2'] } }, tokens.bob);
  assert.equal(other.reason, 'scope');
  refused(await post('/api/explain', { ...call, as: { role: 'admin' } }, tokens.alice), 403, 'role');

  const listed = await explain({ name: 'agent-1__run_command', arguments: { name: 'uptime', args: ['-p'] } }, tokens.alice);
  assert.equal(listed.verdict, 'deny');
  assert.equal(listed.gates.allowlist.verdict, 'deny');
  assert.match(listed.gates.allowlist.rule, /allowed_commands of agent agent-1/);
  assert.equal(restarts().filter((line) => line === 'nginx').length, 1, 'nothing ran');
});

test('the configuration goes round without its secrets', async () => {
  const shown = await settings();
  const everything = JSON.stringify(shown);
  for (const secret of [...Object.values(tokens), hive.token('admin'), hive.token('operator')]) {
    assert.ok(!everything.includes(secret), 'no secret is shown');
  }
  const before = fs.readFileSync(config, 'utf8');
  const changed = await setUp({ ...shown, approval_ttl_seconds: 777, keepalive_seconds: 20 });
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  assert.equal(changed.body.success, true);
  assert.deepEqual(changed.body.changed, ['approval_ttl_seconds', 'keepalive_seconds']);
  assert.deepEqual(changed.body.restart_required, ['keepalive_seconds']);
  assert.equal(changed.body.config.approval_ttl_seconds, 777);
  assert.equal(fs.statSync(config).mode & 0o777, 0o600);
  const after = JSON.parse(fs.readFileSync(config, 'utf8'));
  assert.deepEqual(after.tokens, JSON.parse(before).tokens, 'placeholders became the secrets that they stand for');
  assert.equal(after.tokens_count, undefined);
  assert.equal((await get('/api/status', tokens.alice)).status, 200);

  const entry = await hive.entry('the change', ({ action, outcome, detail }) =>
    action === 'config_update' && outcome === 'success' && /keepalive_seconds/.test(detail));
  const [announced] = events('config_update').slice(-2);
  assert.equal(announced.reason, 'announced');
  assert.equal(announced.outcome, undefined);
  assert.equal(announced.request_id, entry.request_id);
  assert.match(entry.detail, /approval_ttl_seconds, keepalive_seconds/);
  for (const { detail } of [...events('config_update'), ...events('config_reload')]) {
    assert.doesNotMatch(detail ?? '', /777/, 'names, never values');
  }
  assert.equal((await setUp(shown)).status, 200);
});

test('changes of the configuration that arrive together come one after another', async () => {
  const shown = await settings();
  const limits = [501, 502, 503, 504, 505, 506];
  const answers = await Promise.all(limits.map((limit) => setUp({ ...shown, approval_ttl_seconds: limit })));
  for (const answer of answers) assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.ok(limits.includes(JSON.parse(fs.readFileSync(config, 'utf8')).approval_ttl_seconds));
  assert.deepEqual(fs.readdirSync(path.dirname(config)).filter((name) => name.startsWith('gateway_config.json.')), []);
  assert.equal((await setUp(shown)).status, 200);
});

test('a bad configuration changes nothing, and all that is wrong with it is told', async () => {
  const before = fs.readFileSync(config, 'utf8');
  const shown = await settings();
  const answer = await setUp({ ...shown, rate_limit_per_minute: -1, tokens: { ...shown.tokens, ['f'.repeat(40)]: 'emperor' } });
  refused(answer, 400, 'invalid_config');
  assert.match(answer.body.detail, /rate_limit_per_minute/);
  assert.match(answer.body.detail, /emperor|role/);
  refused(await setUp({ ...shown, auth_token: '[redacted:000000000000]' }), 400, 'invalid_config');
  refused(await setUp({ ...shown, host_key_path: '/nonexistent/key' }), 400, 'invalid_config');
  refused(await setUp({ ...shown, auth_token: 'env:NO_SUCH_VARIABLE_HERE' }), 400, 'invalid_config');
  assert.equal(fs.readFileSync(config, 'utf8'), before);
  assert.equal((await get('/api/status', tokens.alice)).status, 200);
  await eventually('the log says so', () => events('config_update').at(-1).reason === 'invalid_config');
  assert.equal((await get('/api/config', tokens.alice)).status, 403);
  refused(await get('/api/config', tokens.dave), 403, 'scope');
});

test('the log of all this verifies', () => hive.assertLogVerifies());
