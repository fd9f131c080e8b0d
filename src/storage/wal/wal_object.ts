/**
 * The WAL object, byte for byte as AutoMQ's V1 (docs/formats.md). All integers are big-endian.
 *
 *   object header  i32 magic · i64 start · i64 body length · i64 sticky · i32 node · i64 epoch · i64 trim
 *   record header  i32 magic · i32 body length · i64 body offset · i32 body CRC · i32 header CRC
 *   object         object header · (record header · stream record)*; a seal is an object header alone
 *
 * CRCs are CRC-32 (IEEE) without the sign bit. Offsets are addresses of the WAL: slot × 64 MiB + place in the body.
 */
import {
  type NodeEpoch,
  nodeEpoch,
  type NodeId,
  nodeId,
  type Position,
  position,
} from "../../lib/brand.ts";
import { DecodeError, getInt64, setInt64, viewOf } from "../../lib/bytes.ts";
import { crc32 } from "../../lib/crc32.ts";
import { SLOT_BYTES, WAL_OBJECT_HEADER_BYTES, WAL_RECORD_HEADER_BYTES } from "../../lib/limits.ts";
import {
  encodedBytes,
  readStreamRecord,
  type StreamRecord,
  writeStreamRecord,
} from "../stream_record.ts";

const OBJECT_MAGIC = 0xedcba987;
const RECORD_MAGIC = 0x87654321;
const HEADER_CRC_AT = 20;
const CRC_MASK = 0x7fffffff;
const NO_TRIM = -1;

/** Whose slot it is. */
export interface SlotOwner {
  readonly nodeId: NodeId;
  readonly epoch: NodeEpoch;
}

export interface WalHeader extends SlotOwner {
  readonly startOffset: number;
  readonly bodyLength: number;
  /** AutoMQ's legacy field: 0 in a data object, the recovery entry's position in a seal. */
  readonly sticky: number;
  /** Last address that was trimmed when the object was made, −1 for none. */
  readonly trimOffset: number;
}

export type WalObject =
  | { readonly kind: "data"; readonly header: WalHeader; readonly records: readonly StreamRecord[] }
  | { readonly kind: "seal"; readonly header: WalHeader; readonly recovery: Position };

function crcOf(bytes: Uint8Array): number {
  return crc32(bytes) & CRC_MASK;
}

/** The header's trim field for `inspect`: the last address below the first slot that is still needed. */
export function trimOffsetOf(walTrim: number): number {
  return walTrim === 0 ? NO_TRIM : walTrim * SLOT_BYTES - 1;
}

export function writeWalHeader(target: Uint8Array, at: number, header: WalHeader): void {
  const view = viewOf(target);
  view.setUint32(at, OBJECT_MAGIC);
  setInt64(view, at + 4, header.startOffset);
  setInt64(view, at + 12, header.bodyLength);
  setInt64(view, at + 20, header.sticky);
  view.setInt32(at + 28, header.nodeId);
  setInt64(view, at + 32, header.epoch);
  setInt64(view, at + 40, header.trimOffset);
}

export function readWalHeader(bytes: Uint8Array): WalHeader {
  if (bytes.length < WAL_OBJECT_HEADER_BYTES) {
    throw new DecodeError(`Cannot read WAL header: only ${bytes.length} bytes`);
  }
  const view = viewOf(bytes);
  const magic = view.getUint32(0);
  if (magic !== OBJECT_MAGIC) {
    throw new DecodeError(`Cannot read WAL header: invalid magic ${magic.toString(16)}`);
  }
  const node = view.getInt32(28);
  const epoch = getInt64(view, 32);
  if (node < 0 || epoch < 0) {
    throw new DecodeError(`Cannot read WAL header: node ${node}, epoch ${epoch}`);
  }
  return {
    startOffset: getInt64(view, 4),
    bodyLength: getInt64(view, 12),
    sticky: getInt64(view, 20),
    nodeId: nodeId(node),
    epoch: nodeEpoch(epoch),
    trimOffset: getInt64(view, 40),
  };
}

/** Bytes that a record takes in the body of a WAL object. */
export function walRecordBytes(record: StreamRecord): number {
  return WAL_RECORD_HEADER_BYTES + encodedBytes(record);
}

/**
 * Writes header and record at a position of `target`; returns the position behind them.
 * `address` is the WAL address of the record's header. The payload is copied here, once.
 */
export function writeWalRecord(
  target: Uint8Array,
  at: number,
  address: number,
  record: StreamRecord,
  view = viewOf(target),
): number {
  const bodyAt = at + WAL_RECORD_HEADER_BYTES;
  const end = writeStreamRecord(target, bodyAt, record, view);
  view.setUint32(at, RECORD_MAGIC);
  view.setInt32(at + 4, end - bodyAt);
  setInt64(view, at + 8, address + WAL_RECORD_HEADER_BYTES);
  view.setInt32(at + 16, crcOf(target.subarray(bodyAt, end)));
  view.setInt32(at + HEADER_CRC_AT, crcOf(target.subarray(at, at + HEADER_CRC_AT)));
  return end;
}

/** The object that a recoverer puts into the first empty slot: nothing of the owner can follow it. */
export function encodeSeal(owner: SlotOwner, slot: number, recovery: Position): Uint8Array {
  const bytes = new Uint8Array(WAL_OBJECT_HEADER_BYTES);
  writeWalHeader(bytes, 0, {
    ...owner,
    startOffset: slot * SLOT_BYTES,
    bodyLength: 0,
    sticky: recovery,
    trimOffset: NO_TRIM,
  });
  return bytes;
}

