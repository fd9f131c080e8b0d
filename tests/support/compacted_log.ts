/** Keyed records for tests of compaction: batches of them, what a log holds, what a pass may use. */
import assert from "node:assert/strict";
import type { CleanOptions } from "../../src/log/partition_log.ts";
import { readRecords } from "../../src/protocol/record.ts";
import { buildBatch, readBatchHeader } from "../../src/protocol/record_batch.ts";
import { DAY_MS, type Harness, put, readFrom } from "./partition_harness.ts";

export const COMPACT = { cleanup: { delete: false, compact: true } } as const;
export const ALL: CleanOptions = { mapBytesMax: 2 ** 20, bytesPerSecond: Infinity };

export type Pair = readonly [key: string | null, value: string | null];

export function text(bytes: Uint8Array | null): string {
  return bytes === null ? "-" : new TextDecoder().decode(bytes);
}

function bytes(value: string | null): Uint8Array | null {
  return value === null ? null : new TextEncoder().encode(value);
}

export interface Over {
  readonly codec?: "gzip" | "lz4" | "snappy" | "zstd" | null;
  readonly producerId?: number;
  readonly producerEpoch?: number;
  readonly baseSequence?: number;
  readonly timestamps?: readonly number[];
  readonly transactional?: boolean;
}

export function pairs(h: Harness, records: readonly Pair[], over: Over = {}): Uint8Array {
  const { codec = null, timestamps, ...rest } = over;
  return buildBatch({
    records: records.map(([key, value], i) => ({
      key: bytes(key),
      value: bytes(value),
      headers: [{ key: "h", value: bytes(`${key}`) }],
      timestampMs: timestamps?.[i] ?? h.nowMs,
    })),
    codec,
    codecs: h.env.codecs,
    ...rest,
  });
}

/** `offset key=value` of every record from an offset, read batch by batch. */
export async function records(h: Harness, from = h.log.logStartOffset): Promise<string[]> {
  const found: string[] = [];
  for (let at = from; at < h.log.highWatermark;) {
    const read = await h.log.read(at, { bytesMax: 1, isolation: "uncommitted" });
    assert.ok(read !== null && read.ok && read.batches.length > 0, `nothing at ${at}`);
    for (const batch of read.batches) {
      const header = readBatchHeader(batch);
      for (const { offset, key, value } of readRecords(batch, h.env.codecs)) {
        if (offset >= at) found.push(`${offset} ${text(key)}=${text(value)}`);
      }
      assert.ok(header.baseOffset + header.lastOffsetDelta >= at, "a read goes on");
      at = header.baseOffset + header.lastOffsetDelta + 1;
    }
  }
  return found;
}

export async function headers(h: Harness) {
  const { batches } = await readFrom(h.log, h.log.logStartOffset);
  return batches.map((batch) => readBatchHeader(batch));
}

/** Ends the active segment: a batch of a later day opens the next one. */
export async function roll(h: Harness): Promise<void> {
  h.nowMs += 8 * DAY_MS;
  await put(h.log, pairs(h, [["roll", "x"]]));
}
