/**
 * What is durable in the WAL, in memory: blocks in age order, the youngest open for records.
 * Records come in WAL order (otherwise a WAL trim could cover what was not uploaded). Committed blocks
 * stay for readers until room is needed and are freed oldest first. Pure: no I/O, no time.
 */
import type { Offset, StreamId } from "../../lib/brand.ts";
import { LOG_CACHE_BLOCKS_MAX } from "../../lib/limits.ts";
import type { StreamRecord } from "../stream_record.ts";
import { LogCacheBlock } from "./log_cache_block.ts";
import { Collector } from "./record_run.ts";

/** Committed blocks are freed when the cache is this full. */
const FREE_ABOVE = 0.9;

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

  put(record: StreamRecord, slot: number): void {
    if (this.#open === null) {
      this.#open = new LogCacheBlock(slot);
      this.#blocks.push(this.#open);
    }
    const before = this.#open.bytes;
    this.#open.put(record, slot);
    const added = this.#open.bytes - before;
    this.#bytes += added;
    this.#uncommittedBytes += added;
    this.#free();
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
  }

  /** Slot of the oldest record that is not committed once `block` is; null when all are. */
  firstSlotNeededAfter(block: LogCacheBlock): number | null {
    return this.#blocks.find((other) => other !== block && !other.committed)?.firstSlot ?? null;
  }

  /** Oldest first, stopping at what is not committed: readers rely on a contiguous young end. */
  #free(): void {
    const isFull = () =>
      this.#bytes > this.#bytesMax * FREE_ABOVE || this.#blocks.length > LOG_CACHE_BLOCKS_MAX;
    while (isFull() && this.#blocks[0]?.committed === true) {
      this.#bytes -= this.#blocks.shift()!.bytes;
    }
  }

  /**
   * Looks up [start, end). Full when the cache answers to the end or to the byte budget; else the
   * youngest gap-free part that reaches into the range, for joining with older data; else null.
   */
  get(stream: StreamId, start: Offset, end: Offset, bytesMax: number): CacheHit | null {
    const runs = this.#runsOf(stream);
    const forward = new Collector(start, end, bytesMax);
    for (const run of runs) forward.addAll(run.records);
    if (forward.done) return { from: start, records: forward.records, full: true };
    const from = youngestStart(runs);
    if (from === null || from <= start || from >= end) return null;
    const right = new Collector(from, end, bytesMax);
    for (const run of runs) right.addAll(run.records);
    return { from, records: right.records, full: false };
  }

  #runsOf(stream: StreamId) {
    return this.#blocks.map((block) => block.run(stream)).filter((run) => run !== undefined);
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
