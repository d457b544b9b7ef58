// An agent of a hive that runs behind a network (network.mjs), and how long things take that happen to it.

import fs from 'node:fs';
import path from 'node:path';

import { Hive, eventually } from './hive.mjs';
import { Network, gatewayAddress } from './network.mjs';

const profile = [
  { name: 'uptime', args_regex: '^$' },
  { name: 'sleep', args_regex: '^[0-9]+$', timeout_seconds: 300 },
  { name: 'head', args_regex: '^-c [0-9]+ /dev/zero$' },
  { name: 'cat', args_regex: '^/[a-zA-Z0-9/_.-]+$' },
];

export class RemoteAgent {
  // A gateway, a network of this kind, and agent-1 behind it. `relay`: (host, port) => "HOST:PORT" that the agent is to
  // dial instead.
  static async lab(kind, { keepalive_seconds, relay, ...keys }) {
    const network = await Network.create(kind);
    let hive;
    try {
      const port = (each) => each.env.MYRMEX_SSH_ADDR.split(':').at(-1);
      hive = await Hive.start({ agents: 1, profile, gateway: (each) => ({ listen_addr: `:${port(each)}`, keepalive_seconds }) });
      const gateway = relay ? relay(gatewayAddress, port(hive)) : `${gatewayAddress}:${port(hive)}`;
      const agent = await RemoteAgent.start(hive, network, { gateway, keepalive_seconds, ...keys });
      return {
        network, hive, agent, router: network.router,
        async stop() {
          await agent.stop();
          await hive.stop();
          await network.stop();
        },
      };
    } catch (error) {
      await hive?.stop();
      await network.stop();
      throw error;
    }
  }

  // Takes over `id` from the hive, whose gateway must listen on the address that is given.
  static async start(hive, network, { id = 'agent-1', gateway, ...keys }) {
    const agent = new RemoteAgent();
    Object.assign(agent, { hive, network, id, lines: [] });
    const folder = path.join(hive.dir, 'agents', id);
    const config = JSON.parse(fs.readFileSync(path.join(folder, 'agent_config.json'), 'utf8'));
    agent.config = path.join(folder, 'remote_config.json');
    fs.writeFileSync(agent.config, JSON.stringify({ ...config, gateway_addr: gateway, ...keys }), { mode: 0o600 });
    if (fs.existsSync(path.join(hive.dir, 'pids', `${id}.pid`))) {
      await hive.end(id, 'SIGTERM').catch(() => {});
    }
    agent.run();
    await agent.online();
    return agent;
  }

  run() {
    this.child = this.network.spawn('myrmex-agent', ['--config', this.config], { env: this.hive.env, stdio: ['ignore', 'ignore', 'pipe'] });
    this.ended = new Promise((resolve) => this.child.once('exit', resolve));
    let rest = '';
    this.child.stderr.setEncoding('utf8').on('data', (text) => {
      const parts = (rest + text).split('\n');
      rest = parts.pop();
      this.lines.push(...parts.map((line) => ({ at: Date.now(), line })));
    });
  }

  // Since when the gateway has said that the agent is (not) online.
  online(within = 60_000) {
    return eventually(`${this.id} is online`, async () => (await this.hive.online(this.id)) && Date.now(), { within });
  }

  offline(within = 120_000) {
    return eventually(`${this.id} is offline`, async () => !(await this.hive.online(this.id)) && Date.now(), { within });
  }

  // When the agent said this for the first time since a moment, which it may still have to do.
  async says(pattern, since, within = 120_000) {
    const found = await eventually(`${this.id} says ${pattern}`,
      () => this.lines.find(({ at, line }) => at >= since && pattern.test(line)), { within });
    return found.at;
  }

  call(tool, args, options) {
    return this.hive.call(`${this.id}__${tool}`, args, options);
  }

  // Until a call succeeds; how many did not.
  async works(within = 120_000) {
    let failures = 0;
    await eventually(`a call to ${this.id} succeeds`, async () => {
      const answer = await this.call('get_metrics', {}).catch(() => ({}));
      if (answer.outcome === 'success') return true;
      failures += 1;
      return false;
    }, { within, every: 50 });
    return failures;
  }

  async stop(signal = 'SIGTERM') {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
    await this.ended;
  }

  // Breaks something while a long call runs, waits until both ends have noticed, mends it, and waits until calls succeed.
  // All times in ms. `running` is how the long call ended.
  async outage({ breaks, mends, agentNotices = /not connected to a gateway/ }) {
    const seen = this.hive.audit().length;
    const running = this.call('run_command', { name: 'sleep', args: ['120'] });
    await eventually('the long call is on its way', () => this.hive.audit().slice(seen).some(({ kind }) => kind === 'intent'));
    const broken = Date.now();
    await breaks();
    const [gateway, agent] = await Promise.all([this.offline(), agentNotices ? this.says(agentNotices, broken) : null]);
    const { outcome, reason } = await running;
    const mended = Date.now();
    await mends();
    await this.works();
    return { gateway_noticed: gateway - broken, agent_noticed: agent && agent - broken, recovered: Date.now() - mended, running: { outcome, reason } };
  }

  // An outage in which the agent's machine goes without a word, and another one starts in its place.
  machineLoss() {
    const { router } = this.network;
    return this.outage({
      breaks: async () => {
        await router.lose(100);
        await this.stop('SIGKILL');
      },
      mends: async () => {
        await router.heal();
        this.run();
      },
      agentNotices: null,
    });
  }
}
