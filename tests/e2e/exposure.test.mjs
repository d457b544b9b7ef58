// What a scanner of the network sees.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { Hive, cannotRun, hasProgram, run } from './support/hive.mjs';

let hive;
before(async () => { hive = await Hive.start({ agents: 0 }); });
after(() => hive.stop());

test('ssh-audit finds no weak algorithm on the SSH port', async (t) => {
  if (!hasProgram('ssh-audit')) return cannotRun(t, 'ssh-audit is not installed; run ./hive setup test');
  const [host, port] = hive.env.MYRMEX_SSH_ADDR.split(':');
  const { stdout } = await run('ssh-audit', ['-n', '-p', port, host]);
  assert.match(stdout, /\(kex\) curve25519-sha256/);
  assert.match(stdout, /\(key\) ssh-ed25519/);
  assert.deepEqual(stdout.split('\n').filter((line) => line.includes('[fail]')), []);
});

test('testssl finds nothing worse than the self-signed chain on the HTTPS port', async (t) => {
  if (process.env.HIVE_FULL !== '1') return t.skip('takes a minute; ./hive test --full runs it');
  if (!hasProgram('testssl')) return cannotRun(t, 'testssl.sh is not installed; run ./hive setup test');
  const report = path.join(hive.base, 'testssl.json');
  await run('testssl', ['--quiet', '--color', '0', '--warnings', 'off', '--jsonfile', report,
    hive.env.MYRMEX_URL.replace('https://', '')], { timeout: 300_000 });
  const chain = /^cert_(chain_of_trust|trust|caIssuers|crlDistributionPoints|ocspURL|revocation|signatureAlgorithm)|^(OCSP_stapling|DNS_CAArecord|certificate_transparency|HSTS|overall_grade|grade_cap_reason)/;
  const bad = JSON.parse(fs.readFileSync(report, 'utf8'))
    .filter((finding) => ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'].includes(finding.severity) && !chain.test(finding.id));
  assert.deepEqual(bad, []);
});

test('the plaintext port is on loopback only, and so are the others here', () => {
  const gateway = String(hive.pid('gateway'));
  const sockets = new Set(fs.readdirSync(`/proc/${gateway}/fd`).map((fd) => {
    try {
      return fs.readlinkSync(`/proc/${gateway}/fd/${fd}`).match(/^socket:\[(\d+)\]$/)?.[1];
    } catch {
      return undefined;
    }
  }));
  const listening = fs.readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1)
    .map((line) => line.trim().split(/\s+/)).filter((fields) => fields[3] === '0A' && sockets.has(fields[9]));
  assert.equal(listening.length, 3);
  for (const fields of listening) assert.match(fields[1], /^0100007F:/);
});

test('HTTPS is served with the generated certificate, for both names of loopback', async () => {
  const port = new URL(hive.env.MYRMEX_URL).port;
  for (const name of ['127.0.0.1', 'localhost']) {
    const { code, stdout, stderr } = await run('curl', ['--silent', '--show-error', '--ipv4', '--noproxy', '*',
      '--cacert', hive.env.MYRMEX_CACERT, `https://${name}:${port}/healthz`]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /ok/);
  }
});

test('secrets are in files of their owner only', () => {
  for (const file of ['env', 'gateway/gateway_config.json', 'gateway/host_key', 'gateway/audit.log',
    'gateway/state/tls/tls_key.pem', 'gateway/tokens/admin']) {
    const full = path.join(hive.dir, file);
    assert.equal(fs.statSync(full).mode & 0o077, 0, file);
  }
});
