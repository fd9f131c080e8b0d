/** The HTTP gateway's port on the broker: records to batches and back, topics by name. */
import { randomInt } from "../env/random.ts";
import { isFault } from "../lib/errors.ts";
import { HTTP_BATCH_BYTES, RECORD_OVERHEAD_BYTES_MAX } from "../lib/limits.ts";
import type { PartitionLog } from "../log/partition_log.ts";
import { partitionOfKey } from "../protocol/partitioner.ts";
import { buildBatch } from "../protocol/record_batch.ts";
import type { NewRecord } from "../protocol/record_writer.ts";
import { partitionKey, type TopicRow } from "../controller/image.ts";
import { faultToCode } from "../broker/fault_to_code.ts";
import type { BrokerServices } from "../broker/handler.ts";
import type {
  Failure,
  Gateway,
  ReadAnswer,
  ReadQuery,
  RecordInput,
  TopicSummary,
  Written,
} from "../http/port.ts";
import { readFrom } from "./http_read.ts";

/** Records of one partition with their places in the request. */
interface Placed {
  readonly record: RecordInput;
  readonly index: number;
}

function failure(error: unknown, surface: "produce" | "fetch" | "admin"): Failure {
  if (!isFault(error)) throw error;
  return { ok: false, error: faultToCode(error, surface), message: error.message };
}

