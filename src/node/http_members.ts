/** Groups for HTTP: Kafka's own group APIs, called in the process, so that both kinds of members share them. */
import { ERROR_CODES, type ErrorName, errorName } from "../protocol/error_code.ts";
import { consumerProtocolAssignment } from "../protocol/message/consumer_protocol.ts";
import type { ConsumerGroupHeartbeatResponse } from "../protocol/message/68_consumer_group_heartbeat.ts";
import { decodeGrowing } from "../protocol/versioned.ts";
import { ZERO_UUID } from "../lib/uuid.ts";
import { offsetCommitHandler } from "../broker/api/08_offset_commit.ts";
import { offsetFetchHandler } from "../broker/api/09_offset_fetch.ts";
import { describeGroupsHandler } from "../broker/api/15_describe_groups.ts";
import { listGroupsHandler } from "../broker/api/16_list_groups.ts";
import { consumerGroupHeartbeatHandler } from "../broker/api/68_consumer_group_heartbeat.ts";
import { consumerGroupDescribeHandler } from "../broker/api/69_consumer_group_describe.ts";
import type { GroupServices } from "../broker/group/services.ts";
import { CLOSE, type Handler, type RequestContext } from "../broker/handler.ts";
import { assert } from "../lib/assert.ts";
import { DecodeError } from "../lib/bytes.ts";
import type {
  Beat,
  Beaten,
  Committer,
  GroupGateway,
  GroupMember,
  GroupShown,
  OffsetAt,
  Place,
  TopicPartition,
} from "../http/mounts/group_port.ts";
import type { Failure } from "../http/port.ts";

const CLIENT_ID = "skerry-http";
const REBALANCE_TIMEOUT_MS = 300_000;
const VERSIONS = { heartbeat: 1, commit: 9, fetch: 9, list: 5, describe: 6, consumers: 1 } as const;
const [JOIN, LEAVE] = [0, -1];
const NEVER = new AbortController().signal;

/** What stands on no connection: nobody waits in line behind it. */
function contextOf(version: number): RequestContext {
  return {
    version,
    clientId: CLIENT_ID,
    session: {
      connectionId: 0,
      principal: "User:ANONYMOUS",
      clientHost: "http",
      listener: { host: "", port: 0 },
      ended: NEVER,
    },
    signal: NEVER,
    admitted: () => {},
    afterAnswer: (work) => work(true),
  };
}

async function call<Q, S>(handler: Handler<Q, S>, request: Q, version: number): Promise<S> {
  const answer = await handler.handle(request, contextOf(version));
  assert(answer !== null && answer !== CLOSE, "a group API answers");
  return answer;
}

function failed(code: number, message?: string | null): Failure {
  const error = errorName(code);
  return { ok: false, error, ...(message == null ? {} : { message }) };
}

/** In the form of messages: names or ids with their partitions. */
function byKey<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const found = new Map<string, T[]>();
  for (const item of items) {
    const known = found.get(keyOf(item));
    if (known === undefined) found.set(keyOf(item), [item]);
    else known.push(item);
  }
  return found;
}

/** None where the member said something else than Kafka's consumers do. */
function assignedOf(bytes: Uint8Array): TopicPartition[] {
  if (bytes.length === 0) return [];
  try {
    const { assignedPartitions } = decodeGrowing(consumerProtocolAssignment, bytes);
    return assignedPartitions.flatMap(({ topic, partitions }) =>
      partitions.map((partition) => ({ topic, partition }))
    );
  } catch (error) {
    if (error instanceof DecodeError) return [];
    throw error;
  }
}

export class HttpMembers implements GroupGateway {
  readonly #services: GroupServices;
  readonly #heartbeat;
  readonly #commit;
  readonly #fetch;
  readonly #list;
  readonly #describe;
  readonly #consumers;

  constructor(services: GroupServices) {
    this.#services = services;
    this.#heartbeat = consumerGroupHeartbeatHandler(services);
    this.#commit = offsetCommitHandler(services);
    this.#fetch = offsetFetchHandler(services);
    this.#list = listGroupsHandler(services);
    this.#describe = describeGroupsHandler(services);
    this.#consumers = consumerGroupDescribeHandler(services);
  }

