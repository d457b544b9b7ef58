// One command on many machines: ours next to Ansible and to plain OpenSSH with connections that are kept, at the same
// number of calls at once. All of them run `uptime`; each has its connections open before the clock starts.

import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { folder, median, run } from './measure.mjs';
import { BenchHive } from './hive.mjs';
import { rate, table, target } from './report.mjs';

const atOnce = 32;
const execute = promisify(execFile);

async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

// An sshd on loopback for this user alone, and so many names for it, each with a connection of its own.
class SshHosts {
  static async start(count) {
    const hosts = new SshHosts();
    hosts.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'hive-bench-ssh-'));
    hosts.port = await freePort();
    hosts.names = Array.from({ length: count }, (_, i) => `host-${i + 1}`);
    for (const key of ['host_key', 'user_key']) {
      await execute('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path.join(hosts.dir, key)]);
    }
    fs.copyFileSync(path.join(hosts.dir, 'user_key.pub'), path.join(hosts.dir, 'authorized_keys'));
    const user = os.userInfo().username;
    // Without SHLVL, bash believes that it is a login by rshd and reads its files.
    fs.writeFileSync(path.join(hosts.dir, 'sshd_config'), `
Port ${hosts.port}
ListenAddress 127.0.0.1
HostKey ${hosts.dir}/host_key
AuthorizedKeysFile ${hosts.dir}/authorized_keys
AllowUsers ${user}
PermitRootLogin prohibit-password
PasswordAuthentication no
StrictModes no
UsePAM no
PidFile none
MaxStartups 1000
MaxSessions 100
LogLevel ERROR
SetEnv SHLVL=5
`);
    fs.writeFileSync(path.join(hosts.dir, 'ssh_config'), `
Host *
  HostName 127.0.0.1
  Port ${hosts.port}
  User ${user}
  IdentityFile ${hosts.dir}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile /dev/null
  StrictHostKeyChecking no
  LogLevel ERROR
  ControlMaster auto
  ControlPersist 600
  ControlPath ${hosts.dir}/%n
`);
    fs.writeFileSync(path.join(hosts.dir, 'inventory'), hosts.names.map((name) => `${name} ansible_control_path=${hosts.dir}/a-${name}`).join('\n')
      + `\n[all:vars]\nansible_host=127.0.0.1\nansible_port=${hosts.port}\nansible_user=${user}\n`
      + `ansible_ssh_private_key_file=${hosts.dir}/user_key\nansible_python_interpreter=/usr/bin/python3\n`);
    fs.writeFileSync(path.join(hosts.dir, 'ansible.cfg'), `[defaults]
host_key_checking = False
nocolor = True
home = ${hosts.dir}/ansible
local_tmp = ${hosts.dir}/ansible/tmp
remote_tmp = ${hosts.dir}/ansible/remote
[connection]
pipelining = True
[ssh_connection]
ssh_args = -o ControlMaster=auto -o ControlPersist=600s -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR
`);
    // Where an sshd of root goes before anybody has authenticated; the package's own start makes it.
    if (process.getuid() === 0) hosts.madeFolder = fs.mkdirSync('/run/sshd', { recursive: true });
    hosts.sshd = spawn('/usr/sbin/sshd', ['-D', '-e', '-f', path.join(hosts.dir, 'sshd_config')], { stdio: ['ignore', 'ignore', 'inherit'] });
    try {
      for (const end = Date.now() + 30_000; ; await new Promise((resolve) => setTimeout(resolve, 100))) {
        try {
          await hosts.ssh('host-1');
          return hosts;
        } catch (error) {
          if (Date.now() > end) throw error;
        }
      }
    } catch (error) {
      await hosts.stop();
      throw error;
    }
  }

  ssh(...args) {
    return execute('ssh', ['-F', path.join(this.dir, 'ssh_config'), ...args, ...(args.length === 1 ? ['uptime'] : [])]);
  }

  // uptime on the first `count` of them; throws unless every one of them has answered.
  async openSsh(count) {
    const config = path.join(this.dir, 'ssh_config');
    const child = execute('xargs', ['-P', String(atOnce), '-I', '{}', 'ssh', '-n', '-F', config, '{}', 'uptime'], { maxBuffer: 64 << 20 });
    child.child.stdin.end(this.names.slice(0, count).join('\n') + '\n');
    const { stdout } = await child;
    const answers = stdout.split('\n').filter((line) => line.includes('load average')).length;
    if (answers !== count) throw new Error(`ssh: ${answers} of ${count} have answered`);
  }

  async ansible(count) {
    const { stdout } = await execute('ansible', [this.names.slice(0, count).join(','), '-i', path.join(this.dir, 'inventory'), '-f', String(atOnce),
      '-m', 'ansible.builtin.command', '-a', 'uptime'], {
      maxBuffer: 64 << 20, env: { ...process.env, ANSIBLE_CONFIG: path.join(this.dir, 'ansible.cfg') },
    });
    const answers = stdout.split('\n').filter((line) => line.includes('load average')).length;
    if (answers !== count) throw new Error(`ansible: ${answers} of ${count} have answered: ${stdout.slice(0, 500)}`);
  }

  async stop() {
    // The clients that keep the connections are processes of their own.
    for (const entry of fs.readdirSync(this.dir)) {
      const file = path.join(this.dir, entry);
      if (!fs.statSync(file).isSocket()) continue;
      await execute('ssh', ['-o', `ControlPath=${file}`, '-O', 'exit', 'host']).catch(() => {});
    }
    this.sshd.kill('SIGTERM');
    if (this.madeFolder) fs.rmdirSync(this.madeFolder);
    fs.rmSync(this.dir, { recursive: true, force: true });
  }
}

