// Drives the program swarm, from benchmarks and from tests: many agents in one process.

import { execFile, spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

export class Swarm {
  // `program`: the path of swarm; `folder`: where its keys go; `config`: the configuration of an agent, the pattern of
  // all; `authorise`: lets the gateway know lines of authorized_keys; `options`: further options of swarm run.
  static async start({ program, folder, config, count, authorise, prefix = 'swarm', options = [] }) {
    const keys = path.join(folder, `${prefix}.keys`);
    const { stdout } = await promisify(execFile)(program, ['keys', String(count), keys, '--prefix', prefix], { maxBuffer: 64 << 20 });
    await authorise(stdout);
    return new Swarm(spawn(program, ['run', '--config', config, '--keys', keys, ...options.map(String)],
      { stdio: ['pipe', 'pipe', 'pipe'] }));
  }

  constructor(child) {
    this.child = child;
    this.pid = child.pid;
    this.counts = { online: 0, connections: 0, dials: 0, failed_dials: 0 }; // as last told
    this.events = []; // all but the counts
    this.waiting = new Set();
    this.said = '';
    child.stdin.on('error', () => {});
    child.stderr.on('data', (data) => { this.said = (this.said + data).slice(-4000); });
    createInterface({ input: child.stdout }).on('line', (line) => {
      const event = JSON.parse(line);
      Object.assign(this.counts, event);
      if (event.event !== 'count') this.events.push(event);
      for (const wake of this.waiting) wake();
    });
    this.ended = new Promise((resolve) => {
      child.on('error', (error) => { this.said += error.message; resolve(null); });
      child.on('exit', (code) => resolve(code));
    });
    this.ended.then((code) => {
      this.code = code;
      for (const wake of this.waiting) wake();
    });
  }

  // Waits until `condition` gives something true after what the swarm tells, and returns it.
  until(what, condition, { within = 120_000 } = {}) {
    return new Promise((resolve, reject) => {
      const end = (settle, value) => {
        clearTimeout(limit);
        this.waiting.delete(wake);
        settle(value);
      };
      const fail = (why) => end(reject, new Error(`swarm: ${why}: ${what}; last told: ${JSON.stringify(this.counts)} ${this.said}`));
      const limit = setTimeout(() => fail(`not within ${within} ms`), within);
      const wake = () => {
        const value = condition(this);
        if (value) end(resolve, value);
        else if (this.code !== undefined) fail(`ended with ${this.code}`);
      };
      this.waiting.add(wake);
      wake();
    });
  }

  // The next event of this name; without `after`, one that has come already counts.
  event(name, { after = 0, within } = {}) {
    return this.until(`the event ${name}`, () => this.events.slice(after).find((event) => event.event === name), { within });
  }

  allOnline(options) {
    return this.event('all_online', options);
  }

  // What is so now.
  async status() {
    const after = this.events.length;
    this.child.kill('SIGUSR1');
    return this.event('status', { after });
  }

  async stop() {
    this.child.kill('SIGCONT');
    this.child.kill('SIGTERM');
    await this.ended;
  }
}
