/**
 * An entry of the metadata log: an envelope of fixed fields around a JSON list of records.
 *
 *   u32 magic "SKML" · u8 version · u16 feature level · i64 position · 16 B hash of the previous entry
 *   u8 length + cluster id · i32 writer's node id · i64 its node epoch (0: not registered yet)
 *   16 B its incarnation · i64 first command sequence · i64 last command sequence
 *   i32 length + records · u32 CRC-32C of everything before it
 *
 * Why JSON inside: an entry is at most 512 KiB and a working node writes some 100 in an hour, so size
 * and speed do not count; that a person can read it with any tool does. Two writers never produce the
 * same bytes for a position, because the incarnation is random: equal bytes mean "my own attempt".
 */
import { type NodeEpoch, nodeEpoch, type NodeId, nodeId, type Position } from "../lib/brand.ts";
import { position } from "../lib/brand.ts";
import { ByteReader, ByteWriter, DecodeError, toUtf8, utf8, viewOf } from "../lib/bytes.ts";
import { corrupt } from "../lib/corrupt.ts";
import { crc32c } from "../lib/crc32c.ts";
import { FaultError } from "../lib/errors.ts";
import { md5 } from "../lib/md5.ts";
import { type Uuid, uuidBytes, uuidOf } from "../lib/uuid.ts";
import { decodeRecords, type MetadataRecord } from "./record.ts";

const MAGIC = 0x534b4d4c;
const VERSION = 1;
/**
 * What this build understands. Raised when a record type is added, when a reader must know a new field, and for
 * every other thing in the store that the build before cannot read: such things are written only once the
 * cluster's own level, that of its last entry, was raised to it.
 */
export const FEATURE_LEVEL = 1;
/** Where every log begins, unless its cluster was created at a higher one. */
export const FEATURE_LEVEL_MIN = 1;
const CRC_BYTES = 4;
const COMMA = 0x2c;
export const HASH_BYTES = 16;
/** Stands where no entry came before. */
export const NO_HASH: Uint8Array = new Uint8Array(HASH_BYTES);
/** Bytes of an entry beside its records, with room for the longest cluster id. */
export const ENVELOPE_BYTES_MAX = 512;

export interface Writer {
  readonly nodeId: NodeId;
  readonly epoch: NodeEpoch;
  readonly incarnation: Uuid;
  /** Sequences of the commands in this entry, inclusive. They only grow within an incarnation. */
  readonly firstCommand: number;
  readonly lastCommand: number;
}

export interface EntryHead {
  readonly at: Position;
  readonly previous: Uint8Array;
  readonly clusterId: string;
  readonly writer: Writer;
  /** Of the cluster from this entry on; it never falls. */
  readonly featureLevel: number;
}

export interface Entry extends EntryHead {
  readonly records: readonly MetadataRecord[];
}

/** `records` as encodeRecord made them. */
export function encodeEntry(head: EntryHead, records: readonly Uint8Array[]): Uint8Array {
  const { writer } = head;
  const out = new ByteWriter(1024);
  const cluster = toUtf8(head.clusterId);
  out.u32(MAGIC);
  out.u8(VERSION);
  out.u16(head.featureLevel);
  out.i64(head.at);
  out.bytes(head.previous);
  out.u8(cluster.length);
  out.bytes(cluster);
  out.i32(writer.nodeId);
  out.i64(writer.epoch);
  out.bytes(uuidBytes(writer.incarnation));
  out.i64(writer.firstCommand);
  out.i64(writer.lastCommand);
  const lengthAt = out.length;
  out.i32(0);
  out.bytes(toUtf8("["));
  for (const [i, record] of records.entries()) {
    if (i > 0) out.u8(COMMA);
    out.bytes(record);
  }
  out.bytes(toUtf8("]"));
  out.patchI32(lengthAt, out.length - lengthAt - 4);
  out.u32(crc32c(out.view()));
  return out.view().slice();
}

/** Takes the CRC at the end off; throws FaultError("corrupt"). */
export function checkedBody(bytes: Uint8Array, what: string): Uint8Array {
  const body = bytes.subarray(0, Math.max(0, bytes.length - CRC_BYTES));
  if (bytes.length < CRC_BYTES || viewOf(bytes).getUint32(body.length) !== crc32c(body)) {
    throw corrupt(`Cannot read ${what}: bad CRC over ${bytes.length} bytes`);
  }
  return body;
}

/** Refuses what a newer build wrote, before anything of it is believed; returns the level. */
export function checkVersion(
  what: string,
  version: number,
  level: number,
  known = FEATURE_LEVEL,
): number {
  if (version === VERSION && level <= known) return level;
  throw new FaultError(
    "config",
    `Cannot read ${what}: it has version ${version}, feature level ${level}; this build knows ` +
      `version ${VERSION} and levels up to ${known}. Start a newer build.`,
    { retriable: false },
  );
}

/** The fixed fields in front of the records, unchecked. Throws DecodeError or FaultError. */
export function readHead(
  reader: ByteReader,
  known?: number,
): EntryHead {
  if (reader.u32() !== MAGIC) throw corrupt("Cannot read metadata entry: wrong magic");
  const featureLevel = checkVersion("metadata entry", reader.u8(), reader.u16(), known);
  return {
    featureLevel,
    at: position(reader.i64()),
    previous: reader.take(HASH_BYTES),
    clusterId: utf8(reader.take(reader.u8())),
    writer: {
      nodeId: nodeId(reader.i32()),
      epoch: nodeEpoch(reader.i64()),
      incarnation: uuidOf(reader.take(HASH_BYTES)),
      firstCommand: reader.i64(),
      lastCommand: reader.i64(),
    },
  };
}

/** `known`: the highest feature level that is read, by default this build's. */
export function decodeEntry(
  bytes: Uint8Array,
  known?: number,
): Entry {
  const reader = new ByteReader(checkedBody(bytes, "metadata entry"));
  try {
    const head = readHead(reader, known);
    const records = decodeRecords(reader.take(reader.i32()));
    if (reader.remaining > 0) throw corrupt("Cannot read metadata entry: bytes behind the records");
    return { ...head, records };
  } catch (error) {
    if (error instanceof DecodeError) throw corrupt("Cannot read metadata entry", error);
    throw error;
  }
}

/** Links an entry to the one before; over all bytes, because a CRC over its own CRC is a constant. */
export function entryHash(bytes: Uint8Array): Uint8Array {
  return md5(bytes);
}
