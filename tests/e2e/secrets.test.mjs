// Secrets that stand in Vault: the gateway and an agent read them from there, and say what is wrong without showing one.
// The npm package node-vault writes and reads the same secrets on the same server, as a second opinion on its protocol.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import nodeVault from 'node-vault';

import { Hive, eventually, run } from './support/hive.mjs';
import { Vault } from './support/vault.mjs';

const namespace = 'team/edge';
const fresh = () => randomBytes(24).toString('hex');
const tokens = { admin: fresh(), ci: fresh(), kv: fresh() };
const vaultToken = fresh();

let hive;
let vault;
let client; // node-vault
let gateway;
let config;

// Writes with node-vault, and sees that node-vault reads what it wrote.
async function store(secretPath, data) {
  const isSecondVersion = secretPath.startsWith('secret/');
  await client.write(secretPath, isSecondVersion ? { data } : data);
  const read = await client.read(secretPath);
  assert.deepEqual(isSecondVersion ? read.data.data : read.data, data);
  for (const value of Object.values(data)) hive.leaks.add(value, `a secret of Vault at ${secretPath}`);
  vault.takeReads();
}

const edit = (change) => {
  const values = JSON.parse(fs.readFileSync(config, 'utf8'));
  change(values);
  fs.writeFileSync(config, JSON.stringify(values, null, 2), { mode: 0o600 });
};

const reload = () => hive.reload(gateway.child.pid);

const statusWith = async (token) => (await hive.fetch('/api/status', { token })).status;
const checkConfig = () => run('myrmex-gateway', ['--check-config', config], { env: hive.env });

before(async () => {
  hive = await Hive.start({ agents: 1 });
  hive.leaks.add(vaultToken, 'the token of Vault');
  config = path.join(hive.dir, 'gateway/gateway_config.json');
  const certificate = path.join(hive.base, 'vault.crt');
  const key = path.join(hive.base, 'vault.key');
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
    '-subj', '/CN=vault', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate], { stdio: 'ignore' });
  const ca = fs.readFileSync(certificate);
  vault = await Vault.start({ token: vaultToken, tls: { key: fs.readFileSync(key), cert: ca }, namespace });
  client = nodeVault({ endpoint: vault.url, token: vaultToken, namespace, requestOptions: { ca } });
  const tokenFile = path.join(hive.base, 'vault-token');
  fs.writeFileSync(tokenFile, `${vaultToken}\n`, { mode: 0o600 });
  hive.leaks.add(vaultToken, 'the token for Vault');
  Object.assign(hive.env, {
    VAULT_ADDR: vault.url, VAULT_TOKEN_FILE: tokenFile, VAULT_NAMESPACE: namespace, VAULT_CACERT: certificate,
  });
  await store('secret/data/gateway', { admin: tokens.admin, ci: tokens.ci });
  await store('kv/gateway', { token: tokens.kv });
  edit((values) => {
    values.tokens['vault:secret/data/gateway#ci'] = { role: 'operator', identity: 'ci' };
    values.tokens['vault:kv/gateway#token'] = 'read-only';
    values.scoped_tokens = [
      { token: 'vault:secret/data/gateway#admin', role: 'operator', agents: ['agent-1'], tools: ['*'] }];
  });
  gateway = await hive.ownGateway();
});

after(async () => {
  gateway?.child.kill('SIGTERM');
  await gateway?.exit;
  await hive?.stop();
  await vault?.stop();
});

test('the gateway accepts the tokens that stand in both versions of the engine, and reads each path once', async () => {
  assert.deepEqual(vault.takeReads().sort(), ['kv/gateway', 'secret/data/gateway']);
  for (const token of Object.values(tokens)) assert.equal(await statusWith(token), 200);
  assert.equal(await statusWith(fresh()), 401);
});

test('a reload takes up what Vault holds now', async () => {
  const old = tokens.kv;
  tokens.kv = fresh();
  await store('kv/gateway', { token: tokens.kv });
  assert.equal(await statusWith(tokens.kv), 401);
  await reload();
  assert.equal(await statusWith(tokens.kv), 200);
  assert.equal(await statusWith(old), 401);
});

