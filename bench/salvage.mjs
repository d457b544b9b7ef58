// hive-priv: what a salvage costs next to `cp -a --reflink=auto`, on the disk of the temporary folder and, where one can be
// mounted, on an XFS that clones.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { folder, run } from './measure.mjs';

const imageBytes = 4 * 2 ** 30;

// Mounts a new XFS, hands its path over and takes it away again; says why where that can't be done.
async function onXfs(use) {
  const place = fs.mkdtempSync(path.join(os.tmpdir(), 'salvage-xfs-'));
  const image = path.join(place, 'image');
  const mount = path.join(place, 'mount');
  let mounted = false;
  try {
    fs.mkdirSync(mount);
    fs.writeFileSync(image, '');
    fs.truncateSync(image, imageBytes);
    try {
      execFileSync('mkfs.xfs', ['-q', '-m', 'reflink=1', image], { stdio: 'pipe' });
      execFileSync('mount', ['-o', 'loop', image, mount], { stdio: 'pipe' });
      mounted = true;
    } catch (error) {
      console.log(`  left out: no XFS can be mounted here (${String(error.stderr ?? error.message).trim()})`);
      return;
    }
    await use(mount);
  } finally {
    if (mounted) execFileSync('umount', [mount]);
    fs.rmSync(place, { recursive: true, force: true });
  }
}

export async function salvage({ target, quick }) {
  console.log('\nSalvage of a root, made durable, next to cp -a --reflink=auto made durable');
  if (process.getuid() !== 0) {
    console.log('  left out: it sets owners, which needs root');
    return;
  }
  const measure = async (where, label) => {
    const output = await run(path.join(folder, 'salvage_bench'), ['--dir', where, ...(quick ? ['--quick'] : [])]);
    console.log(`  ${label}`);
    for (const line of output.trimEnd().split('\n')) console.log(`    ${line}`);
    return { small: Number(output.match(/small files.*ours : it ([\d.]+)/)?.[1]),
      large: Number(output.match(/of 64 MiB.*ours : it ([\d.]+)/)?.[1]),
      largeMs: Number(output.match(/of 64 MiB.*salvage +([\d.]+) ms/)?.[1]),
      idleMs: Number(output.match(/nothing to do: p50 ([\d.]+) ms/)?.[1]) };
  };
  const here = await measure(os.tmpdir(), 'on the temporary folder');
  target('a salvage of large files, in times of cp -a', here.large.toFixed(2), here.large <= 1.2, 'at most 1.2');
  target('a salvage of small files, in times of cp -a', here.small.toFixed(2), here.small <= 1.5, 'at most 1.5');
  target('a request that finds nothing to do', `${here.idleMs} ms`, here.idleMs < 5, 'under 5 ms');
  await onXfs(async (mount) => {
    const clones = await measure(mount, 'on XFS, which clones');
    target('a salvage of 268 MB by clones', `${clones.largeMs} ms`, clones.largeMs < 100, 'under 100 ms');
  });
}
