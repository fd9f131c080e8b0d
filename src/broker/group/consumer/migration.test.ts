import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { topicIdOf } from "../../../../tests/support/consumer_topics.ts";
import {
  Clients,
  createConsumerWorld,
  REBALANCE_MS,
  SESSION_MS,
  type World,
} from "../../../../tests/support/consumer_world.ts";
import {
  consumerProtocolAssignment,
  consumerProtocolSubscription,
} from "../../../protocol/message/consumer_protocol.ts";
import { decodeGrowing, encodeVersioned } from "../../../protocol/versioned.ts";
import type { ErrorName } from "../../../protocol/error_code.ts";
import type { JoinAnswer, JoinRequest, SyncAnswer } from "../group.ts";
import { join } from "../join.ts";
import { heartbeat } from "../membership.ts";
import { joinError } from "../rebalance.ts";
import { sync } from "../sync.ts";

const PARTITIONS = 4;
const PROTOCOL = "cooperative-sticky";

function assignmentOf(partitions: readonly number[]): Uint8Array {
  return encodeVersioned(consumerProtocolAssignment, 1, {
    assignedPartitions: partitions.length === 0 ? [] : [{ topic: "t", partitions }],
  });
}

function partitionsOf(assignment: Uint8Array): readonly number[] {
  if (assignment.length === 0) return [];
  return decodeGrowing(consumerProtocolAssignment, assignment).assignedPartitions
    .flatMap(({ partitions }) => partitions);
}

/** The client joins again with what it has: at another coordinator after the first. */
const MUST_JOIN: ReadonlySet<ErrorName> = new Set(["NOT_COORDINATOR", "REBALANCE_IN_PROGRESS"]);

/** A cooperative classic consumer of topic `t`, as kafka-clients behave: it joins again when it lets something go. */
class ClassicClient {
  readonly world: World;
  readonly name: string;
  id = "";
  generation = -1;
  owned: readonly number[] = [];
  toldAtMs = 0;
  #isWaiting = false;
  #mustJoin = true;

  constructor(world: World, name: string) {
    this.world = world;
    this.name = name;
  }

  #heard(): void {
    this.toldAtMs = this.world.clock.monotonicMs();
  }

  #lost(): void {
    this.owned = [];
    this.id = "";
    this.#mustJoin = true;
  }

  /** One thing that the client does when it is its turn; an answer that is held comes later. */
  async turn(): Promise<void> {
    if (this.#isWaiting) return;
    if (!this.#mustJoin) this.#beat();
    if (this.#mustJoin) await this.#join();
  }

  #beat(): void {
    const entry = this.world.shard.find("g");
    const error = entry === undefined
      ? "UNKNOWN_MEMBER_ID"
      : entry.consumer === null
      ? heartbeat(entry.group, this.world.shard.host, this.id, null, this.generation)
      : entry.consumer.beatClassic(this.id, null, this.generation);
    if (entry !== undefined) this.world.shard.reschedule(entry);
    if (error === "NONE") this.#heard();
    else if (error === "REBALANCE_IN_PROGRESS") this.#mustJoin = true;
    else this.#lost();
  }

  get #request(): JoinRequest {
    const ownedPartitions = this.owned.length === 0 ? [] : [{ topic: "t", partitions: this.owned }];
    const metadata = encodeVersioned(consumerProtocolSubscription, 1, {
      topics: ["t"],
      ownedPartitions,
    });
    return {
      memberId: this.id,
      instanceId: null,
      clientId: this.name,
      clientHost: "127.0.0.1",
      sessionTimeoutMs: SESSION_MS,
      rebalanceTimeoutMs: REBALANCE_MS,
      protocolType: "consumer",
      protocols: [{ name: PROTOCOL, metadata }],
      needsKnownId: false,
      canSkipAssignment: false,
    };
  }

  async #join(): Promise<void> {
    this.#mustJoin = false;
    const { shard } = this.world;
    const entry = shard.findOrCreate("g");
    const request = this.#request;
    if (entry.consumer !== null && entry.consumer.group.members.size > 0) {
      const memberId = this.id === "" ? shard.host.newMemberId(this.name) : this.id;
      const joining = entry.consumer.joinClassic(request, memberId);
      shard.reschedule(entry);
      const joined = await joining;
      if (!joined.ok) return this.#lost();
      return await this.#joined({
        ...joinError("NONE", memberId),
        generation: joined.member.place.epoch,
      });
    }
    await shard.consumers.becomeClassic(entry);
    this.#isWaiting = true;
    join(entry.group, shard.host, request, (answer) => {
      this.#isWaiting = false;
      void this.#joined(answer);
    });
    shard.reschedule(entry);
  }

  async #joined(answer: JoinAnswer): Promise<void> {
    if (MUST_JOIN.has(answer.error)) {
      this.#mustJoin = true;
      return;
    }
    if (answer.error !== "NONE") return this.#lost();
    this.#heard();
    this.id = answer.memberId;
    this.generation = answer.generation;
    await this.#sync(answer.leader === answer.memberId ? assign(answer) : []);
  }

  async #sync(assignments: readonly { memberId: string; assignment: Uint8Array }[]): Promise<void> {
    const entry = this.world.shard.find("g");
    if (entry === undefined) return this.#lost();
    const { id: memberId, generation } = this;
    const type = { protocolType: null, protocolName: null };
    const request = { memberId, instanceId: null, generation, ...type, assignments };
    if (entry.consumer !== null) return this.#synced(await entry.consumer.syncClassic(request));
    this.#isWaiting = true;
    sync(entry.group, this.world.shard.host, request, (answer) => {
      this.#isWaiting = false;
      this.#synced(answer);
    });
    this.world.shard.reschedule(entry);
  }

  #synced({ error, assignment }: SyncAnswer): void {
    if (MUST_JOIN.has(error)) {
      this.#mustJoin = true;
      return;
    }
    if (error !== "NONE") return this.#lost();
    this.#heard();
    const given = partitionsOf(assignment);
    if (this.owned.some((partition) => !given.includes(partition))) this.#mustJoin = true;
    this.owned = given;
  }
}

