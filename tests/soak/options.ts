/** What the soak is told, and how long its parts take. */

export type StoreChoice = "versitygw" | "seaweedfs" | "dir";

export interface SoakOptions {
  readonly minutes: number;
  readonly store: StoreChoice;
  readonly seed: number;
  /** Where the S3 servers are, or are installed. */
  readonly cache: string;
  /** Logs, the store and what was found; kept after a failure. */
  readonly out: string | null;
}

const USAGE = `npm run soak -- [--minutes 5] [--store s3|versitygw|seaweedfs|dir] [--seed N]
    --cache DIRECTORY   where the S3 servers are, or will be installed
    --out DIRECTORY     where logs and the store go; a new temporary one otherwise`;

const STORES: Readonly<Record<string, StoreChoice>> = {
  s3: "versitygw",
  versitygw: "versitygw",
  seaweedfs: "seaweedfs",
  dir: "dir",
};

function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) throw new Error(`${name} is not a number\n${USAGE}`);
  return value;
}

export function parseSoakOptions(words: readonly string[], temporary: string): SoakOptions {
  const given = new Map<string, string>();
  for (let at = 0; at < words.length; at += 2) {
    const name = words[at]!;
    const value = words[at + 1];
    const known = ["--minutes", "--store", "--seed", "--cache", "--out"].includes(name);
    if (!known || value === undefined) throw new Error(`Cannot use ${name}\n${USAGE}`);
    given.set(name, value);
  }
  const store = STORES[given.get("--store") ?? "s3"];
  if (store === undefined) throw new Error(`Cannot use --store ${given.get("--store")}\n${USAGE}`);
  return {
    minutes: numberOf("--minutes", given.get("--minutes") ?? "5"),
    store,
    seed: numberOf("--seed", given.get("--seed") ?? "1"),
    cache: given.get("--cache") ?? `${temporary}/skerry-real-s3`,
    out: given.get("--out") ?? null,
  };
}
