/**
 * A producer as Kafka's own client is with idempotence on: up to five batches in flight, sequence numbers per
 * partition, a failed batch goes out again with the same number and only as the oldest one outstanding.
 * It never gives up, so its records must be in the log once and in its order.
 */
import { type Random, randomInt } from "../../../src/env/random.ts";
import { errorName } from "../../../src/protocol/error_code.ts";
import { initProducerIdApi } from "../../../src/protocol/message/22_init_producer_id.ts";
import { KafkaClient, NoAnswer } from "../kafka_client.ts";
import { between, pick } from "../world.ts";
import {
  batchOf,
  type Context,
  isTransient,
  isUnknownTopic,
  pauseOf,
  type SimTopic,
  unexpected,
} from "./context.ts";
import { produce, type ProduceAnswer } from "./produce.ts";

const IN_FLIGHT_MAX = 5;
const TIMEOUT_MS = 8_000;
const KEPT_MAX = 5;

interface Batch {
  readonly sequence: number;
  readonly values: readonly string[];
  attempts: number;
  isInFlight: boolean;
  /** Failed, and not sent again yet: nothing behind it may leave. */
  isWaiting: boolean;
  baseOffset: number | null;
}

/** One partition's queue; a topic that is gone ends it. */
class Lane {
  readonly topic: SimTopic;
  readonly partition: number;
  /** Records handed out: the values are numbered by it. */
  sent = 0;
  readonly outstanding: Batch[] = [];
  /** The last ones that were acknowledged. */
  readonly acknowledged: Batch[] = [];
  isOver = false;

  constructor(topic: SimTopic, partition: number) {
    this.topic = topic;
    this.partition = partition;
  }
}

export class IdempotentProducer {
  readonly #context: Context;
  readonly name: string;
  readonly #random: Random;
  readonly #client: KafkaClient;
  readonly #lanes = new Map<string, Lane>();
  #producerId = -1;
  #producerEpoch = -1;

  constructor(context: Context, name: string) {
    this.#context = context;
    this.name = name;
    this.#random = context.world.random(name);
    this.#client = new KafkaClient(context.world, context.cluster, name);
  }

