// What clients in the field really send to an MCP server, and what hostile ones do.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Hive, eventually, memory, root, run } from './support/hive.mjs';
import { LEGACY, LegacyClient, MODERN, ModernClient, eventsOf, reasonOf, textOf } from './support/mcp.mjs';

const fixture = path.join(root, 'tests/conformance/fixture.mjs');
let hive;
before(async () => {
  hive = await Hive.start({
    agents: 1,
    gateway: {
      external_mcp_servers: [{ name: 'old', transport: 'stdio', command: process.execPath, args: [fixture, '--stdio', '--era', 'legacy'], pin_tools: false }],
    },
  });
  await eventually('the upstream is known', async () => (await (await ModernClient.open(hive)).list('tools')).some(({ name }) => name === 'old__fixture_echo'));
});
after(() => hive.stop());

// Sends a body to a session or without one, and returns status and parsed answer.
async function post(client, body, headers) {
  const response = await client.post(body, { headers: headers ?? client.headers(typeof body === 'string' ? { method: 'ping' } : body) });
  const text = await response.text();
  return { status: response.status, body: text ? JSON.parse(text.replace(/^[\s\S]*?data: (?=\S)/, '')) : undefined };
}

const raw = (bytes, options) => hive.raw(bytes, options);

describe('messages', () => {
  test('what is no JSON-RPC 2.0 request is refused, with the id only where it is one', async () => {
    for (const client of [await LegacyClient.open(hive), await ModernClient.open(hive)]) {
      for (const [body, id] of [
        ['{"jsonrpc":"1.0","id":5,"method":"ping"}', 5], ['{}'], ['null'], ['7'], ['"x"'],
        ['{"jsonrpc":"2.0","id":true,"method":"ping"}'], ['{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}'],
        ['{"jsonrpc":"2.0","id":1.5,"method":"ping"}'], ['{"jsonrpc":"2.0","id":null,"method":"ping"}'],
        ['{"jsonrpc":"2.0","id":8,"method":7}', 8],
      ]) {
        const { status, body: answer } = await post(client, body);
        assert.equal(status, 400, body);
        assert.equal(answer.error.code, -32600, `${body}: ${JSON.stringify(answer)}`);
        assert.ok(answer.id === id || (answer.id ?? undefined) === undefined, `${body}: ${JSON.stringify(answer)}`);
      }
      assert.equal((await post(client, '{"jsonrpc":"2.0",')).body.error.code, -32700);
      await client.close();
    }
  });

  test('a batch is for 2025-03-26 alone; elsewhere it is one error without an invented id', async () => {
    const batch = [{ jsonrpc: '2.0', id: 1, method: 'ping' }, { jsonrpc: '2.0', id: 2, method: 'ping' }];
    for (const revision of LEGACY) {
      const client = await LegacyClient.open(hive, { revision });
      const response = await client.post(batch, { headers: client.headers() });
      if (revision === '2025-03-26') {
        const answers = response.headers.get('content-type').startsWith('text/event-stream')
          ? (await Array.fromAsync(eventsOf(response))).filter(({ data }) => data).flatMap(({ data }) => JSON.parse(data)) : await response.json();
        assert.deepEqual(answers.map(({ id, result }) => [id, result]).sort(), [[1, {}], [2, {}]]);
      } else {
        const answer = await response.json();
        assert.equal(answer.error.code, -32600, revision);
        assert.equal(answer.id ?? undefined, undefined, revision);
      }
      await client.close();
    }
    const { body } = await post(await ModernClient.open(hive), JSON.stringify(batch), { 'mcp-protocol-version': MODERN, 'mcp-method': 'ping' });
    assert.equal(body.error.code, -32600);
    assert.equal(body.id ?? undefined, undefined);
  });

  test('params that are no object: invalid params, with the id', async () => {
    const client = await LegacyClient.open(hive);
    for (const params of ['"x"', '[]', '7', 'true']) {
      const { body } = await post(client, `{"jsonrpc":"2.0","id":"p","method":"tools/list","params":${params}}`);
      assert.deepEqual([body.id, body.error.code], ['p', -32602], params);
    }
    await client.close();
  });

  test('every id that is one comes back as it was sent', async () => {
    for (const client of [await LegacyClient.open(hive), await ModernClient.open(hive)]) {
      for (const id of [0, -1, 9007199254740991, '', '0', 'x'.repeat(200), 'ä–\u{1F41C}"\\', ' ']) {
        const { message } = await client.call('agent-1__get_metrics', {}, { id });
        assert.deepEqual(message.id, id);
      }
      await client.close();
    }
    const legacy = await LegacyClient.open(hive);
    const response = await legacy.post('{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}', { headers: legacy.headers() });
    const text = await response.text();
    assert.ok(text.includes('123456789012345678901234567890') || /-32600/.test(text), text);
    await legacy.close();
  });

  test('an id in flight is refused a second time, and the first call is not disturbed', async () => {
    const client = await LegacyClient.open(hive);
    let begun;
    const running = new Promise((resolve) => { begun = resolve; });
    const first = client.call('old__fixture_slow', { duration: 4, steps: 20 }, { id: 7, meta: { progressToken: 'p' }, onMessage: begun });
    await running;
    assert.equal((await client.request('ping', {}, { id: 7 })).error?.code, -32600);
    assert.match(textOf(await first), /completed/);
    assert.deepEqual((await client.request('ping', {}, { id: 7 })).result, {}, 'then it is free again');
    await client.close();
  });

  test('a key given twice is refused before anything runs', async () => {
    for (const client of [await LegacyClient.open(hive), await ModernClient.open(hive)]) {
      for (const body of [
        '{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"agent-1__get_system_info"}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent-1__get_system_info","name":"agent-1__run_command","arguments":{"name":"uptime"}}}',
      ]) {
        const { status, body: answer } = await post(client, body);
        assert.ok(status >= 400 && answer.error, `${status} ${JSON.stringify(answer)}`);
      }
      await client.close();
    }
    const ran = (await hive.settledAudit()).filter(({ tool }) => ['get_system_info', 'run_command'].includes(tool));
    assert.deepEqual(ran, [], 'no other test of this file calls them');
  });

  test('nesting beyond the limit is refused before anything is built of it', async () => {
    const client = await LegacyClient.open(hive);
    const before = memory(hive.pid('gateway')).peak;
    for (const body of ['['.repeat(1200), '['.repeat(3000), '{"a":'.repeat(100_000), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${'['.repeat(2000)}${']'.repeat(2000)}}`]) {
      const { body: answer } = await post(client, body);
      assert.ok([-32700, -32600].includes(answer.error.code), JSON.stringify(answer));
    }
    assert.ok(memory(hive.pid('gateway')).peak - before < (32 << 20));
    await client.close();
  });

  test('no progress without a token, and none after the result', async () => {
    for (const client of [await LegacyClient.open(hive), await ModernClient.open(hive)]) {
      const without = await client.call('old__fixture_slow', { duration: 0.4, steps: 4 });
      assert.deepEqual(without.notifications, []);
      for (const token of [0, 'token', 17]) {
        const { notifications } = await client.call('old__fixture_slow', { duration: 0.4, steps: 4 }, { meta: { progressToken: token } });
        assert.ok(notifications.length >= 2);
        for (const { method, params } of notifications) assert.deepEqual([method, params.progressToken], ['notifications/progress', token]);
      }
      await client.close();
    }
  });

  test('a cancellation of nothing is ignored quietly', async () => {
    const client = await LegacyClient.open(hive);
    const { message } = await client.request('ping', {}, { id: 'done' });
    assert.equal(message.id, 'done');
    for (const params of [{ requestId: 'unknown' }, { requestId: 'done' }, { requestId: 1 }, { requestId: 1, reason: 'why not' }, {}, { requestId: null }]) {
      const response = await client.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params }, { headers: client.headers() });
      assert.ok([202, 400].includes(response.status), JSON.stringify(params));
    }
    assert.deepEqual((await client.request('ping')).result, {});
    await client.close();
  });
});

describe('HTTP', () => {
  test('Accept as clients in the field send it', async () => {
    for (const accept of ['application/json', '*/*', 'application/json;q=0.9, text/event-stream;q=0.1', 'text/event-stream, application/json', 'application/*, text/*']) {
      const client = await LegacyClient.open(hive);
      const answer = await client.call('agent-1__get_metrics', {}, { headers: { accept } });
      assert.ok(answer.result && !answer.result.isError, accept);
      if (accept === 'application/json') assert.match(answer.headers.get('content-type'), /^application\/json/);
      await client.close();
    }
  });

  test('/mcp/ is /mcp, without a redirect', async () => {
    for (const Client of [LegacyClient, ModernClient]) {
      const client = await Client.open(hive, { path: '/mcp/' });
      assert.ok(!(await client.call('agent-1__get_metrics')).result.isError);
      await client.close();
    }
  });

  test('a foreign Host or Origin is refused: no rebinding', async () => {
    const { port } = new URL(hive.env.MYRMEX_HTTP_URL);
    const body = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}';
    const ask = (headers) => raw(`POST /mcp HTTP/1.1\r\n${headers}Connection: close\r\nAuthorization: Bearer ${hive.env.MYRMEX_TOKEN}\r\n` +
      `Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    const local = `Host: 127.0.0.1:${port}\r\n`;
    for (const headers of ['Host: evil.example\r\n', 'Host: 0.0.0.0:8080\r\n', `${local}Origin: null\r\n`, `${local}Origin: http://localhost.evil.com\r\n`, `${local}Origin: http://evil.example\r\n`]) {
      assert.match(await ask(headers), /^HTTP\/1\.1 403/, headers);
    }
    for (const headers of [local, `${local}Origin: http://127.0.0.1:${port}\r\n`, `Host: localhost:${port}\r\n`, `Host: [::1]:${port}\r\n`]) {
      assert.match(await ask(headers), /^HTTP\/1\.1 200/, headers);
    }
  });

  test('headers that do not mirror the body are refused, those that do in another form are not', async () => {
    const client = await ModernClient.open(hive);
    const message = client.message('tools/call', { name: 'agent-1__get_metrics', arguments: {} });
    const send = (headers) => client.send(message, { headers });
    for (const headers of [{ 'mcp-method': 'tools/list' }, { 'mcp-method': undefined }, { 'mcp-name': 'agent-1__run_command' }, { 'mcp-name': undefined },
      { 'mcp-protocol-version': '2025-11-25' }, { 'mcp-name': '=?base64?!!!?=' }]) {
      const { status, error } = await send(headers);
      assert.equal(status, 400, JSON.stringify(headers));
      assert.ok([-32020, -32022].includes(error.code), `${JSON.stringify(headers)}: ${JSON.stringify(error)}`);
    }
    const encoded = `=?base64?${Buffer.from('agent-1__get_metrics').toString('base64')}?=`;
    assert.ok(!(await send({ 'mcp-name': encoded })).result.isError);
    assert.ok(!(await send({ 'mcp-protocol-version': undefined, 'MCP-PROTOCOL-VERSION': MODERN })).result.isError);
    const unknown = client.message('server/discover', {}, { meta: { 'io.modelcontextprotocol/protocolVersion': '2099-01-01' } });
    const { status, error } = await client.send(unknown, { headers: { 'mcp-protocol-version': '2099-01-01' } });
    assert.deepEqual([status, error.code], [400, -32022]);
    assert.ok(error.data.supported.includes(MODERN));
  });

  test('events of one session are never replayed to another', async () => {
    const [mine, other] = [await LegacyClient.open(hive), await LegacyClient.open(hive)];
    const response = await mine.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'old__fixture_slow', arguments: { duration: 0.4, steps: 4 }, _meta: { progressToken: 't' } } },
      { headers: mine.headers() });
    const events = await Array.fromAsync(eventsOf(response));
    const id = events.find((event) => event.id && event.data)?.id ?? events.find((event) => event.id)?.id;
    assert.ok(id, JSON.stringify(events));
    const abort = new AbortController();
    const foreign = await other.listen({ lastEventId: id, signal: abort.signal });
    if (foreign.status === 200) {
      setTimeout(() => abort.abort(), 500);
      const seen = [];
      try {
        for await (const { data } of eventsOf(foreign)) if (data) seen.push(data);
      } catch (error) {
        assert.equal(error.name, 'AbortError');
      }
      assert.deepEqual(seen, []);
    } else {
      assert.ok(foreign.status >= 400 && foreign.status < 500, String(foreign.status));
    }
    await hive.entry('the attempt', (entry) => entry.reason === 'unknown_event');
    const replayed = await mine.listen({ lastEventId: id, signal: AbortSignal.timeout(60_000) });
    assert.equal(replayed.status, 200);
    const again = (await Array.fromAsync(eventsOf(replayed))).filter(({ data }) => data).map(({ data }) => JSON.parse(data));
    assert.equal(again.at(-1).id, 1, 'the owner gets the rest, to the answer');
    await mine.close();
    await other.close();
  });

  test('a state that was altered, belongs to another call or was used is refused', async () => {
    const elicits = { capabilities: { elicitation: {} } };
    const client = await ModernClient.open(hive, elicits);
    const tool = 'old__test_elicitation';
    const ask = (args = { message: 'who?' }, more = {}) => client.request('tools/call', { name: tool, arguments: args, ...more });
    const { result } = await ask();
    assert.equal(result.resultType, 'input_required');
    const inputResponses = Object.fromEntries(Object.keys(result.inputRequests).map((key) => [key, { action: 'accept', content: { username: 'u', email: 'e@example.org' } }]));
    const { requestState } = result;
    const refused = async (answer, what) => {
      const { error, result: other } = await answer;
      assert.ok(error?.code === -32602 || other?.isError, `${what}: ${JSON.stringify(other ?? error)}`);
    };
    for (const at of [0, Math.floor(requestState.length / 2), requestState.length - 1]) {
      const altered = requestState.slice(0, at) + (requestState[at] === 'A' ? 'B' : 'A') + requestState.slice(at + 1);
      await refused(ask(undefined, { inputResponses, requestState: altered }), `altered at ${at}`);
    }
    await refused(ask({ message: 'something else' }, { inputResponses, requestState }), 'other arguments');
    const stranger = await ModernClient.open(hive, { ...elicits, token: hive.token('operator') });
    await refused(stranger.request('tools/call', { name: tool, arguments: { message: 'who?' }, inputResponses, requestState }), 'another person');
    const done = await ask(undefined, { inputResponses, requestState });
    assert.match(textOf(done), /accept/);
    await refused(ask(undefined, { inputResponses, requestState }), 'used twice');
  });

  test('a body of 64 MB is refused without being kept', async () => {
    const before = memory(hive.pid('gateway')).rss;
    const size = 64 << 20;
    const answer = raw(`POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer ${hive.env.MYRMEX_TOKEN}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${size}\r\n\r\n`);
    assert.match(await answer, /^HTTP\/1\.1 413/);
    assert.ok(memory(hive.pid('gateway')).rss - before < (16 << 20));
  });
});

