/** Records that tell who wrote them and as which; every byte follows from that. */
import { Buffer } from "node:buffer";
import { createCodecs } from "../../src/adapters/codecs.ts";
import { toUtf8 } from "../../src/lib/bytes.ts";
import type { BatchRecord } from "../../src/protocol/record.ts";
import { buildBatch } from "../../src/protocol/record_batch.ts";

const decoder = new TextDecoder();
export const codecs = createCodecs();
const FILLER_BYTES = 40_960;
/** No two places of it look alike. */
const filler = Uint8Array.from({ length: FILLER_BYTES }, (_, i) => 33 + ((i * 7 + (i >> 5)) % 90));

/** Between 20 and about 2,000 bytes, mostly small; the writers that fill segments write larger ones. */
function fillerLength(writer: string, sequence: number): number {
  const spread = (sequence * 2_654_435_761) % 1_000;
  const length = spread < 900 ? 20 + spread % 200 : 500 + Math.floor(spread * 1.5);
  return writer.includes("sized") ? length * 10 : length;
}

export function payloadOf(writer: string, sequence: number): Buffer {
  const head = toUtf8(`${sequence}:`);
  const length = fillerLength(writer, sequence);
  const from = sequence % 1_000;
  return Buffer.concat([head, filler.subarray(from, from + length)]);
}

export interface Told {
  readonly writer: string;
  readonly sequence: number;
}

/** Throws when a byte is not what its writer wrote. */
export function readPayload({ key, value }: Pick<BatchRecord, "key" | "value">): Told {
  if (key === null || value === null) throw new Error("a record without key or value");
  const colon = value.indexOf(58);
  const sequence = Number(decoder.decode(value.subarray(0, colon)));
  if (colon < 1 || !Number.isSafeInteger(sequence)) throw new Error("a record without a sequence");
  const writer = decoder.decode(key);
  if (Buffer.compare(value, payloadOf(writer, sequence)) !== 0) {
    throw new Error(`other bytes than record ${sequence} of ${writer} was written with`);
  }
  return { writer, sequence };
}

export interface BatchPlan {
  readonly writer: string;
  readonly sequence: number;
  readonly count: number;
  /** -1: plain. */
  readonly producerId: number;
}

export function batchOf({ writer, sequence, count, producerId }: BatchPlan): Uint8Array {
  const key = toUtf8(writer);
  const timestampMs = Date.now();
  const codec = sequence % 5 === 0 ? "gzip" as const : null;
  return buildBatch({
    records: Array.from({ length: count }, (_, i) => {
      return { key, value: payloadOf(writer, sequence + i), headers: [], timestampMs };
    }),
    codec,
    codecs,
    ...(producerId < 0 ? {} : { producerId, producerEpoch: 0, baseSequence: sequence }),
  });
}
