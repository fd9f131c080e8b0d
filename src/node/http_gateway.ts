/** The HTTP gateway's port on the broker: records to batches and back, topics by name. */
import { isFault } from "../lib/errors.ts";
import { partitionKey, type TopicRow } from "../controller/image.ts";
import { faultToCode } from "../broker/fault_to_code.ts";
import type { BrokerServices } from "../broker/handler.ts";
import type { Located } from "../broker/partitions.ts";
import type { ChangeOptions } from "../broker/topics.ts";
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
import type {
  StepAsk,
  Stepped,
  StreamPlace,
  StreamTail,
  StreamTopic,
} from "../http/mounts/durable_streams/port.ts";
import type { BatchesAnswer, BatchesQuery, Bounds, Isolation } from "../http/read_port.ts";
import type { BatchWritten, NewProducer, ProduceOptions } from "../http/write_port.ts";
import { readBatchesFrom } from "./http_batches.ts";
import { endFor, readFrom } from "./http_read.ts";
import { HttpRequests } from "./http_requests.ts";
import { HttpStreams } from "./http_streams.ts";
import { HttpWriter } from "./http_write.ts";
import { createReadRooms, type ReadRooms } from "./read_place.ts";
import { TopicWatches } from "./topic_watches.ts";

function failure(error: unknown, surface: "fetch" | "admin"): Failure {
  if (!isFault(error)) throw error;
  return { ok: false, error: faultToCode(error, surface), message: error.message };
}

