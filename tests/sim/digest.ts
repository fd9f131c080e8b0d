/** Hashes of the traces of some seeds: what two runtimes are compared by. */
import process from "node:process";
import { pathToFileURL } from "node:url";
import { simulate } from "./scenario.ts";
import { simulateStorage } from "./storage/scenario.ts";

const STORAGE_SEEDS = 10;

export async function digest(storageSeeds = STORAGE_SEEDS): Promise<string> {
  const hashes: string[] = [];
  for (let seed = 1; seed <= storageSeeds; seed++) {
    hashes.push((await simulateStorage({ seed, steps: 40 })).hash);
  }
  if (storageSeeds < STORAGE_SEEDS) return hashes.join(" ");
  // Sequences of faults, compactions, groups and HTTP clients: each is in one of them at least.
  for (const seed of [3, 5, 7]) hashes.push((await simulate({ seed, steps: 3 })).hash);
  return hashes.join(" ");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) console.log(await digest());