describe('for long', () => {
  test('1,000 calls in a row: descriptors and children stay as they are, no zombie', async () => {
    const gateway = hive.pid('gateway');
    const client = await LegacyClient.open(hive);
    const look = async () => ({
      descriptors: fs.readdirSync(`/proc/${gateway}/fd`).length,
      children: (await run('ps', ['-o', 'stat=', '--ppid', String(gateway)])).stdout.trim().split('\n'),
    });
    for (let i = 0; i < 20; i++) await client.call('old__fixture_echo', { message: 'warm' });
    const before = await look();
    for (let i = 0; i < 1000; i++) {
      const tool = i % 2 === 0 ? 'old__fixture_echo' : 'agent-1__get_metrics';
      const answer = await client.call(tool, i % 2 === 0 ? { message: `m${i}` } : {});
      if (i % 2 === 0) assert.equal(textOf(answer), `m${i}`);
      else assert.ok(!answer.result.isError, reasonOf(answer));
    }
    await client.close();
    // What a thousand calls leave behind would be a thousand; a connection more of the moment is nothing.
    await eventually('descriptors and children are as before, and no zombie stays', async () => {
      const now = await look();
      return now.descriptors <= before.descriptors + 20 && now.children.length <= before.children.length + 2 && !/Z/.test(now.children.join(' '));
    });
  });

  test('the log of all this verifies', () => hive.assertLogVerifies());
});
