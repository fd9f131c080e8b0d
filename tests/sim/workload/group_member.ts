/**
 * A consumer as Kafka's classic clients are: it finds its group over JoinGroup and SyncGroup, assigns as leader,
 * heartbeats, reads its partitions from the committed offsets on, commits what it has processed, and now and then
 * leaves or dies. A static one comes back under its instance id.
 */
import { type Random, randomInt } from "../../../src/env/random.ts";
import { type ErrorName, errorName } from "../../../src/protocol/error_code.ts";
import { offsetCommitApi } from "../../../src/protocol/message/08_offset_commit.ts";
import { offsetFetchApi } from "../../../src/protocol/message/09_offset_fetch.ts";
import {
  joinGroupApi,
  type JoinGroupResponse,
} from "../../../src/protocol/message/11_join_group.ts";
import { heartbeatApi } from "../../../src/protocol/message/12_heartbeat.ts";
import { leaveGroupApi } from "../../../src/protocol/message/13_leave_group.ts";
import { syncGroupApi } from "../../../src/protocol/message/14_sync_group.ts";
import {
  consumerProtocolAssignment,
  consumerProtocolSubscription,
} from "../../../src/protocol/message/consumer_protocol.ts";
import { decodeGrowing, encodeVersioned } from "../../../src/protocol/versioned.ts";
import type { GroupHistory } from "../checker/group.ts";
import { KafkaClient, NoAnswer } from "../kafka_client.ts";
import { between, chance, pick } from "../world.ts";
import { type Context, isTransient, unexpected } from "./context.ts";
import { fetchFrom } from "./fetch.ts";

const TIMEOUT_MS = 8_000;
const SESSION_MS = 10_000;
const REBALANCE_MS = 8_000;
/** A join is held back until the group has gathered. */
const JOIN_TIMEOUT_MS = 40_000;
const PROTOCOL = "sim";

/** What sends a member back to its join; whether its id is still good. */
const REJOIN: Partial<Record<ErrorName, "same-id" | "new-id">> = {
  REBALANCE_IN_PROGRESS: "same-id",
  ILLEGAL_GENERATION: "same-id",
  UNKNOWN_MEMBER_ID: "new-id",
  GROUP_ID_NOT_FOUND: "new-id",
  // An earlier join of its own, whose connection is long gone, may be worked off after its newest one.
  FENCED_INSTANCE_ID: "new-id",
};

export class GroupMember {
  readonly #context: Context;
  readonly #group: GroupHistory;
  readonly #name: string;
  readonly #random: Random;
  readonly #instanceId: string | null;
  #client: KafkaClient;
  #memberId = "";
  #generation = -1;
  #isIn = false;
  /** Next offset by partition, of those that it owns. */
  #positions = new Map<number, number>();

  constructor(context: Context, group: GroupHistory, name: string) {
    this.#context = context;
    this.#group = group;
    this.#name = name;
    this.#random = context.world.random(name);
    this.#instanceId = chance(this.#random, 0.3) ? `static-${name}` : null;
    this.#client = new KafkaClient(context.world, context.cluster, name);
  }

  /** It has left, for good. */
  get isIdle(): boolean {
    return this.#context.draining && this.#isCaughtUp() && !this.#isIn;
  }

