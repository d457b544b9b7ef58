// The official MCP conformance suite and the official clients against a gateway with an MCP server behind it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Hive, eventually, root, run } from './support/hive.mjs';
import { ModernClient } from './support/mcp.mjs';

const folder = path.join(root, 'tests/conformance');
const fixture = path.join(folder, 'fixture.mjs');
const minute = 60_000;
// What the suite runs without scoring it, and the fixture passes.
const both = ['server-session-lifecycle', 'json-schema-2020-12', 'http-header-validation', 'http-custom-header-server-validation'];
const alsoRequired = [...both, 'server-sse-polling'];

// The fixture as a server of its own; resolves to its URL.
function startFixture(...options) {
  const child = spawn(process.execPath, [fixture, '--http', '0', ...options], { stdio: ['ignore', 'ignore', 'pipe'] });
  return new Promise((resolve, reject) => {
    let said = '';
    child.stderr.on('data', (data) => {
      said += data;
      const url = /listening on (http\S+)/.exec(said)?.[1];
      if (url) resolve({ url, stop: () => child.kill('SIGTERM') });
    });
    child.on('exit', (code) => reject(new Error(`the fixture ended with ${code}: ${said}`)));
  });
}

// A hive without agents, with the fixture as its only upstream and a token that nobody may be told, but that the
// Inspector needs on its command line.
async function startHive(upstream) {
  const token = crypto.randomBytes(32).toString('hex');
  const hive = await Hive.start({
    agents: 0,
    gateway: {
      tokens: { [`sha256:${crypto.createHash('sha256').update(token).digest('hex')}`]: { role: 'admin', identity: 'conformance' } },
      external_mcp_servers: [{ name: 'fixture', prefix: '', pin_tools: false, ...upstream }],
    },
  });
  hive.conformanceToken = path.join(hive.base, 'token');
  fs.writeFileSync(hive.conformanceToken, token, { mode: 0o600 });
  const client = await ModernClient.open(hive);
  await eventually('the gateway knows the tools of the fixture',
    async () => (await client.list('tools')).some(({ name }) => name === 'test_simple_text'));
  return hive;
}

// Runs the suite for both revisions. `cannot`: scenarios of 2026-07-28 that no gateway can pass before this upstream.
async function suite(t, hive, { url, ca, require = alsoRequired, cannot = [] }) {
  const out = fs.mkdtempSync(path.join(hive.base, 'suite-'));
  const result = await run('bash', [path.join(folder, 'run.sh'), url, `@${hive.conformanceToken}`, ...(ca ? [ca] : [])], {
    // The gateway is strict about the scheme of an Origin, and nginx listens without TLS.
    env: { ...process.env, OUT: out, ALSO_REQUIRE: require.join(' '), GATEWAY_HOST_MODE: ca ? 'rewrite' : 'pass' },
    timeout: 10 * minute,
  });
  const said = `${result.stdout}${result.stderr}`;
  t.diagnostic(result.stdout.trimEnd().split('\n').at(-1));
  assert.ok(result.code === 0 || result.code === 1, `run.sh ended with ${result.code}:\n${said}`);
  const { eras, rows } = JSON.parse(fs.readFileSync(path.join(out, 'summary.json'), 'utf8'));
  const failed = rows.filter((row) => (row.required || require.includes(row.scenario)) && row.verdict !== 'ok')
    .map(({ revision, scenario }) => `${revision} ${scenario}`);
  assert.deepEqual(failed.sort(), cannot.map((scenario) => `2026-07-28 ${scenario}`).sort(), `${said}\n${hive.gatewayLog().slice(-3000)}`);
  assert.deepEqual(eras.map(({ revision, required }) => [revision, required]), [['2025-11-25', 30], ['2026-07-28', 37]]);
  if (cannot.length === 0) assert.equal(result.code, 0, said);
}

// Three questions at once are wanted, and a server of the older revisions asks one at a time: it awaits each answer.
const needsModernUpstream = ['input-required-result-multiple-input-requests'];
const upstreams = {
  'an upstream of both eras': { options: [], over: ['http', 'https'] },
  'a legacy upstream': { options: ['--era', 'legacy'], over: ['http'], cannot: needsModernUpstream },
  // A modern server has no stream that a client could come back to, so nothing is polled.
  'a modern upstream': { options: ['--era', 'modern'], over: ['http'], require: both },
  'a paged upstream': { options: ['--page', '5'], over: ['http'] },
};

