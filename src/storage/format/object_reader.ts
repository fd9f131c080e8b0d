/** Reads the parts of a data object with as few requests as possible, checking what can be checked. */
import { AssertionError } from "../../lib/assert.ts";
import { DecodeError } from "../../lib/bytes.ts";
import { crc32c } from "../../lib/crc32c.ts";
import { FaultError } from "../../lib/errors.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import type { ObjectRef } from "../ports.ts";
import type { StreamRecord } from "../stream_record.ts";
import { CompositeIndex } from "./composite.ts";
import { decodeDataBlocks } from "./data_block.ts";
import { decodeFooter, FOOTER_BYTES } from "./footer.ts";
import { INDEX_ENTRY_BYTES, IndexBlock } from "./index_block.ts";

const TAIL_GUESS_BYTES = 8192;
const MIB = 1024 * 1024;

/** Enough of an object's end to hold its index: an entry per MiB of data, and some room. */
export function tailGuessBytes(size: number): number {
  return Math.min(size, TAIL_GUESS_BYTES + Math.floor(size / MIB) * INDEX_ENTRY_BYTES);
}

export function corrupt(key: string, cause: unknown): FaultError {
  const detail = cause instanceof Error ? cause.message : String(cause);
  return new FaultError("corrupt", `Object ${key} is corrupt: ${detail}`, {
    retriable: false,
    cause,
  });
}

/** Runs a decoder over an object's bytes; what does not parse is a fault of the object. */
export function decoding<T>(key: string, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    // Branded ids assert; here their input came from outside.
    const isBadInput = error instanceof DecodeError || error instanceof AssertionError;
    throw isBadInput ? corrupt(key, error) : error;
  }
}

type SizedObject = Pick<ObjectRef, "size" | "checksums">;

/** Null when the object is not there. */
export async function readIndex(
  store: ObjectStore,
  key: string,
  { size, checksums }: SizedObject,
): Promise<IndexBlock | null> {
  const tailStart = size - tailGuessBytes(size);
  const tail = await readRange(store, key, tailStart, size);
  if (tail === null) return null;
  if (tailStart === 0) expectCrc(key, "bytes", tail, checksums.bytesCrc);
  const { indexPosition, indexLength } = decoding(key, () => decodeFooter("data", tail, size));
  const index = indexPosition >= tailStart
    ? tail.slice(indexPosition - tailStart, tail.length - FOOTER_BYTES)
    : await readRange(store, key, indexPosition, indexPosition + indexLength);
  return index === null ? null : checkedIndex(key, index, indexPosition, checksums.indexCrc);
}

function checkedIndex(key: string, index: Uint8Array, position: number, crc: number): IndexBlock {
  expectCrc(key, "index", index, crc);
  return decoding(key, () => new IndexBlock(index, position));
}

export interface WholeObject {
  readonly bytes: Uint8Array;
  readonly index: IndexBlock;
}

/** All of a small object in one request. Null when it is not there. */
export async function readWhole(
  store: ObjectStore,
  key: string,
  { size, checksums }: SizedObject,
  signal: AbortSignal,
): Promise<WholeObject | null> {
  const bytes = await readRange(store, key, 0, size, signal);
  if (bytes === null) return null;
  expectCrc(key, "bytes", bytes, checksums.bytesCrc);
  const { indexPosition } = decoding(key, () => decodeFooter("data", bytes, size));
  const index = bytes.slice(indexPosition, bytes.length - FOOTER_BYTES);
  return { bytes, index: checkedIndex(key, index, indexPosition, checksums.indexCrc) };
}

/** A composite holds nothing but links and index: it is read whole. Null when it is not there. */
export async function readComposite(
  store: ObjectStore,
  key: string,
  { checksums }: Pick<ObjectRef, "checksums">,
): Promise<CompositeIndex | null> {
  const got = await store.get(key);
  if (got === null) return null;
  expectCrc(key, "bytes", got.bytes, checksums.bytesCrc);
  return decoding(key, () => new CompositeIndex(got.bytes));
}

/** Exactly these bytes; null when the object is not there. */
export async function readRange(
  store: ObjectStore,
  key: string,
  start: number,
  end: number,
  signal?: AbortSignal,
): Promise<Uint8Array | null> {
  const range = { start, end };
  const got = await store.get(key, signal === undefined ? { range } : { range, signal });
  if (got === null) return null;
  if (got.bytes.length !== end - start) {
    throw corrupt(key, `${got.bytes.length} bytes at ${start}, not ${end - start}`);
  }
  return got.bytes;
}

export function decodeRecords(key: string, bytes: Uint8Array): StreamRecord[] {
  return decoding(key, () => decodeDataBlocks(bytes));
}

function expectCrc(key: string, what: string, bytes: Uint8Array, expected: number): void {
  const actual = crc32c(bytes);
  if (actual !== expected) {
    throw corrupt(key, `CRC-32C of its ${what} is ${actual}, not ${expected}`);
  }
}
