/** A reader: follows a partition from some offset for a while, then turns to another. */
import { type Random, randomInt } from "../../../src/env/random.ts";
import { watermarkSeen } from "../checker/history.ts";
import { KafkaClient, NoAnswer } from "../kafka_client.ts";
import { chance, pick } from "../world.ts";
import {
  type Context,
  isTransient,
  isUnknownTopic,
  pauseOf,
  type SimTopic,
  unexpected,
} from "./context.ts";
import { fetchFrom } from "./fetch.ts";

const TIMEOUT_MS = 15_000;

export class Reader {
  readonly #context: Context;
  readonly #name: string;
  readonly #random: Random;
  readonly #client: KafkaClient;

  constructor(context: Context, name: string) {
    this.#context = context;
    this.#name = name;
    this.#random = context.world.random(name);
    this.#client = new KafkaClient(context.world, context.cluster, name);
  }

  async run(pauseMs: number): Promise<void> {
    while (!this.#context.over) {
      await this.#context.world.sleep(pauseOf(this.#context, this.#random, pauseMs));
      if (this.#context.topics.length === 0) continue;
      const topic = pick(this.#random, this.#context.topics);
      await this.#follow(topic, randomInt(this.#random, topic.partitions));
    }
  }

  async #follow(topic: SimTopic, partition: number): Promise<void> {
    const seen = watermarkSeen(this.#context.history.of(topic.topicId, partition), Infinity);
    let offset = pick(this.#random, [0, seen, randomInt(this.#random, seen + 1)]);
    for (let i = 0; i < 8 && !this.#context.over; i++) {
      try {
        const answer = await fetchFrom(this.#context, this.#client, {
          topicId: topic.topicId,
          partition,
          offset,
          maxBytes: chance(this.#random, 0.3) ? 200 : 1_000_000,
          waitMs: chance(this.#random, 0.5) ? 500 : 0,
          timeoutMs: TIMEOUT_MS,
        });
        if (isUnknownTopic(answer.error)) return;
        if (answer.error === "OFFSET_OUT_OF_RANGE") {
          return this.#outOfRange(topic, answer.by, offset);
        }
        if (answer.code !== 0 && !isTransient(answer.error)) {
          return unexpected(this.#context, `${this.#name} reading`, answer.code);
        }
        if (answer.records.length === 0 && chance(this.#random, 0.5)) return;
        offset = (answer.records.at(-1)?.offset ?? offset - 1) + 1;
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        await this.#context.world.sleep(200);
      }
    }
  }

  /** Legal below a trimmed start, and from a process that was replaced and does not know the newest records. */
  #outOfRange(topic: SimTopic, by: number, offset: number): void {
    const isReplaced = this.#context.cluster.isReplaced(by);
    if (topic.mayTrim || topic.doomed || isReplaced) return;
    this.#context.world.violated(
      `I12: offset ${offset} of ${topic.name} is out of range on epoch ${by}`,
    );
  }
}
