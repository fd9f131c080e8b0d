/** A shard with a consumer group over a log in memory, and clients of it that get lost, crash and come back. */
import assert from "node:assert/strict";
import { type Assignment, listOf, NOTHING } from "../../src/broker/group/consumer/assignment.ts";
import type { HeartbeatRequest } from "../../src/broker/group/consumer/heartbeat.ts";
import { ShardMemory } from "../../src/broker/shard/shard_memory.ts";
import { Shard } from "../../src/broker/group/shard.ts";
import { logConfigOf } from "../../src/broker/topic_config.ts";
import { brokerConfig } from "./broker_world.ts";
import { consumerHost, FakeTopics, shareHost } from "./consumer_topics.ts";
import { createFakeClock } from "./fake_clock.ts";
import { MemoryShareGroups } from "./memory_share_groups.ts";
import { createMemoryLog } from "./memory_log.ts";
import { testEnv } from "./test_env.ts";

export const SESSION_MS = 45_000;
/** Longer than any test of random steps: who is slow to let go is fenced in tests of its own. */
export const REBALANCE_MS = 3_600_000;

export function beatOf(
  memberId: string,
  epoch: number,
  over: Partial<HeartbeatRequest> = {},
): HeartbeatRequest {
  return {
    memberId,
    epoch,
    instanceId: null,
    rackId: null,
    rebalanceTimeoutMs: null,
    topicNames: null,
    topicRegex: null,
    assignor: null,
    owned: null,
    clientId: "c",
    clientHost: "127.0.0.1",
    ...over,
  };
}

export function joinOf(memberId: string, over: Partial<HeartbeatRequest> = {}): HeartbeatRequest {
  const first = { rebalanceTimeoutMs: REBALANCE_MS, topicNames: ["t"], owned: NOTHING };
  return beatOf(memberId, 0, { ...first, ...over });
}

/** A shard that can be lost and loaded again from its log. */
export class World {
  readonly clock = createFakeClock();
  readonly topics = new FakeTopics({ t: 4 });
  readonly log = createMemoryLog(logConfigOf({}, brokerConfig()));
  readonly shareGroups = new MemoryShareGroups();
  readonly shares = shareHost(testEnv({ clock: this.clock }), this.topics, {
    shareGroups: this.shareGroups,
  });
  readonly host = consumerHost(this.clock, this.topics, { sessionTimeoutMs: SESSION_MS });
  #shard: Shard | null = null;
  #ids = 0;

  async load(): Promise<Shard> {
    this.#shard?.close();
    this.#shard = new Shard({
      env: testEnv({ clock: this.clock }),
      log: this.log,
      settings: {
        sessionTimeoutMsMin: 6000,
        sessionTimeoutMsMax: 600_000,
        initialRebalanceDelayMs: 0,
        membersMax: 10,
      },
      retentionMs: 86_400_000,
      newMemberId: (prefix) => `${prefix}-${this.#ids++}`,
      topicExists: () => true,
      memory: new ShardMemory(2 ** 40),
      compactBytesMin: 0,
      consumers: this.host,
      shares: this.shares,
    });
    await this.#shard.load();
    return this.#shard;
  }

  get shard(): Shard {
    return this.#shard!;
  }

  get group() {
    return this.shard.find("g")?.consumer?.group;
  }

  async say(request: HeartbeatRequest) {
    const live = this.shard.consumers.of("g", request.epoch === 0);
    if (live === null) return null;
    const done = live.heartbeat(request);
    this.shard.reschedule(this.shard.find("g")!);
    return await done;
  }

  async leave(memberId: string, epoch = -1, instanceId: string | null = null) {
    const live = this.shard.consumers.of("g", false);
    const done = live?.leave({ memberId, epoch, instanceId });
    if (live !== null) this.shard.reschedule(this.shard.find("g")!);
    return await done;
  }
}

export async function createConsumerWorld(): Promise<World> {
  const made = new World();
  await made.load();
  return made;
}

/** A member as its client is: it owns what it took and has not let go of, and does later what it was told. */
export interface Client {
  epoch: number;
  owned: Assignment;
  told: Assignment;
  topics: readonly string[];
  /** Of its last answer that came through. */
  toldAtMs: number;
}

export class Clients {
  readonly world: World;
  readonly all = new Map<string, Client>();

  constructor(world: World) {
    this.world = world;
  }

  async join(id: string, topics: readonly string[]): Promise<void> {
    const client: Client = {
      epoch: 0,
      owned: NOTHING,
      told: NOTHING,
      topics,
      toldAtMs: this.world.clock.monotonicMs(),
    };
    this.all.set(id, client);
    await this.#send(client, joinOf(id, { topicNames: topics }), false);
  }

  async beat(id: string, isLost: boolean, says: boolean): Promise<void> {
    const client = this.all.get(id);
    if (client === undefined) return;
    if (client.epoch === 0) return await this.join(id, client.topics);
    if (says) client.owned = client.told;
    // After a lost answer a client says all again.
    const full = {
      rebalanceTimeoutMs: REBALANCE_MS,
      topicNames: client.topics,
      owned: client.owned,
    };
    await this.#send(client, beatOf(id, client.epoch, says ? full : {}), isLost);
  }

  async #send(
    client: Client,
    request: HeartbeatRequest,
    isLost: boolean,
  ): Promise<void> {
    const answer = await this.world.say(request);
    if (answer === null || !answer.ok) {
      // Fenced or unknown: it abandons all, and joins with its next heartbeat.
      client.epoch = 0;
      client.owned = NOTHING;
      client.told = NOTHING;
      return;
    }
    if (isLost) return;
    client.epoch = answer.member.place.epoch;
    client.toldAtMs = this.world.clock.monotonicMs();
    if (answer.assignment !== null) client.told = answer.assignment;
  }

  /** A client that heard nothing for a session timeout has abandoned its partitions by itself. */
  assertApart(): void {
    const nowMs = this.world.clock.monotonicMs();
    const owners = new Map<string, string>();
    for (const [id, { owned, toldAtMs }] of this.all) {
      if (nowMs - toldAtMs >= SESSION_MS) continue;
      for (const { topicId, partitions } of listOf(owned)) {
        for (const partition of partitions) {
          const key = `${topicId}/${partition}`;
          assert.ok(!owners.has(key), `${key} is owned by ${owners.get(key)} and ${id}`);
          owners.set(key, id);
        }
      }
    }
  }

  async settle(): Promise<void> {
    for (let round = 0; round < 8; round++) {
      for (const id of this.all.keys()) await this.beat(id, false, true);
      this.assertApart();
    }
  }
}
