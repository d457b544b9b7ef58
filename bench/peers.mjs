// The programs that we compare with, each on a port of its own on loopback.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

import { root, startProgram } from './measure.mjs';

async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function untilAnswers(url, options) {
  for (const end = Date.now() + 15_000; ;) {
    try {
      return await fetch(url, options);
    } catch (error) {
      if (Date.now() > end) throw new Error(`${url} does not answer: ${error.message}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

// nginx with its own configuration, serving one file of `size` bytes, without an access log.
export async function startNginx(size) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'hive-bench-nginx-'));
  fs.chmodSync(dir, 0o755);
  const port = await freePort();
  fs.writeFileSync(path.join(dir, 'file'), 'x'.repeat(size));
  fs.writeFileSync(path.join(dir, 'nginx.conf'), `
daemon off;
worker_processes auto;
pid ${dir}/nginx.pid;
error_log ${dir}/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path ${dir}/body;
  proxy_temp_path ${dir}/proxy;
  fastcgi_temp_path ${dir}/fastcgi;
  uwsgi_temp_path ${dir}/uwsgi;
  scgi_temp_path ${dir}/scgi;
  server { listen 127.0.0.1:${port}; root ${dir}; sendfile on; tcp_nopush on; open_file_cache max=10; }
}
`);
  const url = `http://127.0.0.1:${port}/file`;
  // nginx says nothing when it is ready: ask until it answers.
  const server = spawn('/usr/sbin/nginx', ['-e', `${dir}/error.log`, '-p', dir, '-c', `${dir}/nginx.conf`],
    { stdio: ['ignore', 'ignore', 'inherit'] });
  const response = await untilAnswers(url);
  if (!response.ok) throw new Error(`nginx answers ${response.status}: ${fs.readFileSync(`${dir}/error.log`, 'utf8')}`);
  return {
    url,
    stop() {
      server.kill('SIGTERM');
      fs.rmSync(dir, { recursive: true, force: true });
    },
  };
}

// Opens a session of 2025-06-18 at an MCP endpoint and returns the load that calls a tool in it, after one call that
// must succeed. Calls of one session need ids of their own, or a server's answers go to the wrong connection.
export async function sessionLoad({ url, tool, args = {}, headers: more = {}, expect }) {
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...more };
  const post = async (message) => {
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${url} answers ${response.status}: ${text}`);
    return { response, text };
  };
  const { response } = await post({
    id: 'start',
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'hive-bench', version: '1' } },
  });
  headers['Mcp-Session-Id'] = response.headers.get('mcp-session-id');
  headers['Mcp-Protocol-Version'] = '2025-06-18';
  await post({ method: 'notifications/initialized' });
  return checkedLoad({ url, headers, expect, message: { method: 'tools/call', params: { name: tool, arguments: args } } });
}

// The load of one request of 2026-07-28, which needs no session.
export function statelessLoad({ url, tool, args = {}, headers: more = {}, expect }) {
  const meta = 'io.modelcontextprotocol/';
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'Mcp-Protocol-Version': '2026-07-28',
    'Mcp-Method': 'tools/call',
    'Mcp-Name': tool,
    ...more,
  };
  const _meta = {
    [`${meta}protocolVersion`]: '2026-07-28',
    [`${meta}clientInfo`]: { name: 'hive-bench', version: '1' },
    [`${meta}clientCapabilities`]: {},
  };
  return checkedLoad({ url, headers, expect, message: { method: 'tools/call', params: { name: tool, arguments: args, _meta } } });
}

async function checkedLoad({ url, headers, message, expect }) {
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', id: 0, ...message }) });
  const text = await response.text();
  if (!response.ok || !expect.test(text) || /"isError":\s*true|"error"/.test(text)) throw new Error(`${url} answers ${response.status}: ${text}`);
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, ...message }).replace('"id":0', '"id":%ID%');
  return { url, headers, body, bytes: text.length };
}

const onLoopback = ['--import', path.join(root, 'tests/conformance/loopback-only.mjs')];
const minimal = path.join(root, 'bench/sdk_server.mjs');
const bin = (name) => path.join(root, 'bench/node_modules/.bin', name);
const echo = { tool: 'echo', args: { message: 'hello' }, expect: /hello/ };

async function startPeer(args, ready) {
  const port = await freePort();
  const server = await startProgram(process.execPath, [...onLoopback, ...args(port)], ready,
    { env: { ...process.env, PORT: String(port), NODE_ENV: 'production' } });
  const url = `http://127.0.0.1:${port}/mcp`;
  try {
    // Some say that they are ready a moment before they are.
    await untilAnswers(url, { method: 'DELETE' });
    return { load: await sessionLoad({ url, ...echo }), stop: server.stop };
  } catch (error) {
    server.stop();
    throw error;
  }
}

// The MCP project's own example server over Streamable HTTP; its echo tool in one session.
export function startEverything() {
  const program = path.join(root, 'bench/node_modules/@modelcontextprotocol/server-everything/dist/index.js');
  return startPeer(() => [program, 'streamableHttp'], /listening on port/);
}

// The smallest server of the official SDK, with JSON answers.
export function startMinimal() {
  return startPeer(() => [minimal], /listening on port/);
}

// The same behind two bridges from stdio to Streamable HTTP.
export function startSupergateway() {
  return startPeer((port) => [bin('supergateway'), '--stdio', `${process.execPath} ${minimal} --stdio`, '--outputTransport', 'streamableHttp',
    '--stateful', '--port', String(port), '--logLevel', 'info'], /Listening on port/);
}

export function startMcpProxy() {
  return startPeer((port) => [bin('mcp-proxy'), '--host', '127.0.0.1', '--port', String(port), '--server', 'stream', '--', process.execPath, minimal, '--stdio'],
    /server on port/i);
}
