/**
 * Records of one stream in offset order that need not be objects: a million tiny records are then a few
 * bytes each, and only those that somebody reads become objects. Encoded records are copied as they are.
 */
import { getInt64, viewOf } from "../lib/bytes.ts";
import type { Offset } from "../lib/brand.ts";
import { STREAM_RECORD_HEADER_BYTES } from "../lib/limits.ts";
import {
  encodedBytes,
  endOffset,
  readStreamRecord,
  type StreamRecord,
  writeStreamRecord,
} from "./stream_record.ts";

export interface RecordList {
  readonly length: number;
  /** Makes the record; its payload is a view. */
  at(i: number): StreamRecord;
  startAt(i: number): Offset;
  endAt(i: number): Offset;
  payloadBytesAt(i: number): number;
  /** Writes the encoded record at a position of `target`; returns the position behind it. */
  write(i: number, target: Uint8Array, at: number): number;
}

/** Records that are objects already. The array may grow. */
export function listOf(records: readonly StreamRecord[]): RecordList {
  return {
    get length() {
      return records.length;
    },
    at: (i) => records[i]!,
    startAt: (i) => records[i]!.baseOffset,
    endAt: (i) => endOffset(records[i]!),
    payloadBytesAt: (i) => records[i]!.payload.length,
    write: (i, target, at) => writeStreamRecord(target, at, records[i]!),
  };
}

/** Below, a loop is faster than the view that a block copy needs. */
const BLOCK_COPY_BYTES_MIN = 96;

/** Memory with encoded stream records in it, read in place. */
export class RecordMemory {
  readonly bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.#view = viewOf(bytes);
  }

  streamAt(at: number): number {
    return getInt64(this.#view, at + 1);
  }
  startAt(at: number): Offset {
    return getInt64(this.#view, at + 17);
  }
  endAt(at: number): Offset {
    return getInt64(this.#view, at + 17) + this.#view.getInt32(at + 25);
  }
  payloadBytesAt(at: number): number {
    return this.#view.getInt32(at + 29);
  }
  recordAt(at: number): StreamRecord {
    return readStreamRecord(this.bytes, at, this.#view);
  }

  copy(at: number, target: Uint8Array, to: number): number {
    const length = STREAM_RECORD_HEADER_BYTES + this.payloadBytesAt(at);
    if (length >= BLOCK_COPY_BYTES_MIN) target.set(this.bytes.subarray(at, at + length), to);
    else for (let i = 0; i < length; i++) target[to + i] = this.bytes[at + i]!;
    return to + length;
  }
}

const OWN_BYTES_MIN = 4 * 1024;
const OWN_BYTES_MAX = 8 * 1024 * 1024;

/** Memory that records are copied into, when those who have them do not keep theirs. */
export class OwnMemory {
  #memory: RecordMemory = new RecordMemory(new Uint8Array(0));
  #used = 0;

  /** Where the record lies now. */
  copy(record: StreamRecord): { readonly memory: RecordMemory; readonly at: number } {
    const bytes = encodedBytes(record);
    if (this.#used + bytes > this.#memory.bytes.length) {
      const doubled = Math.min(OWN_BYTES_MAX, 2 * this.#memory.bytes.length);
      this.#memory = new RecordMemory(new Uint8Array(Math.max(OWN_BYTES_MIN, doubled, bytes)));
      this.#used = 0;
    }
    const at = this.#used;
    this.#used = writeStreamRecord(this.#memory.bytes, at, record);
    return { memory: this.#memory, at };
  }
}
