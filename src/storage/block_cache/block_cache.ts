/**
 * Reads committed data back from objects: finds the objects that cover a range, in offset order and without
 * gaps, and serves their blocks through caches. Metadata at hand may be stale: what cannot be found is looked
 * for once more after catching up, and only then reported.
 */
import type { Env } from "../../env/env.ts";
import type { NodeId, Offset, StreamId } from "../../lib/brand.ts";
import { FaultError } from "../../lib/errors.ts";
import { OPEN_READ_BYTES_MAX } from "../../lib/limits.ts";
import { dataKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import { Collector } from "../cache/record_run.ts";
import { MissingObject } from "../missing_object.ts";
import type { ObjectManager, StreamManager } from "../ports.ts";
import type { ReadOptions } from "../storage.ts";
import type { StreamRecord } from "../stream_record.ts";
import type { Learned } from "../written_index.ts";
import { BlockFinder } from "./block_finder.ts";
import { BlockStore } from "./block_store.ts";
import { DataBlockCache } from "./data_block_cache.ts";
import { type CachedIndexes, cachedIndexes, IndexCache } from "./index_cache.ts";
import { LossAlarm } from "./loss_alarm.ts";
import { Prefetcher } from "./prefetcher.ts";
import { RangeIndex, type RangeTables, rangeTables } from "./range_index.ts";
import { RangeTable } from "./range_table.ts";
import { SparseIndexes } from "./sparse_indexes.ts";
import { type StreamReader, StreamReaders } from "./stream_readers.ts";

export interface BlockCacheOptions {
  readonly env: Env;
  readonly store: ObjectStore;
  /** The same, for reads of what opens; `store` when absent. */
  readonly openStore?: ObjectStore;
  readonly clusterId: string;
  /** Whose stream set objects are learned here, and whose sparse index is kept. */
  readonly nodeId: NodeId;
  readonly objects: Pick<ObjectManager, "viewObjects" | "streamSetObjects" | "refresh">;
  readonly streams: Pick<StreamManager, "viewStream">;
  readonly blockBytesMax: number;
  readonly indexBytesMax: number;
  readonly rangeBytesMax: number;
  /** See EngineOptions. */
  readonly sparseObjectsMin?: number;
}

/** A way to the store, with loads of its own: who joins a load waits as long as whoever began it. */
interface Lane {
  readonly finder: BlockFinder;
  readonly blocks: DataBlockCache;
  readonly prefetcher: Prefetcher;
}

export class BlockCache {
  readonly #options: BlockCacheOptions;
  readonly #indexes: CachedIndexes;
  readonly #tables: RangeTables;
  readonly #blocks: BlockStore;
  readonly #sparse: SparseIndexes;
  readonly #serving: Lane;
  readonly #opening: Lane;
  readonly #readers: StreamReaders;
  readonly #alarm: LossAlarm;

  constructor(options: BlockCacheOptions) {
    const { env, store, openStore = store, blockBytesMax } = options;
    this.#options = options;
    this.#indexes = cachedIndexes(options.indexBytesMax);
    this.#tables = rangeTables(options.rangeBytesMax);
    this.#blocks = new BlockStore(blockBytesMax);
    this.#sparse = new SparseIndexes(options);
    this.#serving = this.#lane(store, blockBytesMax);
    this.#opening = this.#lane(openStore, OPEN_READ_BYTES_MAX);
    this.#readers = new StreamReaders(env.clock);
    this.#alarm = new LossAlarm(env);
  }

  #lane(store: ObjectStore, inFlightMax: number): Lane {
    const { env, clusterId, objects, blockBytesMax: bytesMax } = this.#options;
    const indexes = new IndexCache(store, clusterId, this.#indexes);
    const ranges = new RangeIndex(objects, indexes, this.#sparse.reader(store), this.#tables);
    const finder = new BlockFinder(objects, indexes, ranges);
    const kept = { blocks: this.#blocks, bytesMax, inFlightMax };
    const blocks = new DataBlockCache({ store, clusterId, clock: env.clock, ...kept });
    return { finder, blocks, prefetcher: new Prefetcher(env, finder, blocks) };
  }

  get bytes(): number {
    return this.#blocks.bytes + this.#indexes.weight + this.#tables.weight + this.#sparse.bytes;
  }

  /** Objects that this node has just committed: nobody has to read what is in them. */
  learn({ streamSetObject, indexes }: Learned): void {
    for (const { objectId, index } of indexes) this.#indexes.set(objectId, index);
    if (streamSetObject === null) return;
    this.#tables.set(streamSetObject.objectId, new RangeTable(streamSetObject.ranges));
    this.#sparse.changed((id) => this.#tables.peek(id));
  }

  /** Begins nothing in the background any more. */
  close(): void {
    this.#sparse.close();
    this.#serving.prefetcher.close();
    this.#opening.prefetcher.close();
  }

  async read(
    stream: StreamId,
    start: Offset,
    end: Offset,
    { bytesMax, signal, isOpening = false }: ReadOptions,
  ): Promise<readonly StreamRecord[]> {
    const lane = isOpening ? this.#opening : this.#serving;
    const collector = new Collector(start, end, bytesMax);
    const reader = this.#readers.take(stream, start);
    let misses = 0;
    while (!collector.done) {
      throwIfAborted(signal);
      const before = collector.next;
      try {
        misses += await this.#readSome(lane, stream, end, collector);
      } catch (error) {
        // What lies before a damaged or lost place is read as ever; who goes on there hears of it.
        if (collector.records.length === 0) throw error;
        break;
      }
      // The budget may be too small for one more record: that is the end, not a gap.
      if (collector.next === before) break;
    }
    this.#follow(lane, reader, collector.next, end, misses);
    return collector.records;
  }

  /** A first read may be the only one: what lies behind it is read for who comes again. */
  #follow(
    { prefetcher }: Lane,
    reader: StreamReader,
    next: Offset,
    end: Offset,
    misses: number,
  ): void {
    if (misses > 0) reader.ahead.missed();
    this.#readers.give(reader, next);
    if (!reader.isSequential) return;
    const committed = this.#options.streams.viewStream(reader.stream)?.end ?? 0;
    prefetcher.follow(reader, next, Math.min(end, committed));
  }

  /** One object's share. Adds at least one record, unless the budget forbids it. Returns its misses. */
  async #readSome(
    { finder, blocks }: Lane,
    stream: StreamId,
    end: Offset,
    collector: Collector,
  ): Promise<number> {
    const at = collector.next;
    const read = async (): Promise<number | null> => {
      const found = await finder.find(stream, at, end, collector.bytesLeft);
      if (found === null) return null;
      const { records, misses } = await blocks.get(found.objectId, found.entries);
      for (const some of records) collector.addAll(some);
      this.#count("miss", misses);
      this.#count("hit", found.entries.length - misses);
      return misses;
    };
    const first = await orMissing(read);
    if (typeof first === "number") return first;
    await this.#options.objects.refresh();
    const second = await orMissing(read);
    if (typeof second === "number") return second;
    throw this.#lost(stream, at, second);
  }

  #count(outcome: string, blocks: number): void {
    if (blocks === 0) return;
    this.#options.env.metrics.count("skerry_block_cache_blocks_total", { outcome }, blocks);
  }

  #lost(stream: StreamId, offset: Offset, missing: MissingObject | null): FaultError {
    const view = this.#options.streams.viewStream(stream);
    if (view === null || offset < view.start) {
      const what = view === null ? "was deleted" : `begins at ${view.start}`;
      const message = `Stream ${stream} ${what}: offset ${offset} cannot be read any more`;
      return new FaultError("closed", message, { retriable: true });
    }
    const key = missing === null ? null : dataKey(this.#options.clusterId, missing.objectId);
    return this.#alarm.raise(stream, offset, key, missing ?? undefined);
  }
}

/** Null when no object is said to hold it; the error when the object that does is gone. */
async function orMissing<T>(work: () => Promise<T | null>): Promise<T | MissingObject | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof MissingObject) return error;
    throw error;
  }
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted !== true) return;
  throw new FaultError("aborted", "Read aborted", { retriable: true });
}
