// A network between a hive's gateway and one of its agents: the agent lives in a network namespace of its own, and a
// router stands between, which can lose, delay and forget. The gateway stays where the test is.
//
//   here (gateway) 198.18.1.1 --- 198.18.1.2 router 198.18.2.1 --- 198.18.2.2 agent's namespace
//
// Two kinds of router: a namespace, at once and everywhere (`namespace`), and a virtual machine with another kernel
// (`guest`), for delays, which not every kernel can make. 198.18.0.0/15 is set apart for tests of networks (RFC 2544).

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

import { eventually, hasProgram, root, run } from './hive.mjs';

export const gatewayAddress = '198.18.1.1';
export const agentAddress = '198.18.2.2';

const guestFolder = path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'), 'myrmex-hive/router');
const environment = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };

function must(program, ...args) {
  return execFileSync(program, args, { env: environment, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

// Why this machine cannot have such a network, or nothing.
export function obstacle(kind = 'namespace') {
  for (const program of ['ip', 'nft', ...(kind === 'guest' ? ['qemu-system-x86_64', 'cpio', 'busybox', 'tc'] : [])]) {
    if (!hasProgram(program)) return `${program} is missing; run ./hive setup test`;
  }
  if (process.getuid() !== 0) return 'network namespaces need root';
  const probe = `hive-probe-${process.pid}`;
  try {
    must('ip', 'netns', 'add', probe);
    must('ip', 'netns', 'exec', probe, 'nft', 'add', 'table', 'inet', 'probe');
    must('ip', 'netns', 'delete', probe);
    return undefined;
  } catch (error) {
    return `no network namespace with nftables here: ${String(error.stderr ?? error).trim()}`;
  }
}

class NamespaceRouter {
  constructor(name) {
    this.name = name;
    this.gatewaySide = 'to-gateway';
    this.agentSide = 'to-agent';
  }

  async start(network) {
    must('ip', 'netns', 'add', this.name);
    must('ip', 'link', 'add', network.gatewayLink, 'type', 'veth', 'peer', 'name', this.gatewaySide, 'netns', this.name);
    must('ip', '-n', network.agentNamespace, 'link', 'add', 'up0', 'type', 'veth', 'peer', 'name', this.agentSide, 'netns', this.name);
    await this.run('echo 1 >/proc/sys/net/ipv4/ip_forward');
  }

  async run(command) {
    const result = await run('ip', ['netns', 'exec', this.name, 'sh', '-ec', command], { env: environment });
    assert.equal(result.code, 0, `${command}: ${result.stderr}`);
    return result.stdout;
  }

  // What crosses the router is lost with this probability, in each direction.
  async lose(percent) {
    const rule = percent === 100 ? 'drop' : `numgen random mod 100 < ${percent} drop`;
    await this.run(`nft 'table inet loss { chain forward { type filter hook forward priority 0; ${rule}; }; }'`);
  }

  async heal() {
    await this.run('nft flush ruleset');
    await this.run(`ip link set ${this.agentSide} mtu 1500; ip link set ${this.gatewaySide} mtu 1500`);
  }

  // Packets larger than `bytes` vanish on their way to either side, and nobody says so.
  async blackHole(bytes) {
    await this.run(`ip link set ${this.agentSide} mtu ${bytes}; ip link set ${this.gatewaySide} mtu ${bytes}
      nft 'table inet silence { chain output { type filter hook output priority 0; icmp type destination-unreachable drop; }; }'`);
  }

  async stop() {
    await run('ip', ['netns', 'delete', this.name], { env: environment });
  }
}

class GuestRouter {
  constructor(name) {
    this.gatewaySide = 'eth0';
    this.agentSide = 'eth1';
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), `${name}-`));
  }

  async start(network) {
    const built = await run('bash', [path.join(root, 'tests/network/build_guest.sh'), guestFolder], { env: environment, timeout: 300_000 });
    assert.equal(built.code, 0, built.stderr);
    const far = `${network.gatewayLink}f`;
    must('ip', 'tuntap', 'add', 'dev', network.gatewayLink, 'mode', 'tap');
    must('ip', 'tuntap', 'add', 'dev', far, 'mode', 'tap');
    this.far = far;
    const socket = path.join(this.folder, 'commands');
    // Without offloading: netem is to see packets, not the trains that the host's kernel makes of them.
    const card = (id, link) => ['-netdev', `tap,id=${id},ifname=${link},script=no,downscript=no,vnet_hdr=off`, '-device', `virtio-net-pci,netdev=${id}`];
    this.machine = spawn('qemu-system-x86_64', ['-M', 'q35', '-accel', 'tcg,thread=multi', '-cpu', 'qemu64,+rdrand', '-smp', '1', '-m', '192',
      '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot',
      '-kernel', path.join(guestFolder, 'vmlinuz'), '-initrd', path.join(guestFolder, 'initrd'),
      '-append', 'console=ttyS0 quiet mitigations=off nopti tsc=unstable panic=-1 audit=0 apparmor=0 selinux=0 rdinit=/init',
      '-chardev', `file,id=console,path=${this.folder}/console`, '-serial', 'chardev:console',
      '-chardev', `socket,id=commands,path=${socket},server=on,wait=off`, '-serial', 'chardev:commands',
      ...card('n0', network.gatewayLink), ...card('n1', far)], { stdio: ['ignore', 'ignore', fs.openSync(path.join(this.folder, 'errors'), 'w')] });
    this.ended = new Promise((resolve) => this.machine.once('exit', resolve));
    this.lines = [];
    await eventually('the router has its command line', () => fs.existsSync(socket));
    this.channel = net.connect(socket);
    let rest = '';
    this.channel.setEncoding('utf8').on('data', (text) => {
      const parts = (rest + text).split('\n');
      rest = parts.pop();
      this.lines.push(...parts.map((line) => line.replace(/\r$/, '')));
    });
    await this.answer('the start');
    must('ip', 'link', 'set', far, 'netns', network.agentNamespace, 'name', 'up0');
  }

  async answer(what) {
    const end = await eventually(`the router answers ${what}`, () => this.lines.findIndex((line) => line.startsWith('done ')) + 1, { within: 60_000 });
    const lines = this.lines.splice(0, end);
    assert.equal(lines.at(-1), 'done 0', `${what}: ${lines.join('\n')}`);
    return lines.slice(0, -1).join('\n');
  }

  run(command) {
    this.channel.write(`${command.replaceAll('\n', ';')}\n`);
    return this.answer(command);
  }

  // `path`: delay of one direction in ms, loss in percent, rate in Mbit/s, any of them.
  async shape({ delay_ms, loss_percent, rate_mbit }) {
    const parts = [delay_ms ? `delay ${delay_ms}ms` : '', loss_percent ? `loss ${loss_percent}%` : '', rate_mbit ? `rate ${rate_mbit}mbit` : ''].join(' ');
    for (const side of [this.gatewaySide, this.agentSide]) await this.run(`tc qdisc replace dev ${side} root netem limit 10000 ${parts}`);
  }

  lose(percent) {
    return this.shape({ loss_percent: percent });
  }

  async heal() {
    for (const side of [this.gatewaySide, this.agentSide]) await this.run(`tc qdisc del dev ${side} root 2>/dev/null || true`);
  }

  async stop() {
    this.channel?.destroy();
    if (this.machine?.exitCode === null) {
      this.machine.kill('SIGTERM');
      await this.ended;
    }
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

export class Network {
  static async create(kind = 'namespace') {
    const network = new Network();
    const name = `hive-${process.pid.toString(36)}`;
    network.gatewayLink = name.slice(0, 14);
    network.agentNamespace = `${name}-agent`;
    network.router = kind === 'guest' ? new GuestRouter(`${name}-router`) : new NamespaceRouter(`${name}-router`);
    try {
      must('ip', 'netns', 'add', network.agentNamespace);
      await network.router.start(network);
      const { router, agentNamespace: agent } = network;
      must('ip', 'address', 'add', `${gatewayAddress}/24`, 'dev', network.gatewayLink);
      must('ip', 'link', 'set', network.gatewayLink, 'up');
      must('ip', 'route', 'add', '198.18.2.0/24', 'via', '198.18.1.2');
      for (const [side, address] of [[router.gatewaySide, '198.18.1.2'], [router.agentSide, '198.18.2.1']]) {
        await router.run(`ip address add ${address}/24 dev ${side}\nip link set ${side} up`);
      }
      must('ip', '-n', agent, 'link', 'set', 'lo', 'up');
      await network.setAgentAddress(agentAddress);
    } catch (error) {
      await network.stop();
      throw error;
    }
    return network;
  }

  // The agent's only address from now on.
  async setAgentAddress(address) {
    const agent = this.agentNamespace;
    must('ip', '-n', agent, 'address', 'flush', 'dev', 'up0');
    must('ip', '-n', agent, 'address', 'add', `${address}/24`, 'dev', 'up0');
    must('ip', '-n', agent, 'link', 'set', 'up0', 'up');
    must('ip', '-n', agent, 'route', 'replace', 'default', 'via', '198.18.2.1');
  }

  // Starts a program where the agent is.
  spawn(program, args, options = {}) {
    return spawn('ip', ['netns', 'exec', this.agentNamespace, program, ...args], { ...options, env: { ...environment, ...options.env } });
  }

  async stop() {
    await this.router.stop();
    for (const args of [['link', 'delete', this.gatewayLink], ['netns', 'delete', this.agentNamespace]]) await run('ip', args, { env: environment });
  }
}
