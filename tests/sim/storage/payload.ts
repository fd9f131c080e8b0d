/** What streams carry: real Kafka batches, so that `fsck` proves each of them; a text inside tells them apart. */
import { assignOffsets, buildBatch } from "../../../src/protocol/record_batch.ts";
import { codecs } from "../process.ts";

const TIME_MS = 1_700_000_000_000;

/** Bytes as a string, one character each: equal strings are equal bytes. */
export function keyOf(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

export function toAscii(text: string): Uint8Array {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

export interface BatchAt {
  readonly text: string;
  readonly base: number;
  readonly count: number;
  readonly epoch: number;
}

export function payloadOf({ text, base, count, epoch }: BatchAt): Uint8Array {
  const bytes = buildBatch({
    records: Array.from({ length: count }, (_, i) => ({
      key: null,
      value: i === 0 ? toAscii(text) : null,
      headers: [],
      timestampMs: TIME_MS,
    })),
    codec: null,
    codecs,
  });
  assignOffsets(bytes, base, epoch);
  return bytes;
}
