/** Short ways to make stream records in tests. */
import { streamEpoch, streamId } from "../../src/lib/brand.ts";
import type { StreamRecord } from "../../src/storage/stream_record.ts";

/** `payload` may be a length. */
export function record(
  stream: number,
  baseOffset: number,
  count = 1,
  payload: Uint8Array | number = 1,
): StreamRecord {
  return {
    streamId: streamId(stream),
    epoch: streamEpoch(0),
    baseOffset,
    count,
    payload: typeof payload === "number" ? new Uint8Array(payload).fill(stream) : payload,
  };
}

export function bases(records: readonly StreamRecord[] | null | undefined): number[] | null {
  return records?.map(({ baseOffset }) => baseOffset) ?? null;
}
