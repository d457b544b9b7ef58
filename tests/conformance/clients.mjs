// Drives an MCP server with both official TypeScript client SDKs (1.x: legacy era, 2.x: 2026-07-28) and prints one line for
// each check. Started by clients.sh, which sets:
//
//   MCP_URL, SSE_URL, STDIO_CMD   where the server is; an unset one is skipped
//   MCP_TOKEN                     bearer token for the two HTTP transports
//   ECHO_TOOL, ECHO_ARG           a tool that returns the text it gets (default: found by name)
//   SLOW_TOOL                     a tool with the arguments duration (seconds) and steps that reports progress
//   PATIENCE                      seconds to wait for one answer (default 20)
//
// Beside what clients show anyway, it looks at the raw messages: ids, progress after a result, traffic after a cancellation.

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';

const require = createRequire(`${process.env.CLIENTS_DIR}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { MCP_URL, SSE_URL, STDIO_CMD, MCP_TOKEN } = process.env;
const headers = MCP_TOKEN ? { Authorization: `Bearer ${MCP_TOKEN}` } : {};
const patience = Number(process.env.PATIENCE ?? 20) * 1000;
const clientInfo = { name: 'conformance-clients', version: '1.0.0' };
const SAMPLE = 'plain, gr\u00fc\u00dfe \u{1F41C}, "quoted" \\ back\nsecond line';

const tally = { PASS: 0, FAIL: 0, SKIP: 0 };
function line(verdict, where, what, reason) {
  tally[verdict] += 1;
  console.log(`${verdict}  ${where.padEnd(24)} ${what.padEnd(16)} ${String(reason).replace(/\s+/g, ' ').slice(0, 240)}`);
}
const ensure = (condition, message) => {
  if (!condition) throw new Error(message);
};
function within(promise, ms, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: no answer within ${ms / 1000} s`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
async function check(where, what, body) {
  try {
    line('PASS', where, what, await body());
  } catch (error) {
    line('FAIL', where, what, error.message || error);
  }
}

// Notes every message in both directions, with the time.
function tap(transport) {
  const log = [];
  const send = transport.send.bind(transport);
  transport.send = (message, ...rest) => {
    for (const one of [message].flat()) log.push({ out: true, at: Date.now(), message: one });
    return send(message, ...rest);
  };
  let inner;
  Object.defineProperty(transport, 'onmessage', {
    configurable: true,
    get: () => inner && ((message, ...rest) => {
      log.push({ out: false, at: Date.now(), message });
      inner(message, ...rest);
    }),
    set: (handler) => {
      inner = handler;
    },
  });
  return log;
}

async function sdk1() {
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { SSEClientTransport } = await load('@modelcontextprotocol/sdk/client/sse.js');
  const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
  return {
    http: () => new StreamableHTTPClientTransport(new URL(MCP_URL), { requestInit: { headers } }),
    sse: () => new SSEClientTransport(new URL(SSE_URL), { requestInit: { headers } }),
    stdio: () => new StdioClientTransport({ command: 'sh', args: ['-c', `exec ${STDIO_CMD}`], env: process.env, stderr: 'ignore' }),
    client: () => new Client(clientInfo, { capabilities: {} }),
    call: (client, params, callOptions) => client.callTool(params, undefined, callOptions),
  };
}

async function sdk2() {
  const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
  const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');
  return {
    http: () => new StreamableHTTPClientTransport(new URL(MCP_URL), { requestInit: { headers } }),
    stdio: () => new StdioClientTransport({ command: 'sh', args: ['-c', `exec ${STDIO_CMD}`], env: process.env, stderr: 'ignore' }),
    client: () => new Client(clientInfo, { capabilities: {}, versionNegotiation: { mode: { pin: '2026-07-28' } } }),
    call: (client, params, callOptions) => client.callTool(params, callOptions),
  };
}

async function open(sdk, kind) {
  const transport = sdk[kind]();
  const log = tap(transport);
  const client = sdk.client();
  client.onerror = () => {};
  await within(client.connect(transport), patience, 'connect');
  return { client, log, transport };
}

async function shut({ client, transport } = {}) {
  try {
    if (transport?.terminateSession) await within(transport.terminateSession(), 3000, 'DELETE');
  } catch {
    // The server may not support it.
  }
  try {
    if (client) await within(client.close(), 5000, 'close');
  } catch {
    // Best effort.
  }
}

async function allTools(client) {
  const tools = [];
  let cursor;
  for (let pages = 0; pages < 1000; pages++) {
    const page = await within(client.listTools(cursor === undefined ? undefined : { cursor }), patience, 'tools/list');
    tools.push(...page.tools);
    cursor = page.nextCursor;
    if (cursor === undefined) return tools;
  }
  throw new Error('more than 1000 pages');
}

const has = (tool, ...names) => names.every((name) => tool.inputSchema?.properties && name in tool.inputSchema.properties);
function choose(tools) {
  const named = (name) => tools.find((tool) => tool.name === name);
  const echo = process.env.ECHO_TOOL ? named(process.env.ECHO_TOOL) : tools.find((tool) => /echo/i.test(tool.name) && has(tool, process.env.ECHO_ARG ?? 'message'));
  const slow = process.env.SLOW_TOOL ? named(process.env.SLOW_TOOL) : tools.find((tool) => /slow|long-?running/i.test(tool.name) && has(tool, 'duration', 'steps'));
  const counters = tools.find((tool) => /(^|__|[./-])fixture_counters$/.test(tool.name));
  return { echo: echo?.name, slow: slow?.name, counters: counters?.name };
}
const textOf = (result) => (result.content ?? []).map((block) => block.text ?? '').join('');
const isResponse = (message, id) => message.method === undefined && message.id === id;
const isProgress = (message, token) => message.method === 'notifications/progress' && message.params.progressToken === token;

async function inspect(where, sdk, kind) {
  let a;
  let b;
  let names = {};
  try {
    a = await open(sdk, kind);
  } catch (error) {
    line('FAIL', where, 'connect', error.message || error);
    return;
  }
  const call = (session, name, args, callOptions = {}) => sdk.call(session.client, { name, arguments: args }, { timeout: patience, ...callOptions });
  const echo = async (session, message) => {
    ensure(names.echo, 'no echo tool found; set ECHO_TOOL');
    const result = await within(call(session, names.echo, { [process.env.ECHO_ARG ?? 'message']: message }), patience, names.echo);
    ensure(!result.isError, `${names.echo} failed: ${textOf(result)}`);
    ensure(textOf(result).includes(message), `${names.echo} returned ${JSON.stringify(textOf(result))} for ${JSON.stringify(message)}`);
  };
  const counters = async () => (names.counters ? JSON.parse(textOf(await call(a, names.counters, {}))) : undefined);

  await check(where, 'tools/list', async () => {
    const tools = await allTools(a.client);
    ensure(tools.length > 0, 'the list is empty');
    ensure(new Set(tools.map((tool) => tool.name)).size === tools.length, 'a name is listed twice');
    const bad = tools.find((tool) => !/^[A-Za-z0-9_./-]{1,64}$/.test(tool.name) || tool.inputSchema?.type !== 'object');
    ensure(!bad, `${bad?.name}: not a tool name of at most 64 characters, or no input schema of type object`);
    names = choose(tools);
    const revision = a.client.getNegotiatedProtocolVersion?.() ?? a.log.find((entry) => !entry.out && entry.message.result?.protocolVersion)?.message.result.protocolVersion;
    return `${tools.length} tools; ${a.client.getServerVersion()?.name}; revision ${revision}`;
  });

  await check(where, 'tools/call', async () => {
    await echo(a, SAMPLE);
    return `${names.echo} returned the text unchanged`;
  });

  await check(where, 'progress', async () => {
    ensure(names.slow, 'no slow tool found; set SLOW_TOOL');
    const seen = [];
    const from = a.log.length;
    const result = await within(call(a, names.slow, { duration: 1, steps: 4 }, { onprogress: (update) => seen.push(update) }), patience, names.slow);
    ensure(!result.isError, `${names.slow} failed: ${textOf(result)}`);
    ensure(seen.length >= 2, `${seen.length} progress notifications for 4 steps`);
    ensure(seen.every((update, i) => i === 0 || update.progress > seen[i - 1].progress), `not increasing: ${seen.map((update) => update.progress).join(' ')}`);
    await sleep(300);
    const raw = a.log.slice(from);
    const request = raw.find((entry) => entry.out && entry.message.method === 'tools/call').message;
    const done = raw.findIndex((entry) => !entry.out && isResponse(entry.message, request.id));
    const token = request.params._meta.progressToken;
    ensure(!raw.slice(done).some((entry) => isProgress(entry.message, token)), 'progress after the result');
    const foreign = raw.find((entry) => entry.message.method === 'notifications/progress' && !isProgress(entry.message, token));
    ensure(!foreign, `progress for a token that was never given: ${JSON.stringify(foreign?.message.params.progressToken)}`);
    return `${seen.length} notifications, in order, before the result`;
  });

  await check(where, 'cancellation', async () => {
    ensure(names.slow, 'no slow tool found; set SLOW_TOOL');
    const before = await counters();
    const controller = new AbortController();
    const from = a.log.length;
    let started;
    const first = new Promise((resolve) => {
      started = resolve;
    });
    const pending = call(a, names.slow, { duration: 6, steps: 12 }, { signal: controller.signal, onprogress: () => started() });
    pending.catch(() => {});
    await Promise.race([within(first, 5000, 'first progress'), pending.then(() => { throw new Error('the call ended before it was cancelled'); })]);
    controller.abort(new Error('stop'));
    const aborted = Date.now();
    const ended = await within(pending.then(() => 'a result', () => 'rejected'), 3000, 'the cancelled call');
    ensure(ended === 'rejected', 'the cancelled call ended with a result');
    await echo(a, 'still here');
    await sleep(Math.max(0, aborted + 7000 - Date.now()));
    const raw = a.log.slice(from);
    const request = raw.find((entry) => entry.out && entry.message.params?.name === names.slow).message;
    const late = raw.filter((entry) => !entry.out && entry.at > aborted + 700);
    ensure(!late.some((entry) => isResponse(entry.message, request.id)), 'a result came for the cancelled call');
    const stray = late.filter((entry) => isProgress(entry.message, request.params._meta.progressToken)).length;
    ensure(stray === 0, `${stray} progress notifications came for the cancelled call`);
    const after = await counters();
    if (!after || after.started === before.started) return 'the client ended at once, silence afterwards (no counters of that tool to be had: the server side was not seen)';
    ensure(after.cancelled === before.cancelled + 1 && after.running === before.running, `the tool was not stopped: before ${JSON.stringify(before)}, after ${JSON.stringify(after)}`);
    return 'the client ended at once, the tool was stopped, silence afterwards';
  });
  await shut(a);

  await check(where, 'same id twice', async () => {
    ensure(names.slow, 'no slow tool found; set SLOW_TOOL');
    a = await open(sdk, kind);
    b = await open(sdk, kind);
    await allTools(a.client);
    await allTools(b.client);
    const marks = [a.log.length, b.log.length];
    const progress = [[], []];
    const one = (session, i) => call(session, names.slow, { duration: 1.5, steps: 2 + i }, { onprogress: (update) => progress[i].push(update) });
    const results = await within(Promise.all([one(a, 0), one(b, 1)]), patience, names.slow);
    const spans = [a, b].map((session, i) => {
      const raw = session.log.slice(marks[i]);
      const sent = raw.find((entry) => entry.out && entry.message.params?.name === names.slow);
      const answered = raw.find((entry) => !entry.out && isResponse(entry.message, sent.message.id));
      ensure(answered, `no answer bears the id as it was sent, ${JSON.stringify(sent.message.id)}`);
      return { id: sent.message.id, from: sent.at, to: answered.at };
    });
    ensure(spans[0].id === spans[1].id, `the two ids differ (${spans[0].id}, ${spans[1].id}): this shows nothing`);
    ensure(spans[0].from < spans[1].to && spans[1].from < spans[0].to, 'the two calls were not in flight at once: this shows nothing');
    for (const i of [0, 1]) {
      ensure(new RegExp(`\\b${2 + i}\\b`).test(textOf(results[i]).replace(/1\.5/g, '')), `client ${i + 1} asked for ${2 + i} steps and got ${JSON.stringify(textOf(results[i]))}`);
      const wrong = progress[i].find((update) => update.total !== undefined && update.total !== 2 + i);
      ensure(!wrong, `client ${i + 1} got progress of the other: ${JSON.stringify(wrong)}`);
    }
    await Promise.all([a, b].flatMap((session, i) => Array.from({ length: 20 }, (_, n) => echo(session, `client ${i + 1} message ${n}`))));
    return `id ${JSON.stringify(spans[0].id)} in flight twice, each got its own result and progress; 2 x 20 echoes right`;
  });
  await shut(a);
  await shut(b);
}

// ---------------------------------------------------------------------------------------------------------------------

const first = await sdk1();
const second = await sdk2();
if (MCP_URL && MCP_TOKEN) {
  await check('http', 'no token', async () => {
    const init = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } };
    const refused = async (authorization) => {
      const response = await fetch(MCP_URL, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...authorization },
        body: JSON.stringify(init),
        signal: AbortSignal.timeout(patience),
      });
      await response.body?.cancel();
      return { status: response.status, challenge: response.headers.get('www-authenticate') };
    };
    const none = await refused({});
    const wrong = await refused({ authorization: `Bearer ${MCP_TOKEN}x` });
    ensure(none.status === 401 && wrong.status === 401, `expected 401 without a token and with a wrong one, got ${none.status} and ${wrong.status}`);
    ensure(/^bearer/i.test(none.challenge ?? ''), 'the 401 has no WWW-Authenticate: Bearer');
    return '401 and a challenge, without a token and with a wrong one';
  });
}
if (MCP_URL) {
  await inspect('sdk-1 http', first, 'http');
  await inspect('sdk-2 http 2026-07-28', second, 'http');
} else line('SKIP', 'http', 'all', 'no URL');
if (SSE_URL) await inspect('sdk-1 sse', first, 'sse');
else line('SKIP', 'sdk-1 sse', 'all', 'SSE_URL is empty');
if (STDIO_CMD) {
  await inspect('sdk-1 stdio', first, 'stdio');
  await inspect('sdk-2 stdio 2026-07-28', second, 'stdio');
} else line('SKIP', 'stdio', 'all', 'STDIO_CMD is not set');

console.log(`sdk: ${tally.PASS} passed, ${tally.FAIL} failed, ${tally.SKIP} skipped`);
process.exit(tally.FAIL ? 1 : tally.SKIP ? 3 : 0);
