// Who may do what, and what a hostile client can send.

import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, test } from 'node:test';

import { Hive, memory } from './support/hive.mjs';

let hive;
before(async () => { hive = await Hive.start({ agents: 1 }); });
after(() => hive.stop());

async function problem(response, status) {
  assert.equal(response.status, status);
  assert.match(response.headers.get('content-type'), /^application\/problem\+json/);
  const body = await response.json();
  assert.equal(typeof body.code, 'string');
  assert.equal(typeof (body.detail ?? body.title), 'string');
  assert.equal(typeof body.request_id, 'string');
  return body;
}

const raw = (bytes, options) => hive.raw(bytes, options);

const request = (head, body = '') => `POST /api/call HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n` +
  `Authorization: Bearer ${hive.env.MYRMEX_TOKEN}\r\nContent-Type: application/json\r\n${head}\r\n${body}`;

test('without a token, with a wrong one and with a broken header: 401', async () => {
  await problem(await hive.fetch('/api/status', { token: null }), 401);
  await problem(await hive.fetch('/api/status', { token: 'wrong' }), 401);
  await problem(await hive.fetch('/api/status', { token: null, headers: { authorization: 'Basic eDp5' } }), 401);
});

test('health needs no token, and says nothing about the fleet', async () => {
  for (const route of ['/healthz', '/readyz']) {
    const response = await hive.fetch(route, { token: null });
    assert.equal(response.status, 200);
    assert.doesNotMatch(await response.text(), /agent/);
  }
});

test('read-only sees the fleet and calls nothing', async () => {
  const token = hive.token('read-only');
  for (const route of ['/api/status', '/api/fleet', '/api/tools']) {
    assert.equal((await hive.fetch(route, { token })).status, 200, route);
  }
  const answer = await hive.call('agent-1__run_command', { name: 'uptime' }, { token });
  assert.equal(answer.status, 403);
  await problem(await hive.fetch('/api/audit', { token }), 403);
  const { code } = await hive.myrmex(['call', 'agent-1__run_command', 'name=uptime'], { env: { MYRMEX_TOKEN: token } });
  assert.equal(code, 3);
});

test('an operator calls, and does not read the audit log', async () => {
  const token = hive.token('operator');
  assert.equal((await hive.call('agent-1__run_command', { name: 'uptime' }, { token })).outcome, 'success');
  await problem(await hive.fetch('/api/audit', { token }), 403);
});

test('the audit log tells operator and admin apart, and holds no token', async () => {
  await hive.call('agent-1__get_metrics', {});
  for (const role of ['operator', 'admin']) {
    await hive.entry(`an outcome of ${role}`, (entry) => entry.kind === 'outcome' && entry.role === role);
  }
  const log = JSON.stringify(hive.audit());
  for (const role of ['admin', 'operator', 'read-only']) assert.ok(!log.includes(hive.token(role)), role);
});

test('the audit page gives the newest entries first', async () => {
  const response = await hive.fetch('/api/audit?limit=5');
  assert.equal(response.status, 200);
  const { entries } = await response.json();
  assert.equal(entries.length, 5);
  const numbers = entries.map((entry) => entry.seq);
  assert.deepEqual(numbers, [...numbers].sort((a, b) => b - a));
});

test('unknown routes and methods are refused in JSON', async () => {
  await problem(await hive.fetch('/api/nothing'), 404);
  const response = await hive.fetch('/api/call');
  assert.match(response.headers.get('allow'), /POST/);
  await problem(response, 405);
});

