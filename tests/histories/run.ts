/**
 * Histories of concurrent clients under kill -9, judged by a checker that knows nothing of the broker:
 *   npm run histories -- --seconds 60 --store dir --seed 1
 * Ends with the counts and "N passed, N failed"; after a violation the history is kept.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { play } from "./play.ts";

const USAGE = `npm run histories -- [--seconds 60] [--store dir|s3] [--seed N]
    --cache DIRECTORY   where versitygw is, or will be installed
    --out DIRECTORY     where logs, the store and history.ndjson go; a new temporary one otherwise`;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    store: { type: "string", default: "dir" },
    seed: { type: "string", default: "1" },
    cache: { type: "string", default: join(tmpdir(), "skerry-real-s3") },
    out: { type: "string" },
  },
});
const seconds = Number(values.seconds);
const seed = Number(values.seed);
const { store } = values;
if (!(seconds > 0) || !Number.isSafeInteger(seed) || (store !== "dir" && store !== "s3")) {
  console.error(USAGE);
  process.exit(2);
}
const out = values.out === undefined
  ? mkdtempSync(join(tmpdir(), "skerry-histories-"))
  : resolve(values.out);
mkdirSync(out, { recursive: true });
mkdirSync(values.cache, { recursive: true });
const { violations, counts } = await play({ seconds, seed, store, cache: values.cache, out });
const width = Math.max(...[...counts.keys()].map((what) => what.length));
for (const [what, count] of [...counts].toSorted(([a], [b]) => a < b ? -1 : 1)) {
  console.log(`  ${what.padEnd(width)} ${count}`);
}
console.log(`histories: ${seconds} s on ${store}, seed ${seed}`);
if (violations.length === 0) {
  rmSync(values.out === undefined ? out : join(out, "store"), { recursive: true, force: true });
} else console.log(`${violations.join("\n")}\nhistory, logs and store: ${out}`);
console.log(violations.length === 0 ? "1 passed, 0 failed" : "0 passed, 1 failed");
process.exit(violations.length === 0 ? 0 : 1);