// uptime on agents through the gateway, by the command line; throws unless every one of them has succeeded.
async function hiveRun(hive, selection, count) {
  const output = await run(path.join(folder, 'myrmex'), ['call', ...selection, '--yes', '--concurrency', String(atOnce), '-o', 'json',
    'run_command', '--arguments', '{"name":"uptime"}'], { env: { ...process.env, ...hive.env } });
  const answers = output.split('\n').filter((line) => line.includes('"outcome":"success"') && line.includes('load average')).length;
  if (answers !== count) throw new Error(`myrmex: ${answers} of ${count} have answered: ${output.slice(0, 500)}`);
}

async function seconds(action) {
  const start = performance.now();
  await action();
  return (performance.now() - start) / 1000;
}

const numbers = (count) => Array.from({ length: count }, (_, i) => i);

// `few`: as many as Ansible can do in reasonable time; `many`: what one agent each is there for.
export async function fanOut({ rounds, few, many }) {
  if (!fs.existsSync('/usr/sbin/sshd')) {
    console.log('\nfan-out is left out: it needs /usr/sbin/sshd; openssh-server has it, and starts one for everybody');
    return;
  }
  const hive = await BenchHive.start();
  let hosts;
  try {
    const swarm = await hive.swarm(many);
    await swarm.allOnline();
    await hive.waitForAgents(many + 1);
    hosts = await SshHosts.start(few);
    const fleet = (await (await hive.fetch('/api/status')).json()).agents.map((agent) => agent.id).filter((id) => id.startsWith('swarm'));
    const some = fleet.slice(0, few).join(',');
    const subjects = {
      [`myrmex call, ${few}`]: { count: few, run: () => hiveRun(hive, ['--agents', some], few) },
      [`ssh, kept connections, ${few}`]: { count: few, run: () => hosts.openSsh(few) },
      [`ansible, ${few}`]: { count: few, run: () => hosts.ansible(few) },
      [`myrmex call, ${many}`]: { count: many, run: () => hiveRun(hive, ['--agents', 'swarm*'], many) },
    };
    const times = Object.fromEntries(Object.keys(subjects).map((name) => [name, []]));
    // The first time opens the connections.
    for (const { run: once } of Object.values(subjects)) await once();
    for (const _ of numbers(rounds)) {
      for (const [name, { run: once }] of Object.entries(subjects)) times[name].push(await seconds(once));
    }
    const [ours, ssh, ansible, large] = Object.keys(subjects);
    const ratio = (name) => median(times[name].map((time, i) => time / subjects[name].count / (times[ours][i] / subjects[ours].count)));
    table(`uptime on many machines, ${atOnce} at once; the agents, the sshd and all clients on this machine`, Object.entries(subjects).map(([name, { count }]) => ({
      what: name,
      seconds: median(times[name]).toFixed(2),
      'machines/s': rate(count / median(times[name])),
      'time a machine : ours': name === ours ? '' : ratio(name).toFixed(2),
    })));
    target(`fan-out to ${few}, next to ssh with kept connections`, `${ratio(ssh).toFixed(1)} times as fast`, ratio(ssh) >= 1, 'no slower');
    target(`fan-out to ${few}, next to Ansible`, `${ratio(ansible).toFixed(1)} times as fast`, ratio(ansible) >= 10, 'at least 10 times');
    target(`fan-out to ${many}, time a machine next to ${few}`, `${ratio(large).toFixed(2)} times`, ratio(large) <= 1.5, 'at most 1.5 times');
    await swarm.stop();
    await hive.verifyLog();
  } finally {
    await hosts?.stop();
    await hive.stop();
  }
}
