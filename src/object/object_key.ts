/**
 * Every key that Skerry writes: format and parse. Data and WAL keys are AutoMQ's byte for byte
 * (docs/formats.md); the metadata log, snapshots, cluster object and probes are our own.
 * Parsers answer null for a key of another kind: listings may hold foreign keys.
 */
import { assert } from "../lib/assert.ts";
import type { NodeEpoch, NodeId, ObjectId, Position } from "../lib/brand.ts";
import { nodeEpoch, nodeId, objectId, position } from "../lib/brand.ts";
import { toHex, toUtf8 } from "../lib/bytes.ts";
import { clusterSegment } from "../lib/cluster_id.ts";
import { SLOT_BYTES } from "../lib/limits.ts";
import { md5 } from "../lib/md5.ts";

const HASH_DIGITS = 8;
const POSITION_DIGITS = 20;

/** Where the one cluster of a prefix keeps its id, format and feature level. */
export const CLUSTER_KEY = "meta/cluster";
/** Everything below it was written by a start-up probe and may be deleted at any time. */
export const PROBE_PREFIX = "meta/probe/";

/** Every cluster keeps its metadata below a segment that begins like this. */
export const METADATA_PREFIX = "meta/_kafka_";

/** The part of a metadata key that names its cluster, percent-encoded; null for any other key. */
export function clusterSegmentOf(key: string): string | null {
  if (!key.startsWith(METADATA_PREFIX)) return null;
  return key.slice(METADATA_PREFIX.length).split("/")[0] ?? null;
}

/** Fails on a key that the port forbids; keys come from this file, so a bad one is a bug. */
export function assertKey(key: string): void {
  assert(isKey(key), `Not an object key: ${JSON.stringify(key)}`);
}

/** `/`-separated, no empty segment, no `.` or `..`: valid in a bucket and as a relative path alike. */
export function isKey(key: string): boolean {
  return key.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

function namespace(clusterId: string): string {
  return `_kafka_${clusterSegment(clusterId)}`;
}

/** A decimal without sign or leading zero, as our formatters write it; null for anything else. */
function parseDecimal(text: string | undefined): number | null {
  if (text === undefined || !/^(0|[1-9][0-9]{0,15})$/.test(text)) return null;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : null;
}

// --- data objects -----------------------------------------------------------------------------

/** The hex digits are reversed: consecutive ids then spread over the store's key partitions. */
export function dataKey(clusterId: string, id: ObjectId): string {
  const hash = id.toString(16).padStart(HASH_DIGITS, "0").split("").toReversed().join("");
  return `${hash}/${namespace(clusterId)}/${id}`;
}

export function parseDataKey(clusterId: string, key: string): ObjectId | null {
  const id = parseDecimal(key.split("/").at(-1));
  if (id === null || dataKey(clusterId, objectId(id)) !== key) return null;
  return objectId(id);
}

/** Metadata, probes and WAL slots: what commits and acknowledgements wait for. */
export function isLogKey(key: string): boolean {
  return key.startsWith("meta/") || key.includes("/wal/");
}

// --- sparse index of a node ---------------------------------------------------------------------

/** Java's String.hashCode, as AutoMQ's keys have it. */
function javaHash(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return hash >>> 0;
}

/** One object per node, written anew from time to time: a hint for reading, which nobody needs. */
export function sparseIndexKey(clusterId: string, id: NodeId): string {
  const hash = javaHash(`sparse-index${id}`).toString(16).padStart(HASH_DIGITS, "0");
  return `${hash}/${namespace(clusterId)}/node-${id}`;
}

export function parseSparseIndexKey(clusterId: string, key: string): NodeId | null {
  const id = parseDecimal(key.split("/").at(-1)?.replace(/^node-/, ""));
  if (id === null || sparseIndexKey(clusterId, nodeId(id)) !== key) return null;
  return nodeId(id);
}

// --- WAL objects ------------------------------------------------------------------------------

export interface WalKey {
  readonly nodeId: NodeId;
  readonly nodeEpoch: NodeEpoch;
  /** The object holds the WAL addresses of this 64 MiB slot. */
  readonly slot: number;
}

/** Prefix of all WAL objects of one node, over all of its epochs. */
export function walNodePrefix(clusterId: string, id: NodeId): string {
  return `${toHex(md5(toUtf8(String(id)))).toUpperCase()}/${namespace(clusterId)}/${id}/`;
}

/** Prefix of the WAL objects of one incarnation. */
export function walEpochPrefix(clusterId: string, id: NodeId, epoch: NodeEpoch): string {
  return `${walNodePrefix(clusterId, id)}${epoch}/wal/`;
}

/** The keys of one incarnation's slots; its prefix, a hash, is made once. */
export function walKeys(clusterId: string, id: NodeId, epoch: NodeEpoch): (slot: number) => string {
  const prefix = walEpochPrefix(clusterId, id, epoch);
  return (slot) => `${prefix}${slot * SLOT_BYTES}-${(slot + 1) * SLOT_BYTES}`;
}

export function walKey(clusterId: string, { nodeId: id, nodeEpoch: epoch, slot }: WalKey): string {
  return walKeys(clusterId, id, epoch)(slot);
}

export function parseWalKey(clusterId: string, key: string): WalKey | null {
  const parts = key.split("/");
  const id = parseDecimal(parts.at(-4));
  const epoch = parseDecimal(parts.at(-3));
  const start = parseDecimal(parts.at(-1)?.split("-")[0]);
  if (id === null || epoch === null || start === null || start % SLOT_BYTES !== 0) return null;
  const parsed = { nodeId: nodeId(id), nodeEpoch: nodeEpoch(epoch), slot: start / SLOT_BYTES };
  return walKey(clusterId, parsed) === key ? parsed : null;
}

// --- metadata ---------------------------------------------------------------------------------

function padded(at: Position): string {
  return String(at).padStart(POSITION_DIGITS, "0");
}

/** Prefix of the metadata log entries; a listing of it is in order of position. */
export function logPrefix(clusterId: string): string {
  return `meta/${namespace(clusterId)}/log/`;
}

export function logKey(clusterId: string, at: Position): string {
  return logPrefix(clusterId) + padded(at);
}

export function snapshotPrefix(clusterId: string): string {
  return `meta/${namespace(clusterId)}/snap/`;
}

export function snapshotKey(clusterId: string, at: Position): string {
  return snapshotPrefix(clusterId) + padded(at);
}

function parsePosition(prefix: string, key: string): Position | null {
  const digits = key.slice(prefix.length);
  if (!key.startsWith(prefix) || !/^[0-9]{20}$/.test(digits)) return null;
  const at = Number(digits);
  return Number.isSafeInteger(at) ? position(at) : null;
}

export function parseLogKey(clusterId: string, key: string): Position | null {
  return parsePosition(logPrefix(clusterId), key);
}

export function parseSnapshotKey(clusterId: string, key: string): Position | null {
  return parsePosition(snapshotPrefix(clusterId), key);
}

// --- probes -----------------------------------------------------------------------------------

export function probeKey(run: string, name: string): string {
  return `${PROBE_PREFIX}${run}/${name}`;
}