  #isCaughtUp(): boolean {
    const { history, steady } = this.#context;
    return Array.from({ length: steady.partitions }, (_, partition) => partition)
      .every((partition) => {
        const { watermarks } = history.of(steady.topicId, partition);
        return this.#group.committed(partition) >= Math.max(0, ...watermarks.values());
      });
  }

  async run(pauseMs: number): Promise<void> {
    const { world } = this.#context;
    while (!this.#context.over) {
      await world.sleep(between(this.#random, 0, pauseMs * 2));
      if (this.#context.draining && this.#isCaughtUp()) {
        if (this.#isIn) await this.#try(() => this.#leave());
        await world.sleep(5_000);
        continue;
      }
      if (this.#isIn) await this.#try(() => this.#work());
      else await this.#try(() => this.#join());
    }
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      await this.#context.world.sleep(between(this.#random, 20, 500));
    }
  }

  // --- joining ----------------------------------------------------------------------------------

  async #join(): Promise<void> {
    const { steady } = this.#context;
    const metadata = encodeVersioned(consumerProtocolSubscription, 1, {
      topics: [steady.name],
      ownedPartitions: [],
    });
    const version = pick(this.#random, [5, 7, 9]);
    const { response, by } = await this.#client.call(joinGroupApi, version, {
      groupId: this.#group.groupId,
      sessionTimeoutMs: SESSION_MS,
      rebalanceTimeoutMs: REBALANCE_MS,
      memberId: this.#memberId,
      groupInstanceId: this.#instanceId,
      protocolType: "consumer",
      protocols: [{ name: PROTOCOL, metadata }],
    }, JOIN_TIMEOUT_MS);
    const error = errorName(response.errorCode);
    if (error === "MEMBER_ID_REQUIRED") {
      this.#memberId = response.memberId;
      return await this.#join();
    }
    if (error !== "NONE") return this.#refused(error, "joining");
    this.#memberId = response.memberId;
    this.#generation = response.generationId ?? -1;
    this.#group.joined(this.#generation, by);
    await this.#sync(response);
  }

  /** As leader: each partition to one of the members, in the order of their ids. */
  #assign({ leader, members, skipAssignment }: JoinGroupResponse) {
    if (leader !== this.#memberId || skipAssignment === true) return [];
    const { steady } = this.#context;
    const ids = members.map(({ memberId }) => memberId).toSorted();
    return ids.map((memberId, index) => {
      const partitions = Array.from({ length: steady.partitions }, (_, partition) => partition)
        .filter((partition) => partition % ids.length === index);
      const assignedPartitions = [{ topic: steady.name, partitions }];
      const assignment = encodeVersioned(consumerProtocolAssignment, 1, { assignedPartitions });
      return { memberId, assignment };
    });
  }

  async #sync(joined: JoinGroupResponse): Promise<void> {
    const { response, by } = await this.#client.call(syncGroupApi, 5, {
      groupId: this.#group.groupId,
      generationId: this.#generation,
      memberId: this.#memberId,
      groupInstanceId: this.#instanceId,
      protocolType: "consumer",
      protocolName: PROTOCOL,
      assignments: this.#assign(joined),
    }, JOIN_TIMEOUT_MS);
    const error = errorName(response.errorCode);
    if (error !== "NONE") return this.#refused(error, "syncing");
    const owned = response.assignment.length === 0
      ? []
      : decodeGrowing(consumerProtocolAssignment, response.assignment).assignedPartitions
        .flatMap(({ partitions }) => partitions);
    const owner = this.#instanceId ?? this.#memberId;
    this.#group.claim(owner, this.#generation, by, owned);
    this.#context.world.note(
      `${this.#name} owns ${owned.join(" ")} in generation ${this.#generation}`,
    );
    await this.#begin(owned);
  }

  /** Owned without a place to begin at counts as not in: the next join tells again. */
  async #begin(owned: readonly number[]): Promise<void> {
    const positions = new Map<number, number>();
    for (const partition of owned) {
      const found = await this.#fetchCommitted(partition);
      if (found === null) return;
      positions.set(partition, Math.max(found, 0));
    }
    this.#positions = positions;
    this.#isIn = true;
  }

  /** Null when there is no answer that counts. */
  async committed(partition: number): Promise<number | null> {
    try {
      return await this.#fetchCommitted(partition);
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      await this.#context.world.sleep(100);
      return null;
    }
  }

  /** Throws NoAnswer. */
  async #fetchCommitted(partition: number): Promise<number | null> {
    const { steady } = this.#context;
    const askedAt = this.#group.now();
    const { response, by } = await this.#client.call(offsetFetchApi, 8, {
      groups: [{
        groupId: this.#group.groupId,
        topics: [{ name: steady.name, partitionIndexes: [partition] }],
      }],
      requireStable: true,
    }, TIMEOUT_MS);
    const group = response.groups?.[0];
    const answer = group?.topics[0]?.partitions[0];
    const code = group?.errorCode !== 0 ? group?.errorCode ?? -1 : answer?.errorCode ?? 0;
    if (code !== 0) {
      if (!isTransient(errorName(code))) unexpected(this.#context, `${this.#name} offsets`, code);
      return null;
    }
    const found = answer?.committedOffset ?? -1;
    this.#group.checkFetched(partition, found, askedAt, by);
    return found;
  }

  // --- a member's life --------------------------------------------------------------------------

  async #work(): Promise<void> {
    if (!this.#context.draining && chance(this.#random, 0.03)) return await this.#die();
    if (!this.#context.draining && chance(this.#random, 0.02)) return await this.#leave();
    await this.#heartbeat();
    if (!this.#isIn || this.#positions.size === 0) return;
    const partition = pick(this.#random, [...this.#positions.keys()]);
    const before = this.#positions.get(partition)!;
    await this.#read(partition, before);
    const isTime = this.#context.draining || chance(this.#random, 0.7);
    const after = this.#positions.get(partition)!;
    if (isTime && after > this.#group.committed(partition)) await this.#commit(partition, after);
  }

  async #heartbeat(): Promise<void> {
    const { response } = await this.#client.call(heartbeatApi, 4, {
      groupId: this.#group.groupId,
      generationId: this.#generation,
      memberId: this.#memberId,
      groupInstanceId: this.#instanceId,
    }, TIMEOUT_MS);
    const error = errorName(response.errorCode);
    if (error !== "NONE") this.#refused(error, "heartbeating");
  }

  async #read(partition: number, offset: number): Promise<void> {
    const { steady } = this.#context;
    const answer = await fetchFrom(this.#context, this.#client, {
      topicId: steady.topicId,
      partition,
      offset,
      maxBytes: pick(this.#random, [300, 100_000]),
      waitMs: 100,
      timeoutMs: TIMEOUT_MS,
    });
    if (answer.code !== 0) {
      const isBehind = answer.error === "OFFSET_OUT_OF_RANGE" &&
        this.#context.cluster.isReplaced(answer.by);
      if (!isTransient(answer.error) && !isBehind) {
        unexpected(this.#context, `${this.#name} reading ${partition} from ${offset}`, answer.code);
      }
      return;
    }
    const offsets = answer.records.map((record) => record.offset).filter((at) => at >= offset);
    this.#group.process(partition, offsets);
    this.#positions.set(partition, (offsets.at(-1) ?? offset - 1) + 1);
  }

  async #commit(partition: number, offset: number): Promise<void> {
    const { steady } = this.#context;
    const commit = this.#group.send(partition, offset);
    const { response, by } = await this.#client.call(offsetCommitApi, 9, {
      groupId: this.#group.groupId,
      generationIdOrMemberEpoch: this.#generation,
      memberId: this.#memberId,
      groupInstanceId: this.#instanceId,
      topics: [{
        name: steady.name,
        partitions: [{ partitionIndex: partition, committedOffset: offset, committedMetadata: "" }],
      }],
    }, TIMEOUT_MS);
    const error = errorName(response.topics[0]!.partitions[0]!.errorCode);
    if (error === "NONE") return this.#group.acknowledge(commit, by);
    commit.isRefused = REJOIN[error] !== undefined;
    this.#refused(error, "committing");
  }

  /** kill -9: nobody is told. */
  async #die(): Promise<void> {
    this.#context.world.note(`${this.#name} dies`);
    this.#client.close();
    this.#client = new KafkaClient(this.#context.world, this.#context.cluster, this.#name);
    this.#forget();
    await this.#context.world.sleep(randomInt(this.#random, 2 * SESSION_MS));
  }

  async #leave(): Promise<void> {
    const memberId = this.#memberId;
    const groupInstanceId = this.#instanceId;
    this.#forget();
    await this.#client.call(leaveGroupApi, 5, {
      groupId: this.#group.groupId,
      members: [{ memberId, groupInstanceId }],
    }, TIMEOUT_MS);
  }

  #forget(): void {
    this.#isIn = false;
    this.#memberId = "";
    this.#positions.clear();
  }

  #refused(error: ErrorName, what: string): void {
    if (isTransient(error)) return;
    this.#isIn = false;
    const back = REJOIN[error];
    if (back === "new-id") this.#memberId = "";
    if (back !== undefined) return;
    this.#context.world.violated(`${this.#name} ${what} is answered ${error}`);
  }
}
