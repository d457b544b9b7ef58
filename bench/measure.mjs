// Measuring: the load generator, the yardstick for commands, memory, and medians.

import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
// Where the programs are, set by tools/bench.sh.
export const folder = process.env.HIVE_BIN ?? path.join(root, 'build/release/bin');

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// Runs a program to its end and returns its standard output; throws when it fails.
export function run(program, args, { env = process.env, timeout = 300_000 } = {}) {
  return new Promise((resolve, reject) => {
    execFile(program, args, { env, timeout, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${program} failed (${error.code ?? error.signal}): ${stderr.trim()}`));
      else resolve(stdout);
    });
  });
}

// Starts a program and waits until a line of its output says that it is ready.
export function startProgram(program, args, ready, { env = process.env, within = 60_000 } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    let said = '';
    const give = setTimeout(() => fail(`was not ready within ${within} ms`), within);
    const fail = (what) => {
      clearTimeout(give);
      child.kill('SIGKILL');
      reject(new Error(`${program} ${what}: ${said.slice(-500)}`));
    };
    const hear = (data) => {
      // Once it is ready its chatter is thrown away, so that it costs the measurement no more than reading it.
      if (said === null) return;
      said += data;
      if (ready.test(said)) {
        clearTimeout(give);
        said = null;
        child.off('exit', onExit);
        resolve({ pid: child.pid, stop: () => { child.stdin.end(); child.kill('SIGTERM'); } });
      }
    };
    const onExit = (code) => fail(`ended with ${code}`);
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.on('error', (error) => fail(error.message));
    child.on('exit', onExit);
  });
}

// One run of wrk over kept connections. Any failed request makes the figure worthless, so it is an error.
export async function wrk({ url, headers = {}, body, agents, callers, seconds }) {
  const env = { ...process.env, BENCH_HEADERS: Object.entries(headers).map(([name, value]) => `${name}: ${value}`).join('\n') };
  if (body !== undefined) env.BENCH_BODY = body;
  if (agents !== undefined) env.BENCH_AGENTS = String(agents);
  const output = await run('wrk', ['-t1', `-c${callers}`, `-d${seconds}s`, '--latency', '--timeout', '10s',
    '-s', path.join(root, 'bench/wrk.lua'), url], { env });
  const [, requests, microseconds, errors, p50, p99] = output.match(/^BENCH (\d+) (\d+) (\d+) (\d+) (\d+)$/m).map(Number);
  if (errors > 0) throw new Error(`${errors} of ${requests} requests to ${url} failed`);
  return { rate: requests / (microseconds / 1e6), requests, p50, p99 };
}

export async function forkExec(callers, seconds, ...command) {
  const output = await run(path.join(folder, 'fork_exec'), [String(callers), String(seconds), ...command]);
  const [perSecond, p50, p99] = output.trim().split(' ').map(Number);
  return { rate: perSecond, p50, p99 };
}

// Bytes of a process, from /proc/PID/smaps_rollup; `own`: what no other process shares, and so what it alone can leak.
export function memoryOf(pid) {
  const text = fs.readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const bytes = (name) => Number(text.match(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm'))[1]) * 1024;
  return { pss: bytes('Pss'), rss: bytes('Rss'), own: bytes('Private_Clean') + bytes('Private_Dirty') };
}

// Seconds of processor time that a process has used, in all its threads.
export function cpuOf(pid) {
  let nanoseconds = 0;
  for (const thread of fs.readdirSync(`/proc/${pid}/task`)) {
    nanoseconds += Number(fs.readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
  }
  return nanoseconds / 1e9;
}

export function descriptorsOf(pid) {
  return fs.readdirSync(`/proc/${pid}/fd`).length;
}

// The same, once it has not changed by more than one per cent for a second.
export async function settledMemory(pid) {
  let before = memoryOf(pid);
  for (let steady = 0; steady < 4;) {
    await delay(250);
    const now = memoryOf(pid);
    steady = Math.abs(now.pss - before.pss) <= before.pss / 100 ? steady + 1 : 0;
    before = now;
  }
  return before;
}
