/**
 * The metadata log on an object store: one object per entry, created at exactly the next position.
 * The store's create-if-absent picks the winner; nothing else is agreed upon anywhere.
 *
 * The age rule: entries below an old snapshot are deleted, so a name may be free again. A commit or a
 * read at a position is believed only when we saw the log's end less than T_ACK ago; otherwise a
 * snapshot at or above the position proves that we are behind. Age counts by our monotonic clock, our
 * wall clock and the store's clock, whichever says most: each may have stood still or been set back.
 */
import type { Env } from "../env/env.ts";
import { type Position, position } from "../lib/brand.ts";
import { equalBytes } from "../lib/bytes.ts";
import { messageOf } from "../lib/errors.ts";
import {
  METADATA_APPEND_TIMEOUT_MS,
  METADATA_EVIDENCE_AGE_MS_MAX,
  METADATA_READS_IN_FLIGHT,
  WAL_REFUSED_MS,
} from "../lib/limits.ts";
import { createExactly } from "../object/create.ts";
import { logKey, parseSnapshotKey, snapshotPrefix } from "../object/object_key.ts";
import type { GotObject, ObjectInfo, ObjectStore } from "../object/object_store.ts";

export type AppendOutcome =
  | { readonly kind: "committed" }
  /** Somebody else's entry, or an earlier one of ours that was given up, stands there. */
  | { readonly kind: "taken"; readonly winner: Uint8Array }
  /** The position lies below the newest snapshot: load it. */
  | { readonly kind: "behind" };

export type ReadOutcome =
  | { readonly kind: "entries"; readonly entries: readonly Uint8Array[]; readonly atEnd: boolean }
  | { readonly kind: "behind" };

/** A moment on our own clocks. */
export interface OwnTime {
  /** May stand still while the machine sleeps. */
  readonly monotonicMs: number;
  /** May jump. */
  readonly wallMs: number;
}

/** Proof that some position was the log's last, and when. */
interface Evidence extends OwnTime {
  /** Null until an answer with the store's time was seen. */
  readonly storeMs: number | null;
  /** A moment of our monotonic clock when the store's showed at least that. */
  readonly storeAtMs: number;
}

export interface ObjectLogOptions {
  readonly store: ObjectStore;
  readonly env: Env;
  readonly clusterId: string;
  readonly signal: AbortSignal;
  /** Told why the store refuses an entry, again and again; null once it was taken after all. */
  readonly onRefused?: (why: string | null) => void;
}

export interface SnapshotInfo extends ObjectInfo {
  readonly at: Position;
}

/** Newest first. */
export async function listSnapshots(
  store: Pick<ObjectStore, "list">,
  clusterId: string,
): Promise<readonly SnapshotInfo[]> {
  const found: SnapshotInfo[] = [];
  for await (const info of store.list(snapshotPrefix(clusterId))) {
    const at = parseSnapshotKey(clusterId, info.key);
    if (at !== null) found.push({ ...info, at });
  }
  return found.toSorted((a, b) => b.at - a.at);
}

export class ObjectLog {
  readonly #options: ObjectLogOptions;
  #evidence: Evidence | null = null;
  /** The next read believes no clock. */
  #inDoubt = false;

  constructor(options: ObjectLogOptions) {
    this.#options = options;
  }

  /** Newest first. */
  snapshots(): Promise<readonly SnapshotInfo[]> {
    const { store, clusterId } = this.#options;
    return listSnapshots(store, clusterId);
  }

  /** The caller stands on the newest snapshot of a listing that began at `began`. */
  freshlyListed(began: OwnTime, storeMs: number | null): void {
    this.#evidence = { ...began, storeMs, storeAtMs: this.now().monotonicMs };
  }

  /** Somebody knows by the store's clock that the own ones stood still, which an empty read does not show. */
  doubt(): void {
    this.#inDoubt = true;
  }

  now(): OwnTime {
    const { clock } = this.#options.env;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.nowMs() };
  }

