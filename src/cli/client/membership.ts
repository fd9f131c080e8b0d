/** A member of a classic group: joins, leads with the assignor `range` where it must, keeps alive, leaves. */
import { type Clock, sleep } from "../../env/clock.ts";
import { errorName } from "../../protocol/error_code.ts";
import {
  consumerProtocolAssignment,
  consumerProtocolSubscription,
} from "../../protocol/message/consumer_protocol.ts";
import { joinGroupApi } from "../../protocol/message/11_join_group.ts";
import { heartbeatApi } from "../../protocol/message/12_heartbeat.ts";
import { leaveGroupApi } from "../../protocol/message/13_leave_group.ts";
import { syncGroupApi } from "../../protocol/message/14_sync_group.ts";
import type { Infer } from "../../protocol/schema.ts";
import { decodeGrowing, encodeVersioned } from "../../protocol/versioned.ts";
import type { Cluster } from "./cluster.ts";
import { checkCode, ClientFault } from "./fault.ts";
import { assignRanges } from "./range_assignor.ts";

const PROTOCOL_TYPE = "consumer";
const PROTOCOL = "range";
/** A version of the embedded messages that every client reads. */
const EMBEDDED_VERSION = 1;
const SESSION_MS = 10_000;
const HEARTBEAT_MS = 2_000;
/** How long the others have for coming back, and so how long a join may take. */
const REBALANCE_MS = 60_000;
const JOIN_MS_MAX = REBALANCE_MS + 10_000;
const PAUSE_MS = 100;
const LEAVE_MS_MAX = 5_000;
/** The first version in which members leave by name. */
const LEAVE_VERSION_MIN = 3;

type Joined = Infer<typeof joinGroupApi.response>;

export interface MembershipOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly group: string;
  readonly topic: string;
}

export class Membership {
  readonly #options: MembershipOptions;
  #memberId = "";
  #generation = -1;
  /** A leave would have to wait behind the join. */
  #isJoining = false;

  constructor(options: MembershipOptions) {
    this.#options = options;
  }

