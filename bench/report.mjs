// How a benchmark says what it found: tables, and targets with whether they are met.

const verdicts = [];

export const round1 = (value) => Math.round(value * 10) / 10;
export const rate = (value) => Math.round(value).toLocaleString('en-US');
export const milliseconds = (microseconds) => (microseconds / 1000).toFixed(2);
export const mebibytes = (bytes) => (bytes / (1 << 20)).toFixed(1);

export function target(name, value, holds, wanted) {
  verdicts.push({ target: name, wanted, measured: value, met: holds ? 'yes' : 'NO' });
}

export function table(title, rows) {
  console.log(`\n${title}`);
  const columns = Object.keys(rows[0]);
  const width = (column) => Math.max(column.length, ...rows.map((row) => String(row[column]).length));
  const line = (cells) => console.log('  ' + cells.map((cell, i) => {
    const padded = width(columns[i]);
    return i === 0 ? String(cell).padEnd(padded) : String(cell).padStart(padded);
  }).join('   ').trimEnd());
  line(columns);
  for (const row of rows) line(columns.map((column) => row[column]));
}

export function printTargets() {
  if (verdicts.length > 0) table('Targets', verdicts);
}
