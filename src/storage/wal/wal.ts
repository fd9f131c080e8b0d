/**
 * The write-ahead log port. Records are acknowledged strictly in append order; an acknowledged record
 * survives kill -9. One instance belongs to one node epoch.
 */
import type { FaultError } from "../../lib/errors.ts";
import type { StreamRecord } from "../stream_record.ts";

/** A record as it lies in the WAL's memory. */
export interface Appended {
  /** The payload is a view of the WAL's own buffer, the one copy of the hot path; until the next append. */
  readonly record: StreamRecord;
  /** The slot that will hold the record. */
  readonly slot: number;
  /**
   * Resolves once the record and all before it are durable, with the WAL object that holds it, in memory
   * that stays until its slot is forgotten; rejects with `fenced` or `closed`. Records of a bulk share it.
   */
  readonly durable: Promise<Uint8Array>;
}

export interface WalState {
  /** Bytes appended and not yet acknowledged. */
  readonly unacknowledgedBytes: number;
  /** First slot that is still needed. */
  readonly trimmedTo: number;
  /** Slot that the next record goes to. */
  readonly nextSlot: number;
  readonly fenced: boolean;
  /** Why nothing is acknowledged since a while; null while writes come through, or none is waiting. */
  readonly problem: string | null;
}

export interface Wal {
  /**
   * Copies the record into the open bulk, synchronously.
   * Throws FaultError `overloaded` at the byte cap, `fenced` or `closed`.
   */
  append(record: StreamRecord): Appended;
  /** Slots below are committed elsewhere: deletes them, in the background. Call only after the commit. */
  trim(slot: number): void;
  /** Nobody needs the records of slots below in memory; buffers that are still viewed are left alone. */
  forget(slot: number, isViewed: (buffer: ArrayBufferLike) => boolean): void;
  state(): WalState;
  /** Called once when another incarnation or a recoverer is found in one of our slots. */
  onFenced(listener: (reason: string) => void): void;
  /** Gives up at once, as a crash would: what is not acknowledged fails with the fault, though its PUT may land. */
  abandon(fault: FaultError): void;
  /** Sends what is open, waits for its outcome, then refuses appends. */
  close(): Promise<void>;
}
