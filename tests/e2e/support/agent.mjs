// An agent in the test's own hands: its own configuration, its log, its end.

import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { eventually, run } from './hive.mjs';

// The lines that a child has written so far, on both of its streams.
export function linesOf(child) {
  const lines = [];
  for (const stream of [child.stdout, child.stderr]) {
    let rest = '';
    stream?.setEncoding('utf8').on('data', (piece) => {
      const parts = (rest + piece).split('\n');
      rest = parts.pop();
      lines.push(...parts);
    });
  }
  return lines;
}

// Starts a program and keeps its output; end() waits until it is gone.
export function start(program, args, { env = process.env, stdio = ['ignore', 'pipe', 'pipe'], cwd } = {}) {
  const child = spawn(program, args, { env, stdio, cwd });
  const exit = new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  exit.catch(() => {});
  const lines = linesOf(child);
  return {
    child,
    exit,
    lines,
    said: (pattern) => lines.some((line) => pattern.test(line)),
    async end(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      return exit;
    },
  };
}

export class OwnAgent {
  constructor(hive, id) {
    this.hive = hive;
    this.id = id;
    this.folder = path.join(hive.base, id);
    this.file = path.join(this.folder, 'agent_config.json');
  }

  // Makes a key that the gateway knows, and a configuration.
  static async create(hive, id, keys = {}) {
    const agent = new OwnAgent(hive, id);
    fs.mkdirSync(agent.folder, { mode: 0o700 });
    agent.key = path.join(agent.folder, 'id_ed25519');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', id, '-f', agent.key]);
    fs.appendFileSync(path.join(hive.dir, 'gateway/authorized_keys'), fs.readFileSync(`${agent.key}.pub`));
    const before = hive.gatewayLog().length;
    process.kill(hive.pid('gateway'), 'SIGHUP');
    await eventually('the gateway has reloaded', () => /reload/i.test(hive.gatewayLog().slice(before)), { within: 60_000 });
    agent.configure(keys);
    return agent;
  }

  // Writes the configuration anew; `keys` replace or add to the usual ones, undefined takes one out.
  configure(keys) {
    const values = {
      agent_id: this.id,
      gateway_addr: this.hive.env.MYRMEX_SSH_ADDR,
      private_key_path: this.key,
      gateway_host_key: fs.readFileSync(this.hive.env.MYRMEX_HOST_KEY, 'utf8').trim(),
      allowed_commands: [{ name: 'uptime' }],
      ...keys,
    };
    fs.writeFileSync(this.file, JSON.stringify(values, null, 2), { mode: 0o600 });
  }

  start(options) {
    this.process = start('myrmex-agent', ['--config', this.file], options);
    return this.process;
  }

  doctor(...words) {
    return run('myrmex-agent', ['doctor', '--config', this.file, ...words], { env: { ...process.env, NO_COLOR: '1' } });
  }

  async online() {
    await eventually(`${this.id} is online`, () => this.hive.online(this.id), { within: 60_000 });
  }

  async end(signal) {
    await this.process?.end(signal);
    this.process = undefined;
  }
}
