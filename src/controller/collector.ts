/**
 * Deletes what metadata calls garbage: destroyed objects after T_RETAIN, never committed objects of dead
 * incarnations (this node's, and those of nodes that are gone), and WALs whose seal is older than T_SEAL.
 * Metadata first, then the store, then the purge of what the store confirmed; a crash anywhere repeats a
 * delete and harms nothing.
 * Ages are those of log entries by the store's clock, so restarts and clock jumps change nothing.
 */
import type { Env } from "../env/env.ts";
import type { NodeEpoch, NodeId, ObjectId, Position } from "../lib/brand.ts";
import { messageOf } from "../lib/errors.ts";
import {
  COLLECT_INTERVAL_MS,
  COLLECT_OBJECTS_MAX,
  OBJECT_RETAIN_AGE_MS_MIN,
  STORE_DELETE_BATCH_KEYS_MAX,
  WAL_FORGET_INTERVAL_MS,
  WAL_SEAL_AGE_MS_MIN,
} from "../lib/limits.ts";
import { CLUSTER_KEY, dataKey, logKey, walEpochPrefix, walKey } from "../object/object_key.ts";
import { Lru } from "../lib/lru.ts";
import type { ObjectStore } from "../object/object_store.ts";
import type { Refused, Requester } from "./command.ts";
import {
  type Destroyed,
  destroyedObjects,
  forgettableWals,
  newestOld,
  sweepableEpochs,
  type SweptBlock,
  sweptBlocks,
} from "./gc.ts";
import type { IdBlock } from "./image.ts";
import type { MetadataStore } from "./metadata_store.ts";

export interface CollectorOptions {
  readonly store: ObjectStore;
  readonly env: Env;
  readonly clusterId: string;
  readonly metadata: MetadataStore;
  readonly requester: () => Requester;
  /** Null: only when `collect` is called. */
  readonly intervalMs?: number | null;
  /** T_RETAIN. */
  readonly retainMs?: number;
}

export interface Collected {
  readonly deleted: number;
  /** Keys that the store could not delete; they are tried again. */
  readonly failed: number;
  readonly sweptEpochs: number;
}

export interface Collector {
  collect(): Promise<Collected>;
  close(): Promise<void>;
}

interface Doomed {
  readonly ids: readonly ObjectId[];
  /** Blocks of which every unnamed id is in `ids`. */
  readonly blocks: readonly IdBlock[];
}

export function createCollector(options: CollectorOptions): Collector {
  return new StoreCollector(options);
}

/** Ages of entries that are remembered: some for each look of a quarter of an hour. */
const AGES_MAX = 1_000;

class StoreCollector implements Collector {
  readonly #options: CollectorOptions;
  #running: Promise<Collected> | null = null;
  #cancel: () => void = () => {};
  #closed = false;
  #walsCheckedMs: number | null = null;
  /** How old an entry was by the store's clock, and when that was by ours. */
  readonly #ages = new Lru<Position, { ageMs: number; nowMs: number }>(AGES_MAX, () => 1);

  constructor(options: CollectorOptions) {
    this.#options = options;
    this.#schedule();
  }

  collect(): Promise<Collected> {
    this.#running ??= this.#collect().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#running?.catch(() => {});
  }

