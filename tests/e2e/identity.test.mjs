// Who calls, proven by others: an identity provider, a certificate authority, a proxy. With the real ones.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import { generateKeyPairSync } from 'node:crypto';
import { after, before, test } from 'node:test';

import { Provider } from 'oidc-provider';

import { Hive, cannotRun, eventually, hasProgram } from './support/hive.mjs';

const proxySecret = 'proxy-secret-0123456789abcdef';
const proxyAddress = '127.0.0.2';
const groups = { alice: ['ops'], bob: ['ops', 'admins'], mallory: ['guests'] };

// An oidc-provider on loopback whose clients are people, each with the groups above.
class Issuer {
  static async start() {
    const made = new Issuer();
    made.fetches = 0;
    made.server = http.createServer((request, response) => {
      if (request.url === '/jwks') made.fetches += 1;
      made.serve(request, response);
    });
    await new Promise((resolve) => { made.server.listen(0, '127.0.0.1', resolve); });
    made.url = `http://127.0.0.1:${made.server.address().port}`;
    made.rotate('first');
    return made;
  }

  // From now on another key signs, and the old one is not published any more.
  rotate(kid) {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const provider = new Provider(this.url, {
      jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' }] },
      clients: Object.keys(groups).map((name) => ({
        client_id: name,
        client_secret: `secret-of-${name}`,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      })),
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (context, resource) => ({
            scope: 'api',
            audience: new URL(resource).pathname.slice(1),
            accessTokenFormat: 'jwt',
            accessTokenTTL: resource.includes('short') ? 10 : 300,
            jwt: { sign: { alg: 'RS256' } },
          }),
        },
      },
      extraTokenClaims: (context, token) => ({ groups: groups[token.clientId] }),
    });
    this.serve = provider.callback();
  }

  async token(name, resource = 'https://tokens.example/myrmex-hive') {
    const response = await fetch(`${this.url}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${name}:secret-of-${name}`).toString('base64')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', scope: 'api', resource }),
    });
    const body = await response.json();
    assert.equal(response.status, 200, JSON.stringify(body));
    assert.equal(body.access_token.split('.').length, 3);
    return body.access_token;
  }

  stop() {
    this.server.closeAllConnections();
    return new Promise((resolve) => { this.server.close(resolve); });
  }
}

let hive;
let issuer;
before(async () => {
  issuer = await Issuer.start();
  hive = await Hive.start({
    agents: 1,
    gateway: (made) => ({
      oidc_issuer: issuer.url,
      oidc_audience: 'myrmex-hive',
      oidc_role_map: { ops: 'operator', admins: 'admin' },
      client_ca_cert_path: makeAuthority(made.base),
      mtls_cn_roles: { 'ops-console': 'operator' },
      trusted_proxy_secret: proxySecret,
      trusted_proxy_addresses: [proxyAddress],
      trusted_proxy_identity_header: 'X-Forwarded-User',
      trusted_proxy_secret_header: 'X-Proxy-Secret',
      trusted_proxy_role: 'operator',
    }),
  });
});
after(async () => {
  await hive?.stop();
  await issuer?.stop();
});

const openssl = (folder, ...args) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });

function makeAuthority(base) {
  const folder = path.join(base, 'pki');
  fs.mkdirSync(folder);
  for (const name of ['ca', 'other-ca']) {
    openssl(folder, 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30',
      '-keyout', `${name}.key`, '-out', `${name}.pem`, '-subj', `/CN=${name}`);
  }
  for (const [name, ca, usage] of [['ops-console', 'ca', 'clientAuth'], ['stranger', 'ca', 'clientAuth'],
    ['forged', 'other-ca', 'clientAuth'], ['web', 'ca', 'serverAuth']]) {
    fs.writeFileSync(path.join(folder, `${name}.ext`), `basicConstraints=CA:FALSE\nextendedKeyUsage=${usage}\n`);
    openssl(folder, 'req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', `${name}.key`,
      '-out', `${name}.csr`, '-subj', `/CN=${name === 'forged' ? 'ops-console' : name}`);
    openssl(folder, 'x509', '-req', '-in', `${name}.csr`, '-CA', `${ca}.pem`, '-CAkey', `${ca}.key`, '-CAcreateserial',
      '-days', '30', '-extfile', `${name}.ext`, '-out', `${name}.pem`);
  }
  return path.join(folder, 'ca.pem');
}

// GET /api/whoami over HTTPS with a client certificate; null when the connection is refused.
function overTls(name, headers = {}, agent = false) {
  const folder = path.join(hive.base, 'pki');
  const shown = name === null ? {} : {
    cert: fs.readFileSync(path.join(folder, `${name}.pem`)),
    key: fs.readFileSync(path.join(folder, `${name}.key`)),
  };
  return new Promise((resolve) => {
    const request = https.get(`${hive.env.MYRMEX_URL}/api/whoami`,
      { ...shown, ca: fs.readFileSync(hive.env.MYRMEX_CACERT), headers, agent }, (response) => {
        let text = '';
        response.on('data', (piece) => { text += piece; });
        response.on('end', () => resolve({ status: response.statusCode, body: JSON.parse(text) }));
      });
    request.on('error', () => resolve(null));
  });
}

