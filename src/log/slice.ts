/** A slice is a segment's part of a stream; `scan` reads any part of a stream in bounded steps. */
import type { Offset } from "../lib/brand.ts";
import { FaultError } from "../lib/errors.ts";
import type { ReadOptions } from "../storage/storage.ts";
import { endOffset, type StreamRecord } from "../storage/stream_record.ts";
import type { Readable } from "./log_view.ts";

/** [start, end) in a stream; an end of -1 means that it still grows. */
export interface Slice {
  readonly start: Offset;
  readonly end: Offset;
}

export const OPEN_END = -1;

export function isEmptySlice({ start, end }: Slice): boolean {
  return start === end;
}

/** The slice with `length` more at `at`, which is its end unless it is empty. */
export function extended(slice: Slice, at: Offset, length: number): Slice {
  return { start: isEmptySlice(slice) ? at : slice.start, end: at + length };
}

/** Every record that covers [start, end), in order; a hole is a loss, not an end. */
export function scan(
  stream: Readable,
  start: Offset,
  end: Offset,
  bytesMax: number,
  signal?: AbortSignal,
): AsyncGenerator<StreamRecord, void, undefined> {
  return steps(stream, start, end, signal === undefined ? { bytesMax } : { bytesMax, signal });
}

/** The same for a partition that opens: produces wait for it, so it does not wait for cold readers. */
export function scanToOpen(
  stream: Readable,
  start: Offset,
  end: Offset,
  bytesMax: number,
): AsyncGenerator<StreamRecord, void, undefined> {
  return steps(stream, start, end, { bytesMax, isOpening: true });
}

async function* steps(
  stream: Readable,
  start: Offset,
  end: Offset,
  options: ReadOptions,
): AsyncGenerator<StreamRecord, void, undefined> {
  const { signal } = options;
  let at = start;
  while (at < end) {
    if (signal?.aborted === true) {
      throw new FaultError("aborted", `Cannot read stream ${stream.streamId}: aborted`, {
        retriable: true,
      });
    }
    const records = await stream.fetch(at, end, options);
    const last = records?.at(-1);
    if (last === undefined || endOffset(last) <= at) {
      throw new FaultError(
        "data-loss",
        `Cannot read stream ${stream.streamId}: nothing at ${at}, its end is ${end}`,
        { retriable: false },
      );
    }
    yield* records!;
    at = endOffset(last);
  }
}
