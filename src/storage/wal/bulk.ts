/**
 * The open bulk: one WAL object while it is filled. Its bytes are written once, in arrival order, straight
 * in the form that is sent, and nothing else is kept of a record. When the bulk outgrows its memory it moves;
 * what an append returned then views the old bytes, which stay what they are only until the next append.
 */
import { assert } from "../../lib/assert.ts";
import { viewOf } from "../../lib/bytes.ts";
import { SLOT_BYTES, WAL_OBJECT_HEADER_BYTES } from "../../lib/limits.ts";
import type { StreamRecord } from "../stream_record.ts";
import type { WalMemory } from "./wal_memory.ts";
import { type SlotOwner, walRecordBytes, writeWalHeader, writeWalRecord } from "./wal_object.ts";

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
  #records = 0;
  #slab: Uint8Array;
  #view: DataView;
  #start: number;
  #length = WAL_OBJECT_HEADER_BYTES;

  constructor(owner: SlotOwner, slot: number, memory: WalMemory) {
    this.slot = slot;
    this.#owner = owner;
    this.#memory = memory;
    const place = memory.open();
    this.#slab = place.slab;
    this.#view = viewOf(place.slab);
    this.#start = place.at;
  }

  /** Bytes of records with their headers: what counts against the slot. */
  get bodyBytes(): number {
    return this.#length - WAL_OBJECT_HEADER_BYTES;
  }

  /** Copies the record; the result's payload views the bulk, until the next append. */
  append(record: StreamRecord): StreamRecord {
    const bytes = walRecordBytes(record);
    assert(
      this.bodyBytes + bytes <= SLOT_BYTES,
      `WAL slot overflows by a record of ${bytes} bytes`,
    );
    this.#reserve(bytes);
    const address = this.slot * SLOT_BYTES + this.bodyBytes;
    const end = writeWalRecord(
      this.#slab,
      this.#start + this.#length,
      address,
      record,
      this.#view,
    );
    this.#length += bytes;
    this.#records += 1;
    const { streamId, epoch, baseOffset, count, payload } = record;
    const stored = this.#slab.subarray(end - payload.length, end);
    return { streamId, epoch, baseOffset, count, payload: stored };
  }

  finish(trimOffset: number): FinishedBulk {
    assert(this.#records > 0, "A bulk without records is not sent: it would be a seal");
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
      records: this.#records,
      bodyBytes: this.bodyBytes,
    };
  }

  #reserve(bytes: number): void {
    const length = this.#length + bytes;
    if (this.#start + length <= this.#slab.length) return;
    const used = this.#slab.subarray(this.#start, this.#start + this.#length);
    const place = this.#memory.fresh(length);
    place.slab.set(used, place.at);
    this.#slab = place.slab;
    this.#view = viewOf(place.slab);
    this.#start = place.at;
  }
}
