// Agents that the gateway has let in and that mean no good: each costs its own tunnel, and another agent on the same
// gateway does not notice. Each is a stock ssh client with whatever we let it say.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import readline from 'node:readline';
import { after, before, test } from 'node:test';

import { Hive, eventually, memory, text } from './support/hive.mjs';

let hive;
before(async () => { hive = await Hive.start({ agents: 1, gateway: { keepalive_seconds: 2 } }); });
after(() => hive.stop());

const line = (message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;

// Lets `id` in and connects as it. What the gateway asks goes to `on`, as messages; without it, nobody reads.
async function connect(id, on) {
  const key = path.join(hive.base, id);
  if (!fs.existsSync(key)) {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', id, '-f', key]);
    fs.appendFileSync(path.join(hive.dir, 'gateway/authorized_keys'), fs.readFileSync(`${key}.pub`));
    await hive.reload();
  }
  const [host, port] = hive.env.MYRMEX_SSH_ADDR.split(':');
  const known = path.join(hive.base, 'known_hosts');
  fs.writeFileSync(known, `[${host}]:${port} ${fs.readFileSync(hive.env.MYRMEX_HOST_KEY, 'utf8')}`);
  const ssh = spawn('ssh', ['-F', 'none', '-i', key, '-p', port, '-o', 'IdentitiesOnly=yes', '-o', 'BatchMode=yes',
    '-o', 'StrictHostKeyChecking=yes', '-o', `UserKnownHostsFile=${known}`, '-s', `${id}@${host}`, 'mcp'],
  { stdio: ['pipe', 'pipe', 'ignore'] });
  ssh.stdin.on('error', () => {});
  ssh.ended = once(ssh, 'exit');
  if (on) readline.createInterface({ input: ssh.stdout }).on('line', (each) => on(JSON.parse(each), ssh));
  await eventually(`${id} has been online`, () => hive.audit().some((entry) =>
    entry.action === 'agent_online' && entry.agent === id));
  return ssh;
}

// Says `chunk` again and again until the gateway ends the tunnel.
async function flood(ssh, chunk) {
  let ended = false;
  ssh.ended.then(() => { ended = true; });
  while (!ended) {
    if (!ssh.stdin.write(chunk)) await Promise.race([once(ssh.stdin, 'drain').catch(() => {}), ssh.ended]);
  }
}

// The honest agent answers while `attack` goes on, each time, and is never replaced.
async function unnoticed(attack) {
  const pid = hive.pid('gateway');
  const lost = () => hive.audit().filter((entry) => entry.action === 'agent_offline' && entry.agent === 'agent-1').length;
  const lostBefore = lost();
  let done = false;
  let calls = 0;
  const honest = (async () => {
    while (!done || calls < 5) {
      const answer = await hive.call('agent-1__get_metrics', {});
      assert.equal(answer.outcome, 'success', text(answer));
      calls += 1;
    }
  })();
  try {
    await attack();
  } finally {
    done = true;
  }
  await honest;
  assert.equal(hive.pid('gateway'), pid);
  assert.ok(memory(pid).peak < 400 << 20, `the gateway took ${memory(pid).peak} bytes`);
  assert.equal(lost(), lostBefore, 'agent-1 was never offline');
}

// Why the gateway ended the last tunnel of `id`.
function ending(id) {
  return hive.entry(`the end of ${id}`, (entry) => entry.action === 'agent_offline' && entry.agent === id);
}

// As an agent that has nothing to hide, until told otherwise.
function politely(message, ssh) {
  if (message.id === undefined) return;
  const result = message.method === 'tools/list'
    ? { tools: [{ name: 'get_metrics', description: 'canned', inputSchema: { type: 'object' } }] }
    : { content: [{ type: 'text', text: 'canned' }] };
  ssh.stdin.write(line({ id: message.id, result }));
}

test('a flood of answers that nobody waits for ends its own tunnel', async () => {
  await unnoticed(async () => {
    const ssh = await connect('flood-1', politely);
    await flood(ssh, line({ id: '999999999', result: {} }).repeat(1000));
    assert.match((await ending('flood-1')).detail, /floods the tunnel with what nobody asked for/);
  });
});

test('a line without an end ends its own tunnel', async () => {
  await unnoticed(async () => {
    const ssh = await connect('endless-1', politely);
    await flood(ssh, 'x'.repeat(1 << 20));
    assert.match((await ending('endless-1')).detail, /line longer than the limit/);
  });
});

test('what is no message, of any kind, ends its own tunnel', async () => {
  await unnoticed(async () => {
    const ssh = await connect('nonsense-1', politely);
    const nonsense = ['null', '17', '"x"', '[]', '[[[[[[[[', '{}', '{"id":{}}', '{"jsonrpc":"2.0","id":[1],"result":{}}',
      '{"jsonrpc":"2.0","id":"1","result":{},"error":{}}', '{"jsonrpc":"2.0","method":17}', '\u0000\ufffd',
      `${'['.repeat(100_000)}`, '{"a":1,"a":2}'];
    await flood(ssh, `${nonsense.join('\n')}\n`.repeat(10));
    assert.match((await ending('nonsense-1')).detail, /too many malformed lines/);
  });
});

test('answers to the questions of others reach nobody', async () => {
  await unnoticed(async () => {
    const ssh = await connect('thief-1', politely);
    // The gateway counts its questions through; every one of the honest agent's is among these.
    const forged = [];
    for (let id = 1; id <= 4000; id += 1) {
      forged.push(line({ id: String(id), result: { content: [{ type: 'text', text: 'forged' }] } }));
    }
    for (let round = 0; round < 20; round += 1) {
      ssh.stdin.write(forged.slice(round * 200, round * 200 + 200).join(''));
      const answer = await hive.call('agent-1__get_metrics', {});
      assert.equal(answer.outcome, 'success');
      assert.notEqual(text(answer), 'forged');
    }
    ssh.kill();
    await ssh.ended;
  });
});

test('ten thousand tools are not taken, and those of others are there', async () => {
  await unnoticed(async () => {
    const tools = Array.from({ length: 10_000 }, (_, number) => (
      { name: `tool_${number}`, description: 'x'.repeat(100), inputSchema: { type: 'object' } }));
    const ssh = await connect('hoarder-1', (message, self) => {
      if (message.method === 'tools/list') self.stdin.write(line({ id: message.id, result: { tools } }));
      else politely(message, self);
    });
    await eventually('the gateway says why', () => /hoarder-1.*more than the limit of/.test(hive.gatewayLog()));
    const listed = await (await hive.fetch('/api/tools')).json();
    const names = JSON.stringify(listed);
    assert.ok(names.includes('agent-1__get_metrics'));
    assert.ok(!names.includes('hoarder-1__tool_'));
    ssh.kill();
    await ssh.ended;
  });
});

test('progress without end is thinned out, and its call still ends', async () => {
  await unnoticed(async () => {
    const ssh = await connect('chatter-1', (message, self) => {
      if (message.method !== 'tools/call' || message.params.name === 'get_system_info') return politely(message, self);
      const token = message.params._meta?.progressToken ?? message.id;
      for (let number = 1; number <= 5000; number += 1) {
        self.stdin.write(line({ method: 'notifications/progress', params: { progressToken: token, progress: number, message: 'y'.repeat(100) } }));
      }
      self.stdin.write(line({ id: message.id, result: { content: [{ type: 'text', text: 'done' }] } }));
      // And once more, for good measure.
      self.stdin.write(line({ id: message.id, result: { content: [{ type: 'text', text: 'twice' }] } }));
    });
    await eventually('its tools are known', async () =>
      JSON.stringify(await (await hive.fetch('/api/tools')).json()).includes('chatter-1__get_metrics'));
    const answer = await hive.call('chatter-1__get_metrics', {});
    assert.equal(answer.outcome, 'success');
    assert.equal(text(answer), 'done');
    ssh.kill();
    await ssh.ended;
  });
});

test('an agent that never reads is given up, and what it was asked ends', async () => {
  await unnoticed(async () => {
    // It reads nothing at all, and keeps talking, so that it is not silent.
    const ssh = await connect('deaf-1');
    let talking = true;
    const talk = (async () => {
      while (talking) {
        ssh.stdin.write(line({ method: 'notifications/progress', params: { progressToken: 'none', progress: 1 } }));
        await new Promise((resolve) => { setTimeout(resolve, 200); });
      }
    })();
    const padding = 'z'.repeat(500_000);
    const calls = Array.from({ length: 30 }, () => hive.call('deaf-1__read_logs', { padding }));
    const answers = await Promise.all(calls);
    talking = false;
    await talk;
    assert.match((await ending('deaf-1')).detail, /a ping was not answered|nothing that was sent has been read|nothing heard/);
    for (const answer of answers) assert.ok(['unknown', 'denied'].includes(answer.outcome), answer.outcome);
    ssh.kill('SIGKILL');
    await ssh.ended;
  });
});

test('connections that stand still before they say who they are keep nobody out', async () => {
  await unnoticed(async () => {
    const [host, port] = hive.env.MYRMEX_SSH_ADDR.split(':');
    const idle = Array.from({ length: 400 }, () => net.connect(Number(port), host).on('error', () => {}));
    const ssh = await connect('patient-1', politely);
    await eventually('it came in', () => hive.online('patient-1'));
    for (const socket of idle) socket.destroy();
    ssh.kill();
    await ssh.ended;
  });
});
