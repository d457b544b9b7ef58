// The watch that every other test relies on sees what it should.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { LeakWatch } from './support/leaks.mjs';

function folder(t) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'hive-leaks-'));
  t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
  fs.mkdirSync(path.join(dir, 'gateway/tokens'), { recursive: true });
  fs.mkdirSync(path.join(dir, 'log'));
  fs.writeFileSync(path.join(dir, 'gateway/gateway_config.json'), JSON.stringify({
    auth_token: 'the-admin-token-of-this-test',
    tokens: { 'a-token-of-an-operator': 'operator' },
    scoped_tokens: [{ token: 'env:NOT_A_SECRET_ITSELF' }],
  }));
  fs.writeFileSync(path.join(dir, 'log/gateway.log'), 'started\n');
  return dir;
}

test('a hive that keeps its secrets passes, and something was looked for', (t) => {
  const watch = new LeakWatch();
  const { secrets, places } = watch.check(folder(t));
  assert.equal(secrets, 2);
  assert.ok(places > 2);
});

for (const [what, plant] of Object.entries({
  'a log': (dir) => fs.appendFileSync(path.join(dir, 'log/gateway.log'), 'token=a-token-of-an-operator\n'),
  'the audit log': (dir) => fs.writeFileSync(path.join(dir, 'gateway/audit.log'), '{"detail":"the-admin-token-of-this-test"}'),
  'the database': (dir) => fs.writeFileSync(path.join(dir, 'gateway/hive.db'), 'xxthe-admin-token-of-this-testxx'),
  'an answer': (dir, watch) => watch.heard('GET /api/config', '{"auth_token":"the-admin-token-of-this-test"}'),
  'a command line': (dir, watch) => watch.commandLines.set('curl -H the-admin-token-of-this-test', '1'),
  'an answer that shows another secret': (dir, watch) => watch.heard('x', 'join a-token-of-an-operator', { shows: ['join'] }),
})) {
  test(`a secret in ${what} is found`, (t) => {
    const dir = folder(t);
    const watch = new LeakWatch();
    plant(dir, watch);
    assert.throws(() => watch.check(dir), /secrets where none may be/);
  });
}

test('a secret that an answer exists to show is no leak there, and is one anywhere else', (t) => {
  const dir = folder(t);
  const watch = new LeakWatch();
  watch.add('join-token-0123456789', 'a join token');
  watch.heard('POST /api/enroll/token', 'join-token-0123456789', { shows: ['join-token-0123456789'] });
  watch.check(dir);
  fs.appendFileSync(path.join(dir, 'log/gateway.log'), 'join-token-0123456789');
  assert.throws(() => watch.check(dir), /join token stands in log/);
});