  get isIdle(): boolean {
    return [...this.#lanes.values()].every(({ outstanding }) => outstanding.length === 0);
  }

  lanes(): readonly Pick<Lane, "topic" | "partition" | "sent" | "isOver">[] {
    return [...this.#lanes.values()];
  }

  async run(pauseMs: number): Promise<void> {
    const { world } = this.#context;
    await this.#initialise();
    while (!this.#context.over) {
      await world.sleep(pauseOf(this.#context, this.#random, pauseMs));
      if (!this.#context.draining && this.#context.topics.length > 0) this.#enqueue();
      for (const lane of this.#lanes.values()) this.#pump(lane);
    }
  }

  async #initialise(): Promise<void> {
    const request = { transactionalId: null, transactionTimeoutMs: 60_000 };
    while (!this.#context.over) {
      try {
        const { response } = await this.#client.call(initProducerIdApi, 4, request, TIMEOUT_MS);
        if (response.errorCode === 0) {
          this.#producerId = response.producerId!;
          this.#producerEpoch = response.producerEpoch;
          return;
        }
        if (!isTransient(errorName(response.errorCode))) {
          unexpected(this.#context, `${this.name} InitProducerId`, response.errorCode);
        }
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
      }
      await this.#context.world.sleep(500);
    }
  }

  #enqueue(): void {
    const topic = pick(this.#random, this.#context.topics);
    const partition = randomInt(this.#random, topic.partitions);
    const key = `${topic.topicId}/${partition}`;
    const lane = this.#lanes.get(key) ?? new Lane(topic, partition);
    this.#lanes.set(key, lane);
    if (lane.isOver || lane.outstanding.length >= IN_FLIGHT_MAX) return;
    const sequence = lane.sent;
    const count = 1 + randomInt(this.#random, 3);
    const values = Array.from({ length: count }, () => `${this.name}:${lane.sent++}`);
    lane.outstanding.push({
      sequence,
      values,
      attempts: 0,
      isInFlight: false,
      isWaiting: false,
      baseOffset: null,
    });
  }

  /** A batch that failed blocks those behind it until it is the oldest and in again. */
  #pump(lane: Lane): void {
    for (const [i, batch] of lane.outstanding.entries()) {
      if (batch.isWaiting) return;
      // With a sixth batch behind it, one that is in the log already leaves the broker's window of five.
      if (batch.isInFlight && batch.attempts > 1) return;
      if (batch.isInFlight) continue;
      if (batch.attempts > 0 && i > 0) return;
      batch.isInFlight = true;
      batch.attempts++;
      void this.#send(lane, batch);
    }
  }

  async #send(lane: Lane, batch: Batch): Promise<void> {
    try {
      this.#judge(lane, batch, await this.#produce(lane, batch));
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
    }
    // Clients wait before they try again; the loop of `run` picks it up.
    batch.isWaiting = true;
    await this.#context.world.sleep(between(this.#random, 20, 300));
    batch.isWaiting = false;
    batch.isInFlight = false;
  }

  #produce(lane: Lane, batch: Batch): Promise<ProduceAnswer> {
    const sequence = {
      producerId: this.#producerId,
      producerEpoch: this.#producerEpoch,
      baseSequence: batch.sequence,
    };
    const bytes = batchOf(this.#context, batch.values, { sequence });
    const { topic: { topicId }, partition } = lane;
    return produce(
      this.#client,
      topicId,
      partition,
      bytes,
      TIMEOUT_MS,
      `sequence ${batch.sequence}`,
    );
  }

  #judge(lane: Lane, batch: Batch, { code, error, baseOffset, by }: ProduceAnswer): void {
    if (code === 0) return this.#acknowledged(lane, batch, baseOffset);
    if (isUnknownTopic(error)) {
      // A process that was replaced may not know a new topic yet.
      if (lane.topic.doomed) {
        lane.isOver = true;
        lane.outstanding.length = 0;
      }
      return;
    }
    if (isTransient(error)) return;
    const isReplaced = this.#context.cluster.isReplaced(by);
    const isOutOfOrder = error === "OUT_OF_ORDER_SEQUENCE_NUMBER";
    const hasOlder = lane.outstanding[0] !== batch;
    if (isOutOfOrder && (hasOlder || isReplaced || lane.isOver)) return;
    unexpected(
      this.#context,
      `${this.name} (${this.#producerId}) with its oldest sequence ${batch.sequence} in ` +
        `${lane.topic.topicId.slice(0, 8)}-${lane.partition}`,
      code,
    );
  }

  #acknowledged(lane: Lane, batch: Batch, baseOffset: number): void {
    const { history, world } = this.#context;
    if (lane.isOver) return;
    const { topic: { topicId }, partition } = lane;
    history.acknowledge(history.of(topicId, partition), baseOffset, batch.values);
    const at = lane.outstanding.indexOf(batch);
    if (at < 0) return;
    lane.outstanding.splice(at, 1);
    const newest = lane.acknowledged.at(-1);
    if (
      newest !== undefined && newest.baseOffset! >= baseOffset && newest.sequence < batch.sequence
    ) {
      world.violated(
        `${this.name}: sequence ${batch.sequence} at ${baseOffset} is behind an older one`,
      );
    }
    batch.baseOffset = baseOffset;
    lane.acknowledged.push(batch);
    lane.acknowledged.sort((a, b) => a.sequence - b.sequence);
    if (lane.acknowledged.length > KEPT_MAX) lane.acknowledged.shift();
  }

  /**
   * Sends what is acknowledged already once more: each must be answered with its first offset. So the state of
   * the producer is what a replay of the whole log would give, whatever crashes it went through.
   */
  async repeatAll(): Promise<void> {
    for (const lane of this.#lanes.values()) {
      if (lane.isOver || lane.topic.doomed) continue;
      for (const batch of lane.acknowledged) await this.#repeat(lane, batch);
    }
  }

  async #repeat(lane: Lane, batch: Batch): Promise<void> {
    for (;;) {
      try {
        const answer = await this.#produce(lane, batch);
        if (answer.code === 0 && answer.baseOffset === batch.baseOffset) return;
        if (answer.code === 0 || !isTransient(answer.error)) {
          return this.#context.world.violated(
            `${this.name} repeats sequence ${batch.sequence} of offset ${batch.baseOffset}: ` +
              `${answer.error} at ${answer.baseOffset}`,
          );
        }
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
      }
      await this.#context.world.sleep(100);
    }
  }
}