async function whoami(token, headers = {}, url = hive.env.MYRMEX_HTTP_URL) {
  const response = await fetch(`${url}/api/whoami`,
    { headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...headers } });
  return { status: response.status, challenge: response.headers.get('www-authenticate'), body: await response.json() };
}

// The entries about failed authentications so far: all but the first of a minute are summed up.
const failures = () => hive.audit().filter((entry) => entry.action === 'authentication_failed');

test('an identity provider says who calls and in which groups', async () => {
  const alice = await whoami(await issuer.token('alice'));
  assert.equal(alice.status, 200, JSON.stringify(alice.body));
  assert.equal(alice.body.principal, 'alice');
  assert.equal(alice.body.role, 'operator');
  const bob = await whoami(await issuer.token('bob'));
  assert.equal(bob.body.role, 'admin');
});

test('a call by an identity token stands in the audit log by its subject', async () => {
  const token = await issuer.token('alice');
  const answer = await hive.call('agent-1__get_system_info', {}, { token });
  assert.equal(answer.outcome, 'success');
  assert.equal((await hive.outcome(answer.requestId)).principal, 'alice');
  assert.ok(!JSON.stringify(hive.audit()).includes(token.split('.')[2]));
});

test('a group without a role, another audience and a forged signature are refused alike, with the reason in the log alone', async () => {
  const refused = [
    await issuer.token('mallory'),
    await issuer.token('bob', 'https://tokens.example/another'),
    `${(await issuer.token('bob')).split('.').slice(0, 2).join('.')}.${(await issuer.token('alice')).split('.')[2]}`,
  ];
  for (const token of refused) {
    const answer = await whoami(token);
    assert.equal(answer.status, 401);
    assert.equal(answer.body.code, 'credential_refused');
    assert.match(answer.challenge, /error="invalid_token"/);
    assert.doesNotMatch(JSON.stringify(answer.body), /audience|signature|mallory/);
  }
  const [first] = await eventually('a refusal stands in the log', () => failures().length > 0 && failures());
  assert.equal(first.reason, 'no_role');
  assert.match(first.detail, /mallory/);
});

test('an identity token ends when it says so', async () => {
  const token = await issuer.token('alice', 'https://short.example/myrmex-hive');
  assert.equal((await whoami(token)).status, 200);
  await eventually('the token has expired', async () => (await whoami(token)).status === 401, { every: 200 });
});

test('a rotated key is found by one fetch, and the old one is worth nothing', async () => {
  const old = await issuer.token('alice');
  assert.equal((await whoami(old)).status, 200);
  issuer.rotate('second');
  const before = issuer.fetches;
  const fresh = await issuer.token('alice');
  const answers = await Promise.all(Array.from({ length: 20 }, () => whoami(fresh)));
  assert.deepEqual(answers.map((answer) => answer.status), Array(20).fill(200));
  assert.equal(issuer.fetches, before + 1);
  assert.equal((await whoami(old)).status, 401);
});

test('static tokens work while the issuer is away', async () => {
  const serve = issuer.serve;
  issuer.serve = (request, response) => { response.writeHead(503).end(); };
  assert.equal((await whoami(hive.token('admin'))).status, 200);
  issuer.serve = serve;
});

test('a client certificate says who calls, and decides alone', async () => {
  const answer = await overTls('ops-console');
  assert.equal(answer.body.principal, 'ops-console');
  assert.equal(answer.body.role, 'operator');
  const beside = await overTls('ops-console', { authorization: `Bearer ${hive.token('admin')}` });
  assert.equal(beside.body.role, 'operator');
  const stranger = await overTls('stranger', { authorization: `Bearer ${hive.token('admin')}` });
  assert.equal(stranger.status, 401);
  assert.equal(stranger.body.code, 'credential_refused');
});

test('a certificate of another authority or for servers is not served; none at all is', async () => {
  assert.equal(await overTls('forged'), null);
  assert.equal(await overTls('web'), null);
  assert.equal((await overTls(null, { authorization: `Bearer ${hive.token('admin')}` })).body.role, 'admin');
});