function unknownTopic(name: string): Failure {
  return { ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION", message: `Cannot find topic ${name}` };
}

function unknownPartition(topic: TopicRow, partition: number): Failure {
  return {
    ok: false,
    error: "UNKNOWN_TOPIC_OR_PARTITION",
    message: `Cannot find partition ${partition} of ${topic.name}: it has ${topic.partitions}`,
  };
}

function recordBytes({ key, value, headers }: RecordInput): number {
  let bytes = RECORD_OVERHEAD_BYTES_MAX + (key?.length ?? 0) + (value?.length ?? 0);
  for (const header of headers) {
    bytes += RECORD_OVERHEAD_BYTES_MAX + 3 * header.name.length + (header.value?.length ?? 0);
  }
  return bytes;
}

/** Cuts records into batches that stay below the limit; a larger record is alone, and the log judges it. */
function cut(records: readonly Placed[], bytesMax: number): Placed[][] {
  const batches: Placed[][] = [];
  let bytes = Infinity;
  for (const placed of records) {
    const size = recordBytes(placed.record);
    if (bytes + size > bytesMax) {
      batches.push([]);
      bytes = 0;
    }
    batches.at(-1)!.push(placed);
    bytes += size;
  }
  return batches;
}

function summary({ name, topicId, partitions }: TopicRow): TopicSummary {
  return { name, topicId, partitions };
}

export function createHttpGateway(services: BrokerServices): Gateway {
  const { env, topics, partitions, metadata, permits } = services;

  function place(topic: TopicRow, records: readonly RecordInput[]): Map<number, Placed[]> {
    // Records without key and partition of one request stay together: one batch instead of many.
    const any = randomInt(env.random, topic.partitions);
    const placed = new Map<number, Placed[]>();
    for (const [index, record] of records.entries()) {
      const partition = record.partition ??
        (record.key === null ? any : partitionOfKey(record.key, topic.partitions));
      const list = placed.get(partition);
      if (list === undefined) placed.set(partition, [{ record, index }]);
      else list.push({ record, index });
    }
    return placed;
  }

  function newRecord({ record }: Placed, nowMs: number): NewRecord {
    return {
      key: record.key,
      value: record.value,
      headers: record.headers.map(({ name, value }) => ({ key: name, value })),
      timestampMs: record.timestampMs ?? nowMs,
    };
  }

  /** Appends at once, in order; the promise waits for durability. */
  function appendBatch(
    log: PartitionLog,
    partition: number,
    batch: readonly Placed[],
  ): Promise<Written[]> {
    const records = batch.map((placed) => newRecord(placed, env.clock.nowMs()));
    const appended = log.append(buildBatch({ records, codec: null, codecs: env.codecs }));
    if (!appended.ok) {
      const { error, message } = appended;
      return Promise.resolve(
        records.map(() => ({ ok: false, error, ...(message === undefined ? {} : { message }) })),
      );
    }
    const { baseOffset, logAppendTimeMs } = appended;
    const written = records.map((record, i) => ({
      ok: true as const,
      partition,
      offset: baseOffset + i,
      timestampMs: logAppendTimeMs >= 0 ? logAppendTimeMs : record.timestampMs,
    }));
    return appended.durable.then(
      () => written,
      (error: unknown) => written.map(() => failure(error, "produce")),
    );
  }

  async function produceTo(
    topic: TopicRow,
    partition: number,
    records: readonly Placed[],
  ): Promise<Written[]> {
    if (partition >= topic.partitions) return records.map(() => unknownPartition(topic, partition));
    try {
      const located = await partitions.open(topic.topicId, partition);
      if (!located.ok) return records.map(() => located);
      const { log } = located;
      const batches = cut(records, Math.min(HTTP_BATCH_BYTES, log.config.messageBytesMax));
      return (await Promise.all(batches.map((batch) => appendBatch(log, partition, batch)))).flat();
    } catch (error) {
      return records.map(() => failure(error, "produce"));
    }
  }

  async function produceAll(topic: TopicRow, records: readonly RecordInput[]): Promise<Written[]> {
    const results: Written[] = [];
    const groups = [...place(topic, records)];
    await Promise.all(groups.map(async ([partition, placed]) => {
      const written = await produceTo(topic, partition, placed);
      for (const [i, { index }] of placed.entries()) results[index] = written[i]!;
    }));
    return results;
  }

  async function topicFor(name: string, create: boolean): Promise<TopicRow | Failure> {
    try {
      const ensured = await topics.ensure(name, create);
      if (ensured.ok) return ensured.topic;
      return ensured.error === "UNKNOWN_TOPIC_OR_PARTITION" ? unknownTopic(name) : ensured;
    } catch (error) {
      return failure(error, "admin");
    }
  }

  async function read(topic: TopicRow, partition: number, query: ReadQuery): Promise<ReadAnswer> {
    if (partition >= topic.partitions) return unknownPartition(topic, partition);
    try {
      const located = await partitions.open(topic.topicId, partition);
      return located.ok ? await readFrom(located.log, query, env) : located;
    } catch (error) {
      return failure(error, "fetch");
    }
  }

  return {
    async produce(name, records, signal) {
      const topic = await topicFor(name, true);
      if ("ok" in topic) return records.map(() => topic);
      const bytes = records.reduce((sum, record) => sum + recordBytes(record), 0);
      try {
        await permits.produce.acquire(bytes, signal);
      } catch (error) {
        return records.map(() => failure(error, "produce"));
      }
      try {
        return await produceAll(topic, records);
      } finally {
        permits.produce.release(bytes);
      }
    },
    async read(name, partition, query) {
      const topic = await topicFor(name, false);
      return "ok" in topic ? topic : await read(topic, partition, query);
    },
    listTopics: () =>
      [...metadata.view().topics.values()].filter(({ internal }) => !internal).map(summary)
        .toSorted((a, b) => a.name < b.name ? -1 : 1),
    describeTopic(name) {
      const topic = topics.find(name);
      if (topic === undefined) return null;
      const image = metadata.view();
      const leaders = Array.from({ length: topic.partitions }, (_, partition) => {
        const row = image.partitions.get(partitionKey(topic.topicId, partition));
        return { partition, leader: row?.leader ?? null, leaderEpoch: row?.leaderEpoch ?? -1 };
      });
      return { ...summary(topic), leaders, configs: topic.configs };
    },
    async createTopic({ name, partitions: count, configs }) {
      try {
        const created = await topics.create({
          name,
          partitions: count ?? -1,
          replicationFactor: -1,
          configs: Object.entries(configs),
        });
        return created.ok ? { ok: true, ...summary(created.topic) } : created;
      } catch (error) {
        return failure(error, "admin");
      }
    },
    async deleteTopic(name) {
      const topic = topics.find(name);
      if (topic === undefined) return unknownTopic(name);
      try {
        return await topics.delete(topic.topicId);
      } catch (error) {
        return failure(error, "admin");
      }
    },
  };
}
