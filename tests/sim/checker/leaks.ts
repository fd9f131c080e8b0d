/**
 * I11: every object in the store is referred to, or somebody will delete it: the collector (destroyed objects and
 * ids of dead epochs, after T_RETAIN), the recovery or the end of T_SEAL (WAL slots), the trim (log and snapshots).
 * And it does so: at rest nothing is overdue. A put that lands after its name was purged, a failed delete and what
 * is left of a probe are found by the audit alone: noted before it, and a leak after it.
 */
import {
  AUDIT_AGE_MS_MIN,
  COLLECT_INTERVAL_MS,
  METADATA_SNAPSHOTS_KEPT,
  METADATA_TRIM_AGE_MS_MIN,
  OBJECT_RETAIN_AGE_MS_MIN,
  WAL_SEAL_AGE_MS_MIN,
} from "../../../src/lib/limits.ts";
import type { ObjectId, Position } from "../../../src/lib/brand.ts";
import { walKey as walRowKey } from "../../../src/controller/image.ts";
import type { State } from "../../../src/controller/state.ts";
import {
  CLUSTER_KEY,
  logKey,
  parseSparseIndexKey,
  PROBE_PREFIX,
} from "../../../src/object/object_key.ts";
import { parseDataKey, parseLogKey, parseSnapshotKey, parseWalKey } from "./keys.ts";
import type { SimProcess } from "../process.ts";
import type { SimStore } from "../sim_store.ts";
import type { World } from "../world.ts";
import type { MetadataChecker } from "./metadata.ts";

/** The collector looks once in an interval, and may have to look twice. */
const LOOKS = 3;

/** What an audit leaves of the log: all from the snapshot on whose trim is the newest that may have happened. */
interface Kept {
  readonly boundary: number;
}

