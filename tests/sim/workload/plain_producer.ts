/**
 * A producer without idempotence: several calls in flight, each repeated until it is acknowledged or given
 * up. It may write a record twice; what was acknowledged must stand where the answer said.
 */
import { type Random, randomInt } from "../../../src/env/random.ts";
import { KafkaClient, NoAnswer } from "../kafka_client.ts";
import { between, chance, pick } from "../world.ts";
import {
  batchOf,
  type Context,
  isTransient,
  isUnknownTopic,
  pauseOf,
  unexpected,
} from "./context.ts";
import { produce } from "./produce.ts";

const IN_FLIGHT_MAX = 5;
const ATTEMPTS_MAX = 4;

export class PlainProducer {
  readonly #context: Context;
  readonly #name: string;
  readonly #random: Random;
  readonly #client: KafkaClient;
  #next = 0;
  #inFlight = 0;

  constructor(context: Context, name: string) {
    this.#context = context;
    this.#name = name;
    this.#random = context.world.random(name);
    this.#client = new KafkaClient(context.world, context.cluster, name);
  }

  get isIdle(): boolean {
    return this.#inFlight === 0;
  }

  async run(pauseMs: number): Promise<void> {
    const { world } = this.#context;
    while (!this.#context.over) {
      await world.sleep(pauseOf(this.#context, this.#random, pauseMs));
      if (this.#context.draining || this.#inFlight >= IN_FLIGHT_MAX) continue;
      if (this.#context.topics.length > 0) void this.#send();
    }
  }

  async #send(): Promise<void> {
    const topic = pick(this.#random, this.#context.topics);
    const partition = randomInt(this.#random, topic.partitions);
    const values = Array.from(
      { length: 1 + randomInt(this.#random, 4) },
      () => `${this.#name}:${this.#next++}`,
    );
    const padBytes = chance(this.#random, 0.05) ? randomInt(this.#random, 60_000) : 0;
    const codec = chance(this.#random, 0.2) ? pick(this.#random, ["lz4", "snappy"] as const) : null;
    this.#inFlight++;
    try {
      for (let attempt = 0; attempt < ATTEMPTS_MAX && !this.#context.over; attempt++) {
        const batch = batchOf(this.#context, values, { padBytes, codec });
        if (await this.#attempt(topic.topicId, partition, values, batch)) return;
        await this.#context.world.sleep(between(this.#random, 50, 1_000));
      }
    } finally {
      this.#inFlight--;
    }
  }

  /** True when there is nothing left to do. */
  async #attempt(
    topicId: string,
    partition: number,
    values: readonly string[],
    batch: Uint8Array,
  ): Promise<boolean> {
    const { history } = this.#context;
    try {
      const answer = await produce(this.#client, topicId, partition, batch, 10_000, values[0]!);
      if (answer.code === 0) {
        history.acknowledge(history.of(topicId, partition), answer.baseOffset, values);
        return true;
      }
      if (isUnknownTopic(answer.error)) return true;
      if (!isTransient(answer.error)) unexpected(this.#context, this.#name, answer.code);
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
    }
    return false;
  }
}