test('a secret that is gone keeps the old configuration in force, and is named by its reference', async () => {
  await client.delete('secret/data/gateway');
  const said = await reload();
  assert.match(said, /vault:secret\/data\/gateway#/);
  assert.match(said, /is deleted/);
  assert.match(said, new RegExp(vault.url.slice('https://'.length)));
  assert.equal(await statusWith(tokens.ci), 200);
  await store('secret/data/gateway', { admin: tokens.admin, ci: tokens.ci });
  assert.equal((await checkConfig()).code, 0);
});

test('what Vault refuses stops the start with the reference and the remedy', async () => {
  const problems = [
    ['a sealed server', /is sealed \(503\)/, () => { vault.sealed = true; }, () => { vault.sealed = false; }],
    ['a token that is not accepted', /refuses the token \(403\)/, () => { vault.token = fresh(); }, () => { vault.token = vaultToken; }],
    ['another namespace', /no such secret \(404\)/, () => { vault.namespace = 'other'; }, () => { vault.namespace = namespace; }],
  ];
  for (const [what, message, begin, end] of problems) {
    begin();
    const result = await run('myrmex-gateway', ['--config', config], { env: hive.env });
    end();
    hive.leaks.heard(`a start with ${what}`, result.stdout + result.stderr);
    assert.equal(result.code, 1, what);
    assert.match(result.stderr, message, what);
    assert.match(result.stderr, /"vault:kv\/gateway#token"/, what);
  }
  const untrusting = await run('myrmex-gateway', ['--config', config], { env: { ...hive.env, VAULT_CACERT: '' } });
  assert.equal(untrusting.code, 1);
  assert.match(untrusting.stderr, /certificate of 127\.0\.0\.1:\d+ is not trusted/);
});

test('an agent reads who it is and its key from elsewhere, and a new key when it is told to', async () => {
  const key = path.join(hive.base, 'agent-key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'agent-vault', '-f', key]);
  await store('secret/data/agents/vault', { ssh_key: fs.readFileSync(key, 'utf8') });
  fs.appendFileSync(path.join(hive.dir, 'gateway/authorized_keys'), fs.readFileSync(`${key}.pub`));
  const first = JSON.parse(fs.readFileSync(path.join(hive.dir, 'agents/agent-1/agent_config.json'), 'utf8'));
  const file = path.join(hive.base, 'agent_config.json');
  fs.writeFileSync(file, JSON.stringify({
    agent_id: 'env:AGENT_NAME', gateway_addr: '${GATEWAY}', private_key: 'vault:secret/data/agents/vault#ssh_key',
  }));
  const env = { ...hive.env, AGENT_NAME: 'agent-vault', GATEWAY: first.gateway_addr ?? first.gateway_addrs[0] };
  const checked = await run('myrmex-agent', ['--check-config', file], { env });
  hive.leaks.heard('the check of the agent', checked.stdout + checked.stderr);
  assert.equal(checked.code, 0, checked.stdout + checked.stderr);
  const log = path.join(hive.dir, 'log/agent-vault.log');
  const agent = spawn('myrmex-agent', ['--config', file], { env, stdio: ['ignore', 'ignore', fs.openSync(log, 'a')] });
  const ended = new Promise((resolve) => agent.once('exit', resolve));
  try {
    await eventually('the agent is online', () => hive.online('agent-vault'));
    // Another key takes its place, first on the gateway and then in Vault: only a reload can bring the agent back.
    const next = path.join(hive.base, 'agent-key-2');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'agent-vault', '-f', next]);
    const keys = path.join(hive.dir, 'gateway/authorized_keys');
    const old = fs.readFileSync(`${key}.pub`, 'utf8');
    fs.writeFileSync(keys, fs.readFileSync(keys, 'utf8').replace(old, fs.readFileSync(`${next}.pub`, 'utf8')));
    await eventually('the agent is offline', async () => !(await hive.online('agent-vault')));
    await store('secret/data/agents/vault', { ssh_key: fs.readFileSync(next, 'utf8') });
    agent.kill('SIGHUP');
    await eventually('the agent is back with the new key', () => hive.online('agent-vault'));
  } finally {
    agent.kill('SIGTERM');
    await ended;
  }
  vault.sealed = true;
  const refused = await run('myrmex-agent', ['--config', file], { env });
  vault.sealed = false;
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /private_key: .*"vault:secret\/data\/agents\/vault#ssh_key".*sealed/);
});