/** How far the store's clock was off, and since when. */
interface ClockSet {
  readonly atMs: number;
  readonly skewMs: number;
}

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
  readonly #metadata: Pick<MetadataChecker, "state">;
  /** Age past which the deletion of what is garbage is overdue. */
  readonly #collectedMs: number;
  /**
   * Keys whose newest bytes landed when nobody waited for them any more, or came from a process that slept
   * through its own replacement, and the purge of its ids: only an audit finds such an object.
   */
  readonly #late = new Set<string>();
  /** When an entry came to be: true time, and how far off the store's clock was. */
  readonly #made = new Map<string, ClockSet>();
  /** Each setting of the store's clock, since when. */
  readonly #clock: ClockSet[] = [];

  constructor(
    world: World,
    store: SimStore,
    clusterId: string,
    metadata: Pick<MetadataChecker, "state">,
    isReplaced: (process: SimProcess) => boolean = () => false,
    lookMs = COLLECT_INTERVAL_MS,
  ) {
    this.#collectedMs = OBJECT_RETAIN_AGE_MS_MIN + LOOKS * lookMs;
    this.#world = world;
    this.#store = store;
    this.#clusterId = clusterId;
    this.#metadata = metadata;
    store.onAsked(() => this.#noteClock());
    store.onLanded(({ key, process, isLate, bytes }) => {
      if (bytes === null) return;
      if (parseLogKey(clusterId, key) !== null) {
        this.#made.set(key, { atMs: world.nowMs, skewMs: store.skewMs });
      }
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

  /** After a healthy node's audit, a day after the last fault. What was trimmed since then its writer deletes. */
  async checkAudited(): Promise<void> {
    const kept = { boundary: await this.#boundary() };
    const oldMs = this.#world.wallMs + this.#store.skewMs - AUDIT_AGE_MS_MIN;
    for await (const { key, lastModifiedMs } of this.#store.bucket.list("")) {
      const isOld = lastModifiedMs <= oldMs;
      const why = this.#strange(key) ?? (isOld ? this.#orphaned(key, kept) : null);
      if (why !== null) this.#world.violated(`I11: ${key} ${why}, and outlives an audit`);
    }
  }

  /** Of snapshots that are older than T_TRIM, the newest with enough newer ones. */
  async #boundary(): Promise<number> {
    const found: { at: number; ageMs: number }[] = [];
    const nowMs = this.#world.wallMs + this.#store.skewMs;
    for await (const { key, lastModifiedMs } of this.#store.bucket.list("")) {
      const at = parseSnapshotKey(this.#clusterId, key);
      if (at !== null) found.push({ at, ageMs: nowMs - lastModifiedMs });
    }
    const newestFirst = found.toSorted((a, b) => b.at - a.at);
    return newestFirst.slice(METADATA_SNAPSHOTS_KEPT - 1)
      .find(({ ageMs }) => ageMs >= METADATA_TRIM_AGE_MS_MIN)?.at ?? 0;
  }

  /** What has an owner by its name, and is of no use to it. */
  #orphaned(key: string, { boundary }: Kept): string | null {
    const { state } = this.#metadata;
    if (key.startsWith(PROBE_PREFIX)) return "is left of a probe";
    const entry = parseLogKey(this.#clusterId, key);
    if (entry !== null) return entry <= boundary ? "is an entry below a snapshot" : null;
    const snapshot = parseSnapshotKey(this.#clusterId, key);
    if (snapshot !== null) return snapshot < boundary ? "is a snapshot too many" : null;
    const slot = parseWalKey(this.#clusterId, key);
    if (slot === null) return null;
    const row = state.wals.get(walRowKey(slot.nodeId, slot.nodeEpoch));
    if (row === undefined) return null;
    if (row.state.kind === "sealed") {
      return slot.slot === row.state.slot ? null : "is a slot of a recovered WAL";
    }
    return slot.slot < row.walTrim ? "is a slot below the trim" : null;
  }

  /** After a healthy node had T_RETAIN and some time. */
  async checkCollected(): Promise<void> {
    await this.check();
    const { objects, idBlocks, nodes } = this.#metadata.state;
    const destroyed = [...objects.values()]
      .flatMap(({ objectId, destroyedAt }) =>
        destroyedAt === null ? [] : [{ objectId, destroyedAt }]
      )
      .toSorted((a, b) => a.destroyedAt - b.destroyedAt);
    for (const { objectId, destroyedAt } of destroyed) {
      // It deletes in the order of entries: where the store's clock was put back, an older one may look younger.
      if (!this.#isOverdue(destroyedAt)) break;
      this.#world.violated(
        `I11: object ${objectId} is destroyed at ${destroyedAt} and still there`,
      );
    }
    for (const { nodeId, epoch, sweptAt } of idBlocks.values()) {
      const current = nodes.get(nodeId)?.epoch;
      if (sweptAt !== null || current === undefined || current === epoch) continue;
      if (!this.#isOverdue(current as number as Position)) continue;
      this.#world.violated(`I11: ids of dead epoch ${epoch} are not swept`);
    }
  }

  /** Of a WAL whose seal was older than T_SEAL when somebody last looked nothing is left. */
  async checkSeals(lookedMs: number): Promise<void> {
    const { state } = this.#metadata;
    const newestMs = new Map<string, number>();
    for await (const { key, lastModifiedMs } of this.#store.bucket.list("")) {
      const slot = parseWalKey(this.#clusterId, key);
      if (slot === null) continue;
      if (state.nodes.get(slot.nodeId)?.epoch === slot.nodeEpoch) continue;
      const wal = walRowKey(slot.nodeId, slot.nodeEpoch);
      newestMs.set(wal, Math.max(newestMs.get(wal) ?? 0, lastModifiedMs));
    }
    for (const [wal, atMs] of newestMs) {
      if (lookedMs - atMs < WAL_SEAL_AGE_MS_MIN) continue;
      this.#world.violated(`I11: the WAL ${wal} outlives its seal`);
    }
  }

  #noteClock(): void {
    const { skewMs } = this.#store;
    if (this.#clock.at(-1)?.skewMs !== skewMs) {
      this.#clock.push({ atMs: this.#world.nowMs, skewMs });
    }
  }

  /**
   * The collector asks for an entry's age once and lets it grow by its own clock: it may have asked when the
   * store's clock was behind what it was when the entry was made, and then it waits for longer.
   */
  #isOverdue(since: Position): boolean {
    this.#noteClock();
    const made = this.#made.get(logKey(this.#clusterId, since));
    if (made === undefined) return true;
    const skewsMs = this.#clock.filter(({ atMs }) => atMs >= made.atMs).map((one) => one.skewMs);
    const behindMs = made.skewMs - Math.min(made.skewMs, ...skewsMs);
    return this.#world.nowMs - made.atMs - behindMs > this.#collectedMs;
  }

  /** Why nobody will ever delete it; null when it is as it should be. */
  #strange(key: string): string | null {
    const { state } = this.#metadata;
    if (key === CLUSTER_KEY) return null;
    // What a start left that was killed in its probe goes with a later start, or an audit.
    if (key.startsWith(PROBE_PREFIX)) return null;
    const at = parseLogKey(this.#clusterId, key) ?? parseSnapshotKey(this.#clusterId, key);
    if (at !== null) return at > state.at ? "is ahead of the log" : null;
    const slot = parseWalKey(this.#clusterId, key);
    if (slot !== null) {
      const isKnown = state.wals.has(walRowKey(slot.nodeId, slot.nodeEpoch));
      return isKnown ? null : "belongs to a WAL that is forgotten";
    }
    const hinter = parseSparseIndexKey(this.#clusterId, key);
    if (hinter !== null) return state.nodes.has(hinter) ? null : "is the hint of an unknown node";
    const id = parseDataKey(this.#clusterId, key);
    if (id === null) return "is nothing that a node writes";
    const isKnown = state.objects.has(id) || isReserved(state, id);
    return isKnown ? null : "has a purged id";
  }
}
