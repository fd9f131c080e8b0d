/**
 * Records into partitions. Each partition is a lane with one batch under way, so order and sequences
 * need no care when a batch is sent again; what arrives meanwhile becomes the next batch.
 */
import type { CodecName } from "../../env/codecs.ts";
import type { Env } from "../../env/env.ts";
import { freeMemory } from "../../lib/free_memory.ts";
import { produceApi } from "../../protocol/message/00_produce.ts";
import { initProducerIdApi } from "../../protocol/message/22_init_producer_id.ts";
import { partitionOfKey } from "../../protocol/partitioner.ts";
import { buildBatch } from "../../protocol/record_batch.ts";
import type { NewRecord } from "../../protocol/record_writer.ts";
import type { Infer } from "../../protocol/schema.ts";
import { errorName } from "../../protocol/error_code.ts";
import type { Cluster, TopicView } from "./cluster.ts";
import { brokerFault, checkCode } from "./fault.ts";
import { type Batch, Lane } from "./lane.ts";

/** The last version that names topics by name. */
const PRODUCE_VERSION_MAX = 12;
/** What is read ahead of the answers, so that a slow broker holds up the input and not this memory. */
const BUFFERED_BYTES_MAX = 16 * 1024 * 1024;

export interface ProducerOptions {
  readonly topic: string;
  /** -1 for all. */
  readonly acks: -1 | 0 | 1;
  /** Whether a batch that is sent twice is stored once. Needs acks -1. */
  readonly idempotent: boolean;
  readonly codec: CodecName | null;
  readonly lingerMs: number;
  readonly batchBytes: number;
  /** Where everything goes; null lets keys decide. */
  readonly partition: number | null;
}

type ProduceAnswer = Infer<typeof produceApi.response>["responses"][number]["partitionResponses"][
  number
];

export class Producer {
  readonly #cluster: Cluster;
  readonly #env: Env;
  readonly #options: ProducerOptions;
  readonly #lanes: readonly Lane[];
  readonly #runs: Promise<void>[];
  #topic: TopicView;
  #isStale = false;
  #id = { producerId: -1, producerEpoch: -1 };
  #bufferedBytes = 0;
  #failure: unknown = null;
  #wakeAdders: (() => void)[] = [];
  /** Records without a key fill one batch after another, each for another partition. */
  #sticky: number;
  #stickyBytes = 0;

