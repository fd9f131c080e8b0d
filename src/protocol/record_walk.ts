/**
 * Whether the records of an uncompressed batch are what its header says, without a copy or an object for
 * any of them: each is exactly as long as its parts, in its place, and nothing stands behind the last.
 */
import { BATCH_HEADER_BYTES, type BatchHeader } from "./record_batch.ts";

/** A position in bytes; it moves to NaN where they end or a number is too long, which no comparison passes. */
class Cursor {
  readonly #bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  /** Zig-zag varint of at most 32 bits. */
  varint(): number {
    const bytes = this.#bytes;
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = bytes[this.at++];
      if (byte === undefined) break;
      if (shift === 28 && byte > 0x0f) break;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return (value >>> 1) ^ -(value & 1);
    }
    this.at = NaN;
    return NaN;
  }

  /** Past a varint of at most 64 bits. */
  skipVarlong(): void {
    for (let i = 0; i < 10; i++) {
      const byte = this.#bytes[this.at++];
      if (byte === undefined) break;
      if (byte < 0x80) return;
    }
    this.at = NaN;
  }

  /** Past a length and as many bytes; -1 stands for null, where that is allowed. */
  skipSized(lengthMin: -1 | 0): void {
    const length = this.varint();
    if (length >= lengthMin) this.at += Math.max(0, length);
    else this.at = NaN;
  }
}

function isSoundRecord(cursor: Cursor, index: number, batchEnd: number): boolean {
  const length = cursor.varint();
  const end = cursor.at + length;
  if (!(length >= 0 && end <= batchEnd)) return false;
  cursor.at += 1; // record attributes: none are defined
  cursor.skipVarlong();
  if (cursor.varint() !== index) return false;
  cursor.skipSized(-1);
  cursor.skipSized(-1);
  const headers = cursor.varint();
  if (!(headers >= 0)) return false;
  for (let i = 0; i < headers; i++) {
    // A header takes bytes, so that a huge count ends here soon.
    if (!(cursor.at < end)) return false;
    cursor.skipSized(0);
    cursor.skipSized(-1);
  }
  return cursor.at === end;
}

/** The index of the first record that is not sound, the count when bytes are left over, or null. */
export function unsoundRecord(batch: Uint8Array, { recordCount }: BatchHeader): number | null {
  const cursor = new Cursor(batch, BATCH_HEADER_BYTES);
  for (let index = 0; index < recordCount; index++) {
    if (!isSoundRecord(cursor, index, batch.length)) return index;
  }
  return cursor.at === batch.length ? null : recordCount;
}
