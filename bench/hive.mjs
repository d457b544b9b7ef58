// A private hive to measure, started by ./hive up.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { root, run } from './measure.mjs';

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
    await tool('up', '--dir', hive.dir, '--agents', '1');
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
    const log = path.join(this.dir, 'log/gateway.log');
    const before = fs.statSync(log).size;
    process.kill(this.pid('gateway'), 'SIGHUP');
    await eventually('the gateway has reloaded', () => /reload/i.test(fs.readFileSync(log, 'utf8').slice(before)));
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
