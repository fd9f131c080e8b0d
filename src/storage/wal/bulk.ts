/**
 * The open bulk: one WAL object while it is filled. Its bytes are written once, in arrival order, straight
 * in the form that is sent. When the bulk outgrows its memory it moves, and its records are re-viewed so
 * that the old memory can go; payloads read from a record earlier stay valid, they view the old bytes.
 */
import { assert } from "../../lib/assert.ts";
import { SLOT_BYTES, WAL_OBJECT_HEADER_BYTES } from "../../lib/limits.ts";
import type { StreamRecord } from "../stream_record.ts";
import type { WalMemory } from "./wal_memory.ts";
import { type SlotOwner, walRecordBytes, writeWalHeader, writeWalRecord } from "./wal_object.ts";

type Stored = { -readonly [Field in keyof StreamRecord]: StreamRecord[Field] };

/** A closed bulk, ready to be sent. */
export interface FinishedBulk {
  readonly slot: number;
  /** The whole object; never changes again. */
  readonly body: Uint8Array;
  readonly records: number;
  /** The object without its header. */
  readonly bodyBytes: number;
}

export class Bulk {
  readonly slot: number;
  readonly #owner: SlotOwner;
  readonly #memory: WalMemory;
  readonly #records: Stored[] = [];
  /** Ends of the records, relative to the object's start. */
  readonly #ends: number[] = [];
  #slab: Uint8Array;
  #start: number;
  #length = WAL_OBJECT_HEADER_BYTES;

  constructor(owner: SlotOwner, slot: number, memory: WalMemory) {
    this.slot = slot;
    this.#owner = owner;
    this.#memory = memory;
    const place = memory.open();
    this.#slab = place.slab;
    this.#start = place.at;
  }

  /** Bytes of records with their headers: what counts against the slot. */
  get bodyBytes(): number {
    return this.#length - WAL_OBJECT_HEADER_BYTES;
  }

  /** Copies the record; the result's payload views the bulk. */
  append(record: StreamRecord): StreamRecord {
    const bytes = walRecordBytes(record);
    assert(
      this.bodyBytes + bytes <= SLOT_BYTES,
      `WAL slot overflows by a record of ${bytes} bytes`,
    );
    this.#reserve(bytes);
    const address = this.slot * SLOT_BYTES + this.bodyBytes;
    writeWalRecord(this.#slab, this.#start + this.#length, address, record);
    this.#length += bytes;
    this.#ends.push(this.#length);
    const stored = { ...record, payload: this.#payload(this.#length, record.payload.length) };
    this.#records.push(stored);
    return stored;
  }

  finish(trimOffset: number): FinishedBulk {
    assert(this.#records.length > 0, "A bulk without records is not sent: it would be a seal");
    writeWalHeader(this.#slab, this.#start, {
      ...this.#owner,
      startOffset: this.slot * SLOT_BYTES,
      bodyLength: this.bodyBytes,
      sticky: 0,
      trimOffset,
    });
    const end = this.#start + this.#length;
    this.#memory.close(this.#slab, this.#start, end, this.slot);
    return {
      slot: this.slot,
      body: this.#slab.subarray(this.#start, end),
      records: this.#records.length,
      bodyBytes: this.bodyBytes,
    };
  }

  #payload(end: number, length: number): Uint8Array {
    return this.#slab.subarray(this.#start + end - length, this.#start + end);
  }

  #reserve(bytes: number): void {
    const length = this.#length + bytes;
    if (this.#start + length <= this.#slab.length) return;
    const used = this.#slab.subarray(this.#start, this.#start + this.#length);
    const place = this.#memory.fresh(length);
    place.slab.set(used, place.at);
    this.#slab = place.slab;
    this.#start = place.at;
    for (const [i, record] of this.#records.entries()) {
      record.payload = this.#payload(this.#ends[i]!, record.payload.length);
    }
  }
}
