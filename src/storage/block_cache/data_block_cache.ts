/** Data blocks of objects: from memory, or read and decoded, each of them once at a time. */
import type { Clock } from "../../env/clock.ts";
import type { ObjectId } from "../../lib/brand.ts";
import { LOG_CACHE_RECORD_OVERHEAD_BYTES } from "../../lib/limits.ts";
import { dataKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import type { IndexEntry } from "../format/index_block.ts";
import { corrupt, decodeRecords } from "../format/object_reader.ts";
import { MissingObject } from "../missing_object.ts";
import { endOffset, type StreamRecord } from "../stream_record.ts";
import type { BlockStore, DataBlock } from "./block_store.ts";
import { RangeReads } from "./range_reads.ts";

/** So that what was read stays in memory too, for the next reader. */
const UNREAD_SHARE = 0.5;

export interface DataBlockCacheOptions {
  readonly store: ObjectStore;
  readonly clusterId: string;
  readonly clock: Clock;
  /** What is kept, whoever has read it. */
  readonly blocks: BlockStore;
  /** Of what is kept. */
  readonly bytesMax: number;
  readonly inFlightMax: number;
}

export interface BlocksRead {
  /** Of each entry, in order, up to one that cannot be read. */
  readonly records: readonly (readonly StreamRecord[])[];
  /** Entries that were not in memory. */
  readonly misses: number;
}

interface Loading {
  readonly block: Promise<DataBlock>;
  /** A reader waits for it: it is not read ahead any more. */
  isWanted: boolean;
}

export class DataBlockCache {
  readonly #options: DataBlockCacheOptions;
  readonly #blocks: BlockStore;
  readonly #reads: RangeReads;
  readonly #loading = new Map<string, Loading>();
  /** On their way for nobody yet. */
  #aheadBytes = 0;

  constructor(options: DataBlockCacheOptions) {
    this.#options = options;
    this.#blocks = options.blocks;
    this.#reads = new RangeReads(options.store, options.inFlightMax);
  }

  /** Bytes that may be read ahead now: none while reads wait for their turn. */
  get roomAhead(): number {
    if (!this.#reads.hasRoom) return 0;
    const { bytesMax, clock } = this.#options;
    this.#blocks.expire(clock.monotonicMs());
    return Math.max(0, bytesMax * UNREAD_SHARE - this.#blocks.unreadBytes - this.#aheadBytes);
  }

  /** Throws what the first entry meets: MissingObject, and faults. */
  async get(id: ObjectId, entries: readonly IndexEntry[]): Promise<BlocksRead> {
    this.#blocks.expire(this.#options.clock.monotonicMs());
    let misses = 0;
    const blocks = entries.map((entry) => {
      const kept = this.#blocks.take(blockKey(id, entry));
      if (kept !== null) return Promise.resolve(kept);
      misses += 1;
      return this.#want(id, entry);
    });
    const records: (readonly StreamRecord[])[] = [];
    for (const settled of await Promise.allSettled(blocks)) {
      if (settled.status === "fulfilled") records.push(settled.value.records);
      else if (records.length === 0) throw settled.reason;
      else break;
    }
    return { records, misses };
  }

  /** Reads what is not here; resolves when all of it is. Throws MissingObject. */
  async readAhead(
    id: ObjectId,
    entries: readonly IndexEntry[],
    onDropped: () => void,
  ): Promise<void> {
    const loads = entries.flatMap((entry) => {
      const key = blockKey(id, entry);
      if (this.#blocks.has(key)) return [];
      const known = this.#loading.get(key);
      if (known !== undefined) return [known.block];
      this.#aheadBytes += entry.size;
      const block = this.#load(id, entry, { isWanted: false, onDropped });
      return [block.finally(() => {
        this.#aheadBytes -= entry.size;
      })];
    });
    await Promise.all(loads);
  }

  #want(id: ObjectId, entry: IndexEntry): Promise<DataBlock> {
    const known = this.#loading.get(blockKey(id, entry));
    if (known === undefined) return this.#load(id, entry, { isWanted: true, onDropped: () => {} });
    known.isWanted = true;
    return known.block;
  }

  /** Others may join while it loads; afterwards it is in memory, or forgotten when it failed. */
  #load(
    id: ObjectId,
    entry: IndexEntry,
    { isWanted, onDropped }: { readonly isWanted: boolean; readonly onDropped: () => void },
  ): Promise<DataBlock> {
    const key = blockKey(id, entry);
    const block = this.#read(id, entry);
    const loading: Loading = { block, isWanted };
    this.#loading.set(key, loading);
    const loaded = (done: DataBlock) => {
      this.#loading.delete(key);
      const sinceMs = this.#options.clock.monotonicMs();
      if (loading.isWanted) this.#blocks.add(key, done);
      else this.#blocks.addUnread(key, { block: done, sinceMs, onDropped });
    };
    block.then(loaded, () => this.#loading.delete(key));
    return block;
  }

  async #read(id: ObjectId, entry: IndexEntry): Promise<DataBlock> {
    const key = dataKey(this.#options.clusterId, id);
    const start = entry.position;
    const bytes = await this.#reads.read(key, { start, end: start + entry.size });
    if (bytes === null) throw new MissingObject(id);
    return decode(key, entry, bytes);
  }
}

function blockKey(id: ObjectId, { position }: IndexEntry): string {
  return `${id}/${position}`;
}

/** The index said what is inside: believe the block only if it agrees. */
function decode(key: string, entry: IndexEntry, bytes: Uint8Array): DataBlock {
  const records = decodeRecords(key, bytes);
  let next = entry.start;
  for (const record of records) {
    if (record.streamId !== entry.streamId || record.baseOffset !== next) {
      throw corrupt(
        key,
        `stream ${record.streamId}, ${record.baseOffset} in a block of ${entry.streamId}, ${next}`,
      );
    }
    next = endOffset(record);
  }
  if (next !== entry.end || records.length !== entry.recordCount) {
    throw corrupt(key, `block at ${entry.position} ends at offset ${next}, not ${entry.end}`);
  }
  return { records, bytes: bytes.length + records.length * LOG_CACHE_RECORD_OVERHEAD_BYTES };
}
