// Reads what the conformance suite left (one checks.json for each scenario) and says what really passed.
//
//   node report.mjs --suite DIR --out DIR [--expected FILE] [--write-expected FILE] REVISION=SUITE_EXIT_CODE…
//
// The suite ticks a scenario when none of its checks failed, and so ticks some that never reached a server. Here a required
// scenario passes only when its checks.json is there, no check failed, no check met a broken connection, at least one check
// really ran and one of those succeeded, and no check took a refusal for the answer it asked for.
//
// A check really ran when its status is SUCCESS, FAILURE or WARNING, unless: it is wire-schema-valid and nothing else ran
// (the suite counts its own outgoing messages there), the connection broke, the suite says that it could not test it, or it
// is a WARNING that only reports an exception.

import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    suite: { type: 'string' },
    out: { type: 'string' },
    expected: { type: 'string' },
    'write-expected': { type: 'string' },
  },
});
const strictCounts = process.env.STRICT_COUNTS === '1';
const alsoRequired = new Set((process.env.ALSO_REQUIRE ?? '').split(/[\s,]+/).filter(Boolean));
const suiteDir = options.suite;
const { parse } = createRequire(path.join(suiteDir, 'package.json'))('yaml');
const expected = options.expected && fs.existsSync(options.expected) ? JSON.parse(fs.readFileSync(options.expected, 'utf8')) : {};

const BROKEN = /fetch failed|ECONNREFUSED|ECONNRESET|EPIPE|UND_ERR|socket hang up|other side closed|(^|: )terminated$|\bHTTP 50[24]\b|\bgot 50[24]\b|status code 50[24]\b/;
const WIRE = 'wire-schema-valid';

// Scenarios that any refusal satisfies, and the scenario that shows whether what they ask about exists at all.
const NEEDS = {
  'input-required-result-missing-input-response': 'input-required-result-basic-elicitation',
  'input-required-result-ignore-extra-params': 'input-required-result-basic-elicitation',
  'input-required-result-validate-input': 'input-required-result-basic-elicitation',
  'input-required-result-unsupported-methods': 'tools-list',
  'sep-2164-resource-not-found': 'resources-read-text',
};

const isBroken = (check) => BROKEN.test(check.errorMessage ?? '');
const isUntestable = (check) => check.details?.untestable === true || /^Not testable/.test(check.errorMessage ?? '');

// Two scenarios take any text for the tool's own: a refusal, a "waits for approval". The rest take an error result for a good one.
const OWN_WORDS = { 'tools-call-simple-text': 'simple text response', 'tools-call-error': 'intentionally returns an error' };
function isHollow(scenario, result) {
  if (result === undefined || result === null) return false;
  if (OWN_WORDS[scenario]) return !JSON.stringify(result.content ?? '').includes(OWN_WORDS[scenario]);
  return result.isError === true;
}

function really(checks) {
  const ran = checks.filter((check) => {
    if (!['SUCCESS', 'FAILURE', 'WARNING'].includes(check.status) || check.id === WIRE) return false;
    if (isBroken(check) || isUntestable(check)) return false;
    if (check.status === 'WARNING' && /^Failed: /.test(check.errorMessage ?? '')) return false;
    // Passes when nothing came back at all; its sibling tells the difference.
    if (check.id === 'sep-2164-no-empty-contents' && check.details?.receivedResult === false) {
      const sibling = checks.find((other) => other.id === 'sep-2164-error-code');
      return sibling?.details?.receivedErrorCode !== undefined;
    }
    return true;
  });
  // Where the connection broke and nothing succeeded, the failures only say so in other words.
  if (ran.length === 0 || (checks.some(isBroken) && !ran.some((check) => check.status === 'SUCCESS'))) return [];
  return [...ran, ...checks.filter((check) => check.id === WIRE && check.status !== 'INFO')];
}

function judge(scenario, checks) {
  if (!checks) return { verdict: 'NOT RUN', passed: 0, failed: 0, warnings: 0, ran: 0, notes: ['no checks.json: the scenario threw or was never started'] };
  const count = (status) => checks.filter((check) => check.status === status).length;
  const ran = really(checks);
  const failures = checks.filter((check) => check.status === 'FAILURE');
  const hollow = ran.find((check) => check.status === 'SUCCESS' && isHollow(scenario, check.details?.result));
  const row = { passed: count('SUCCESS'), failed: failures.length, warnings: count('WARNING'), ran: ran.length, notes: [] };
  const first = (list) => list.slice(0, 1).map((check) => `${check.id}: ${(check.errorMessage ?? '').split('\n')[0]}`);
  if (ran.length === 0) row.verdict = 'EMPTY';
  else if (checks.some(isBroken)) row.verdict = 'BROKEN';
  else if (failures.length) row.verdict = 'FAIL';
  else if (hollow) row.verdict = 'HOLLOW';
  else if (!ran.some((check) => check.status === 'SUCCESS' && check.id !== WIRE)) row.verdict = 'WARN ONLY';
  else row.verdict = 'ok';
  row.failures = failures.map((check) => `${check.id}: ${check.errorMessage ?? ''}`.replace(/\s+/g, ' ').slice(0, 1000));
  row.suiteTicks = failures.length === 0;
  if (row.verdict === 'HOLLOW') row.notes.push(`${hollow.id} took this for an answer: ${JSON.stringify(hollow.details.result.content)}`);
  else row.notes.push(...first(checks.filter(isBroken)).concat(first(failures), first(checks.filter((check) => check.status === 'WARNING'))).slice(0, 1));
  return row;
}

