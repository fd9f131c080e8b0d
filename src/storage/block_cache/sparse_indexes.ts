/**
 * Sparse indexes of nodes: read from their objects when that saves requests, and our own one written with
 * work, one PUT for many commits. Nothing depends on them: one that is lost, old or damaged costs requests.
 */
import { sleep } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import { AssertionError } from "../../lib/assert.ts";
import type { NodeId, ObjectId } from "../../lib/brand.ts";
import { DecodeError } from "../../lib/bytes.ts";
import { messageOf } from "../../lib/errors.ts";
import {
  LAYOUT_STEP_RECORDS,
  SPARSE_INDEX_AGE_MS,
  SPARSE_INDEX_BYTES_MAX,
  SPARSE_INDEX_CHANGES_MIN,
  SPARSE_INDEX_OBJECT_BYTES_MAX,
  SPARSE_INDEX_OBJECTS_MIN,
  SPARSE_INDEXES_MAX,
} from "../../lib/limits.ts";
import { Lru } from "../../lib/lru.ts";
import { SingleFlight } from "../../lib/single_flight.ts";
import { sparseIndexKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import type { ObjectManager } from "../ports.ts";
import type { RangeTable } from "./range_table.ts";
import { SparseIndex } from "./sparse_index.ts";

export interface SparseIndexesOptions {
  readonly env: Env;
  readonly store: ObjectStore;
  readonly clusterId: string;
  readonly objects: Pick<ObjectManager, "streamSetObjects">;
  /** Whose index is written here. */
  readonly nodeId: NodeId;
  readonly bytesMax?: number;
  /** See EngineOptions. */
  readonly sparseObjectsMin?: number;
}

interface Held {
  readonly index: SparseIndex;
  readonly readAtMs: number;
}

/** Sparse indexes, read through one view of the store. */
export interface SparseReader {
  /** What is known of a node now. */
  of(node: NodeId): SparseIndex | null;
  /** Reads the node's index, unless it was read lately. Never throws: without it the search is longer. */
  refresh(node: NodeId): Promise<void>;
}

export class SparseIndexes {
  readonly #options: SparseIndexesOptions;
  readonly #bytesMax: number;
  /** Of other nodes. */
  readonly #others = new Lru<NodeId, Held>(SPARSE_INDEXES_MAX, () => 1);
  readonly #reader: SparseReader;
  /** Null until the one that an earlier incarnation left is read. */
  #own: SparseIndex | null = null;
  #changes = 0;
  #isWriting = false;
  #isClosed = false;

  constructor(options: SparseIndexesOptions) {
    this.#options = options;
    this.#bytesMax = options.bytesMax ?? SPARSE_INDEX_BYTES_MAX;
    this.#reader = this.reader(options.store);
  }

  get bytes(): number {
    const others = this.#others.values().reduce((sum, { index }) => sum + index.bytes, 0);
    return (this.#own?.bytes ?? 0) + others;
  }

  /** With loads of its own: it waits for nobody who reads through another one. */
  reader(store: ObjectStore): SparseReader {
    const loads = new SingleFlight<NodeId, SparseIndex>();
    return {
      of: (node) => this.#of(node),
      refresh: (node) => this.#refresh(node, store, loads),
    };
  }

  #of(node: NodeId): SparseIndex | null {
    if (node === this.#options.nodeId) return this.#own;
    return this.#others.get(node)?.index ?? null;
  }

  async #refresh(
    node: NodeId,
    store: ObjectStore,
    loads: SingleFlight<NodeId, SparseIndex>,
  ): Promise<void> {
    const isOwn = node === this.#options.nodeId;
    if (isOwn ? this.#own !== null : this.#isFresh(node)) return;
    try {
      await loads.run(node, async () => {
        const index = await this.#load(node, store);
        const readAtMs = this.#options.env.clock.monotonicMs();
        // Another reader may have been first, and what was committed meanwhile is in that one.
        if (isOwn) this.#own ??= index;
        else this.#others.set(node, { index, readAtMs });
        return index;
      });
    } catch (error) {
      this.#note("sparse-index-unreadable", node, error);
    }
  }

  #isFresh(node: NodeId): boolean {
    const held = this.#others.get(node);
    if (held === undefined) return false;
    return this.#options.env.clock.monotonicMs() - held.readAtMs < SPARSE_INDEX_AGE_MS;
  }

  /** An object that is not there, or none of ours, is an empty index. */
  async #load(node: NodeId, store: ObjectStore): Promise<SparseIndex> {
    const { clusterId } = this.#options;
    const range = { start: 0, end: SPARSE_INDEX_OBJECT_BYTES_MAX };
    const got = await store.get(sparseIndexKey(clusterId, node), { range });
    if (got === null) return new SparseIndex(this.#bytesMax);
    try {
      return SparseIndex.decode(got.bytes, this.#bytesMax);
    } catch (error) {
      if (!(error instanceof DecodeError) && !(error instanceof AssertionError)) throw error;
      this.#note("sparse-index-damaged", node, error);
      return new SparseIndex(this.#bytesMax);
    }
  }

  /**
   * This node has committed an object. With enough of them the index is written, in the background; a
   * failure waits for the next change, for an idle node asks nothing of the store.
   */
  changed(tableOf: (id: ObjectId) => RangeTable | undefined): void {
    this.#changes += 1;
    const { objects, nodeId, sparseObjectsMin = SPARSE_INDEX_OBJECTS_MIN } = this.#options;
    const changesMin = Math.min(sparseObjectsMin, SPARSE_INDEX_CHANGES_MIN);
    if (this.#isWriting || this.#isClosed || this.#changes < changesMin) return;
    if (objects.streamSetObjects(nodeId).length < sparseObjectsMin) return;
    this.#isWriting = true;
    this.#changes = 0;
    void this.#write(tableOf)
      .catch((error: unknown) => this.#note("sparse-index-not-written", nodeId, error))
      .finally(() => {
        this.#isWriting = false;
      });
  }

  async #write(tableOf: (id: ObjectId) => RangeTable | undefined): Promise<void> {
    const { env, store, clusterId, objects, nodeId } = this.#options;
    await this.#reader.refresh(nodeId);
    const index = this.#own;
    if (index === null) return;
    const live = objects.streamSetObjects(nodeId).map(({ objectId }) => objectId);
    index.keepOnly(new Set(live));
    let ranges = 0;
    for (const id of live) {
      const table = index.has(id) ? undefined : tableOf(id);
      if (table === undefined) continue;
      index.add(id, table.ranges());
      ranges += table.count;
      if (ranges < LAYOUT_STEP_RECORDS) continue;
      // Others have their turn: objects of many streams have many ranges.
      await sleep(env.clock, 0);
      ranges = 0;
    }
    if (this.#isClosed) return;
    await store.put(sparseIndexKey(clusterId, nodeId), index.encode());
  }

  /** Writes no more. */
  close(): void {
    this.#isClosed = true;
  }

  #note(event: string, node: NodeId, error: unknown): void {
    this.#options.env.log.log("debug", event, { node, error: messageOf(error) });
  }
}
