// The sandboxes of the systemd units, by systemd's own measure.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { cannotRun, hasProgram, root, run } from './support/hive.mjs';

// What packaging/README.md says of each. A unit may become tighter, never looser.
const worst = { 'myrmex-gateway.service': 1.1, 'myrmex-agent.service': 2.0 };
const folder = path.join(root, 'packaging/systemd');

for (const [unit, limit] of Object.entries(worst)) {
  test(`${unit} is exposed by ${limit} at most`, async (t) => {
    if (!hasProgram('systemd-analyze')) return cannotRun(t, 'systemd-analyze is not installed');
    const result = await run('systemd-analyze', ['security', '--offline=true', '--no-pager',
      `--threshold=${Math.round(limit * 10)}`, path.join(folder, unit)]);
    const overall = (result.stdout + result.stderr).match(/Overall exposure level for \S+: ([\d.]+)/);
    assert.ok(overall, `no verdict: ${result.stdout}${result.stderr}`);
    assert.ok(Number(overall[1]) <= limit, `${unit}: ${overall[1]}`);
    assert.equal(result.code, 0, result.stderr);
    const page = fs.readFileSync(path.join(root, 'packaging/README.md'), 'utf8');
    assert.ok(page.includes(`| \`${unit}\` | ${overall[1]} |`), `packaging/README.md shows ${overall[1]} for ${unit}`);
  });

  test(`${unit} says when it is ready and gives signs of life`, () => {
    const text = fs.readFileSync(path.join(folder, unit), 'utf8');
    assert.match(text, /^Type=notify$/m);
    assert.match(text, /^WatchdogSec=\d+$/m);
    assert.match(text, /^NotifyAccess=main$/m);
  });
}

test('the undo of a fault outlives an agent that the watchdog ends', () => {
  const text = fs.readFileSync(path.join(folder, 'myrmex-agent.service'), 'utf8');
  assert.match(text, /^KillMode=process$/m);
  assert.match(text, /^Restart=always$/m);
});
