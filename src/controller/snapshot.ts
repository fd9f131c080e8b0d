/**
 * The whole state after some entry, in one object:
 *
 *   u32 magic "SKMS" · u8 version · u16 feature level · i64 position · 16 B hash of the entry there
 *   u8 length + cluster id · u8 packing (0 plain, 1 gzip) · tables as JSON · u32 CRC-32C of all before
 *
 * Rows are sorted by key, so two nodes write the same tables for the same position.
 */
import { type Position, position } from "../lib/brand.ts";
import { ByteReader, ByteWriter, DecodeError, toUtf8, utf8 } from "../lib/bytes.ts";
import { corrupt } from "../lib/corrupt.ts";
import { crc32c } from "../lib/crc32c.ts";
import { METADATA_SNAPSHOT_BYTES_MAX } from "../lib/limits.ts";
import type { Codecs } from "../env/codecs.ts";
import { checkedBody, checkVersion, FEATURE_LEVEL, HASH_BYTES } from "./entry.ts";
import { parseJson } from "./record.ts";
import { idBlockKey, partitionKey, walKey } from "./image.ts";
import { State } from "./state.ts";
import { tablesShape } from "./snapshot_rows.ts";

const MAGIC = 0x534b4d53;
const VERSION = 1;
const PLAIN = 0;
const GZIP = 1;

export interface Snapshot {
  readonly state: State;
  /** Hash of the entry at `state.at`; the next entry must name it. */
  readonly lastHash: Uint8Array;
}

function compare(a: number | string, b: number | string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function sortedRows<K extends number | string, V>(table: ReadonlyMap<K, V>): V[] {
  return [...table].toSorted(([a], [b]) => compare(a, b)).map(([, row]) => row);
}

function sortedPairs<K extends number | string, V>(table: ReadonlyMap<K, V>): [K, V][] {
  return [...table].toSorted(([a], [b]) => compare(a, b));
}

/** The tables as plain JSON values; what can be derived is left out. */
export function dumpTables(state: State): object {
  const { nextStreamId, nextObjectId, nextProducerId } = state;
  return {
    nextStreamId,
    nextObjectId,
    nextProducerId,
    nodes: sortedRows(state.nodes),
    wals: sortedRows(state.wals),
    topics: sortedRows(state.topics),
    partitions: sortedRows(state.partitions),
    streams: sortedRows(state.streams),
    objects: sortedRows(state.objects),
    streamSets: sortedPairs(state.streamSets),
    idBlocks: sortedRows(state.idBlocks),
    kv: sortedPairs(state.kv),
    writers: sortedRows(state.writers),
  };
}

export function encodeSnapshot({ state, lastHash }: Snapshot, codecs: Codecs): Uint8Array {
  const json = toUtf8(JSON.stringify(dumpTables(state)));
  const packed = codecs.supports("gzip");
  const body = packed ? codecs.compress("gzip", json) : json;
  const cluster = toUtf8(state.clusterId);
  const out = new ByteWriter(body.length + 256);
  out.u32(MAGIC);
  out.u8(VERSION);
  out.u16(FEATURE_LEVEL);
  out.i64(state.at);
  out.bytes(lastHash);
  out.u8(cluster.length);
  out.bytes(cluster);
  out.u8(packed ? GZIP : PLAIN);
  out.bytes(body);
  out.u32(crc32c(out.view()));
  return out.view().slice();
}

function unpack(packing: number, body: Uint8Array, codecs: Codecs): Uint8Array {
  if (packing === PLAIN) return body;
  if (packing === GZIP) return codecs.decompress("gzip", body, METADATA_SNAPSHOT_BYTES_MAX);
  throw corrupt(`Cannot read snapshot: packing ${packing}`);
}

function fill(state: State, json: unknown): void {
  const tables = tablesShape(json, "snapshot");
  for (const row of tables.nodes) state.nodes.set(row.nodeId, row);
  for (const row of tables.wals) state.wals.set(walKey(row.nodeId, row.epoch), row);
  for (const row of tables.topics) {
    state.topics.set(row.topicId, row);
    state.topicIds.set(row.name, row.topicId);
  }
  for (const row of tables.partitions) {
    state.partitions.set(partitionKey(row.topicId, row.partition), row);
  }
  for (const row of tables.streams) state.streams.set(row.streamId, row);
  for (const row of tables.objects) state.objects.set(row.objectId, row);
  for (const [node, ids] of tables.streamSets) state.streamSets.set(node, ids);
  for (const row of tables.idBlocks) {
    state.idBlocks.set(idBlockKey(row.nodeId, row.epoch, row.from), row);
  }
  for (const [key, row] of tables.kv) state.kv.set(key, row);
  for (const row of tables.writers) state.writers.set(row.nodeId, row);
  state.nextStreamId = tables.nextStreamId;
  state.nextObjectId = tables.nextObjectId;
  state.nextProducerId = tables.nextProducerId;
}

function decode(bytes: Uint8Array, at: Position, codecs: Codecs): Snapshot {
  const reader = new ByteReader(checkedBody(bytes, "snapshot"));
  if (reader.u32() !== MAGIC) throw corrupt("Cannot read snapshot: wrong magic");
  checkVersion("snapshot", reader.u8(), reader.u16());
  const found = position(reader.i64());
  if (found !== at) throw corrupt(`Cannot read snapshot: it is of ${found}, its key of ${at}`);
  const lastHash = reader.take(HASH_BYTES).slice();
  const state = new State(utf8(reader.take(reader.u8())));
  const packing = reader.u8();
  fill(state, parseJson(unpack(packing, reader.take(reader.remaining), codecs)));
  state.at = at;
  return { state, lastHash };
}

/** Throws FaultError("corrupt") on damage, ("config") on what a newer build wrote. */
export function decodeSnapshot(bytes: Uint8Array, at: Position, codecs: Codecs): Snapshot {
  try {
    return decode(bytes, at, codecs);
  } catch (error) {
    if (error instanceof DecodeError) throw corrupt("Cannot read snapshot", error);
    throw error;
  }
}