for (const [name, { options, over, ...expected }] of Object.entries(upstreams)) {
  describe(`conformance with ${name}`, () => {
    let server;
    let hive;
    before(async () => {
      server = await startFixture(...options);
      hive = await startHive({ transport: 'http', url: server.url });
    });
    after(async () => {
      server?.stop();
      await hive?.stop();
    });
    for (const scheme of over) {
      test(`every scenario of both revisions over ${scheme}`, { timeout: 10 * minute }, async (t) => {
        const url = scheme === 'https' ? hive.env.MYRMEX_URL : hive.env.MYRMEX_HTTP_URL;
        await suite(t, hive, { url: `${url}/mcp`, ca: scheme === 'https' ? hive.env.MYRMEX_CACERT : undefined, ...expected });
        await hive.assertLogVerifies();
      });
    }
  });
}

describe('conformance with an upstream on stdio', () => {
  let hive;
  before(async () => { hive = await startHive({ transport: 'stdio', command: process.execPath, args: [fixture, '--stdio'] }); });
  after(() => hive?.stop());

  test('every scenario of both revisions', { timeout: 10 * minute }, async (t) => {
    await suite(t, hive, { url: `${hive.env.MYRMEX_HTTP_URL}/mcp`, require: both });
  });

  test('the Inspector and both SDKs on HTTP, SSE and stdio', { timeout: 10 * minute }, async (t) => {
    // Clients give a server on stdio nothing of their own environment but the PATH and the like.
    const bridge = hive.script('bridge', `export MYRMEX_URL="${hive.env.MYRMEX_URL}" MYRMEX_CACERT="${hive.env.MYRMEX_CACERT}"
MYRMEX_TOKEN=$(cat "${hive.conformanceToken}") exec myrmex mcp`);
    const result = await run('bash', [path.join(folder, 'clients.sh'), `${hive.env.MYRMEX_URL}/mcp`, `@${hive.conformanceToken}`, hive.env.MYRMEX_CACERT],
      { env: { ...process.env, ...hive.env, STDIO_CMD: bridge }, timeout: 10 * minute });
    const said = `${result.stdout}${result.stderr}`;
    for (const line of said.split('\n').filter((one) => /^(inspector|sdk): /.test(one))) t.diagnostic(line);
    assert.doesNotMatch(said, /^(FAIL|SKIP)/m);
    assert.equal(result.code, 0, `clients.sh ended with ${result.code}:\n${said}`);
    assert.equal(said.match(/^PASS/gm)?.length, 36, said);
  });

  test('the Inspector and both SDKs on the standard input and output of the gateway itself', { timeout: 10 * minute }, async (t) => {
    await hive.end('gateway', 'SIGTERM');
    // Each client starts a gateway of its own, some of them at the same time, so each has a folder of its own.
    const own = hive.script('own', `dir=$(mktemp -d "${hive.base}/own-XXXXXX") && cp -r "${hive.dir}/gateway/." "$dir" &&
jq '.listen_addr = "127.0.0.1:0" | .http_addr = "127.0.0.1:0" | .plaintext_http_addr = "127.0.0.1:0"' \\
  "${hive.dir}/gateway/gateway_config.json" | sed "s|${hive.dir}/gateway|$dir|g" >"$dir/gateway_config.json" &&
exec myrmex-gateway --mcp-stdio --config "$dir/gateway_config.json"`);
    const result = await run('bash', [path.join(folder, 'clients.sh'), '', ''],
      { env: { ...process.env, ...hive.env, STDIO_CMD: own, ALLOW_SKIP: '1' }, timeout: 10 * minute });
    const said = `${result.stdout}${result.stderr}`;
    for (const line of said.split('\n').filter((one) => /^(inspector|sdk): /.test(one))) t.diagnostic(line);
    assert.equal(result.code, 0, `clients.sh ended with ${result.code}:\n${said}`);
    assert.deepEqual(said.match(/^SKIP +(\S+(?: sse)?)/gm)?.map((line) => line.replace(/^SKIP +/, '')), ['http', 'sdk-1 sse'], said);
    await hive.up('--agents', '0');
    await hive.assertLogVerifies();
  });
});
