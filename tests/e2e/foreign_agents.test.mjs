// Agents that are not ours: a stock OpenSSH client, and a Go program that opens a channel of type "mcp".

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import { after, before, test } from 'node:test';

import { Hive, cannotRun, eventually, hasProgram, root, run, text } from './support/hive.mjs';

let hive;
before(async () => { hive = await Hive.start({ agents: 1 }); });
after(() => hive.stop());

// Makes a key with the agent's id as its comment, and lets the gateway know it.
async function enrol(id) {
  const key = path.join(hive.base, id);
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', id, '-f', key]);
  fs.appendFileSync(path.join(hive.dir, 'gateway/authorized_keys'), fs.readFileSync(`${key}.pub`));
  await hive.reload();
  return key;
}

function sshOptions(key) {
  const [host, port] = hive.env.MYRMEX_SSH_ADDR.split(':');
  const known = path.join(hive.base, 'known_hosts');
  fs.writeFileSync(known, `[${host}]:${port} ${fs.readFileSync(hive.env.MYRMEX_HOST_KEY, 'utf8')}`);
  return ['-F', 'none', '-i', key, '-p', port, '-o', 'IdentitiesOnly=yes', '-o', 'BatchMode=yes',
    '-o', 'StrictHostKeyChecking=yes', '-o', `UserKnownHostsFile=${known}`];
}

// Answers what a gateway asks of an agent, one JSON object a line.
function answerOn(input, output) {
  readline.createInterface({ input }).on('line', (line) => {
    const request = JSON.parse(line);
    if (request.id === undefined) return;
    const reply = (result) => output.write(`${JSON.stringify({ jsonrpc: '2.0', id: request.id, result })}\n`);
    if (request.method === 'tools/list') {
      reply({ tools: [{ name: 'get_metrics', description: 'canned', inputSchema: { type: 'object' } }] });
    } else if (request.method === 'tools/call') {
      reply({ content: [{ type: 'text', text: `canned answer to ${request.params.name}` }] });
    } else {
      reply({});
    }
  });
}

test('ssh -s with a stock client registers as an agent and answers a call', async () => {
  const key = await enrol('openssh-agent');
  const ssh = spawn('ssh', [...sshOptions(key), '-s', 'openssh-agent@127.0.0.1', 'mcp'],
    { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    answerOn(ssh.stdout, ssh.stdin);
    await eventually('openssh-agent is online', () => hive.online('openssh-agent'));
    const answer = await eventually('its tool is listed and answers', async () => {
      const reply = await hive.call('openssh-agent__get_metrics', {});
      return reply.outcome === 'success' && reply;
    });
    assert.equal(text(answer), 'canned answer to get_metrics');
    const { code, stdout } = await hive.myrmex(['call', 'openssh-agent__get_metrics']);
    assert.equal(code, 0);
    assert.match(stdout, /canned answer/);
  } finally {
    ssh.kill();
  }
  await eventually('openssh-agent is offline', async () => !(await hive.online('openssh-agent')));
});

test('nothing but the subsystem: no shell, no command, no forwarding', async () => {
  const key = await enrol('curious');
  for (const [what, ...args] of [
    ['a command', 'curious@127.0.0.1', 'id'],
    ['a shell', '-tt', 'curious@127.0.0.1'],
    ['another subsystem', '-s', 'curious@127.0.0.1', 'sftp'],
    ['forwarding', '-W', '127.0.0.1:22', 'curious@127.0.0.1'],
  ]) {
    const { code, stdout } = await run('ssh', [...sshOptions(key), ...args]);
    assert.notEqual(code, 0, what);
    assert.equal(stdout, '', what);
  }
});

test("a key works for its own id only, and a key that nobody knows not at all", async () => {
  const key = await enrol('honest');
  const other = await run('ssh', [...sshOptions(key), '-s', 'agent-1@127.0.0.1', 'mcp']);
  assert.equal(other.code, 255);
  assert.match(other.stderr, /Permission denied/);
  assert.ok(await hive.online('agent-1'), 'agent-1 was not replaced');

  const stranger = path.join(hive.base, 'stranger');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'honest', '-f', stranger]);
  const refused = await run('ssh', [...sshOptions(stranger), '-s', 'honest@127.0.0.1', 'mcp']);
  assert.equal(refused.code, 255);
  assert.match(refused.stderr, /Permission denied/);
});

test('a Go program with a channel of type mcp registers as an agent and answers a call', async (t) => {
  const source = path.join(root, 'tests/e2e/go_agent/main.go');
  if (!hasProgram('go')) return cannotRun(t, 'go is not installed; run ./hive setup test');
  if (!fs.existsSync('/usr/share/gocode/src/golang.org/x/crypto/ssh')) {
    return cannotRun(t, 'golang-golang-x-crypto-dev is not installed; run ./hive setup test');
  }
  const key = await enrol('go-agent');
  const program = path.join(hive.base, 'go_agent');
  execFileSync('go', ['build', '-o', program, source], {
    env: { ...process.env, GOPATH: '/usr/share/gocode', GO111MODULE: 'off', GOFLAGS: '', GOCACHE: path.join(hive.base, 'gocache') },
  });
  const agent = spawn(program, [hive.env.MYRMEX_SSH_ADDR, 'go-agent', key], { stdio: ['ignore', 'ignore', 'inherit'] });
  try {
    await eventually('go-agent is online', () => hive.online('go-agent'));
    const answer = await eventually('it answers', async () => {
      const reply = await hive.call('go-agent__get_metrics', {});
      return reply.outcome === 'success' && reply;
    });
    assert.equal(text(answer), '{"cpu_usage_percent":1.5}');
    // It says what happened in its text alone, and is believed.
    assert.equal((await hive.call('go-agent__run_command', { name: 'x' })).outcome, 'denied');
    assert.equal((await hive.call('go-agent__read_logs', {})).outcome, 'failure');
    const { code } = await hive.myrmex(['call', 'go-agent__run_command', 'name=x']);
    assert.equal(code, 3);
  } finally {
    agent.kill();
  }
});
