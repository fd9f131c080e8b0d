/** A slice is a segment's part of a stream; `scan` reads any part of a stream in bounded steps. */
import type { Offset } from "../lib/brand.ts";
import { FaultError } from "../lib/errors.ts";
import { endOffset, type StreamRecord } from "../storage/stream_record.ts";
import type { Stream } from "../stream/stream.ts";

/** [start, end) in a stream; an end of -1 means that it still grows. */
export interface Slice {
  readonly start: Offset;
  readonly end: Offset;
}

export const OPEN_END = -1;

/** Every record that covers [start, end), in order; a hole is a loss, not an end. */
export async function* scan(
  stream: Stream,
  start: Offset,
  end: Offset,
  bytesMax: number,
  signal?: AbortSignal,
): AsyncGenerator<StreamRecord, void, undefined> {
  let at = start;
  while (at < end) {
    if (signal?.aborted === true) {
      throw new FaultError("aborted", `Cannot read stream ${stream.streamId}: aborted`, {
        retriable: true,
      });
    }
    const options = signal === undefined ? { bytesMax } : { bytesMax, signal };
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
