/**
 * Reads committed data back from objects: finds the objects that cover a range, in offset order and without
 * gaps, and serves their blocks through caches. Metadata at hand may be stale: what cannot be found is looked
 * for once more after catching up, and only then reported.
 */
import type { ObjectId, Offset, StreamId } from "../../lib/brand.ts";
import { FaultError } from "../../lib/errors.ts";
import { dataKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import { Collector } from "../cache/record_run.ts";
import type { IndexEntry } from "../format/index_block.ts";
import type { ObjectManager, StreamRange } from "../ports.ts";
import type { ReadOptions } from "../storage.ts";
import type { StreamRecord } from "../stream_record.ts";
import { DataBlockCache } from "./data_block_cache.ts";
import { IndexCache } from "./index_cache.ts";
import { MissingObject } from "../missing_object.ts";
import { RangeIndex } from "./range_index.ts";
import { ReadAhead } from "./read_ahead.ts";
import { locate } from "./read_plan.ts";

export interface BlockCacheOptions {
  readonly store: ObjectStore;
  readonly clusterId: string;
  readonly objects: Pick<ObjectManager, "viewObjects" | "streamSetObjects" | "refresh">;
  readonly blockBytesMax: number;
  readonly indexBytesMax: number;
  readonly rangeBytesMax: number;
}

interface Located {
  readonly objectId: ObjectId;
  /** What the read needs. */
  readonly entries: readonly IndexEntry[];
  /** What follows and is worth fetching in the same request. */
  readonly ahead: readonly IndexEntry[];
}

export class BlockCache {
  readonly #options: BlockCacheOptions;
  readonly #indexes: IndexCache;
  readonly #ranges: RangeIndex;
  readonly #blocks: DataBlockCache;
  readonly #readAhead = new ReadAhead();

  constructor(options: BlockCacheOptions) {
    const { store, clusterId, objects } = options;
    this.#options = options;
    this.#indexes = new IndexCache(store, clusterId, options.indexBytesMax);
    this.#ranges = new RangeIndex(objects, this.#indexes, options.rangeBytesMax);
    this.#blocks = new DataBlockCache(store, clusterId, options.blockBytesMax);
  }

  get bytes(): number {
    return this.#blocks.bytes + this.#indexes.bytes + this.#ranges.bytes;
  }

  /** Ranges of a stream set object that this node has just committed. */
  learn(id: ObjectId, ranges: readonly StreamRange[]): void {
    this.#ranges.learn(id, ranges);
  }

  async read(
    stream: StreamId,
    start: Offset,
    end: Offset,
    { bytesMax, signal }: ReadOptions,
  ): Promise<readonly StreamRecord[]> {
    const collector = new Collector(start, end, bytesMax);
    const aheadBytes = this.#readAhead.windowBytes(stream, start);
    while (!collector.done) {
      throwIfAborted(signal);
      const before = collector.next;
      await this.#readSome(stream, end, collector, aheadBytes);
      // The budget may be too small for one more record: that is the end, not a gap.
      if (collector.next === before) break;
    }
    this.#readAhead.moved(stream, start, collector.next);
    return collector.records;
  }

  /** One object's share. Adds at least one record, unless the budget forbids it. */
  async #readSome(
    stream: StreamId,
    end: Offset,
    collector: Collector,
    aheadBytes: number,
  ): Promise<void> {
    const at = collector.next;
    const read = async (): Promise<boolean> => {
      const located = await this.#locate(stream, at, end, collector.bytesLeft, aheadBytes);
      if (located === null) return false;
      const { objectId, entries, ahead } = located;
      for (const records of await this.#blocks.get(objectId, entries, ahead)) {
        collector.addAll(records);
      }
      return true;
    };
    const missing = await orMissing(read);
    if (missing === null) return;
    await this.#options.objects.refresh();
    const stillMissing = await orMissing(read);
    if (stillMissing !== null) throw this.#lost(stream, at, stillMissing);
  }

  /** Adjacent index entries of the one object that holds the offset; null when none does. */
  async #locate(
    stream: StreamId,
    offset: Offset,
    end: Offset,
    bytes: number,
    aheadBytes: number,
  ): Promise<Located | null> {
    const view = this.#options.objects.viewObjects(stream);
    if (view === null) return null;
    const place = locate(view, offset);
    if (place.kind === "nowhere") return null;
    const object = place.kind === "stream-object"
      ? place.object
      : await this.#ranges.find(place.nodeId, stream, offset);
    if (object === null) return null;
    const held = await this.#indexes.at(object, offset);
    if (held === null) return null;
    const { objectId, index } = held;
    const until = Math.min(place.until, held.until);
    const { entries } = index.find(stream, offset, Math.min(end, until), bytes);
    const last = entries.at(-1);
    if (last === undefined) return null;
    const ahead = aheadBytes === 0 ? [] : index.find(stream, last.end, until, aheadBytes).entries;
    return { objectId, entries, ahead };
  }

  #lost(stream: StreamId, offset: Offset, missing: MissingObject | "nowhere"): FaultError {
    if (missing === "nowhere") {
      return new FaultError("data-loss", `No object holds offset ${offset} of stream ${stream}`, {
        retriable: false,
      });
    }
    const key = dataKey(this.#options.clusterId, missing.objectId);
    return new FaultError(
      "object-missing",
      `Object ${key} with offset ${offset} of stream ${stream} is not in the store`,
      { retriable: false, cause: missing },
    );
  }
}

/** Null when the work found what it needs. */
async function orMissing(
  work: () => Promise<boolean>,
): Promise<MissingObject | "nowhere" | null> {
  try {
    return await work() ? null : "nowhere";
  } catch (error) {
    if (error instanceof MissingObject) return error;
    throw error;
  }
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted !== true) return;
  throw new FaultError("aborted", "Read aborted", { retriable: true });
}
