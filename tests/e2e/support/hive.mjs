// A private hive for a test: the real programs, started by ./hive up in a folder of their own.

import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { LeakWatch } from './leaks.mjs';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..');

// Runs a program to its end. Never throws for an exit code; `code` is null when a signal ended it.
export function run(program, args, { env = process.env, input, timeout = 180_000, cwd } = {}) {
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, { env, cwd, timeout, killSignal: 'SIGKILL', maxBuffer: 64 << 20 },
      (error, stdout, stderr) => {
        if (error && typeof error.code === 'string') return reject(error);
        resolve({ code: error ? error.code ?? null : 0, signal: error?.signal ?? null, stdout, stderr });
      });
    child.stdin.on('error', () => {});
    child.stdin.end(input ?? '');
  });
}

// Waits until `condition` gives something true, and returns it. The ceiling is there to end a test that hangs, and says
// nothing about how fast anything is: the machine may be slow and busy.
export async function eventually(what, condition, { within = 60_000, every = 25 } = {}) {
  const end = Date.now() + within;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) assert.fail(`not within ${within} ms: ${what}`);
    await delay(every);
  }
}

// A check that this machine cannot make is skipped with its reason; where everything is required it fails.
export function cannotRun(t, reason) {
  if (process.env.HIVE_REQUIRE_ALL === '1') assert.fail(`${reason} (HIVE_REQUIRE_ALL=1)`);
  t.skip(reason);
}