test('a reload changes roles and authorities, also for a connection that is open', async () => {
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
  const connected = await overTls('ops-console', {}, agent);
  assert.equal(connected.status, 200);
  const file = path.join(hive.dir, 'gateway/gateway_config.json');
  const values = JSON.parse(fs.readFileSync(file, 'utf8'));
  const reload = async (what, condition) => {
    process.kill(hive.pid('gateway'), 'SIGHUP');
    await eventually(what, condition);
  };

  fs.writeFileSync(file, JSON.stringify({ ...values, mtls_cn_roles: { 'ops-console': 'read-only' } }), { mode: 0o600 });
  await reload('the role has changed', async () => (await overTls('ops-console'))?.body.role === 'read-only');

  const ca = path.join(hive.base, 'pki/ca.pem');
  const first = fs.readFileSync(ca);
  fs.copyFileSync(path.join(hive.base, 'pki/other-ca.pem'), ca);
  await reload('the other authority counts', async () => (await overTls('forged'))?.status === 200);
  assert.equal(await overTls('ops-console'), null);
  assert.equal(await overTls('ops-console', {}, agent), null);
  fs.writeFileSync(ca, first);
  fs.writeFileSync(file, JSON.stringify(values), { mode: 0o600 });
  await reload('all is as before', async () => (await overTls('ops-console'))?.body.role === 'operator');
  agent.destroy();
});

// An nginx that knows carol by her password, and one that lets everybody through.
async function startProxy(t) {
  const folder = path.join(hive.base, 'nginx');
  fs.mkdirSync(folder, { recursive: true });
  const [known, open] = await Promise.all([freePort(), freePort()]);
  const password = openssl(folder, 'passwd', '-apr1', 'carols password').toString().trim();
  fs.writeFileSync(path.join(folder, 'users'), `carol:${password}\n`);
  const to = hive.env.MYRMEX_HTTP_URL;
  fs.writeFileSync(path.join(folder, 'nginx.conf'), `
    daemon off; master_process off; pid ${folder}/pid; error_log stderr;
    events {}
    http {
      access_log off;
      client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
      fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
      proxy_bind ${proxyAddress};
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      server {
        listen 127.0.0.1:${known};
        location / {
          auth_basic hive; auth_basic_user_file ${folder}/users;
          proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
          proxy_set_header X-Forwarded-User $remote_user;
          proxy_set_header X-Proxy-Secret ${proxySecret};
          proxy_set_header Authorization "";
          proxy_pass ${to};
        }
      }
      server {
        listen 127.0.0.1:${open};
        location / { proxy_pass ${to}; }
      }
    }`);
  const child = spawn('nginx', ['-e', 'stderr', '-p', folder, '-c', path.join(folder, 'nginx.conf')],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: `${process.env.PATH}:/usr/sbin` } });
  let complaints = '';
  child.stderr.on('data', (data) => { complaints += data; });
  t.after(() => new Promise((resolve) => {
    if (child.exitCode !== null) return resolve();
    child.once('exit', resolve);
    child.kill('SIGTERM');
  }));
  await eventually(`nginx listens ${complaints}`, async () => {
    assert.equal(child.exitCode, null, complaints);
    try {
      return (await fetch(`http://127.0.0.1:${open}/healthz`)).ok;
    } catch {
      return false;
    }
  });
  return { known: `http://127.0.0.1:${known}`, open: `http://127.0.0.1:${open}` };
}

function freePort() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

test('behind a trusted proxy its user is the caller; nobody else can say so', async (t) => {
  if (!hasProgram('nginx')) return cannotRun(t, 'nginx is not installed');
  const proxy = await startProxy(t);
  const password = { authorization: `Basic ${Buffer.from('carol:carols password').toString('base64')}` };
  const carol = await whoami(null, password, proxy.known);
  assert.equal(carol.status, 200, JSON.stringify(carol.body));
  assert.equal(carol.body.principal, 'carol');
  assert.equal(carol.body.role, 'operator');

  // The client's own headers are overwritten, or come from a place that is no proxy, or lack the secret.
  const forged = { 'x-forwarded-user': 'root', 'x-proxy-secret': proxySecret };
  assert.equal((await whoami(null, { ...password, ...forged }, proxy.known)).body.principal, 'carol');
  assert.equal((await whoami(null, forged)).status, 401);
  assert.equal((await whoami(null, { ...forged, 'x-proxy-secret': 'wrong' }, proxy.open)).status, 401);
  assert.ok(!hive.gatewayLog().includes(proxySecret));
  assert.ok(!JSON.stringify(hive.audit()).includes(proxySecret));

  // X-Forwarded-For names the client for the limit of failures, and a forged one dodges nothing. This comes last: it
  // uses up the failures of this address.
  const statuses = [];
  for (let i = 0; i < 25; ++i) {
    statuses.push((await whoami('guess', { 'x-forwarded-for': `203.0.113.${i}` }, proxy.open)).status);
  }
  assert.equal(statuses.at(-1), 429, statuses.join(' '));
  assert.ok(failures().every((entry) => !entry.detail.includes('203.0.113.')));
  assert.equal((await whoami(hive.token('admin'), {}, proxy.open)).status, 200);
});
