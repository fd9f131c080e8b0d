/** Creates and deletes topics, also under a name that was used before. */
import { type Random, randomInt } from "../../../src/env/random.ts";
import { errorName } from "../../../src/protocol/error_code.ts";
import { metadataApi } from "../../../src/protocol/message/03_metadata.ts";
import { createTopicsApi } from "../../../src/protocol/message/19_create_topics.ts";
import { deleteTopicsApi } from "../../../src/protocol/message/20_delete_topics.ts";
import { ZERO_UUID } from "../../../src/lib/uuid.ts";
import { KafkaClient, NoAnswer } from "../kafka_client.ts";
import { between, chance, pick } from "../world.ts";
import { type Context, isTransient, isUnknownTopic, unexpected } from "./context.ts";

const TIMEOUT_MS = 40_000;
const NAMES = ["a", "b", "c"];
const STEADY = "h";
const TOPICS_MIN = 1;

const RETENTION = [
  { name: "retention.bytes", value: "2000" },
  { name: "segment.ms", value: "2000" },
];

export class TopicAdmin {
  readonly #context: Context;
  readonly #random: Random;
  readonly #client: KafkaClient;

  constructor(context: Context) {
    this.#context = context;
    this.#random = context.world.random("topics");
    this.#client = new KafkaClient(context.world, context.cluster, "admin");
  }

  #busy = false;

  get isIdle(): boolean {
    return !this.#busy;
  }

  /** Until the first topics exist. */
  async begin(): Promise<void> {
    for (const name of [...NAMES.slice(0, 2), STEADY]) {
      while (!this.#context.topics.some((topic) => topic.name === name)) {
        if (this.#context.over) return;
        await this.#attempt(() => this.#create(name));
        await this.#context.world.sleep(50);
      }
    }
  }

  async run(pauseMs: number): Promise<void> {
    while (!this.#context.over) {
      await this.#context.world.sleep(between(this.#random, 0, pauseMs * 2));
      if (this.#context.draining) continue;
      const name = pick(this.#random, NAMES);
      const live = this.#context.topics.find((topic) => topic.name === name);
      if (live === undefined) await this.#attempt(() => this.#create(name));
      else if (this.#context.topics.length > TOPICS_MIN) {
        live.doomed = true;
        await this.#attempt(() => this.#delete(name, live.topicId));
      }
    }
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    this.#busy = true;
    try {
      await work();
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
    } finally {
      this.#busy = false;
    }
  }

  async #create(name: string): Promise<void> {
    const mayTrim = name !== STEADY && chance(this.#random, 0.3);
    const { response, by } = await this.#client.call(createTopicsApi, 7, {
      topics: [{
        name,
        numPartitions: 1 + randomInt(this.#random, 3),
        replicationFactor: 1,
        assignments: [],
        configs: mayTrim ? RETENTION : [],
      }],
      timeoutMs: 30_000,
    }, TIMEOUT_MS);
    const { errorCode, topicId } = response.topics[0]!;
    const error = errorName(errorCode);
    if (errorCode === 0) {
      return this.#add(name, topicId!, mayTrim, response.topics[0]!.numPartitions!);
    }
    // An attempt before this one came through, its answer did not.
    if (error === "TOPIC_ALREADY_EXISTS") return await this.#find(name);
    if (!isTransient(error)) {
      unexpected(this.#context, `creation of ${name} by epoch ${by}`, errorCode);
    }
  }

  #add(name: string, topicId: string, mayTrim: boolean, partitions: number): void {
    const topic = { name, topicId, partitions, mayTrim, doomed: false };
    this.#context.topics.push(topic);
    if (name === STEADY) this.#context.steady = topic;
  }

  /** Its settings are not known: it may have retention. */
  async #find(name: string): Promise<void> {
    const { response } = await this.#client.call(metadataApi, 12, {
      topics: [{ topicId: ZERO_UUID, name }],
      allowAutoTopicCreation: false,
      includeTopicAuthorizedOperations: false,
    }, TIMEOUT_MS);
    const topic = response.topics[0];
    if (topic === undefined || topic.errorCode !== 0) return;
    if (this.#context.topics.some(({ topicId }) => topicId === topic.topicId)) return;
    this.#add(name, topic.topicId!, name !== STEADY, topic.partitions.length);
  }

  async #delete(name: string, topicId: string): Promise<void> {
    for (let asked = 0; !this.#context.over; asked++) {
      try {
        const { response } = await this.#client.call(deleteTopicsApi, 6, {
          topics: [{ name: null, topicId }],
          timeoutMs: 30_000,
        }, TIMEOUT_MS);
        const { errorCode } = response.responses[0]!;
        const error = errorName(errorCode);
        if (errorCode === 0 || isUnknownTopic(error)) break;
        if (!isTransient(error)) return unexpected(this.#context, `deletion of ${name}`, errorCode);
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
      }
      await this.#context.world.sleep(between(this.#random, 100, 1_000));
    }
    const at = this.#context.topics.findIndex((topic) => topic.topicId === topicId);
    if (at >= 0) this.#context.topics.splice(at, 1);
    this.#context.history.forget(topicId);
  }
}
