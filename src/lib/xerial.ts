/**
 * Snappy as Kafka clients frame it. Java's xerial stream: magic, version, compatible version, then
 * (int32 length, raw snappy block) pairs. librdkafka and others send one raw block without any frame.
 */
import { ByteReader, ByteWriter } from "./bytes.ts";
import { corrupt } from "./corrupt.ts";
import { GrowingOutput } from "./growing_output.ts";

const MAGIC = Uint8Array.of(0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00);
const HEADER_BYTES = 16;
const VERSION = 1;
/** Java's writer cuts its input into blocks of this size. */
const BLOCK_BYTES = 32 * 1024;
/** A copy of 64 bytes takes three: raw snappy expands less than this many times. */
const EXPANSION_MAX = 22;

/** Raw snappy, brought by the host: `inflate` gets the block's declared length, already checked. */
export interface RawSnappy {
  readonly deflate: (bytes: Uint8Array) => Uint8Array;
  readonly inflate: (block: Uint8Array, length: number) => Uint8Array;
}

function isXerial(bytes: Uint8Array): boolean {
  return bytes.length >= HEADER_BYTES && MAGIC.every((byte, i) => bytes[i] === byte);
}

/** The length in front of a raw block, refused where the block or the cap cannot hold it. */
function declaredLength(block: Uint8Array, bytesMax: number): number {
  let length: number;
  try {
    length = new ByteReader(block).uvarint();
  } catch (cause) {
    throw corrupt("Cannot inflate snappy: no length", cause);
  }
  if (length > bytesMax || length > block.length * EXPANSION_MAX) {
    throw corrupt(`Cannot inflate snappy: declared length ${length}`);
  }
  return length;
}

function inflateXerial(bytes: Uint8Array, bytesMax: number, raw: RawSnappy): Uint8Array {
  const reader = new ByteReader(bytes);
  reader.skip(HEADER_BYTES);
  const output = new GrowingOutput(bytesMax, bytes.length * 2);
  while (reader.remaining > 0) {
    if (reader.remaining < 4) throw corrupt("Cannot inflate snappy: block length is cut off");
    const length = reader.i32();
    if (length < 0 || length > reader.remaining) {
      throw corrupt("Cannot inflate snappy: block length");
    }
    const block = reader.take(length);
    output.append(raw.inflate(block, declaredLength(block, bytesMax - output.length)));
  }
  return output.result();
}

/** Takes both framings. Throws FaultError("corrupt"), also when the output would pass `bytesMax`. */
export function inflateSnappy(bytes: Uint8Array, bytesMax: number, raw: RawSnappy): Uint8Array {
  if (isXerial(bytes)) return inflateXerial(bytes, bytesMax, raw);
  return raw.inflate(bytes, declaredLength(bytes, bytesMax));
}

/** Writes the xerial stream: every client reads it, while Java reads nothing else. */
export function deflateSnappy(bytes: Uint8Array, raw: RawSnappy): Uint8Array {
  const writer = new ByteWriter(HEADER_BYTES + (bytes.length >> 1) + 64);
  writer.bytes(MAGIC);
  writer.i32(VERSION);
  writer.i32(VERSION);
  for (let at = 0; at < bytes.length; at += BLOCK_BYTES) {
    const block = raw.deflate(bytes.subarray(at, at + BLOCK_BYTES));
    writer.i32(block.length);
    writer.bytes(block);
  }
  return writer.view();
}