function unknownTopic(name: string): Failure {
  return { ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION", message: `Cannot find topic ${name}` };
}

function otherTopic(name: string): Failure {
  const message = `Cannot read ${name}: it was deleted and created again under another id`;
  return { ok: false, error: "UNKNOWN_TOPIC_ID", message };
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

function summary({ name, topicId, partitions }: TopicRow): TopicSummary {
  return { name, topicId, partitions };
}

export class HttpGateway implements Gateway {
  readonly #services: BrokerServices;
  readonly #rooms: ReadRooms;
  readonly #watches: TopicWatches;
  readonly #hide: () => void;
  readonly #writer: HttpWriter;
  readonly #requests: HttpRequests;
  readonly #streams: HttpStreams;

  constructor(services: BrokerServices) {
    this.#services = services;
    this.#rooms = createReadRooms(services.permits);
    this.#watches = new TopicWatches(services);
    const { hot, cold } = this.#rooms.live;
    this.#hide = services.env.metrics.onRender((gauge) =>
      gauge("skerry_http_streams_bytes", hot.share.used + cold.share.used)
    );
    this.#writer = new HttpWriter(services);
    this.#requests = new HttpRequests(services, this.#writer);
    this.#streams = new HttpStreams(services, this.#writer, this.read.bind(this));
  }

  /** Wakes all who wait. */
  close(): void {
    this.#hide();
    this.#watches.close();
    this.#streams.close();
  }

  findStream(name: string): StreamTopic | null {
    return this.#streams.find(name);
  }

  touchStream(topicId: string): void {
    this.#streams.touch(topicId);
  }

  async createStream(
    name: string,
    configs: readonly (readonly [string, string])[],
  ): Promise<{ readonly ok: true } | Failure> {
    const occupied = await this.#streams.makeRoom(name);
    if (occupied !== null) return occupied;
    return await this.#create({ name, partitions: 1, configs }, { byBroker: true });
  }

  streamById(topicId: string): StreamTopic | null {
    return this.#streams.byId(topicId);
  }

  async removeStream(topicId: string): Promise<{ readonly ok: true } | Failure> {
    return await this.#streams.remove(topicId);
  }

  async readStream(place: StreamPlace, query: ReadQuery): Promise<ReadAnswer> {
    return await this.#streams.read(place, query);
  }

  async streamTail(place: StreamPlace): Promise<StreamTail | Failure> {
    return await this.#streams.tail(place);
  }

  peekTail(place: StreamPlace): StreamTail | null {
    return this.#streams.peekTail(place);
  }

  async step(place: StreamPlace, ask: StepAsk): Promise<Stepped | Failure> {
    return await this.#streams.step(place, ask);
  }

  async produce(
    name: string,
    records: readonly RecordInput[],
    options: ProduceOptions = {},
  ): Promise<readonly Written[]> {
    const topic = await this.#writable(name, options);
    if ("ok" in topic) return records.map(() => topic);
    const { idempotencyKey: key } = options;
    return key === undefined
      ? await this.#writer.produce(topic, records, options)
      : await this.#requests.produce(topic, records, key, options);
  }

  async produceBatch(
    name: string,
    partition: number,
    batch: Uint8Array,
    options: ProduceOptions = {},
  ): Promise<BatchWritten | Failure> {
    const topic = await this.#writable(name, options);
    return "ok" in topic
      ? topic
      : await this.#writer.produceBatch(topic, partition, batch, options);
  }

  async createProducer(): Promise<NewProducer | Failure> {
    return await this.#writer.createProducer();
  }

  async #writable(name: string, { mustExist }: ProduceOptions): Promise<TopicRow | Failure> {
    const topic = await this.#topicFor(name, mustExist !== true);
    return "ok" in topic || !topic.internal ? topic : internalTopic(name);
  }

  async read(name: string, partition: number, query: ReadQuery): Promise<ReadAnswer> {
    return await this.#readable(name, partition, query, async (topic) => {
      const page = await readFrom(this.#locate(topic, partition), query, this.#readServices());
      return page.ok ? { ...page, topicId: topic.topicId } : page;
    });
  }

  async readBatches(name: string, partition: number, query: BatchesQuery): Promise<BatchesAnswer> {
    return await this.#readable(name, partition, query, async (topic) => {
      const locate = this.#locate(topic, partition);
      const page = await readBatchesFrom(locate, query, this.#readServices());
      return page.ok ? { ...page, batches: page.found, topicId: topic.topicId } : page;
    });
  }

  findTopic(name: string): TopicSummary | null {
    const topic = this.#services.topics.find(name);
    return topic === undefined ? null : summary(topic);
  }

  async bounds(
    topicId: string,
    partition: number,
    isolation: Isolation,
  ): Promise<Bounds | Failure> {
    try {
      const located = await this.#services.partitions.open(topicId, partition);
      if (!located.ok) return located;
      const { log } = located;
      const { logStartOffset: earliest, highWatermark } = log;
      return { ok: true, earliest, latest: endFor(log, { isolation }), highWatermark };
    } catch (error) {
      return failure(error, "fetch");
    }
  }

  peekEnd(topicId: string, partition: number, isolation: Isolation): number | null {
    const log = this.#services.partitions.peek(topicId, partition);
    return log === undefined ? null : endFor(log, { isolation });
  }

  watch(topicId: string, partitions: readonly number[] | null, wake: () => void): () => void {
    return this.#watches.watch(topicId, partitions, wake);
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
    topic: TopicToCreate,
  ): Promise<({ readonly ok: true } & TopicSummary) | Failure> {
    return await this.#create(topic, {});
  }

  async #create(
    { name, partitions: wanted, configs }: TopicToCreate,
    options: ChangeOptions,
  ): Promise<({ readonly ok: true } & TopicSummary) | Failure> {
    try {
      const partitions = wanted ?? -1;
      const topic = { name, partitions, replicationFactor: -1, configs };
      const created = await this.#services.topics.create(topic, options);
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

  #locate({ topicId }: TopicRow, partition: number): () => Promise<Located> {
    return () => this.#services.partitions.open(topicId, partition);
  }

  #readServices() {
    return { env: this.#services.env, rooms: this.#rooms };
  }

  async #readable<T>(
    name: string,
    partition: number,
    { topicId }: Pick<ReadQuery, "topicId">,
    read: (topic: TopicRow) => Promise<T>,
  ): Promise<T | Failure> {
    const topic = await this.#topicFor(name, false);
    if ("ok" in topic) return topic;
    if (topicId !== undefined && topicId !== topic.topicId) return otherTopic(name);
    if (partition >= topic.partitions) return unknownPartition(topic, partition);
    try {
      return await read(topic);
    } catch (error) {
      return failure(error, "fetch");
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
}
