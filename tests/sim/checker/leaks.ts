/**
 * I11: every object in the store is referred to, or somebody will delete it: the collector (destroyed objects and
 * ids of dead epochs, after T_RETAIN), the recovery or the end of T_SEAL (WAL slots), the trim (log and snapshots).
 * And it does so: at rest nothing is overdue. A put that lands after its name was purged is the one thing that
 * only a listing of all data could find; the simulator notes it and does not count it.
 */
import { COLLECT_INTERVAL_MS, OBJECT_RETAIN_AGE_MS_MIN } from "../../../src/lib/limits.ts";
import type { ObjectId, Position } from "../../../src/lib/brand.ts";
import { walKey as walRowKey } from "../../../src/controller/image.ts";
import type { State } from "../../../src/controller/state.ts";
import {
  CLUSTER_KEY,
  logKey,
  parseDataKey,
  parseLogKey,
  parseSnapshotKey,
  parseWalKey,
  PROBE_PREFIX,
} from "../../../src/object/object_key.ts";
import type { SimProcess } from "../process.ts";
import type { SimStore } from "../sim_store.ts";
import type { World } from "../world.ts";
import type { MetadataChecker } from "./metadata.ts";

/** The collector looks once in an interval, and may have to look twice. */
const COLLECTED_MS = OBJECT_RETAIN_AGE_MS_MIN + 3 * COLLECT_INTERVAL_MS;

/** Whether an id without a row can still become one, or is still to be swept. */
function isReserved({ idBlocks }: State, id: ObjectId): boolean {
  return [...idBlocks.values()].some(({ from, to, purged }) =>
    id >= from && id < to && !purged.some(({ start, end }) => id >= start && id < end)
  );
}

export class LeakChecker {
  readonly #world: World;
  readonly #store: SimStore;
  readonly #clusterId: string;
  readonly #metadata: MetadataChecker;
  /**
   * Keys whose newest bytes landed when nobody waited for them any more, or came from a process that slept
   * through its own replacement, and the purge of its ids: only an audit finds such an object.
   */
  readonly #late = new Set<string>();

  constructor(
    world: World,
    store: SimStore,
    clusterId: string,
    metadata: MetadataChecker,
    isReplaced: (process: SimProcess) => boolean = () => false,
  ) {
    this.#world = world;
    this.#store = store;
    this.#clusterId = clusterId;
    this.#metadata = metadata;
    store.onLanded(({ key, process, isLate, bytes }) => {
      if (bytes === null) return;
      if (isLate || isReplaced(process)) this.#late.add(key);
      else this.#late.delete(key);
    });
  }

  /** Anywhere between two events. */
  async check(): Promise<void> {
    for await (const { key } of this.#store.bucket.list("")) {
      const why = this.#strange(key);
      if (why === null) continue;
      if (this.#late.has(key)) this.#world.note(`late put stays: ${key}`);
      else this.#world.violated(`I11: ${key} ${why}`);
    }
  }

  /** After a healthy node had T_RETAIN and some time. */
  async checkCollected(): Promise<void> {
    await this.check();
    const { objects, idBlocks, nodes } = this.#metadata.state;
    for (const { objectId, destroyedAt } of objects.values()) {
      if (destroyedAt === null || !await this.#isOverdue(destroyedAt)) continue;
      this.#world.violated(
        `I11: object ${objectId} is destroyed at ${destroyedAt} and still there`,
      );
    }
    for (const { nodeId, epoch, sweptAt } of idBlocks.values()) {
      const current = nodes.get(nodeId)?.epoch;
      if (sweptAt !== null || current === undefined || current === epoch) continue;
      if (!await this.#isOverdue(current as number as Position)) continue;
      this.#world.violated(`I11: ids of dead epoch ${epoch} are not swept`);
    }
  }

  async #isOverdue(since: Position): Promise<boolean> {
    const entry = await this.#store.bucket.get(logKey(this.#clusterId, since));
    return entry === null || entry.storeNowMs - entry.lastModifiedMs > COLLECTED_MS;
  }

  /** Why nobody will ever delete it; null when it is as it should be. */
  #strange(key: string): string | null {
    const { state } = this.#metadata;
    if (key === CLUSTER_KEY) return null;
    // What a start left that was killed in its probe goes with a later start.
    if (key.startsWith(PROBE_PREFIX)) return null;
    const at = parseLogKey(this.#clusterId, key) ?? parseSnapshotKey(this.#clusterId, key);
    if (at !== null) return at > state.at ? "is ahead of the log" : null;
    const slot = parseWalKey(this.#clusterId, key);
    if (slot !== null) {
      const isKnown = state.wals.has(walRowKey(slot.nodeId, slot.nodeEpoch));
      return isKnown ? null : "belongs to a WAL that is forgotten";
    }
    const id = parseDataKey(this.#clusterId, key);
    if (id === null) return "is nothing that a node writes";
    const isKnown = state.objects.has(id) || isReserved(state, id);
    return isKnown ? null : "has a purged id";
  }
}
