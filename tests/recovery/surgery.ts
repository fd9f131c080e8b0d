/**
 * Changes what a broker left, while none runs: a process of the same node id that opens the streams of partitions
 * as their owner, and writes what no broker of today writes (damaged snapshots, odd logs). Storage stays sound.
 */
import assert from "node:assert/strict";
import { createCodecs } from "../../src/adapters/codecs.ts";
import { openMetadata } from "../../src/controller/controller.ts";
import { partitionKey } from "../../src/controller/image.ts";
import { randomUuid, seededRandom } from "../../src/env/random.ts";
import { nodeId } from "../../src/lib/brand.ts";
import { ByteWriter, viewOf } from "../../src/lib/bytes.ts";
import { crc32c } from "../../src/lib/crc32c.ts";
import { uuidOf } from "../../src/lib/uuid.ts";
import { decodeLogMeta } from "../../src/log/log_meta.ts";
import { MetaStream } from "../../src/log/meta_stream.ts";
import {
  decodeSnapshots,
  encodeSnapshots,
  type ProducerSnapshot,
} from "../../src/log/producer_snapshot.ts";
import { startIncarnation } from "../../src/node/incarnation.ts";
import { buildMarker } from "../../src/protocol/control_record.ts";
import { assignOffsets, readBatchHeader } from "../../src/protocol/record_batch.ts";
import { drive } from "../faults/world.ts";
import { testEnv } from "../support/test_env.ts";
import type { RecoveryWorld } from "./world.ts";

export interface OpenedPartition {
  readonly index: number;
  readonly meta: MetaStream;
  /** Puts a batch at the end of the log as it is: no check, no checkpoint. */
  append(batch: Uint8Array): Promise<void>;
}

/** Runs for every partition of topic `t`, in order. The broker must have ended. */
export async function operate(
  w: RecoveryWorld,
  change: (partition: OpenedPartition) => Promise<void>,
): Promise<void> {
  await drive(w.clock, operated(w, change), "the surgery");
}

async function operated(
  { clock, bucket: store, clusterId }: RecoveryWorld,
  change: (partition: OpenedPartition) => Promise<void>,
): Promise<void> {
  const env = testEnv({ clock, random: seededRandom(clock.monotonicMs() + 1) });
  const own = nodeId(1);
  const incarnation = uuidOf(randomUuid(env.random));
  const identity = { store, env, clusterId, nodeId: own, incarnation };
  const metadata = await openMetadata({ ...identity, pollMs: null });
  const { streams, ...node } = await startIncarnation({
    ...identity,
    metadata,
    host: "127.0.0.1",
    port: 9092,
    walPolicy: { kind: "unmetered" },
    storeKind: "memory",
    again: false,
    storeWait: { env, storeName: "memory", limitMs: null },
    onHealth: () => {},
    onFatal: (fault) => assert.fail(fault),
  });
  const image = metadata.view();
  const topic = [...image.topics.values()].find(({ name }) => name === "t")!;
  for (let index = 0;; index++) {
    const row = image.partitions.get(partitionKey(topic.topicId, index));
    if (row === undefined) break;
    const stream = await streams.open(row.metaStream!, row.leaderEpoch);
    const meta = new MetaStream(stream);
    await meta.load();
    const append = async (batch: Uint8Array) => {
      const id = decodeLogMeta(meta.get("LOG")!).streams.get("log")!;
      const log = await streams.open(id, row.leaderEpoch);
      assignOffsets(batch, log.nextOffset, row.leaderEpoch);
      await log.append(readBatchHeader(batch).lastOffsetDelta + 1, batch).durable;
      await log.close();
    };
    await change({ index, meta, append });
    await meta.close();
  }
  await node.close();
  await metadata.close();
}

export function snapshotsOf({ meta }: OpenedPartition): readonly ProducerSnapshot[] {
  const value = meta.get("PRODUCER_SNAPSHOTS");
  return value === undefined ? [] : decodeSnapshots(value);
}

export async function putSnapshots(
  { meta }: OpenedPartition,
  snapshots: readonly ProducerSnapshot[],
): Promise<void> {
  await meta.put("PRODUCER_SNAPSHOTS", encodeSnapshots(snapshots));
}

export async function loseSnapshots(partition: OpenedPartition): Promise<void> {
  await putSnapshots(partition, []);
}

export interface KafkaEntry {
  readonly producerId: number;
  readonly epoch: number;
  readonly lastSequence: number;
  readonly lastOffset: number;
  readonly offsetDelta: number;
  readonly timestampMs: number;
}

/** The bytes of one of Kafka's snapshot files: version 1, the last batch of each producer. */
export function kafkaSnapshot(
  entries: readonly KafkaEntry[],
  { version = 1, count = entries.length } = {},
): Uint8Array {
  const writer = new ByteWriter();
  writer.i16(version);
  writer.i32(0);
  writer.i32(count);
  for (const entry of entries) {
    writer.i64(entry.producerId);
    writer.i16(entry.epoch);
    writer.i32(entry.lastSequence);
    writer.i64(entry.lastOffset);
    writer.i32(entry.offsetDelta);
    writer.i64(entry.timestampMs);
    writer.i32(-1);
    writer.i64(-1);
  }
  return sealed(writer.view().slice());
}

/** With a checksum that is right for what is there. */
export function sealed(bytes: Uint8Array): Uint8Array {
  viewOf(bytes).setUint32(2, crc32c(bytes.subarray(6)));
  return bytes;
}

export function marker(
  timestampMs: number,
  { coordinatorEpoch = 0, commit = false, producerId = 7, producerEpoch = 3 } = {},
): Uint8Array {
  const fields = { coordinatorEpoch, commit, producerId, producerEpoch, timestampMs };
  return buildMarker(fields, createCodecs());
}
