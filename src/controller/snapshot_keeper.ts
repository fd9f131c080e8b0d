/**
 * Reads, writes and retires snapshots. A snapshot is the durable boundary of the log: entries below it
 * are deleted only when it has stood for T_TRIM by the store's clock and two newer ones exist.
 */
import { sleep } from "../env/clock.ts";
import type { Env } from "../env/env.ts";
import { type Position, position } from "../lib/brand.ts";
import { corrupt } from "../lib/corrupt.ts";
import { isFault, messageOf } from "../lib/errors.ts";
import {
  METADATA_APPEND_TIMEOUT_MS,
  METADATA_SNAPSHOTS_KEPT,
  METADATA_TRIM_AGE_MS_MIN,
  STORE_DELETE_BATCH_KEYS_MAX,
} from "../lib/limits.ts";
import { createExactly } from "../object/create.ts";
import { logKey, logPrefix, parseLogKey, snapshotKey } from "../object/object_key.ts";
import type { ObjectStore } from "../object/object_store.ts";
import type { ObjectLog, SnapshotInfo } from "./object_log.ts";
import { decodeSnapshot, encodeSnapshotInSteps, type Snapshot } from "./snapshot.ts";

export interface SnapshotKeeperOptions {
  readonly store: ObjectStore;
  readonly env: Env;
  readonly clusterId: string;
  readonly log: ObjectLog;
  readonly signal: AbortSignal;
  /** Highest feature level that is read; by default this build's. */
  readonly known?: number | undefined;
  /** T_TRIM. */
  readonly trimAgeMs?: number;
}

export interface LoadedSnapshot {
  /** Null when there is none that can be read. */
  readonly snapshot: Snapshot | null;
  /** Position that the replayed log must reach: the newest snapshot's, even if it cannot be read. */
  readonly mustReach: Position;
}

/** Of snapshots in the order of listSnapshots: up to where the log may go by now; null for nowhere. */
export function trimBoundary(
  snapshots: readonly SnapshotInfo[],
  storeNowMs: number,
  trimAgeMs = METADATA_TRIM_AGE_MS_MIN,
): Position | null {
  const boundary = snapshots.slice(METADATA_SNAPSHOTS_KEPT - 1)
    .find(({ lastModifiedMs }) => storeNowMs - lastModifiedMs >= trimAgeMs);
  return boundary?.at ?? null;
}

export class SnapshotKeeper {
  readonly #options: SnapshotKeeperOptions;
  #saving: Promise<void> | null = null;

  constructor(options: SnapshotKeeperOptions) {
    this.#options = options;
  }

  /** The newest snapshot that can be read; an older one means a longer tail and a line in the log. */
  async load(): Promise<LoadedSnapshot> {
    const { log } = this.#options;
    const began = log.now();
    const infos = await log.snapshots();
    const mustReach = infos[0]?.at ?? position(0);
    for (const info of infos) {
      const found = await this.#read(info);
      if (found === null) continue;
      log.freshlyListed(began, found.storeNowMs);
      return { snapshot: found.snapshot, mustReach };
    }
    await this.#checkWholeLog(infos);
    log.freshlyListed(began, null);
    return { snapshot: null, mustReach };
  }

  async #read(info: SnapshotInfo): Promise<{ snapshot: Snapshot; storeNowMs: number } | null> {
    const { store, env, known } = this.#options;
    const got = await store.get(info.key);
    if (got === null) return null;
    try {
      const snapshot = decodeSnapshot(got.bytes, info.at, env.codecs, known);
      return { snapshot, storeNowMs: got.storeNowMs };
    } catch (error) {
      if (!isFault(error, "corrupt")) throw error;
      env.log.log("error", "snapshot-corrupt", { key: info.key, reason: error.message });
      env.metrics.count("skerry_metadata_snapshots_corrupt_total");
      return null;
    }
  }

  /** Without a readable snapshot only a log from its first entry on will do; an empty one is a loss. */
  async #checkWholeLog(infos: readonly SnapshotInfo[]): Promise<void> {
    const { store, clusterId } = this.#options;
    if (infos.length === 0) return;
    if (await store.head(logKey(clusterId, position(1))) !== null) return;
    throw corrupt(`Cannot read metadata: none of ${infos.length} snapshots is readable`);
  }

  /** Starts to write a snapshot and to trim behind it, unless that runs already. Never throws. */
  start(snapshot: Snapshot): void {
    if (this.#saving !== null) return;
    const { at } = snapshot.state;
    const steps = encodeSnapshotInSteps(snapshot, this.#options.env.codecs);
    // The tables are taken here: entries that come meanwhile belong to the next snapshot.
    const first = steps.next();
    const saved = first.done === true
      ? this.#save(at, first.value)
      : this.#encode(steps).then((bytes) => this.#save(at, bytes));
    this.#saving = saved.catch((error: unknown) => {
      const reason = messageOf(error);
      this.#options.env.log.log("warn", "snapshot-failed", { position: at, reason });
    }).finally(() => {
      this.#saving = null;
    });
  }

  async settled(): Promise<void> {
    await this.#saving;
  }

  /** Others have their turn between two steps: a large cluster's snapshot takes a second. */
  async #encode(steps: Generator<void, Uint8Array>): Promise<Uint8Array> {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      await sleep(this.#options.env.clock, 0, this.#options.signal);
    }
  }

  async #save(at: Position, bytes: Uint8Array): Promise<void> {
    const { store, env, clusterId, signal } = this.#options;
    const outcome = await createExactly(store, snapshotKey(clusterId, at), bytes, {
      clock: env.clock,
      random: env.random,
      log: env.log,
      signal,
      deadlineMs: METADATA_APPEND_TIMEOUT_MS,
    });
    env.log.log("info", "snapshot-written", { position: at, bytes: bytes.length });
    await this.#trim(outcome.storeNowMs);
  }

  async #trim(storeNowMs: number): Promise<void> {
    const { log, trimAgeMs } = this.#options;
    const infos = await log.snapshots();
    const boundary = trimBoundary(infos, storeNowMs, trimAgeMs);
    if (boundary === null) return;
    await this.#deleteEntries(boundary);
    const old = infos.filter(({ at }) => at < boundary).map(({ key }) => key);
    if (old.length > 0) await this.#options.store.delete(old);
  }

  /** By listing, so that ghosts of late puts go as well. */
  async #deleteEntries(upTo: Position): Promise<void> {
    const { store, clusterId } = this.#options;
    let keys: string[] = [];
    const flush = async () => {
      if (keys.length > 0) await store.delete(keys);
      keys = [];
    };
    for await (const { key } of store.list(logPrefix(clusterId))) {
      const at = parseLogKey(clusterId, key);
      if (at === null) continue;
      // In order of position: what follows stays.
      if (at > upTo) break;
      keys.push(key);
      if (keys.length === STORE_DELETE_BATCH_KEYS_MAX) await flush();
    }
    await flush();
  }
}