test('calls that make no sense are refused before anything runs', async () => {
  const refused = new Set();
  const post = (body) => hive.fetch('/api/call', { method: 'POST', body, headers: { 'content-type': 'application/json' } });
  for (const body of [
    '', 'null', '[]', '{}', '{"name":7}', '{"name":""}', '{"name":"agent-1__run_command","arguments":[]}',
    '{"name":"agent-1__run_command","name":"agent-1__get_metrics"}',
    '{"name":"agent-1__get_metrics"} trailing', '{"name":"agent-1__get_metrics","argumnets":{}}',
    `{"name":"agent-1__get_metrics","arguments":${'['.repeat(3000)}${']'.repeat(3000)}}`,
    '{"name":"agent-1__get_metrics","arguments":'.repeat(1000),
    '{"name":"agent-1__get_metrics","timeout_ms":-1}',
    Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
  ]) refused.add((await problem(await post(body), 400)).request_id);
  const ran = (await hive.settledAudit()).filter((entry) => entry.outcome === 'success' && refused.has(entry.request_id));
  assert.deepEqual(ran, []);
});

test('odd names of agents and tools run nothing', async () => {
  for (const name of ['__', 'agent-1__', '__get_metrics', '../x__get_metrics', 'agent-1__get_metrics\u0000', 'AGENT-1__get_metrics',
    'agent-1__get_metrics\r\nX: y', `${'a'.repeat(10_000)}__get_metrics`, 'аgent-1__get_metrics', '*__get_metrics']) {
    const answer = await hive.call(name, {});
    assert.notEqual(answer.outcome, 'success', name);
  }
});

test('bodies that are too large or lie about their size', async () => {
  assert.match(await raw(request('Content-Length: 99999999999\r\n')), /^HTTP\/1\.1 413/);
  assert.match(await raw(request('Content-Length: 5\r\nContent-Length: 6\r\n', 'hello')), /^HTTP\/1\.1 400/);
  assert.match(await raw(request('Content-Length: +5\r\n', 'hello')), /^HTTP\/1\.1 400/);
  assert.match(await raw(request('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n')), /^HTTP\/1\.1 400/);
  assert.match(await raw(request(`X-Long: ${'x'.repeat(100_000)}\r\n`)), /^HTTP\/1\.1 431/);
  const chunk = `${(1 << 20).toString(16)}\r\n${'x'.repeat(1 << 20)}\r\n`;
  assert.match(await raw(request('Transfer-Encoding: chunked\r\n', chunk.repeat(40))), /^HTTP\/1\.1 413|^$/);
});

test('a foreign Host or Origin is refused: no rebinding', async () => {
  const get = (headers) => raw(`GET /api/status HTTP/1.1\r\n${headers}Connection: close\r\n` +
    `Authorization: Bearer ${hive.env.MYRMEX_TOKEN}\r\n\r\n`);
  assert.match(await get('Host: evil.example\r\n'), /^HTTP\/1\.1 403/);
  assert.match(await get('Host: 127.0.0.1\r\nOrigin: http://evil.example\r\n'), /^HTTP\/1\.1 403/);
  assert.match(await get('Host: 127.0.0.1\r\nOrigin: null\r\n'), /^HTTP\/1\.1 403/);
  assert.match(await get('Host: 127.0.0.1\r\n'), /^HTTP\/1\.1 200/);
});

test('connections that say nothing do not hold others up, and the gateway stays small', async () => {
  const { hostname, port } = new URL(hive.env.MYRMEX_HTTP_URL);
  const silent = Array.from({ length: 200 }, () => net.connect(Number(port), hostname).on('error', () => {}));
  try {
    assert.equal((await hive.call('agent-1__get_metrics', {})).outcome, 'success');
  } finally {
    for (const socket of silent) socket.destroy();
  }
  assert.ok(memory(hive.pid('gateway')).peak < (200 << 20));
});

test('what the caller sends cannot forge a line of the log', async () => {
  const evil = 'x\u2028y\u0085z\u000b\r\n{"seq":1,"kind":"outcome","outcome":"success"}';
  const answer = await hive.call('agent-1__run_command', { name: 'echo', args: [evil] });
  assert.equal(answer.outcome, 'denied');
  assert.equal((await hive.outcome(answer.requestId)).outcome, 'denied');
  await hive.assertLogVerifies();
});