/** Checks the record at a place of an object, written for a WAL address; returns where it ends. Throws DecodeError. */
function checkWalRecord(bytes: Uint8Array, view: DataView, at: number, address: number): number {
  const bodyAt = at + WAL_RECORD_HEADER_BYTES;
  if (bodyAt > bytes.length) throw new DecodeError(`WAL record header at ${at} passes the end`);
  if (crcOf(bytes.subarray(at, at + HEADER_CRC_AT)) !== view.getInt32(at + HEADER_CRC_AT)) {
    throw new DecodeError(`WAL record header at ${at} fails its CRC`);
  }
  if (view.getUint32(at) !== RECORD_MAGIC) {
    throw new DecodeError(`WAL record header at ${at} has a foreign magic`);
  }
  const end = bodyAt + view.getInt32(at + 4);
  if (end < bodyAt || end > bytes.length) {
    throw new DecodeError(`WAL record at ${at} passes the end`);
  }
  if (getInt64(view, at + 8) !== address + WAL_RECORD_HEADER_BYTES) {
    throw new DecodeError(`WAL record at ${at} was written for another address`);
  }
  if (crcOf(bytes.subarray(bodyAt, end)) !== view.getInt32(at + 16)) {
    throw new DecodeError(`WAL record at ${at} fails its CRC`);
  }
  const record = readStreamRecord(bytes, bodyAt, view);
  if (bodyAt + encodedBytes(record) !== end) {
    throw new DecodeError(`WAL record at ${at} and its stream record disagree on the length`);
  }
  return end;
}

export interface ReadRecord {
  readonly record: StreamRecord;
  readonly end: number;
}

/** Reads and checks the record at a place of an object, written for a WAL address. Throws DecodeError. */
export function readWalRecord(bytes: Uint8Array, at: number, address: number): ReadRecord {
  const view = viewOf(bytes);
  const end = checkWalRecord(bytes, view, at, address);
  return { record: readStreamRecord(bytes, at + WAL_RECORD_HEADER_BYTES, view), end };
}

function checkHeader(header: WalHeader, owner: SlotOwner, slot: number, bodyLength: number): void {
  if (header.nodeId !== owner.nodeId || header.epoch !== owner.epoch) {
    throw new DecodeError(
      `WAL object belongs to node ${header.nodeId} epoch ${header.epoch}, ` +
        `not to node ${owner.nodeId} epoch ${owner.epoch}`,
    );
  }
  if (header.startOffset !== slot * SLOT_BYTES) {
    throw new DecodeError(`WAL object starts at ${header.startOffset}, not in slot ${slot}`);
  }
  if (header.bodyLength !== bodyLength) {
    throw new DecodeError(
      `WAL object has ${bodyLength} bytes, its header says ${header.bodyLength}`,
    );
  }
  const trimmed = header.trimOffset + 1;
  if (trimmed < 0 || trimmed % SLOT_BYTES !== 0 || trimmed > header.startOffset) {
    throw new DecodeError(`WAL object has the impossible trim offset ${header.trimOffset}`);
  }
}

/** What a checked object is, without its records: read those with `walRecords`. */
export type CheckedWalObject =
  | { readonly kind: "data"; readonly header: WalHeader }
  | { readonly kind: "seal"; readonly header: WalHeader; readonly recovery: Position };

/** Checks everything in an object found in a slot: owner, address, lengths, each CRC. Throws DecodeError. */
export function checkWalObject(
  bytes: Uint8Array,
  owner: SlotOwner,
  slot: number,
): CheckedWalObject {
  const header = readWalHeader(bytes);
  checkHeader(header, owner, slot, bytes.length - WAL_OBJECT_HEADER_BYTES);
  if (header.bodyLength === 0) {
    if (header.sticky <= 0 || header.trimOffset !== NO_TRIM) {
      throw new DecodeError("Cannot read seal: no recovery position");
    }
    return { kind: "seal", header, recovery: position(header.sticky) };
  }
  if (header.sticky !== 0) throw new DecodeError("Cannot read WAL object: sticky length is set");
  const view = viewOf(bytes);
  for (let at = WAL_OBJECT_HEADER_BYTES; at < bytes.length;) {
    at = checkWalRecord(bytes, view, at, header.startOffset + at - WAL_OBJECT_HEADER_BYTES);
  }
  return { kind: "data", header };
}

/** Where the stream records of an object lie that is ours, or that was checked. */
export function* walPlaces(bytes: Uint8Array): Generator<number> {
  const view = viewOf(bytes);
  for (let at = WAL_OBJECT_HEADER_BYTES; at < bytes.length;) {
    const bodyAt = at + WAL_RECORD_HEADER_BYTES;
    yield bodyAt;
    at = bodyAt + view.getInt32(at + 4);
  }
}

/** The records of an object that was checked, one at a time: a slot of tiny ones has a million. */
export function* walRecords(bytes: Uint8Array): Generator<StreamRecord> {
  const view = viewOf(bytes);
  for (const at of walPlaces(bytes)) yield readStreamRecord(bytes, at, view);
}

/** Checks an object and reads all of it. Payloads are views of `bytes`. Throws DecodeError. */
export function readWalObject(bytes: Uint8Array, owner: SlotOwner, slot: number): WalObject {
  const checked = checkWalObject(bytes, owner, slot);
  if (checked.kind === "seal") return checked;
  return { ...checked, records: [...walRecords(bytes)] };
}