function readChecks(directory) {
  const byScenario = new Map();
  for (const entry of fs.existsSync(directory) ? fs.readdirSync(directory).sort() : []) {
    const scenario = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(entry)?.[1];
    const file = path.join(directory, entry, 'checks.json');
    if (!scenario) continue;
    try {
      byScenario.set(scenario, JSON.parse(fs.readFileSync(file, 'utf8')));
    } catch {
      byScenario.set(scenario, undefined);
    }
  }
  return byScenario;
}

const rows = [];
const eras = [];
for (const positional of positionals) {
  const [revision, code] = positional.split('=');
  const requirements = parse(fs.readFileSync(path.join(suiteDir, 'requirements', `${revision}.yaml`), 'utf8'));
  const found = readChecks(path.join(options.out, revision));
  const required = requirements.server;
  const others = requirements.not_scored.filter((entry) => entry.leg === 'server');
  const eraRows = [];
  for (const scenario of required) eraRows.push({ revision, scenario, required: true, ...judge(scenario, found.get(scenario)) });
  for (const { scenario, reason } of others) eraRows.push({ revision, scenario, required: false, reason, ...judge(scenario, found.get(scenario)) });
  for (const row of eraRows) {
    const base = eraRows.find((other) => other.scenario === NEEDS[row.scenario]);
    if (row.verdict === 'ok' && base && base.verdict !== 'ok') {
      row.verdict = 'HOLLOW';
      row.notes = [`any refusal satisfies it, and ${base.scenario} does not pass`];
    }
    row.of = expected[revision]?.[row.scenario];
    row.short = row.of !== undefined && row.ran < row.of;
    if (strictCounts && row.required && row.short && row.verdict === 'ok') row.verdict = 'SHORT';
  }
  const scored = eraRows.filter((row) => row.required);
  const timedOut = code === '124' || code === '137';
  eras.push({
    revision,
    exitCode: Number(code),
    timedOut,
    required: scored.length,
    passed: scored.filter((row) => row.verdict === 'ok').length,
    ticked: scored.filter((row) => row.suiteTicks).length,
    checks: scored.reduce((sum, row) => sum + row.ran, 0),
    good: scored.length > 0 && code === '0' && eraRows.every((row) => row.verdict === 'ok' || !(row.required || alsoRequired.has(row.scenario))),
  });
  rows.push(...eraRows);
}

const cells = rows.map((row) => [
  row.revision,
  row.scenario,
  row.required || alsoRequired.has(row.scenario) ? row.verdict : `(${row.verdict})`,
  row.passed,
  row.failed,
  row.warnings,
  `${row.ran}${row.of === undefined ? '' : `/${row.of}`}${row.short ? ' <' : ''}`,
  [row.required ? '' : `not required${alsoRequired.has(row.scenario) ? ' by the suite' : ''}, ${row.reason}.`, ...row.notes].filter(Boolean).join(' ').slice(0, 160),
].map(String));
const head = ['revision', 'scenario', 'verdict', 'passed', 'failed', 'warn', 'ran', 'note'];
const widths = head.map((title, i) => Math.max(title.length, ...cells.map((row) => row[i].length)));
for (const row of [head, ...cells]) {
  console.log(row.map((cell, i) => (i >= 3 && i <= 5 ? cell.padStart(widths[i]) : i === 7 ? cell : cell.padEnd(widths[i]))).join('  ').trimEnd());
}
console.log('');

// Every failed check of what is required, in full: a column has room for the first alone.
for (const row of rows.filter((one) => (one.required || alsoRequired.has(one.scenario)) && one.verdict !== 'ok')) {
  for (const text of row.failures ?? []) console.log(`${row.revision} ${row.scenario}: ${text}`);
}

const proxyLog = path.join(options.out, 'proxy.jsonl');
if (fs.existsSync(proxyLog)) {
  const lines = fs.readFileSync(proxyLog, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
  const tally = new Map();
  for (const line of lines) {
    const status = /\d/.test(line.answered_after) ? line.status : `${line.status} (no answer from the gateway)`;
    tally.set(status, (tally.get(status) ?? 0) + 1);
  }
  const summary = [...tally].sort().map(([status, count]) => `${status}: ${count}`).join(', ');
  console.log(`through the proxy: ${lines.length} requests; ${summary}`);
}
for (const era of eras) {
  if (era.timedOut) console.log(`${era.revision}: the suite ran into its time limit`);
  else if (![0, 1].includes(era.exitCode)) console.log(`${era.revision}: the suite ended with exit code ${era.exitCode}`);
  if (era.ticked !== era.passed) console.log(`${era.revision}: the suite itself ticks ${era.ticked} of ${era.required} required scenarios; ${era.passed} hold up`);
}
fs.writeFileSync(path.join(options.out, 'summary.json'), `${JSON.stringify({ eras, rows }, null, 2)}\n`);
if (options['write-expected']) {
  const counts = {};
  for (const row of rows) if (row.verdict === 'ok') (counts[row.revision] ??= {})[row.scenario] = row.ran;
  fs.writeFileSync(options['write-expected'], `${JSON.stringify(counts, null, 2)}\n`);
}
console.log(eras.map((era) => `${era.revision}: ${era.passed}/${era.required} scenarios, ${era.checks} checks`).join('; '));
process.exitCode = eras.length > 0 && eras.every((era) => era.good) ? 0 : 1;