  private constructor(cluster: Cluster, env: Env, topic: TopicView, options: ProducerOptions) {
    this.#cluster = cluster;
    this.#env = env;
    this.#topic = topic;
    this.#options = options;
    this.#sticky = Math.floor(env.random.float() * topic.partitions.length);
    this.#lanes = topic.partitions.map(({ partition }) =>
      new Lane({
        partition,
        clock: env.clock,
        lingerMs: options.lingerMs,
        batchBytes: options.batchBytes,
        deliver: (batch) => this.#deliver(partition, batch),
        release: (bytes) => this.#release(bytes),
      })
    );
    // A failure is kept for whoever adds or ends next.
    this.#runs = this.#lanes.map((lane) => lane.run().catch((error: unknown) => this.#fail(error)));
  }

  static async open(cluster: Cluster, env: Env, options: ProducerOptions): Promise<Producer> {
    const topic = await cluster.retrying((leftMs) =>
      cluster.topic(options.topic, { leftMs, create: true })
    );
    if (options.partition !== null && topic.partitions[options.partition] === undefined) {
      throw brokerFault(
        `use partition ${options.partition} of topic ${topic.name}`,
        "UNKNOWN_TOPIC_OR_PARTITION",
        { message: `it has ${topic.partitions.length} partitions` },
      );
    }
    const producer = new Producer(cluster, env, topic, options);
    if (options.idempotent) await producer.#takeId();
    return producer;
  }

  /** What each partition has acknowledged. */
  get acknowledged(): Lane["acknowledged"][] {
    return this.#lanes.map(({ acknowledged }) => acknowledged).filter(({ records }) => records > 0);
  }

  /** Takes a record; a promise when the caller should wait before the next one. Throws what went wrong. */
  add(record: NewRecord, bytes: number): Promise<void> | null {
    if (this.#failure !== null) throw this.#failure;
    this.#bufferedBytes += bytes;
    this.#lanes[this.#laneOf(record, bytes)]!.add(record, bytes);
    return this.#bufferedBytes < BUFFERED_BYTES_MAX ? null : this.#untilRoom();
  }

  /** Sends what is left; resolves once everything has its answer. */
  async end(): Promise<void> {
    for (const lane of this.#lanes) lane.end();
    await Promise.all(this.#runs);
    if (this.#failure !== null) throw this.#failure;
  }

  async #untilRoom(): Promise<void> {
    while (this.#bufferedBytes >= BUFFERED_BYTES_MAX && this.#failure === null) {
      await new Promise<void>((wake) => void this.#wakeAdders.push(wake));
    }
  }

  #wake(): void {
    for (const wake of this.#wakeAdders.splice(0)) wake();
  }

  #release(bytes: number): void {
    this.#bufferedBytes -= bytes;
    this.#wake();
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    for (const lane of this.#lanes) lane.abandon();
    this.#wake();
  }

  #laneOf({ key }: NewRecord, bytes: number): number {
    const { partition, batchBytes } = this.#options;
    if (partition !== null) return partition;
    if (key !== null) return partitionOfKey(key, this.#lanes.length);
    if (this.#stickyBytes + bytes > batchBytes) {
      this.#sticky = (this.#sticky + 1) % this.#lanes.length;
      this.#stickyBytes = 0;
    }
    this.#stickyBytes += bytes;
    return this.#sticky;
  }

  async #takeId(): Promise<void> {
    this.#id = await this.#cluster.retrying(async (leftMs) => {
      const connection = await this.#cluster.any();
      const answer = await connection.call(initProducerIdApi, {
        transactionalId: null,
        transactionTimeoutMs: Math.ceil(this.#cluster.timeoutMs),
      }, { timeoutMs: leftMs });
      checkCode("get a producer id", answer.errorCode);
      return answer;
    });
  }

  /** The first offset; null when the batch is too large and not stored, -1 when the broker does not say. */
  async #deliver(partition: number, { records, sequence }: Batch): Promise<number | null> {
    const { codec, idempotent } = this.#options;
    const { producerId, producerEpoch } = this.#id;
    const batch = buildBatch({
      records,
      codec,
      codecs: this.#env.codecs,
      ...(idempotent ? { producerId, producerEpoch, baseSequence: sequence } : {}),
    });
    try {
      return await this.#cluster.retrying((leftMs) =>
        this.#deliverOnce(partition, batch, records.length, leftMs)
      );
    } finally {
      freeMemory(batch.buffer);
    }
  }

  async #deliverOnce(
    partition: number,
    batch: Uint8Array,
    records: number,
    leftMs: number,
  ): Promise<number | null> {
    try {
      const answer = await this.#send(partition, batch, leftMs);
      if (answer === null) return -1;
      const error = errorName(answer.errorCode);
      if (error === "MESSAGE_TOO_LARGE" && records > 1) return null;
      // Stored the first time, and the broker does not know where any more.
      if (error === "DUPLICATE_SEQUENCE_NUMBER") return -1;
      const [bad] = answer.recordErrors;
      const message = bad?.batchIndexErrorMessage ?? answer.errorMessage;
      const what = `write to ${this.#options.topic}-${partition}`;
      checkCode(what, answer.errorCode, { message, atLeader: true });
      return answer.baseOffset;
    } catch (fault) {
      this.#isStale = true;
      throw fault;
    }
  }

  async #send(partition: number, batch: Uint8Array, leftMs: number): Promise<ProduceAnswer | null> {
    const { topic, acks } = this.#options;
    if (this.#isStale) {
      this.#topic = await this.#cluster.topic(topic, { leftMs });
      this.#isStale = false;
    }
    const what = `write to ${topic}-${partition}`;
    const leader = this.#topic.partitions[partition]?.leader ?? -1;
    if (leader < 0) throw brokerFault(what, "LEADER_NOT_AVAILABLE");
    const connection = await this.#cluster.node(leader);
    const request = {
      acks,
      timeoutMs: Math.ceil(leftMs),
      topicData: [{ name: topic, partitionData: [{ index: partition, records: batch }] }],
    };
    const options = { timeoutMs: leftMs, versionMax: PRODUCE_VERSION_MAX };
    if (acks === 0) {
      await connection.send(produceApi, request, options);
      return null;
    }
    const { responses } = await connection.call(produceApi, request, options);
    const answer = responses[0]?.partitionResponses[0];
    if (answer === undefined) throw brokerFault(what, "UNKNOWN_SERVER_ERROR");
    return answer;
  }
}
