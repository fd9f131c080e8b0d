/**
 * What is durable in the WAL, in memory: blocks in age order, the youngest open for records.
 * Records come in WAL order (otherwise a WAL trim could cover what was not uploaded). Committed blocks
 * stay for readers until room is needed and are freed oldest first; small neighbours are merged meanwhile,
 * because a lookup walks over all blocks. Pure: no I/O, no time.
 */
import type { Offset, StreamId } from "../../lib/brand.ts";
import { LOG_CACHE_BLOCKS_MAX, LOG_CACHE_MERGED_BYTES_MAX } from "../../lib/limits.ts";
import type { RecordMemory } from "../record_list.ts";
import type { StreamRecord } from "../stream_record.ts";
import { LogCacheBlock } from "./log_cache_block.ts";
import { Collector } from "./record_run.ts";
import type { StreamRun } from "./stream_run.ts";

/** Committed blocks are freed when the cache is this full. */
const FREE_ABOVE = 0.9;
/** Fewer blocks are looked up fast enough as they are. */
const MERGE_ABOVE_BLOCKS = 8;

export interface CacheHit {
  /** Where the cached part begins; records before it must come from objects. */
  readonly from: Offset;
  readonly records: readonly StreamRecord[];
  /** Whether the records alone answer the query. */
  readonly full: boolean;
}

export class LogCache {
  readonly #bytesMax: number;
  readonly #blocks: LogCacheBlock[] = [];
  #open: LogCacheBlock | null = null;
  #bytes = 0;
  #uncommittedBytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }
  /** Bytes that cannot be freed yet. */
  get uncommittedBytes(): number {
    return this.#uncommittedBytes;
  }
  get blocks(): number {
    return this.#blocks.length;
  }
  /** Slot of the oldest record in memory; null when there is none. */
  get firstSlot(): number | null {
    return this.#blocks[0]?.firstSlot ?? null;
  }
  /** The block that takes records now; null when there is none since the last archive. */
  get open(): LogCacheBlock | null {
    return this.#open;
  }

  /** Copies the record: for those who do not hold it in memory that stays. */
  put(record: StreamRecord, slot: number): void {
    const block = this.#opened(slot);
    const before = block.bytes;
    block.put(record, slot);
    this.#grown(block.bytes - before);
  }

  /** Takes an encoded record as it lies in memory that stays as it is while its slot is in the cache. */
  putStored(memory: RecordMemory, at: number, slot: number): void {
    const block = this.#opened(slot);
    const before = block.bytes;
    block.putStored(memory, at, slot);
    this.#grown(block.bytes - before);
  }

  #opened(slot: number): LogCacheBlock {
    if (this.#open !== null) return this.#open;
    this.#open = new LogCacheBlock(slot);
    this.#blocks.push(this.#open);
    return this.#open;
  }

  #grown(bytes: number): void {
    this.#bytes += bytes;
    this.#uncommittedBytes += bytes;
    if (this.#isFull()) this.#free();
  }

  /** Closes the open block for records and hands it out for upload. */
  archive(): LogCacheBlock | null {
    const block = this.#open;
    this.#open = null;
    return block;
  }

  markCommitted(block: LogCacheBlock): void {
    block.markCommitted();
    this.#uncommittedBytes -= block.bytes;
    this.#free();
    this.#merge();
  }

  /** Slot of the oldest record that is not committed once `block` is; null when all are. */
  firstSlotNeededAfter(block: LogCacheBlock): number | null {
    return this.#blocks.find((other) => other !== block && !other.committed)?.firstSlot ?? null;
  }

  #isFull(): boolean {
    return this.#bytes > this.#bytesMax * FREE_ABOVE || this.#blocks.length > LOG_CACHE_BLOCKS_MAX;
  }

  /** Oldest first, stopping at what is not committed: readers rely on a contiguous young end. */
  #free(): void {
    while (this.#isFull() && this.#blocks[0]?.committed === true) {
      this.#bytes -= this.#blocks.shift()!.bytes;
    }
  }

  /** Neighbours that are committed, small together, and have no gap between them become one. */
  #merge(): void {
    for (let i = 0; i + 1 < this.#blocks.length && this.#blocks.length > MERGE_ABOVE_BLOCKS;) {
      const [older, younger] = [this.#blocks[i]!, this.#blocks[i + 1]!];
      if (!younger.committed) return;
      const before = older.bytes + younger.bytes;
      if (before > LOG_CACHE_MERGED_BYTES_MAX || !older.isFollowedBy(younger)) {
        i += 1;
        continue;
      }
      older.take(younger);
      this.#blocks.splice(i + 1, 1);
      this.#bytes += older.bytes - before;
    }
  }

  /**
   * Looks up [start, end). Full when the cache answers to the end or to the byte budget; else the
   * youngest gap-free part that reaches into the range, for joining with older data; else null.
   */
  get(stream: StreamId, start: Offset, end: Offset, bytesMax: number): CacheHit | null {
    const runs = this.#runsOf(stream);
    const forward = new Collector(start, end, bytesMax);
    collect(runs, forward);
    if (forward.done) return { from: start, records: forward.records, full: true };
    const from = youngestStart(runs);
    if (from === null || from <= start || from >= end) return null;
    const right = new Collector(from, end, bytesMax);
    collect(runs, right);
    return { from, records: right.records, full: false };
  }

  #runsOf(stream: StreamId): StreamRun[] {
    const runs: StreamRun[] = [];
    for (const block of this.#blocks) {
      const run = block.run(stream);
      if (run !== undefined) runs.push(run);
    }
    return runs;
  }
}

/** Leaves the reader's place behind: its next read begins there. */
function collect(runs: readonly StreamRun[], collector: Collector): void {
  for (const run of runs) {
    if (collector.done || run.start > collector.next) return;
    if (run.end <= collector.next) continue;
    const next = collector.addFrom(run, run.indexOf(collector.next));
    if (collector.done) run.remember(collector.next, next);
  }
}

/** Start of the youngest series of runs without a gap. */
function youngestStart(
  runs: readonly { readonly start: Offset; readonly end: Offset }[],
): Offset | null {
  let from: Offset | null = null;
  for (const run of runs.toReversed()) {
    if (from !== null && run.end !== from) break;
    from = run.start;
  }
  return from;
}
