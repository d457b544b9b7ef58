// A private hive to measure, started by ./hive up.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { folder, root, run } from './measure.mjs';
import { Swarm } from './swarm/swarm.mjs';

function tool(name, ...args) {
  return run('bash', [path.join(root, 'tools', `${name}.sh`), ...args],
    { env: { ...process.env, HIVE_ROOT: root, HIVE_READY: '1' } });
}

async function eventually(what, condition) {
  for (const end = Date.now() + 60_000; !(await condition());) {
    if (Date.now() > end) throw new Error(`not within a minute: ${what}`);
    await delay(50);
  }
}

export class BenchHive {
  static async start() {
    const hive = new BenchHive();
    hive.base = fs.mkdtempSync(path.join(os.tmpdir(), 'hive-bench-'));
    hive.dir = path.join(hive.base, 'hive');
    await hive.up();
    const text = execFileSync('sh', ['-c', '. "$1" && env -0', 'sh', path.join(hive.dir, 'env')]).toString();
    hive.env = Object.fromEntries(text.split('\0').filter(Boolean)
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
    return hive;
  }

  async stop() {
    await tool('down', '--dir', this.dir, '--remove');
    fs.rmSync(this.base, { recursive: true, force: true });
  }

  pid(name) {
    return Number(fs.readFileSync(path.join(this.dir, 'pids', `${name}.pid`), 'utf8').split(' ')[0]);
  }

  // Ends the gateway and waits until it is gone; up() starts it again.
  async endGateway(signal) {
    const pid = this.pid('gateway');
    process.kill(pid, signal);
    await eventually(`the gateway ends on ${signal}`, () => {
      try {
        // The first thread is a zombie before the others have closed ten thousand connections.
        const fields = fs.readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /s, '').split(' ');
        return fields[0] === 'Z' && Number(fields[17]) <= 1;
      } catch {
        return true;
      }
    });
  }

  async up() {
    await tool('up', '--dir', this.dir, '--agents', '1');
  }

  async fetch(route, options = {}) {
    return fetch(this.env.MYRMEX_HTTP_URL + route,
      { ...options, headers: { authorization: `Bearer ${this.env.MYRMEX_TOKEN}`, 'content-type': 'application/json' } });
  }

  // One call that must succeed; returns the size of the answer.
  async checkedCall(name, args) {
    const response = await this.fetch('/api/call', { method: 'POST', body: JSON.stringify({ name, arguments: args }) });
    const text = await response.text();
    if (response.headers.get('myrmex-outcome') !== 'success') throw new Error(`${name} answers ${response.status}: ${text}`);
    return text.length;
  }

  // Lets more agents in: their authorized_keys lines.
  async authorise(lines) {
    fs.appendFileSync(path.join(this.dir, 'gateway/authorized_keys'), lines);
    await this.reload();
  }

  async reload() {
    const log = path.join(this.dir, 'log/gateway.log');
    const before = fs.statSync(log).size;
    process.kill(this.pid('gateway'), 'SIGHUP');
    await eventually('the gateway has reloaded', () => /reload/i.test(fs.readFileSync(log, 'utf8').slice(before)));
  }

  // Adds operators of their own identities, and returns their tokens.
  async addIdentities(count) {
    const file = path.join(this.dir, 'gateway/gateway_config.json');
    const config = JSON.parse(fs.readFileSync(file, 'utf8'));
    const tokens = Array.from({ length: count }, () => randomBytes(32).toString('hex'));
    for (const [i, token] of tokens.entries()) config.tokens[token] = { role: 'operator', identity: `bench-${i}` };
    fs.writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
    await this.reload();
    return tokens;
  }

  // All pages of tools/list over /mcp, with how long the first page and all took, in milliseconds.
  async listTools() {
    const meta = 'io.modelcontextprotocol/';
    const _meta = { [`${meta}protocolVersion`]: '2026-07-28', [`${meta}clientCapabilities`]: {} };
    const found = { tools: 0, pages: 0, bytes: 0 };
    const start = performance.now();
    for (let cursor; ;) {
      const response = await fetch(`${this.env.MYRMEX_HTTP_URL}/mcp`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${this.env.MYRMEX_TOKEN}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: cursor === undefined ? { _meta } : { cursor, _meta } }),
      });
      const text = await response.text();
      found.firstPage ??= performance.now() - start;
      const { result, error } = JSON.parse(text);
      if (error) throw new Error(`tools/list answers ${text}`);
      found.tools += result.tools.length;
      found.pages += 1;
      found.bytes += text.length;
      cursor = result.nextCursor;
      if (cursor === undefined) return { ...found, took: performance.now() - start };
    }
  }

  // Many agents in one process; `options` are those of swarm run. They are online when their allOnline() is awaited.
  swarm(count, options = []) {
    return Swarm.start({
      program: path.join(folder, 'swarm'), folder: this.base, count, options,
      config: path.join(this.dir, 'agents/agent-1/agent_config.json'), authorise: (lines) => this.authorise(lines),
    });
  }

  waitUntil(what, condition) {
    return eventually(what, condition);
  }

  async waitForAgents(count) {
    await eventually(`${count} agents online`, async () => {
      const { agents } = await (await this.fetch('/api/status')).json();
      return agents.filter((agent) => agent.online).length >= count;
    });
  }

  async verifyLog() {
    await run('myrmex', ['audit', 'verify'], { env: this.env });
  }
}
