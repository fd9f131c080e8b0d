/**
 * The whole log by its offsets: cleaned segments in streams of their own, everything above in the log stream.
 * A record of a cleaned stream also covers the hole before its batch, so that an offset in a hole finds the next
 * batch.
 */
import { assert } from "../lib/assert.ts";
import type { Offset } from "../lib/brand.ts";
import { partitionPoint } from "../lib/partition_point.ts";
import type { ReadOptions } from "../storage/storage.ts";
import type { StreamRecord } from "../storage/stream_record.ts";
import type { Stream } from "../stream/stream.ts";
import type { Segment } from "./segment.ts";

/** What can be read like a stream. */
export type Readable = Pick<Stream, "streamId" | "fetch">;

export class LogView implements Readable {
  readonly #log: Stream;
  readonly #segments: readonly Segment[];

  constructor(log: Stream, segments: readonly Segment[]) {
    this.#log = log;
    this.#segments = segments;
  }

  get streamId(): Stream["streamId"] {
    return this.#log.streamId;
  }

  /** The cleaned segment that holds an offset; null above all of them. */
  cleanedAt(offset: Offset): Segment | null {
    const segments = this.#segments;
    const place = partitionPoint(
      segments.length,
      (i) => segments[i]!.cleaned !== null && segments[i]!.endOffset <= offset,
    );
    const segment = segments[place];
    return segment !== undefined && segment.cleaned !== null ? segment : null;
  }

  /** As of a stream; reads no further than the cleaned segment that holds `start`. */
  async fetch(
    start: Offset,
    end: Offset,
    options: ReadOptions,
  ): Promise<readonly StreamRecord[] | null> {
    const segment = this.cleanedAt(start);
    if (segment === null) return await this.#log.fetch(start, end, options);
    const { part, start: streamStart } = segment.cleaned!;
    const shift = segment.baseOffset - streamStart;
    assert(start >= segment.baseOffset, "a read begins in its segment");
    const to = Math.min(end, segment.endOffset);
    const records = await part.log.fetch(start - shift, to - shift, options);
    return records === null
      ? null
      : records.map((record) => ({ ...record, baseOffset: record.baseOffset + shift }));
  }
}