/** The leader's part: even, and nobody gets what another one still has. */
function assign({ members }: JoinAnswer): { memberId: string; assignment: Uint8Array }[] {
  const owner = new Map<number, string>();
  for (const { memberId, metadata } of members) {
    const { ownedPartitions } = decodeGrowing(consumerProtocolSubscription, metadata);
    for (const { partitions } of ownedPartitions) {
      for (const partition of partitions) owner.set(partition, memberId);
    }
  }
  return members.map(({ memberId }, at) => {
    const wanted = Array.from({ length: PARTITIONS }, (_, partition) => partition)
      .filter((partition) => partition % members.length === at);
    const free = wanted.filter((partition) => (owner.get(partition) ?? memberId) === memberId);
    return { memberId, assignment: assignmentOf(free) };
  });
}

class Mixed {
  readonly world: World;
  readonly consumers: Clients;
  readonly classic = new Map<string, ClassicClient>();

  constructor(world: World) {
    this.world = world;
    this.consumers = new Clients(world);
  }

  async turn(who: string): Promise<void> {
    await this.classic.get(who)?.turn();
    await this.consumers.beat(who, false, true);
    await new Promise((resolve) => setImmediate(resolve));
  }

  async begin(who: string, kind: "classic" | "consumer"): Promise<void> {
    if (this.classic.has(who) || this.consumers.all.has(who)) return;
    if (kind === "consumer") await this.consumers.join(who, ["t"]);
    else this.classic.set(who, new ClassicClient(this.world, who));
    await this.turn(who);
  }

  /** Of clients that were heard of within a session. */
  owners(): Map<number, string[]> {
    const nowMs = this.world.clock.monotonicMs();
    const owners = new Map<number, string[]>();
    const own = (partition: number, who: string) =>
      owners.set(partition, [...owners.get(partition) ?? [], who]);
    for (const [who, { owned, toldAtMs }] of this.classic) {
      if (nowMs - toldAtMs < SESSION_MS) { for (const partition of owned) own(partition, who); }
    }
    for (const [who, { owned, toldAtMs }] of this.consumers.all) {
      if (nowMs - toldAtMs >= SESSION_MS) continue;
      for (const partition of owned.get(topicIdOf("t")) ?? []) own(partition, who);
    }
    return owners;
  }

  assertApart(): void {
    for (const [partition, owners] of this.owners()) {
      assert.ok(owners.length === 1, `${partition} is owned by ${owners}`);
    }
  }

  /** Long enough for members that crashed in the middle of a join to be given up. */
  async settle(): Promise<void> {
    for (let round = 0; round < 30; round++) {
      await this.world.clock.advance(SESSION_MS / 20);
      for (const who of [...this.classic.keys(), ...this.consumers.all.keys()]) {
        await this.turn(who);
        this.assertApart();
      }
    }
  }
}

const who = fc.nat(4).map((number) => `m${number}`);
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("classic" as const, "consumer" as const),
      who,
    }),
  },
  { weight: 12, arbitrary: fc.record({ kind: fc.constant("turn" as const), who }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom("leave" as const, "crash" as const), who }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom("wait" as const, "reload" as const), who }),
  },
);

test("members of both protocols come and go: no partition has two owners, in the end all have one", async () => {
  let upgrades = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60, size: "max" }), async (run) => {
      const world = await createConsumerWorld();
      const mixed = new Mixed(world);
      for (const each of run) {
        if (each.kind === "wait") await world.clock.advance(10_000);
        else if (each.kind === "reload") await world.load();
        else if (each.kind === "turn") await mixed.turn(each.who);
        else if (each.kind === "classic" || each.kind === "consumer") {
          await mixed.begin(each.who, each.kind);
        } else {
          if (each.kind === "leave" && mixed.consumers.all.has(each.who)) {
            await world.leave(each.who);
          }
          mixed.consumers.all.delete(each.who);
          mixed.classic.delete(each.who);
        }
        if (mixed.classic.size > 0 && world.group !== undefined) upgrades += 1;
        mixed.assertApart();
      }
      await world.clock.advance(SESSION_MS);
      await mixed.settle();
      if (mixed.classic.size + mixed.consumers.all.size > 0) {
        assert.equal(mixed.owners().size, PARTITIONS);
      }
      world.shard.close();
    }),
    { numRuns: 30 },
  );
  assert.ok(upgrades > 0, "groups had members of both protocols");
});
