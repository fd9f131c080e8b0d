/** Stores as a node leaves them, copied so that each test can damage its own, and metadata that no node would write. */
import assert from "node:assert/strict";
import {
  decodeEntry,
  encodeEntry,
  entryHash,
  FEATURE_LEVEL_MIN,
  NO_HASH,
} from "../../src/controller/entry.ts";
import { encodeRecord, type MetadataRecord } from "../../src/controller/record.ts";
import { encodeSnapshot } from "../../src/controller/snapshot.ts";
import type { State } from "../../src/controller/state.ts";
import { nodeEpoch, nodeId, objectId, position } from "../../src/lib/brand.ts";
import { crc32c } from "../../src/lib/crc32c.ts";
import { type Finding, findingLine } from "../../src/inspect/finding.ts";
import { fsck, type FsckResult } from "../../src/inspect/fsck.ts";
import { loadMetadata } from "../../src/inspect/load_metadata.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import { CLUSTER_KEY, dataKey, logKey, snapshotKey } from "../../src/object/object_key.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { ObjectWriter } from "../../src/storage/format/object_writer.ts";
import type { StreamRecord } from "../../src/storage/stream_record.ts";
import { batch } from "../quirks/quirks.ts";
import { drive, FaultWorld } from "../faults/world.ts";
import { createFakeClock } from "./fake_clock.ts";
import { testEnv } from "./test_env.ts";

export const CLUSTER = "test-cluster";
export type Content = Map<string, Uint8Array>;

export async function contentOf(store: ObjectStore): Promise<Content> {
  const content: Content = new Map();
  for await (const { key } of store.list("")) content.set(key, (await store.get(key))!.bytes);
  return content;
}

export async function storeOf(content: Content): Promise<ObjectStore> {
  const store = createMemoryStore(createFakeClock());
  for (const [key, bytes] of content) await store.put(key, bytes);
  return store;
}

export interface Checked extends FsckResult {
  readonly findings: readonly Finding[];
  /** `kind key` of the damages. */
  readonly damaged: readonly string[];
  readonly text: string;
}

export async function check(store: ObjectStore): Promise<Checked> {
  const findings: Finding[] = [];
  const report = async (one: Finding) => void findings.push(one);
  const result = await fsck({ store, env: testEnv(), report });
  const damaged = findings.filter(({ severity }) => severity === "damage")
    .map(({ kind, key }) => `${kind} ${key}`);
  return { ...result, findings, damaged, text: findings.map(findingLine).join("\n") };
}

/** A copy with one change. */
export async function checkChanged(
  content: Content,
  change: (copy: Content) => void,
): Promise<Checked> {
  const copy: Content = new Map([...content].map(([key, bytes]) => [key, bytes.slice()]));
  change(copy);
  return await check(await storeOf(copy));
}

export async function stateOf(content: Content, clusterId = clusterOf(content)): Promise<State> {
  const loaded = await loadMetadata({ store: await storeOf(content), env: testEnv(), clusterId });
  assert.ok(loaded.ok);
  return loaded.state;
}

export function clusterOf(content: Content): string {
  const text = new TextDecoder().decode(content.get(CLUSTER_KEY));
  return (JSON.parse(text) as { clusterId: string }).clusterId;
}

function lastEntry(content: Content, clusterId: string): { at: number; hash: Uint8Array } {
  for (let at = 1;; at++) {
    if (content.has(logKey(clusterId, position(at)))) continue;
    const last = content.get(logKey(clusterId, position(at - 1)));
    return { at: at - 1, hash: last === undefined ? NO_HASH : entryHash(last) };
  }
}

/** Appends an entry with any records: no check of admission stands in the way. */
export function appendRecords(content: Content, ...records: readonly MetadataRecord[]): number {
  const clusterId = clusterOf(content);
  const { at, hash } = lastEntry(content, clusterId);
  const writer = {
    nodeId: nodeId(1),
    epoch: nodeEpoch(1),
    incarnation: "0".repeat(32),
    firstCommand: at + 1,
    lastCommand: at + 1,
  };
  const featureLevel = FEATURE_LEVEL_MIN;
  const head = { at: position(at + 1), previous: hash, clusterId, writer, featureLevel };
  const bytes = encodeEntry(head, records.map(encodeRecord));
  assert.equal(decodeEntry(bytes).at, at + 1);
  content.set(logKey(clusterId, position(at + 1)), bytes);
  return at + 1;
}

/** Puts a snapshot of the present state beside the log. */
export async function addSnapshot(content: Content): Promise<string> {
  const clusterId = clusterOf(content);
  const state = await stateOf(content);
  const lastHash = lastEntry(content, clusterId).hash;
  const key = snapshotKey(clusterId, state.at);
  content.set(key, encodeSnapshot({ state, lastHash }, testEnv().codecs));
  return key;
}

export interface StoredObject {
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly index: Uint8Array;
  readonly fields: {
    objectId: ReturnType<typeof objectId>;
    size: number;
    bytesCrc: number;
    indexCrc: number;
  };
}

/** A data object with the row fields that fit it. */
export function dataObject(
  id: number,
  records: readonly StreamRecord[],
  blockBytes?: number,
): StoredObject {
  const writer = new ObjectWriter(blockBytes);
  for (const record of records) writer.add(record);
  const layout = writer.finish();
  const bytes = layout.encode();
  const fields = {
    objectId: objectId(id),
    size: bytes.length,
    bytesCrc: crc32c(bytes),
    indexCrc: crc32c(layout.index),
  };
  return { key: dataKey(CLUSTER, objectId(id)), bytes, index: layout.index, fields };
}

/** An empty cluster with one node, and streams 0, 1, ... that it holds. */
export function emptyCluster(streams: number, clusterId = CLUSTER): Content {
  const content: Content = new Map();
  const cluster = { clusterId, formatVersion: 1, featureLevel: 1 };
  content.set(CLUSTER_KEY, new TextEncoder().encode(`${JSON.stringify(cluster)}\n`));
  const node = { nodeId: nodeId(1), incarnation: "0".repeat(32), host: "h", port: 1 };
  appendRecords(content, { type: "node-registered", ...node });
  const owner = { nodeId: nodeId(1), nodeEpoch: nodeEpoch(1), epoch: 0, tag: null };
  for (let streamId = 0; streamId < streams; streamId++) {
    appendRecords(content, { type: "stream-created", streamId, ...owner } as MetadataRecord);
  }
  const block = { nodeId: nodeId(1), epoch: nodeEpoch(1), from: objectId(0), to: 64 };
  appendRecords(content, { type: "ids-reserved", ...block });
  return content;
}

/** A node that was killed, started, used and killed again: objects, a sealed WAL and an open one. */
export async function killedTwice(): Promise<FaultWorld> {
  const world = new FaultWorld();
  const first = await world.start();
  await drive(world.clock, first.topic("t", 2));
  await drive(world.clock, first.produce("t", batch(["a", "b"]), { partition: 0 }));
  await drive(world.clock, first.produce("t", batch(["c"], { codec: "gzip" }), { partition: 1 }));
  world.kill();
  const second = await world.start();
  await drive(world.clock, second.produce("t", batch(["d"]), { partition: 1 }));
  await drive(world.clock, second.produce("t", batch(["e"]), { partition: 0 }));
  world.kill();
  return world;
}
