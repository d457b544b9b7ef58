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

// The MCP project's own example server over Streamable HTTP, and the load that calls its echo tool in one session.
export async function startEverything() {
  const port = await freePort();
  const program = path.join(root, 'bench/node_modules/@modelcontextprotocol/server-everything/dist/index.js');
  const server = await startProgram(process.execPath, [program, 'streamableHttp'], /listening on port/,
    { env: { ...process.env, PORT: String(port), NODE_ENV: 'production' } });
  const url = `http://127.0.0.1:${port}/mcp`;
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const post = async (message) => {
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
    const text = await response.text();
    if (!response.ok) throw new Error(`server-everything answers ${response.status}: ${text}`);
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
  const call = { id: 0, method: 'tools/call', params: { name: 'echo', arguments: { message: 'hello' } } };
  const { text } = await post(call);
  if (!/hello/.test(text) || /"isError":true/.test(text)) throw new Error(`server-everything's echo answers: ${text}`);
  // Calls of one session need ids of their own, or its answers go to the wrong connection.
  const body = JSON.stringify({ jsonrpc: '2.0', ...call }).replace('"id":0', '"id":%ID%');
  return { load: { url, headers, body }, stop: server.stop };
}
