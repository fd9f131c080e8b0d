/**
 * Decides which records of a recovered WAL are new: per stream the first must begin exactly where metadata
 * ends, and the rest must follow without a gap. Pure. Anything else means that acknowledged data is gone.
 */
import type { Offset, StreamId } from "../lib/brand.ts";
import { FaultError } from "../lib/errors.ts";
import { LogCacheBlock } from "./cache/log_cache_block.ts";
import type { StreamView } from "./ports.ts";
import { endOffset, type StreamRecord } from "./stream_record.ts";

interface Progress {
  readonly start: Offset;
  /** The offset that comes next. */
  next: Offset;
  found: boolean;
}

export class Replay {
  readonly #source: string;
  readonly #streams: Map<StreamId, Progress>;
  #block = new LogCacheBlock(0);

  /** `source` names the WAL in faults. */
  constructor(source: string, streams: readonly StreamView[]) {
    this.#source = source;
    this.#streams = new Map(
      streams.map(({ streamId, start, end }) => [streamId, { start, next: end, found: false }]),
    );
  }

  /** Bytes of the records that wait for upload. */
  get bytes(): number {
    return this.#block.bytes;
  }

  /** Throws FaultError `data-loss`. Records of streams that this WAL does not own any more are skipped. */
  add(record: StreamRecord): void {
    const progress = this.#streams.get(record.streamId);
    if (progress === undefined || endOffset(record) <= progress.next) return;
    const { baseOffset } = record;
    const isTrimmedGap = !progress.found && baseOffset > progress.next &&
      baseOffset <= progress.start;
    if (baseOffset !== progress.next && !isTrimmedGap) {
      throw new FaultError(
        "data-loss",
        `WAL ${this.#source}: stream ${record.streamId} goes on at offset ${baseOffset}, not ${progress.next}`,
        { retriable: false },
      );
    }
    progress.next = endOffset(record);
    progress.found = true;
    this.#block.put(record, 0);
  }

  /** What was collected since the last call. */
  takeBlock(): LogCacheBlock {
    const block = this.#block;
    this.#block = new LogCacheBlock(0);
    return block;
  }

  /** Final end of every stream. Nothing below a trimmed start was ever the end. */
  ends(): { readonly streamId: StreamId; readonly end: Offset }[] {
    return [...this.#streams].map(([streamId, { start, next }]) => ({
      streamId,
      end: Math.max(start, next),
    }));
  }
}