  get identity(): { readonly memberId: string; readonly generation: number } {
    return { memberId: this.#memberId, generation: this.#generation };
  }

  /** The partitions of this generation. Joins again while the group moves on under it. */
  async join(stop: AbortSignal): Promise<number[]> {
    this.#isJoining = true;
    const joining = this.#joinAndSync(stop);
    const stopped = new Promise<null>((resolve) => {
      stop.addEventListener("abort", () => resolve(null), { once: true });
    });
    const assigned = await Promise.race([joining, stopped]);
    // The end of the connection ends it, which is no news then.
    if (assigned === null) joining.catch(() => {});
    else this.#isJoining = false;
    return assigned ?? [];
  }

  async #joinAndSync(stop: AbortSignal): Promise<number[]> {
    while (!stop.aborted) {
      try {
        const joined = await this.#join();
        if (joined !== null) return await this.#sync(joined);
      } catch (error) {
        if (!this.isBehind(error)) throw error;
        await sleep(this.#options.clock, PAUSE_MS, stop);
      }
    }
    return [];
  }

  /** Keeps the membership alive until the signal; returns early when the group wants a new join. */
  async keepAlive(stop: AbortSignal): Promise<void> {
    const { cluster, clock, group } = this.#options;
    for (;;) {
      await sleep(clock, HEARTBEAT_MS, stop);
      if (stop.aborted) return;
      try {
        const connection = await cluster.coordinator(group, SESSION_MS);
        const { errorCode: code } = await connection.call(heartbeatApi, {
          groupId: group,
          generationId: this.#generation,
          memberId: this.#memberId,
        }, { timeoutMs: SESSION_MS });
        checkCode(`stay in group ${group}`, code);
      } catch (error) {
        if (this.isBehind(error)) return;
        if (!(error instanceof ClientFault) || !error.retriable) throw error;
      }
    }
  }

  /** Best effort: a member that does not leave is dropped when its session ends. */
  async leave(): Promise<void> {
    const { cluster, group } = this.#options;
    if (this.#memberId === "" || this.#isJoining) return;
    try {
      const connection = await cluster.coordinator(group, LEAVE_MS_MAX);
      await connection.call(leaveGroupApi, {
        groupId: group,
        members: [{ memberId: this.#memberId, reason: "the consumer ends" }],
      }, { timeoutMs: LEAVE_MS_MAX, versionMin: LEAVE_VERSION_MIN });
    } catch (error) {
      if (!(error instanceof ClientFault)) throw error;
    }
  }

  /** Whether the group went on without us: a join brings us back, what was not committed is read again. */
  isBehind(error: unknown): boolean {
    if (!(error instanceof ClientFault)) return false;
    switch (error.error) {
      case "UNKNOWN_MEMBER_ID":
        this.#memberId = "";
        this.#generation = -1;
        return true;
      case "ILLEGAL_GENERATION":
        this.#generation = -1;
        return true;
      case "REBALANCE_IN_PROGRESS":
        return true;
      default:
        return false;
    }
  }

  /** Null when the coordinator has given us a name first. */
  #join(): Promise<Joined | null> {
    const { cluster, group, topic } = this.#options;
    const subscription = encodeVersioned(consumerProtocolSubscription, EMBEDDED_VERSION, {
      topics: [topic],
    });
    return cluster.retrying(async (leftMs) => {
      const connection = await cluster.coordinator(group, leftMs);
      const answer = await connection.call(joinGroupApi, {
        groupId: group,
        sessionTimeoutMs: SESSION_MS,
        rebalanceTimeoutMs: REBALANCE_MS,
        memberId: this.#memberId,
        protocolType: PROTOCOL_TYPE,
        protocols: [{ name: PROTOCOL, metadata: subscription }],
      }, { timeoutMs: JOIN_MS_MAX });
      if (answer.memberId !== "") this.#memberId = answer.memberId;
      if (errorName(answer.errorCode) === "MEMBER_ID_REQUIRED") return null;
      checkCode(`join group ${group}`, answer.errorCode);
      this.#generation = answer.generationId;
      return answer;
    });
  }

  async #sync(joined: Joined): Promise<number[]> {
    const { cluster, group, topic } = this.#options;
    const isLeader = joined.leader === joined.memberId && !joined.skipAssignment;
    const assignments = isLeader ? await this.#assign(joined) : [];
    const { assignment } = await cluster.retrying(async (leftMs) => {
      const connection = await cluster.coordinator(group, leftMs);
      const answer = await connection.call(syncGroupApi, {
        groupId: group,
        generationId: this.#generation,
        memberId: this.#memberId,
        protocolType: PROTOCOL_TYPE,
        protocolName: PROTOCOL,
        assignments,
      }, { timeoutMs: JOIN_MS_MAX });
      checkCode(`join group ${group}`, answer.errorCode);
      return answer;
    });
    if (assignment.length === 0) return [];
    const { assignedPartitions } = decodeGrowing(consumerProtocolAssignment, assignment);
    return assignedPartitions.find((one) => one.topic === topic)?.partitions.slice() ?? [];
  }

  async #assign({ members }: Joined) {
    const { cluster } = this.#options;
    const subscribers = members.map(({ memberId, groupInstanceId, metadata }) => ({
      memberId,
      instanceId: groupInstanceId,
      topics: decodeGrowing(consumerProtocolSubscription, metadata).topics,
    }));
    const wanted = new Set(subscribers.flatMap(({ topics }) => topics));
    const all = await cluster.retrying((leftMs) => cluster.topics(null, { leftMs }));
    const counts = new Map(
      all.filter(({ name }) => wanted.has(name)).map((
        { name, partitions },
      ) => [name, partitions.length]),
    );
    return [...assignRanges(subscribers, counts)].map(([memberId, topics]) => ({
      memberId,
      assignment: encodeVersioned(consumerProtocolAssignment, EMBEDDED_VERSION, {
        assignedPartitions: [...topics].map(([topic, partitions]) => ({ topic, partitions })),
      }),
    }));
  }
}
