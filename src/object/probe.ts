/**
 * What a store must be able to do, tried once at start-up: some S3-compatible servers ignore
 * `If-None-Match`, and Skerry would lose data on them. Cheap (about a dozen small requests), and
 * deletes what it wrote.
 */
import type { Clock } from "../env/clock.ts";
import type { Logger } from "../env/logger.ts";
import type { Random } from "../env/random.ts";
import { equalBytes, toHex } from "../lib/bytes.ts";
import { type FaultCode, FaultError, isFault, messageOf } from "../lib/errors.ts";
import { createExactly } from "./create.ts";
import { PROBE_LEFT_AGE_MS_MIN, STORE_LIST_PAGE_KEYS } from "../lib/limits.ts";
import { PROBE_PREFIX, probeKey } from "./object_key.ts";
import type { ObjectStore } from "./object_store.ts";

export interface ProbeOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export interface ProbeReport {
  /** The store's clock minus ours, in milliseconds (S3 shows whole seconds). */
  readonly clockSkewMs: number;
}

const RACERS = 4;
const BODY_BYTES = 64;
/** Longest wait for the racing creates; start-up should fail while someone still looks at it. */
const RACE_DEADLINE_MS = 20_000;

/** Faults that leave the probe as they are. */
const SAID_ENOUGH: readonly FaultCode[] = ["config", "store-unavailable", "timeout"];

function fail(missing: string, cause?: unknown): never {
  throw new FaultError("config", `The object store cannot be used: ${missing}`, {
    retriable: false,
    cause,
  });
}

function check(condition: boolean, missing: string): void {
  if (!condition) fail(missing);
}

/**
 * Throws FaultError: `config` names what is missing or what the store refuses; `store-unavailable` and `timeout`
 * tell nothing about it, so it can be asked again.
 */
export async function probeStore(store: ObjectStore, options: ProbeOptions): Promise<ProbeReport> {
  const run = toHex(options.random.bytes(8));
  const keys = { first: probeKey(run, "first"), raced: probeKey(run, "raced") };
  const missing = probeKey(run, "missing");
  try {
    const { storeNowMs, ...report } = await probeCreate(store, keys.first, options);
    await probeRace(store, keys.raced, options);
    await probeRange(store, keys.first);
    const left = await probeList(store, Object.values(keys), storeNowMs);
    await probeDelete(store, Object.values(keys), [missing, ...left]);
    return report;
  } catch (error) {
    await store.delete(Object.values(keys)).catch(() => undefined);
    if (!isFault(error) || SAID_ENOUGH.includes(error.code)) throw error;
    return fail(messageOf(error), error);
  }
}

/** Of the writer of that number. */
export function probeBody(seed: number): Uint8Array {
  return new Uint8Array(BODY_BYTES).map((_, i) => (i * 7 + seed * 31) & 0xff);
}

/** Whose body it is; null when it is none of a probe. */
export function probeWriterOf(bytes: Uint8Array): number | null {
  for (let seed = 0; seed < RACERS; seed++) {
    if (equalBytes(bytes, probeBody(seed))) return seed;
  }
  return null;
}

const IGNORED = "it ignores If-None-Match, so two writers could overwrite each other";

async function probeCreate(
  store: ObjectStore,
  key: string,
  { clock }: ProbeOptions,
): Promise<ProbeReport & { readonly storeNowMs: number }> {
  const startedMs = clock.nowMs();
  const first = await store.put(key, probeBody(0), { ifAbsent: true });
  const clockSkewMs = first.storeNowMs - (startedMs + clock.nowMs()) / 2;
  // `first.created` may be false although we wrote it: some HTTP clients repeat a put by themselves.
  const again = await store.put(key, probeBody(1), { ifAbsent: true });
  check(!again.created, IGNORED);
  const got = await store.get(key);
  check(got !== null, "an object cannot be read right after it was written");
  check(got !== null && equalBytes(got.bytes, probeBody(0)), IGNORED);
  return { clockSkewMs, storeNowMs: first.storeNowMs };
}

async function probeRace(store: ObjectStore, key: string, options: ProbeOptions): Promise<void> {
  const racers = Array.from(
    { length: RACERS },
    (_, i) => createExactly(store, key, probeBody(i), { ...options, deadlineMs: RACE_DEADLINE_MS }),
  );
  const outcomes = await Promise.all(racers);
  const winner = outcomes.findIndex(({ created }) => created);
  check(
    outcomes.filter(({ created }) => created).length === 1 &&
      outcomes.every((o) => o.created || equalBytes(o.found, probeBody(winner))),
    "of several creates at once not exactly one succeeded: its If-None-Match is not atomic",
  );
}

async function probeRange(store: ObjectStore, key: string): Promise<void> {
  const range = { start: 3, end: 9 };
  const part = await store.get(key, { range });
  check(
    part !== null && equalBytes(part.bytes, probeBody(0).subarray(range.start, range.end)),
    "it does not answer range reads",
  );
}

/** Returns what starts that were killed in their probe have left. */
async function probeList(
  store: ObjectStore,
  keys: readonly string[],
  storeNowMs: number,
): Promise<readonly string[]> {
  const listed: string[] = [];
  const left: string[] = [];
  for await (const { key, lastModifiedMs } of store.list(PROBE_PREFIX)) {
    if (keys.includes(key)) listed.push(key);
    else if (storeNowMs - lastModifiedMs >= PROBE_LEFT_AGE_MS_MIN) left.push(key);
    if (left.length >= STORE_LIST_PAGE_KEYS) break;
  }
  const isCut = left.length >= STORE_LIST_PAGE_KEYS;
  check(
    isCut || listed.join() === keys.toSorted().join(),
    "a listing does not show what was just written",
  );
  return left;
}

async function probeDelete(
  store: ObjectStore,
  keys: readonly string[],
  others: readonly string[],
): Promise<void> {
  const { failed } = await store.delete([...keys, ...others]);
  check(failed.length === 0, `it does not delete ${failed.join(", ")}`);
  for (const key of keys) {
    check(await store.head(key) === null, "an object is still there right after its deletion");
  }
}