  async beat({ group, memberId, epoch, subscription, owned }: Beat): Promise<Beaten | Failure> {
    const isJoin = epoch === JOIN;
    const places = [...byKey(isJoin ? [] : owned, ({ topicId }) => topicId)];
    const answer = await this.#beat({
      groupId: group,
      memberId,
      memberEpoch: epoch,
      rebalanceTimeoutMs: REBALANCE_TIMEOUT_MS,
      subscribedTopicNames: "topics" in subscription ? [...subscription.topics] : [],
      // Empty takes back one that was there.
      subscribedTopicRegex: "pattern" in subscription ? subscription.pattern : "",
      topicPartitions: places.map(([topicId, of]) => ({
        topicId,
        partitions: of.map(({ partition }) => partition),
      })),
    });
    if (answer.errorCode !== 0) return failed(answer.errorCode, answer.errorMessage);
    return { ok: true, epoch: answer.memberEpoch, assigned: this.#placesIn(answer) };
  }

  #beat(
    request: {
      readonly groupId: string;
      readonly memberId: string;
      readonly memberEpoch: number;
      readonly rebalanceTimeoutMs: number;
      readonly subscribedTopicNames: string[] | null;
      readonly subscribedTopicRegex: string | null;
      readonly topicPartitions: { topicId: string; partitions: number[] }[] | null;
    },
  ): Promise<ConsumerGroupHeartbeatResponse> {
    const full = { ...request, instanceId: null, rackId: null, serverAssignor: null };
    return call(this.#heartbeat, full, VERSIONS.heartbeat);
  }

  #placesIn({ assignment }: ConsumerGroupHeartbeatResponse): readonly Place[] | null {
    if (assignment === null || assignment === undefined) return null;
    const { topics } = this.#services;
    return [...assignment.topicPartitions].flatMap(({ topicId, partitions }) => {
      const topic = topics.findById(topicId)?.name;
      // It is gone, and will be taken away at the next beat.
      if (topic === undefined) return [];
      return [...partitions].map((partition) => ({ topic, topicId, partition }));
    });
  }

  async leave(group: string, memberId: string): Promise<{ readonly ok: true } | Failure> {
    const answer = await this.#beat({
      groupId: group,
      memberId,
      memberEpoch: LEAVE,
      rebalanceTimeoutMs: -1,
      subscribedTopicNames: null,
      subscribedTopicRegex: null,
      topicPartitions: null,
    });
    return answer.errorCode === 0 ? { ok: true } : failed(answer.errorCode, answer.errorMessage);
  }

  async commit(
    { group, member }: Committer,
    offsets: readonly OffsetAt[],
  ): Promise<readonly ErrorName[]> {
    const topics = byKey(offsets, ({ topic }) => topic);
    const answer = await call(this.#commit, {
      groupId: group,
      generationIdOrMemberEpoch: member?.epoch ?? -1,
      memberId: member?.id ?? "",
      groupInstanceId: null,
      retentionTimeMs: -1,
      topics: [...topics].map(([name, of]) => ({
        name,
        topicId: ZERO_UUID,
        partitions: of.map(({ partition, offset, metadata }) => ({
          partitionIndex: partition,
          committedOffset: offset,
          committedLeaderEpoch: -1,
          committedMetadata: metadata,
        })),
      })),
    }, VERSIONS.commit);
    const codes = new Map<OffsetAt, number>();
    for (const [i, of] of [...topics.values()].entries()) {
      const partitions = [...[...answer.topics][i]!.partitions];
      for (const [j, offset] of of.entries()) codes.set(offset, partitions[j]!.errorCode);
    }
    return offsets.map((offset) => errorName(codes.get(offset)!));
  }

  async committed(
    groupId: string,
    of: readonly TopicPartition[] | null,
  ): Promise<{ readonly ok: true; readonly offsets: readonly OffsetAt[] } | Failure> {
    const topics = of === null ? null : [...byKey(of, ({ topic }) => topic)].map(([name, at]) => ({
      name,
      topicId: ZERO_UUID,
      partitionIndexes: at.map(({ partition }) => partition),
    }));
    const answer = await call(this.#fetch, {
      groupId: "",
      topics: null,
      groups: [{ groupId, memberId: null, memberEpoch: -1, topics }],
      requireStable: false,
    }, VERSIONS.fetch);
    const [group] = [...answer.groups ?? []];
    if (group === undefined) return { ok: true, offsets: [] };
    if (group.errorCode) return failed(group.errorCode);
    const offsets = [...group.topics].flatMap(({ name = "", partitions }) =>
      [...partitions]
        .filter(({ committedOffset }) => committedOffset >= 0)
        .map((one) => ({
          topic: name,
          partition: one.partitionIndex,
          offset: one.committedOffset,
          metadata: one.metadata ?? "",
        }))
    );
    return { ok: true, offsets };
  }

  async groups(): Promise<{ readonly ok: true; readonly names: readonly string[] } | Failure> {
    const answer = await call(
      this.#list,
      { statesFilter: [], typesFilter: [] },
      VERSIONS.list,
    );
    if (answer.errorCode) return failed(answer.errorCode);
    return { ok: true, names: [...answer.groups].map(({ groupId }) => groupId).toSorted() };
  }

  async describeGroup(group: string): Promise<GroupShown | Failure> {
    const request = { groupIds: [group], includeAuthorizedOperations: false };
    const [shown] = [...(await call(this.#consumers, request, VERSIONS.consumers)).groups];
    assert(shown !== undefined, "each group that is asked for is answered");
    if (shown.errorCode === ERROR_CODES.GROUP_ID_NOT_FOUND) return await this.#classic(group);
    if (shown.errorCode !== 0) return failed(shown.errorCode, shown.errorMessage);
    const members = [...shown.members].map((member): GroupMember => ({
      memberId: member.memberId,
      instanceId: member.instanceId ?? null,
      clientId: member.clientId,
      assigned: [...member.assignment.topicPartitions].flatMap(({ topicName, partitions }) =>
        [...partitions].map((partition) => ({ topic: topicName, partition }))
      ),
    }));
    const { groupState: state, assignorName: assignor } = shown;
    return { ok: true, group, type: "consumer", state, assignor, members };
  }

  async #classic(group: string): Promise<GroupShown | Failure> {
    const request = { groups: [group], includeAuthorizedOperations: false };
    const [shown] = [...(await call(this.#describe, request, VERSIONS.describe)).groups];
    assert(shown !== undefined, "each group that is asked for is answered");
    if (shown.errorCode !== 0) return failed(shown.errorCode, shown.errorMessage);
    const members = [...shown.members].map((member): GroupMember => ({
      memberId: member.memberId,
      instanceId: member.groupInstanceId ?? null,
      clientId: member.clientId,
      assigned: assignedOf(member.memberAssignment),
    }));
    const { groupState: state, protocolData: assignor } = shown;
    return { ok: true, group, type: "classic", state, assignor, members };
  }
}