export function hasProgram(name) {
  return process.env.PATH.split(':').concat('/usr/sbin').some((folder) => {
    try {
      fs.accessSync(path.join(folder, name), fs.constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

// The numbers in /proc/PID/status, in bytes.
export function memory(pid) {
  const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
  const bytes = (name) => Number(status.match(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm'))?.[1] ?? 0) * 1024;
  return { rss: bytes('VmRSS'), peak: bytes('VmHWM') };
}

// Pids of processes that carry NAME=VALUE in their environment.
export function processesWith(variable) {
  return fs.readdirSync('/proc').filter((entry) => {
    if (!/^\d+$/.test(entry)) return false;
    try {
      return fs.readFileSync(`/proc/${entry}/environ`, 'latin1').split('\0').includes(variable);
    } catch {
      return false;
    }
  });
}

// A zombie is not; but its first thread may be one while others still close what the process holds.
export function isAlive(pid) {
  try {
    const fields = fs.readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /s, '').split(' ');
    return fields[0] !== 'Z' || Number(fields[17]) > 1;
  } catch {
    return false;
  }
}

async function script(name, args) {
  return run('bash', [path.join(root, 'tools', `${name}.sh`), ...args], {
    env: { ...process.env, HIVE_ROOT: root, HIVE_READY: '1', NO_COLOR: '1' },
    timeout: 300_000,
  });
}

// The secret in the output of a command that exists to make one.
function secretMade(args, { stdout }) {
  if (args[0] === 'enroll-token') return stdout.match(/[0-9A-Za-z_-]{32,}/g) ?? [];
  if (args[0] === 'token' && args[1] === 'new') return stdout.match(/(?<!sha256:)\b[0-9a-f]{64}\b/g) ?? [];
  return [];
}

export class Hive {
  constructor(dir) {
    this.dir = dir;
  }

  // `profile`: the allowed_commands of agent-1, or a function that makes them from a folder for scripts.
  // `gateway`: further keys of the gateway's configuration, or a function that makes them.
  static async start({ agents = 1, profile, gateway } = {}) {
    const base = fs.mkdtempSync(path.join(os.tmpdir(), 'hive-e2e-'));
    const hive = new Hive(path.join(base, 'hive'));
    hive.base = base;
    hive.leaks = new LeakWatch();
    hive.args = ['--dir', hive.dir];
    const first = ['--agents', String(agents)];
    if (profile) {
      const file = path.join(base, 'profile.json');
      fs.writeFileSync(file, JSON.stringify(typeof profile === 'function' ? profile(hive) : profile));
      first.push('--agent-profile', file);
    }
    try {
      await hive.up(...first);
      if (gateway) await hive.configure(typeof gateway === 'function' ? gateway(hive) : gateway, agents);
    } catch (error) {
      // Nobody will call stop() for it.
      await script('down', [...hive.args, '--remove']);
      fs.rmSync(base, { recursive: true, force: true });
      throw error;
    }
    return hive;
  }

  // Starts what does not run.
  async up(...options) {
    const result = await script('up', [...this.args, ...options]);
    assert.equal(result.code, 0, `./hive up failed:\n${result.stderr}`);
    const text = execFileSync('sh', ['-c', '. "$1" && env -0', 'sh', path.join(this.dir, 'env')],
      { env: { PATH: process.env.PATH, HOME: process.env.HOME ?? '/' } });
    this.env = Object.fromEntries(text.toString().split('\0').filter(Boolean)
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
    return result;
  }

  // Adds keys to the gateway's configuration and starts it anew.
  async configure(keys, agents) {
    const file = path.join(this.dir, 'gateway/gateway_config.json');
    const values = { ...JSON.parse(fs.readFileSync(file, 'utf8')), ...keys };
    fs.writeFileSync(file, JSON.stringify(values, null, 2), { mode: 0o600 });
    await this.end('gateway', 'SIGTERM');
    await this.up('--agents', String(agents));
    if (agents > 0) await eventually('agent-1 is back', () => this.online('agent-1'));
  }

  // Stops everything and removes the folder. Also when the test failed in the middle.
  async stop() {
    const ended = await script('down', this.args);
    try {
      this.leaks?.check(this.dir);
    } finally {
      const result = await script('down', [...this.args, '--remove']);
      fs.rmSync(this.base, { recursive: true, force: true });
      assert.equal(ended.code, 0, `./hive down failed:\n${ended.stderr}`);
      assert.equal(result.code, 0, `./hive down --remove failed:\n${result.stderr}`);
    }
  }

  down(...options) {
    return script('down', [...this.args, ...options]);
  }

  // Writes an executable shell script into the hive's folder and returns its path.
  script(name, text) {
    const file = path.join(this.base, name);
    fs.writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    return file;
  }

  pid(name) {
    return Number(fs.readFileSync(path.join(this.dir, 'pids', `${name}.pid`), 'utf8').split(' ')[0]);
  }

  token(role) {
    return fs.readFileSync(path.join(this.dir, 'gateway/tokens', role), 'utf8');
  }

  gatewayLog() {
    return fs.readFileSync(path.join(this.dir, 'log/gateway.log'), 'utf8');
  }

  // The operator's command line with the environment of DIR/env.
  // `shows`: what of its output is a secret that it exists to show; a function of the output.
  async myrmex(args, { env = {}, shows, ...options } = {}) {
    const result = await run('myrmex', args, { env: { ...this.env, ...env }, ...options });
    const secrets = shows ? [shows(result)].flat() : secretMade(args, result);
    for (const secret of secrets) this.leaks?.add(secret, `what myrmex ${args[0]} made`);
    this.leaks?.heard(`the output of myrmex ${args.join(' ')}`, result.stdout + result.stderr, { shows: secrets });
    return result;
  }

  // Answers are remembered, streams apart. `shows`: as for myrmex(), a function of the answer's text.
  async fetch(route, { token = this.env.MYRMEX_TOKEN, headers = {}, shows, ...options } = {}) {
    const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
    const response = await fetch(this.env.MYRMEX_HTTP_URL + route, { ...options, headers: { ...authorization, ...headers } });
    if (response.headers.get('content-type')?.startsWith('text/event-stream')) return response;
    const body = Buffer.from(await response.arrayBuffer());
    const secrets = shows ? [shows(body.toString())].flat() : [];
    for (const secret of secrets) this.leaks?.add(secret, `what ${route} made`);
    this.leaks?.heard(`the answer to ${options.method ?? 'GET'} ${route}`,
      JSON.stringify([...response.headers]) + body.toString('latin1'), { shows: secrets });
    return new Response(body.length > 0 ? body : null, { status: response.status, headers: response.headers });
  }

  // Sends bytes as they are to the gateway's HTTP port, and returns what comes back until it closes or is silent.
  raw(bytes, { within = 60_000 } = {}) {
    const { hostname, port } = new URL(this.env.MYRMEX_HTTP_URL);
    return new Promise((resolve) => {
      const socket = net.connect(Number(port), hostname);
      let received = '';
      socket.setTimeout(within, () => socket.destroy());
      socket.on('data', (data) => { received += data.toString('latin1'); });
      socket.on('error', () => {});
      socket.on('close', () => resolve(received));
      socket.write(bytes);
    });
  }

  // POST /api/call. Returns the status, what the headers say, and the parsed body.
  async call(name, args, options = {}) {
    const response = await this.fetch('/api/call', {
      method: 'POST',
      body: JSON.stringify({ name, arguments: args }),
      ...options,
      headers: { 'content-type': 'application/json', ...options.headers },
    });
    const text = await response.text();
    return {
      status: response.status,
      outcome: response.headers.get('myrmex-outcome'),
      reason: response.headers.get('myrmex-reason'),
      requestId: response.headers.get('myrmex-request-id'),
      body: JSON.parse(text),
    };
  }

  async agents() {
    const response = await this.fetch('/api/status');
    assert.equal(response.status, 200);
    return (await response.json()).agents;
  }

  async online(id) {
    try {
      return (await this.agents()).some((agent) => agent.id === id && agent.online);
    } catch {
      return false;
    }
  }

  // Sends the gateway SIGHUP and returns what its log says about how the reload went.
  async reload(pid = this.pid('gateway')) {
    const before = this.gatewayLog().length;
    process.kill(pid, 'SIGHUP');
    return eventually('the gateway says how the reload went', () => {
      const said = this.gatewayLog().slice(before).split('\n').filter((line) => /reload/i.test(line));
      return said.length > 0 && said.join('\n');
    });
  }

  // The first entry of the audit log for which `matches` holds, once it is there: an outcome may follow the answer.
  entry(what, matches) {
    return eventually(`the audit log has ${what}`, () => this.audit().find(matches));
  }

  // The outcome entry of the call with this request id.
  outcome(requestId) {
    assert.equal(typeof requestId, 'string', 'the id of a request');
    return this.entry(`the outcome of ${requestId}`, (entry) => entry.request_id === requestId && entry.kind === 'outcome');
  }

  // All entries of the call with this request id, the outcome among them.
  async entries(requestId) {
    await this.outcome(requestId);
    return this.audit().filter((entry) => entry.request_id === requestId);
  }

  // The log after a call of this moment has its outcome in it: to look for what must not be there.
  async settledAudit() {
    await this.outcome((await this.call('nobody__get_metrics', {})).requestId);
    return this.audit();
  }

  // What the audit log holds at this moment, without its checkpoints. The entry of a call may come after its answer: use
  // entry(), outcome() or entries() for what must be there, and this only inside a condition that is awaited.
  audit() {
    return fs.readFileSync(this.env.MYRMEX_AUDIT_LOG, 'utf8').split('\n').filter(Boolean)
      .map((line) => JSON.parse(line)).filter((entry) => entry.seq !== undefined);
  }

  async assertLogVerifies() {
    const result = await this.myrmex(['audit', 'verify']);
    assert.equal(result.code, 0, `audit verify: ${result.stdout}${result.stderr}`);
    return result;
  }

  // Starts the gateway in the test's own hands, in place of the one that ./hive up started.
  async ownGateway() {
    await this.end('gateway', 'SIGTERM');
    const child = spawn('myrmex-gateway', ['--config', path.join(this.dir, 'gateway/gateway_config.json')],
      { env: this.env, stdio: ['ignore', 'ignore', fs.openSync(path.join(this.dir, 'log/gateway.log'), 'a')] });
    const exit = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
    await eventually('the gateway is ready', async () => {
      try {
        return (await this.fetch('/readyz')).ok;
      } catch {
        return false;
      }
    });
    return { child, exit };
  }

  // Signals one process of the hive and waits until it is gone.
  async end(name, signal) {
    const pid = this.pid(name);
    process.kill(pid, signal);
    await eventually(`${name} has ended`, () => !isAlive(pid));
  }
}

// Text of the first content block of a tool's result.
export function text(answer) {
  assert.ok(answer.body.result, `no result: ${JSON.stringify(answer.body)}`);
  return answer.body.result.content[0].text;
}