  /** Creates the entry at `at`, or tells who did. Throws what createExactly throws: outcome unknown. */
  async append(at: Position, body: Uint8Array): Promise<AppendOutcome> {
    const { store, env, clusterId, signal, onRefused } = this.#options;
    const key = logKey(clusterId, at);
    const began = this.now();
    let isRefused = false;
    const outcome = await createExactly(store, key, body, {
      clock: env.clock,
      random: env.random,
      log: env.log,
      signal,
      deadlineMs: METADATA_APPEND_TIMEOUT_MS,
      onRetry: (error) => {
        env.metrics.count("skerry_object_store_retries_total", { op: "put", class: "metadata" });
        isRefused = this.now().monotonicMs - began.monotonicMs >= WAL_REFUSED_MS;
        if (isRefused) onRefused?.(messageOf(error));
      },
    });
    if (isRefused) onRefused?.(null);
    const stale = this.#isStale(outcome.storeNowMs);
    if (stale && await this.#isBehind(at)) return { kind: "behind" };
    if (!outcome.created) return { kind: "taken", winner: outcome.found };
    if (stale && !await this.#holds(key, body)) return { kind: "behind" };
    // Not the last attempt: the entry may stand there since the first one.
    this.#evidence = {
      ...began,
      storeMs: outcome.storeNowMs,
      storeAtMs: this.now().monotonicMs,
    };
    return { kind: "committed" };
  }

  /** Entries that follow, in order: one, or as many at once as the window says. */
  async read(after: Position, window = 1): Promise<ReadOutcome> {
    const began = this.now();
    let checked = false;
    if (this.#inDoubt || this.#isStale(null)) {
      this.#inDoubt = false;
      if (await this.#isBehind(position(after + 1))) return { kind: "behind" };
      checked = true;
    }
    const count = Math.min(window, METADATA_READS_IN_FLIGHT);
    const got = await Promise.all(
      Array.from({ length: count }, (_, i) => this.#get(after + 1 + i)),
    );
    const gap = got.indexOf(null);
    const entries = got.slice(0, gap < 0 ? count : gap).filter((entry) => entry !== null);
    const storeMs = entries.at(-1)?.storeNowMs ?? null;
    if (!checked && storeMs !== null && this.#isStale(storeMs)) {
      if (await this.#isBehind(position(after + 1))) return { kind: "behind" };
    }
    if (gap >= 0) {
      this.#evidence = storeMs === null
        ? { ...began, storeMs: this.#storeMsAt(began.monotonicMs), storeAtMs: began.monotonicMs }
        : { ...began, storeMs, storeAtMs: this.now().monotonicMs };
    }
    return { kind: "entries", entries: entries.map(({ bytes }) => bytes), atEnd: gap >= 0 };
  }

  #get(at: number): Promise<GotObject | null> {
    const { store, clusterId } = this.#options;
    return store.get(logKey(clusterId, position(at)));
  }

  /**
   * A missing entry tells no time. At an empty read the store's clock showed at least what it did in its last
   * answer and the time since then by ours: one that stood still makes the proof older, never younger.
   */
  #storeMsAt(monotonicMs: number): number | null {
    const seen = this.#evidence;
    if (seen === null || seen.storeMs === null) return null;
    return seen.storeMs + Math.max(0, monotonicMs - seen.storeAtMs);
  }

  #isStale(storeNowMs: number | null): boolean {
    const seen = this.#evidence;
    if (seen === null) return true;
    const { monotonicMs, wallMs } = this.now();
    const byStore = storeNowMs === null || seen.storeMs === null ? 0 : storeNowMs - seen.storeMs;
    const ageMs = Math.max(monotonicMs - seen.monotonicMs, wallMs - seen.wallMs, byStore);
    return ageMs > METADATA_EVIDENCE_AGE_MS_MAX;
  }

  async #isBehind(at: Position): Promise<boolean> {
    const [newest] = await this.snapshots();
    return newest !== undefined && newest.at >= at;
  }

  async #holds(key: string, body: Uint8Array): Promise<boolean> {
    const found = await this.#options.store.get(key);
    return found !== null && equalBytes(found.bytes, body);
  }
}
