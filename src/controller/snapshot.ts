/**
 * The whole state after some entry, in one object:
 *
 *   u32 magic "SKMS" · u8 version · u16 feature level · i64 position · 16 B hash of the entry there
 *   u8 length + cluster id · u8 packing (0 plain, 1 gzip) · tables as JSON · u32 CRC-32C of all before
 *
 * Rows are sorted by key, so two nodes write the same tables for the same position.
 */
import { type Position, position } from "../lib/brand.ts";
import { ByteReader, ByteWriter, concatBytes, DecodeError, toUtf8, utf8 } from "../lib/bytes.ts";
import { corrupt } from "../lib/corrupt.ts";
import { crc32c } from "../lib/crc32c.ts";
import {
  METADATA_SNAPSHOT_BYTES_MAX,
  METADATA_SNAPSHOT_STEP_CHARS,
  METADATA_SNAPSHOT_STEP_ROWS,
} from "../lib/limits.ts";
import type { Codecs } from "../env/codecs.ts";
import { checkedBody, checkVersion, HASH_BYTES } from "./entry.ts";
import { parseJson } from "./record.ts";
import { idBlockKey, partitionKey, walKey } from "./image.ts";
import { readShape } from "./shape.ts";
import { State } from "./state.ts";
import { tablesShape } from "./snapshot_rows.ts";

const MAGIC = 0x534b4d53;
const VERSION = 1;
const PLAIN = 0;
const GZIP = 1;
/** Half again as large as by default, in an eighth of the time. */
const FASTEST = 1;

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

/** The tables as JSON in pieces; rows are never changed, so the dump holds still meanwhile. */
function* jsonOf(tables: object): Generator<string> {
  let open = "{";
  for (const [name, value] of Object.entries(tables)) {
    const key = `${open}${JSON.stringify(name)}:`;
    open = ",";
    if (!Array.isArray(value)) {
      yield `${key}${JSON.stringify(value)}`;
      continue;
    }
    yield `${key}[`;
    for (let at = 0; at < value.length; at += METADATA_SNAPSHOT_STEP_ROWS) {
      const rows = JSON.stringify(value.slice(at, at + METADATA_SNAPSHOT_STEP_ROWS)).slice(1, -1);
      yield at === 0 ? rows : `,${rows}`;
    }
    yield "]";
  }
  yield "}";
}

/** Each piece is a gzip member of its own, which gunzip joins; small ones are gathered. */
function* bodyOf(tables: object, packed: boolean, codecs: Codecs): Generator<Uint8Array> {
  const pack = (text: string) => {
    const bytes = toUtf8(text);
    return packed ? codecs.compress("gzip", bytes, FASTEST) : bytes;
  };
  let text = "";
  for (const piece of jsonOf(tables)) {
    text += piece;
    if (text.length < METADATA_SNAPSHOT_STEP_CHARS) continue;
    yield pack(text);
    text = "";
  }
  yield pack(text);
}

/** All steps at once. */
export function encodeSnapshot(snapshot: Snapshot, codecs: Codecs): Uint8Array {
  const steps = encodeSnapshotInSteps(snapshot, codecs);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Of the state at the moment of the first step. Each step is a few milliseconds in which nothing else runs. */
export function* encodeSnapshotInSteps(
  { state, lastHash }: Snapshot,
  codecs: Codecs,
): Generator<void, Uint8Array> {
  const { at, featureLevel } = state;
  const tables = dumpTables(state);
  const packed = codecs.supports("gzip");
  const pieces: Uint8Array[] = [];
  for (const piece of bodyOf(tables, packed, codecs)) {
    if (pieces.length > 0) yield;
    pieces.push(piece);
  }
  const body = concatBytes(pieces);
  const cluster = toUtf8(state.clusterId);
  const out = new ByteWriter(body.length + 256);
  out.u32(MAGIC);
  out.u8(VERSION);
  out.u16(featureLevel);
  out.i64(at);
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
  const tables = readShape(tablesShape, json, "snapshot");
  for (const row of tables.nodes) state.nodes.set(row.nodeId, row);
  for (const row of tables.wals) state.wals.set(walKey(row.nodeId, row.epoch), row);
  for (const row of tables.topics) {
    state.topics.set(row.topicId, row);
    state.topicIds.set(row.name, row.topicId);
  }
  for (const row of tables.partitions) {
    state.partitions.set(partitionKey(row.topicId, row.partition), row);
  }
  for (const row of tables.streams) {
    state.streams.set(row.streamId, row);
    state.noteStream(row.streamId, undefined, row);
  }
  for (const row of tables.objects) {
    state.objects.set(row.objectId, row);
    state.noteObject(row.objectId, row);
  }
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

function decode(bytes: Uint8Array, at: Position, codecs: Codecs, known?: number): Snapshot {
  const reader = new ByteReader(checkedBody(bytes, "snapshot"));
  if (reader.u32() !== MAGIC) throw corrupt("Cannot read snapshot: wrong magic");
  const featureLevel = checkVersion("snapshot", reader.u8(), reader.u16(), known);
  const found = position(reader.i64());
  if (found !== at) throw corrupt(`Cannot read snapshot: it is of ${found}, its key of ${at}`);
  const lastHash = reader.take(HASH_BYTES).slice();
  const state = new State(utf8(reader.take(reader.u8())), featureLevel);
  const packing = reader.u8();
  fill(state, parseJson(unpack(packing, reader.take(reader.remaining), codecs)));
  state.at = at;
  return { state, lastHash };
}

/** Throws FaultError("corrupt") on damage, ("config") on what a newer build wrote. */
export function decodeSnapshot(
  bytes: Uint8Array,
  at: Position,
  codecs: Codecs,
  known?: number,
): Snapshot {
  try {
    return decode(bytes, at, codecs, known);
  } catch (error) {
    if (error instanceof DecodeError) throw corrupt("Cannot read snapshot", error);
    throw error;
  }
}
