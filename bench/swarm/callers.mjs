// Callers that go on while the gateway is away, and count what they see.

import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const callers = 16;
const pause = 50;

export class Callers {
  static start(hive, agents) {
    const running = new Callers();
    const url = new URL('/api/call', hive.env.MYRMEX_HTTP_URL);
    const headers = { authorization: `Bearer ${hive.env.MYRMEX_TOKEN}`, 'content-type': 'application/json' };
    running.agent = new http.Agent({ keepAlive: true });
    running.all = Promise.all(Array.from({ length: callers }, async () => {
      while (!running.stopped) {
        const body = JSON.stringify({ name: `swarm-${1 + Math.floor(Math.random() * agents)}__get_metrics`, arguments: {} });
        const start = performance.now();
        const what = await running.call(url, { method: 'POST', headers, agent: running.agent }, body);
        running.count(what, performance.now() - start);
        await delay(pause);
      }
    }));
    return running;
  }

  constructor() {
    this.seen = new Map();
    this.stopped = false;
  }

  call(url, options, body) {
    return new Promise((resolve) => {
      const request = http.request(url, options, (response) => {
        let text = '';
        response.on('data', (data) => { text += data; });
        response.on('error', (error) => resolve(`the connection breaks off (${error.code})`));
        response.on('end', () => resolve(describe(response, text)));
      });
      request.on('error', (error) => resolve(`no connection (${error.code})`));
      request.end(body);
    });
  }

  count(what, took) {
    const found = this.seen.get(what) ?? { count: 0, slowest: 0 };
    this.seen.set(what, { count: found.count + 1, slowest: Math.max(found.slowest, took) });
  }

  async stop() {
    this.stopped = true;
    await this.all;
    this.agent.destroy();
  }

  rows() {
    return [...this.seen].sort((a, b) => b[1].count - a[1].count)
      .map(([what, { count, slowest }]) => ({ 'what they see': what, calls: count.toLocaleString('en-US'), 'slowest ms': Math.round(slowest) }));
  }
}

// Without the names and numbers that differ from answer to answer.
function describe(response, text) {
  const outcome = response.headers['myrmex-outcome'] ?? 'no outcome';
  if (outcome === 'success') return `${response.statusCode} success`;
  const { result, error } = JSON.parse(text);
  const message = (typeof error === 'string' ? error : error?.message) ?? result?.content?.[0]?.text ?? text;
  const general = message.replaceAll(/swarm-\d+/g, 'swarm-N').replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME').slice(0, 90);
  return `${response.statusCode} ${outcome}: ${general}`;
}
