/** Kafka's codec ids: the low three bits of a batch's attributes. */
import type { CodecName, Codecs } from "../env/codecs.ts";
import { DecodeError } from "../lib/bytes.ts";
import { corrupt } from "../lib/corrupt.ts";
import { INFLATED_BATCH_BYTES, INFLATED_BATCH_RATIO } from "../lib/limits.ts";

const CODEC_MASK = 7;
/** The position is the id; null stands for "not compressed". */
const CODECS: readonly (CodecName | null)[] = [null, "gzip", "snappy", "lz4", "zstd"];

/** Codec of a batch, null for none; undefined for an id that Kafka does not know. */
export function findCodec(attributes: number): CodecName | null | undefined {
  return CODECS[attributes & CODEC_MASK];
}

/** The attributes with the codec's bits exchanged. */
export function withCodec(attributes: number, codec: CodecName | null): number {
  return (attributes & ~CODEC_MASK) | CODECS.indexOf(codec);
}

/** The most that a batch's record bytes may inflate to. */
export function inflatedBytesMax(attributes: number, payloadBytes: number): number {
  if (findCodec(attributes) === null) return payloadBytes;
  return Math.max(INFLATED_BATCH_BYTES, INFLATED_BATCH_RATIO * payloadBytes);
}

/** A batch's record bytes as they were before compression. Throws DecodeError or FaultError("corrupt"). */
export function inflateRecords(
  attributes: number,
  payload: Uint8Array,
  codecs: Codecs,
): Uint8Array {
  const codec = findCodec(attributes);
  if (codec === undefined) {
    throw new DecodeError(`Cannot inflate records: codec ${attributes & CODEC_MASK} is unknown`);
  }
  if (codec === null) return payload;
  if (!codecs.supports(codec)) throw corrupt(`Cannot inflate records: this host lacks ${codec}`);
  return codecs.decompress(codec, payload, inflatedBytesMax(attributes, payload.length));
}
