/**
 * A consumer that manages its partitions itself and keeps its place with the group coordinator: an offset
 * whose commit was answered is what a later OffsetFetch shows, or one that was tried after it.
 */
import { type Random, randomInt } from "../../../src/env/random.ts";
import { errorName } from "../../../src/protocol/error_code.ts";
import { offsetCommitApi } from "../../../src/protocol/message/08_offset_commit.ts";
import { offsetFetchApi } from "../../../src/protocol/message/09_offset_fetch.ts";
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

const TIMEOUT_MS = 20_000;

interface Place {
  readonly topic: SimTopic;
  readonly partition: number;
  attempted: number;
  acknowledged: number;
  /** The process that acknowledged it: those before may know less. */
  by: number;
}

export class Committer {
  readonly #context: Context;
  readonly #name: string;
  readonly #random: Random;
  readonly #client: KafkaClient;
  readonly #places = new Map<string, Place>();
  #busy = false;

  constructor(context: Context, name: string) {
    this.#context = context;
    this.#name = name;
    this.#random = context.world.random(name);
    this.#client = new KafkaClient(context.world, context.cluster, name);
  }

  get isIdle(): boolean {
    return !this.#busy;
  }

  async run(pauseMs: number): Promise<void> {
    while (!this.#context.over) {
      await this.#context.world.sleep(pauseOf(this.#context, this.#random, pauseMs));
      if (this.#context.draining || this.#context.topics.length === 0) continue;
      const topic = pick(this.#random, this.#context.topics);
      const place = this.#placeOf(topic, randomInt(this.#random, topic.partitions));
      this.#busy = true;
      await (chance(this.#random, 0.6) ? this.#commit(place) : this.#check(place));
      this.#busy = false;
    }
  }

  /** At rest: every place is what it should be. */
  async checkAll(): Promise<void> {
    for (const place of this.#places.values()) {
      if (place.topic.doomed) continue;
      while (!await this.#check(place)) await this.#context.world.sleep(100);
    }
  }

  #placeOf(topic: SimTopic, partition: number): Place {
    const key = `${topic.topicId}/${partition}`;
    let place = this.#places.get(key);
    if (place === undefined) {
      place = { topic, partition, attempted: -1, acknowledged: -1, by: -1 };
      this.#places.set(key, place);
    }
    return place;
  }

  async #commit(place: Place): Promise<void> {
    const offset = place.attempted + 1;
    place.attempted = offset;
    try {
      const { response, by } = await this.#client.call(offsetCommitApi, 9, {
        groupId: this.#name,
        generationIdOrMemberEpoch: -1,
        memberId: "",
        topics: [{
          name: place.topic.name,
          partitions: [{
            partitionIndex: place.partition,
            committedOffset: offset,
            committedMetadata: "",
          }],
        }],
      }, TIMEOUT_MS);
      const code = response.topics[0]!.partitions[0]!.errorCode;
      const error = errorName(code);
      if (code === 0) Object.assign(place, { acknowledged: offset, by });
      else if (!isTransient(error) && !isUnknownTopic(error)) {
        unexpected(this.#context, `${this.#name} committing`, code);
      }
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
    }
  }

  /** True when there was an answer. */
  async #check(place: Place): Promise<boolean> {
    const { acknowledged, by: since } = place;
    try {
      const { response, by } = await this.#client.call(offsetFetchApi, 9, {
        groups: [{
          groupId: this.#name,
          topics: [{ name: place.topic.name, partitionIndexes: [place.partition] }],
        }],
        requireStable: false,
      }, TIMEOUT_MS);
      const group = response.groups?.[0];
      const code = group?.errorCode !== 0
        ? group?.errorCode ?? -1
        : group.topics[0]?.partitions[0]?.errorCode ?? 0;
      if (code !== 0) {
        if (isTransient(errorName(code))) return false;
        unexpected(this.#context, `${this.#name} asking its offset`, code);
        return true;
      }
      const found = group?.topics[0]?.partitions[0]?.committedOffset ?? -1;
      if (place.topic.doomed || by < since) return true;
      if (found < acknowledged || found > place.attempted) {
        this.#context.world.violated(
          `${this.#name}: epoch ${by} has offset ${found} for ${place.topic.name}-${place.partition}; ` +
            `${acknowledged} was acknowledged, ${place.attempted} tried`,
        );
      }
      return true;
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      return false;
    }
  }
}
