// Looks for secrets where none may be: in what the gateway and the agents wrote, in what they answered, and in the list
// of processes. Every hive of the end-to-end tests is held against this when it stops.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

const shortest = 12;

function readIfThere(file) {
  try {
    return fs.readFileSync(file);
  } catch (error) {
    if (['ENOENT', 'EACCES', 'EISDIR'].includes(error.code)) return Buffer.alloc(0);
    throw error;
  }
}

function filesUnder(folder) {
  if (!fs.existsSync(folder)) return [];
  return fs.readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath ?? entry.path, entry.name));
}

// Values of a configuration that are secrets, whatever they are called in it.
function secretsOf(config) {
  const found = Object.keys(config.tokens ?? {});
  for (const token of config.scoped_tokens ?? []) found.push(token.token);
  for (const key of ['auth_token', 'trusted_proxy_secret', 'cluster_secret', 'llm_api_key', 'antigravity_token'])
    found.push(config[key]);
  for (const server of config.external_mcp_servers ?? []) found.push(server.auth_token);
  for (const headers of ['alert_webhook_headers', 'alertmanager_headers', 'otlp_headers'])
    found.push(...Object.values(config[headers] ?? {}));
  return found.filter((value) => typeof value === 'string' && !/^(env:|file:|agenix:|vault:|sha256:|\$\{)/.test(value));
}

export class LeakWatch {
  constructor() {
    this.secrets = new Map(); // value to what it is
    this.transcript = [];
    this.commandLines = new Map(); // command line to pid
    this.timer = setInterval(() => this.lookAtProcesses(), 150);
    this.timer.unref();
  }

  add(value, what) {
    if (typeof value === 'string' && value.trim().length >= shortest) this.secrets.set(value.trim(), what);
  }

  // What the product said to somebody. `shows`: a secret that this answer exists to show.
  heard(what, text, { shows = [] } = {}) {
    let shown = String(text);
    for (const secret of shows) shown = shown.replaceAll(secret, '');
    this.transcript.push([what, shown]);
  }

  // Our own children are not looked at: what stands in their arguments, a test has put there.
  lookAtProcesses() {
    for (const entry of fs.readdirSync('/proc')) {
      if (!/^\d+$/.test(entry)) continue;
      try {
        const parent = Number(fs.readFileSync(`/proc/${entry}/stat`, 'latin1').replace(/^.*\) \S /s, '').split(' ')[0]);
        if (parent === process.pid || Number(entry) === process.pid) continue;
        this.commandLines.set(fs.readFileSync(`/proc/${entry}/cmdline`, 'latin1'), entry);
      } catch {
        // It has ended meanwhile.
      }
    }
  }

  collectFrom(dir) {
    for (const file of filesUnder(dir).filter((name) => /config[^/]*\.json$/.test(name))) {
      let config;
      try {
        config = JSON.parse(fs.readFileSync(file, 'utf8'));
      } catch {
        continue; // A test has left a broken one.
      }
      for (const value of secretsOf(config)) this.add(value, `a secret of ${path.basename(file)}`);
    }
    for (const file of filesUnder(path.join(dir, 'gateway/tokens'))) this.add(fs.readFileSync(file, 'utf8'), `the token ${path.basename(file)}`);
    for (const file of filesUnder(dir)) {
      const content = readIfThere(file);
      if (content.length > 20_000 || !content.includes('PRIVATE KEY-----')) continue;
      // The last lines of a key hold the secret part; one of them is enough to know it by.
      const lines = content.toString('latin1').split('\n').filter((line) => line && !line.startsWith('-----'));
      this.add(lines.at(-2) ?? lines.at(-1), `the private key ${path.basename(file)}`);
    }
  }

  // `dir`: the folder of ./hive up.
  check(dir) {
    clearInterval(this.timer);
    this.lookAtProcesses();
    this.collectFrom(dir);
    const places = [...this.transcript];
    for (const file of filesUnder(dir)) {
      const name = path.relative(dir, file);
      if (/^log\/|audit|\.log$|\.db(-wal|-shm)?$|\.torn|authorized_keys/.test(name)) places.push([name, readIfThere(file).toString('latin1')]);
    }
    for (const [line, pid] of this.commandLines) places.push([`the command line of process ${pid}`, line]);
    const leaks = [];
    for (const [secret, what] of this.secrets) {
      for (const [place, text] of places) if (text.includes(secret)) leaks.push(`${what} stands in ${place}`);
    }
    assert.deepEqual(leaks, [], 'secrets where none may be');
    return { secrets: this.secrets.size, places: places.length };
  }
}
