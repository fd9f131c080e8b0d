/** The HTTP gateway's port on the broker: records to batches and back, topics by name. */
import { randomInt } from "../env/random.ts";
import { isFault } from "../lib/errors.ts";
import { HTTP_BATCH_BYTES, HTTP_PRODUCE_TIMEOUT_MS } from "../lib/limits.ts";
import type { AppendRefused, PartitionLog } from "../log/partition_log.ts";
import { partitionOfKey } from "../protocol/partitioner.ts";
import { buildBatch } from "../protocol/record_batch.ts";
import type { NewRecord } from "../protocol/record_writer.ts";
import { partitionKey, type TopicRow } from "../controller/image.ts";
import { faultToCode } from "../broker/fault_to_code.ts";
import type { BrokerServices } from "../broker/handler.ts";
import { appendTo, produceDeadline, settle } from "../broker/produce.ts";
import type {
  Failure,
  Gateway,
  ReadAnswer,
  ReadQuery,
  RecordInput,
  TopicDetail,
  TopicSummary,
  TopicToCreate,
  Written,
} from "../http/port.ts";
import { readFrom } from "./http_read.ts";
import { createReadRooms, type ReadRooms } from "./read_place.ts";
import { recordBytes } from "./record_bytes.ts";

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

function internalTopic(name: string): Failure {
  const message = `Cannot write to the internal topic ${name}`;
  return { ok: false, error: "INVALID_TOPIC_EXCEPTION", message };
}

function unknownPartition(topic: TopicRow, partition: number): Failure {
  return {
    ok: false,
    error: "UNKNOWN_TOPIC_OR_PARTITION",
    message: `Cannot find partition ${partition} of ${topic.name}: it has ${topic.partitions}`,
  };
}

/** What timed out may still be stored. */
function late(outcome: AppendRefused): Failure {
  if (outcome.error !== "REQUEST_TIMED_OUT") return outcome;
  return { ...outcome, message: "Cannot tell yet whether it is stored: the store does not answer" };
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

function place(
  topic: TopicRow,
  records: readonly RecordInput[],
  any: number,
): Map<number, Placed[]> {
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

function newRecord(record: RecordInput, nowMs: number): NewRecord {
  return {
    key: record.key,
    value: record.value,
    headers: record.headers.map(({ name, value }) => ({ key: name, value })),
    timestampMs: record.timestampMs ?? nowMs,
  };
}

export class HttpGateway implements Gateway {
  readonly #services: BrokerServices;
  readonly #rooms: ReadRooms;

  constructor(services: BrokerServices) {
    this.#services = services;
    this.#rooms = createReadRooms(services.permits);
  }

  async produce(name: string, records: readonly RecordInput[]): Promise<readonly Written[]> {
    const topic = await this.#topicFor(name, true);
    if ("ok" in topic) return records.map(() => topic);
    if (topic.internal) return records.map(() => internalTopic(name));
    return await this.#produceAll(topic, records);
  }

  async read(name: string, partition: number, query: ReadQuery): Promise<ReadAnswer> {
    const topic = await this.#topicFor(name, false);
    if ("ok" in topic) return topic;
    if (partition >= topic.partitions) return unknownPartition(topic, partition);
    try {
      const locate = () => this.#services.partitions.open(topic.topicId, partition);
      return await readFrom(locate, query, { env: this.#services.env, rooms: this.#rooms });
    } catch (error) {
      return failure(error, "fetch");
    }
  }

  listTopics(): readonly TopicSummary[] {
    return [...this.#services.metadata.view().topics.values()]
      .filter(({ internal }) => !internal)
      .map(summary)
      .toSorted((a, b) => a.name < b.name ? -1 : 1);
  }

  async describeTopic(name: string): Promise<TopicDetail | null> {
    await this.#services.topics.look([name]);
    const topic = this.#services.topics.find(name);
    if (topic === undefined) return null;
    const image = this.#services.metadata.view();
    const leaders = Array.from({ length: topic.partitions }, (_, partition) => {
      const row = image.partitions.get(partitionKey(topic.topicId, partition));
      return { partition, leader: row?.leader ?? null, leaderEpoch: row?.leaderEpoch ?? -1 };
    });
    return { ...summary(topic), leaders, configs: topic.configs };
  }

  async createTopic(
    { name, partitions, configs }: TopicToCreate,
  ): Promise<({ readonly ok: true } & TopicSummary) | Failure> {
    try {
      const created = await this.#services.topics.create({
        name,
        partitions: partitions ?? -1,
        replicationFactor: -1,
        configs,
      });
      return created.ok ? { ok: true, ...summary(created.topic) } : created;
    } catch (error) {
      return failure(error, "admin");
    }
  }

  async deleteTopic(name: string): Promise<{ readonly ok: true } | Failure> {
    const { topics } = this.#services;
    await topics.look([name]);
    const topic = topics.find(name);
    if (topic === undefined) return unknownTopic(name);
    try {
      return await topics.delete(topic.topicId);
    } catch (error) {
      return failure(error, "admin");
    }
  }

  async #topicFor(name: string, create: boolean): Promise<TopicRow | Failure> {
    try {
      const ensured = await this.#services.topics.ensure(name, create);
      if (ensured.ok) return ensured.topic;
      return ensured.error === "UNKNOWN_TOPIC_OR_PARTITION" ? unknownTopic(name) : ensured;
    } catch (error) {
      return failure(error, "admin");
    }
  }

  async #produceAll(topic: TopicRow, records: readonly RecordInput[]): Promise<Written[]> {
    const results: Written[] = [];
    // Records without key and partition of one request stay together: one batch instead of many.
    const any = randomInt(this.#services.env.random, topic.partitions);
    const groups = [...place(topic, records, any)];
    await Promise.all(groups.map(async ([partition, placed]) => {
      const written = await this.#produceTo(topic, partition, placed);
      for (const [i, { index }] of placed.entries()) results[index] = written[i]!;
    }));
    return results;
  }

  async #produceTo(
    topic: TopicRow,
    partition: number,
    records: readonly Placed[],
  ): Promise<Written[]> {
    if (partition >= topic.partitions) return records.map(() => unknownPartition(topic, partition));
    try {
      const located = await this.#services.partitions.open(topic.topicId, partition);
      if (!located.ok) return records.map(() => located);
      const { log } = located;
      const batches = cut(records, Math.min(HTTP_BATCH_BYTES, log.config.messageBytesMax));
      return (await Promise.all(batches.map((batch) => this.#append(log, partition, batch))))
        .flat();
    } catch (error) {
      return records.map(() => failure(error, "produce"));
    }
  }

  /** Appends at once, in order; the promise waits for durability, as long as clients do. */
  #append(log: PartitionLog, partition: number, batch: readonly Placed[]): Promise<Written[]> {
    const { clock, codecs } = this.#services.env;
    const records = batch.map(({ record }) => newRecord(record, clock.nowMs()));
    const appended = appendTo(log, buildBatch({ records, codec: null, codecs }));
    if (!appended.ok) return Promise.resolve(records.map(() => appended));
    const { baseOffset, logAppendTimeMs } = appended;
    const written = records.map((record, i) => ({
      ok: true as const,
      partition,
      offset: baseOffset + i,
      timestampMs: logAppendTimeMs >= 0 ? logAppendTimeMs : record.timestampMs,
    }));
    const deadline = produceDeadline(clock, HTTP_PRODUCE_TIMEOUT_MS);
    return settle(appended, deadline.expired)
      .then((outcome) => outcome.ok ? written : written.map(() => late(outcome)))
      .finally(() => deadline.stop());
  }
}