  #schedule(): void {
    const { env, intervalMs = COLLECT_INTERVAL_MS } = this.#options;
    if (intervalMs === null || this.#closed) return;
    this.#cancel = env.clock.after(intervalMs, () => {
      this.collect().catch((error: unknown) => {
        env.log.log("warn", "collect-failed", { reason: messageOf(error) });
      }).finally(() => this.#schedule());
    });
  }

  async #collect(): Promise<Collected> {
    const { metadata, requester } = this.#options;
    const sweptEpochs = await this.#sweep(requester());
    const all = destroyedObjects(metadata.view());
    const swept = sweptBlocks(metadata.view());
    const destroyed = await this.#oldEnough(all);
    const { deleted, failed } = await this.#delete(choose(destroyed, swept));
    const waiting = swept.reduce((sum, { ids }) => sum + ids.length, all.length) - deleted;
    this.#options.env.metrics.gauge("skerry_garbage_objects", waiting);
    await this.#forgetWals(requester());
    return { deleted, failed, sweptEpochs };
  }

  // --- sweep ----------------------------------------------------------------------------------

  /** T_RETAIN after it can commit nothing any more, no put of a dead incarnation is under way. */
  async #sweep(by: Requester): Promise<number> {
    const { metadata, env } = this.#options;
    const image = metadata.view();
    const dead = sweepableEpochs(image, by.nodeId);
    const registered = image.nodes.get(by.nodeId);
    if (dead.length === 0 || registered?.epoch !== by.epoch) return 0;
    let swept = 0;
    for (const { nodeId, epoch, sealedSlot } of dead) {
      const isOld = nodeId === by.nodeId
        ? await this.#isOld(by.epoch as number as Position)
        : await this.#isSealOld(nodeId, epoch, sealedSlot);
      if (!isOld) continue;
      const decided = await metadata.submit({ type: "sweep-epoch", by, nodeId, epoch });
      if (!decided.ok) {
        this.#refused("sweep-epoch", decided);
        return swept;
      }
      swept += 1;
      env.log.log("info", "epoch-swept", { nodeId, epoch, objects: decided.swept });
    }
    return swept;
  }

  // --- age ------------------------------------------------------------------------------------

  /**
   * One request for each position: from then on its age grows with our clock, which may stand still and is
   * never ahead. A trimmed entry is older than T_TRIM.
   */
  async #isOld(at: Position): Promise<boolean> {
    const { store, env, clusterId, retainMs = OBJECT_RETAIN_AGE_MS_MIN } = this.#options;
    const nowMs = env.clock.monotonicMs();
    let seen = this.#ages.get(at);
    if (seen === undefined) {
      const entry = await store.get(logKey(clusterId, at));
      seen = { ageMs: entry === null ? Infinity : entry.storeNowMs - entry.lastModifiedMs, nowMs };
      this.#ages.set(at, seen);
    }
    return seen.ageMs + nowMs - seen.nowMs >= retainMs;
  }

  /** Of a node that is gone nobody registers anew: its seal says when it ended. One that is deleted is old. */
  async #isSealOld(node: NodeId, epoch: NodeEpoch, slot: number | null): Promise<boolean> {
    if (slot === null) return true;
    const { store, clusterId, retainMs = OBJECT_RETAIN_AGE_MS_MIN } = this.#options;
    const seal = await store.get(walKey(clusterId, { nodeId: node, nodeEpoch: epoch, slot }));
    return seal === null || seal.storeNowMs - seal.lastModifiedMs >= retainMs;
  }

  async #oldEnough(destroyed: readonly Destroyed[]): Promise<readonly Destroyed[]> {
    const positions = [...new Set(destroyed.map(({ destroyedAt }) => destroyedAt))];
    const last = await newestOld(positions, (at) => this.#isOld(at));
    return last === null ? [] : destroyed.filter(({ destroyedAt }) => destroyedAt <= last);
  }

  // --- delete and purge -----------------------------------------------------------------------

  async #delete({ ids, blocks }: Doomed): Promise<{ deleted: number; failed: number }> {
    if (ids.length === 0 && blocks.length === 0) return { deleted: 0, failed: 0 };
    const gone = new Set<ObjectId>();
    for (let at = 0; at < ids.length; at += STORE_DELETE_BATCH_KEYS_MAX) {
      for (const id of await this.#deleteKeys(ids.slice(at, at + STORE_DELETE_BATCH_KEYS_MAX))) {
        gone.add(id);
      }
    }
    await this.#purge(gone, blocks);
    const failed = ids.length - gone.size;
    if (failed > 0) this.#options.env.log.log("warn", "delete-incomplete", { objects: failed });
    this.#options.env.metrics.count("skerry_objects_deleted_total", {}, gone.size);
    return { deleted: gone.size, failed };
  }

  async #deleteKeys(ids: readonly ObjectId[]): Promise<ObjectId[]> {
    const { store, clusterId } = this.#options;
    const byKey = new Map(ids.map((id) => [dataKey(clusterId, id), id]));
    const { gone } = await store.delete([...byKey.keys()]);
    return gone.flatMap((key) => byKey.get(key) ?? []);
  }

  /** A whole block leaves its one row; of others only the confirmed ids are named. */
  async #purge(gone: ReadonlySet<ObjectId>, candidates: readonly IdBlock[]): Promise<void> {
    const { metadata, requester } = this.#options;
    const unnamed = new Map(
      sweptBlocks(metadata.view()).map(({ block, ids }) => [block.from, ids]),
    );
    const blocks = candidates.filter(({ from }) => unnamed.get(from)?.every((id) => gone.has(id)));
    const covered = new Set(blocks.flatMap(({ from }) => unnamed.get(from) ?? []));
    const objectIds = [...gone].filter((id) => !covered.has(id));
    if (objectIds.length === 0 && blocks.length === 0) return;
    const by = requester();
    const decided = await metadata.submit({ type: "purge", by, objectIds, blocks });
    if (!decided.ok) this.#refused("purge", decided);
  }

  #refused(command: string, { reason, detail }: Refused): void {
    this.#options.env.log.log("warn", "collect-refused", { command, reason, detail });
  }

  // --- WALs -----------------------------------------------------------------------------------

  /** A listing per sealed WAL, so only once in a long while. */
  async #forgetWals(by: Requester): Promise<void> {
    const { metadata, env } = this.#options;
    const nowMs = env.clock.monotonicMs();
    const checkedMs = this.#walsCheckedMs;
    if (checkedMs !== null && nowMs - checkedMs < WAL_FORGET_INTERVAL_MS) return;
    const wals = forgettableWals(metadata.view(), by.nodeId);
    if (wals.length === 0) return;
    this.#walsCheckedMs = nowMs;
    for (const { nodeId, epoch } of wals) {
      if (!await this.#deleteOldWal(nodeId, epoch)) continue;
      const decided = await metadata.submit({ type: "forget-wal", by, nodeId, epoch });
      if (!decided.ok) return this.#refused("forget-wal", decided);
    }
  }

  /** True when nothing is left of it. The seal goes last of all: it is the newest object. */
  async #deleteOldWal(nodeId: NodeId, epoch: NodeEpoch): Promise<boolean> {
    const { store, clusterId } = this.#options;
    const keys: string[] = [];
    let youngestMs = 0;
    for await (const info of store.list(walEpochPrefix(clusterId, nodeId, epoch))) {
      keys.push(info.key);
      youngestMs = Math.max(youngestMs, info.lastModifiedMs);
    }
    if (keys.length === 0) return true;
    const cluster = await store.get(CLUSTER_KEY);
    if (cluster === null || cluster.storeNowMs - youngestMs < WAL_SEAL_AGE_MS_MIN) return false;
    const { failed } = await store.delete(keys);
    return failed.length === 0;
  }
}

/** At most COLLECT_OBJECTS_MAX ids, destroyed ones first; a block is only finished when all of it fits. */
function choose(destroyed: readonly Destroyed[], swept: readonly SweptBlock[]): Doomed {
  const ids = destroyed.slice(0, COLLECT_OBJECTS_MAX).map(({ objectId }) => objectId);
  const blocks: IdBlock[] = [];
  for (const { block, ids: unnamed } of swept) {
    const room = COLLECT_OBJECTS_MAX - ids.length;
    ids.push(...unnamed.slice(0, room));
    if (unnamed.length > room) break;
    blocks.push(block);
  }
  return { ids, blocks };
}
