/**
 * Members of the classic protocol in a consumer group (KIP-848's migration): JoinGroup, SyncGroup and Heartbeat
 * as decisions over the same members, epochs and reconciliation. The broker assigns, so nobody leads; a
 * generation is the member's epoch. Pure.
 */
import type { ErrorName } from "../../../protocol/error_code.ts";
import {
  consumerProtocolAssignment,
  consumerProtocolSubscription,
} from "../../../protocol/message/consumer_protocol.ts";
import { DecodeError, viewOf } from "../../../lib/bytes.ts";
import { decodeGrowing, encodeVersioned } from "../../../protocol/versioned.ts";
import type { JoinRequest, Protocol, SyncRequest } from "../group.ts";
import { type Assignment, assignmentOf, difference, listOf, NOTHING } from "./assignment.ts";
import {
  type ConsumerGroup,
  type ConsumerMember,
  type ConsumerRefused,
  type Profile,
  refused,
  staticMemberOf,
  type TopicView,
} from "./group.ts";
import {
  type Beat,
  isSameProfile,
  isTaken,
  type MemberFound,
  spoken,
  takeOver,
} from "./heartbeat.ts";
import type { World } from "./target.ts";

export const CONSUMER_TYPE = "consumer";

export interface Subscription {
  readonly topics: readonly string[];
  readonly rackId: string | null;
  readonly owned: Assignment;
}

/** What stands in a member's metadata; null if it does not parse. */
export function readSubscription(metadata: Uint8Array, topics: TopicView): Subscription | null {
  try {
    const read = decodeGrowing(consumerProtocolSubscription, metadata);
    const owned = read.ownedPartitions.flatMap(({ topic, partitions }) => {
      const topicId = topics.find(topic)?.topicId;
      return topicId === undefined ? [] : [{ topicId, partitions }];
    });
    const names = [...new Set(read.topics)].toSorted();
    return { topics: names, rackId: read.rackId, owned: assignmentOf(owned) };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return null;
  }
}

/** In the version that the member's own metadata has. */
export function assignmentBytes(
  assignment: Assignment,
  metadata: Uint8Array,
  topics: TopicView,
): Uint8Array {
  const version = Math.max(
    0,
    Math.min(viewOf(metadata).getInt16(0), consumerProtocolAssignment.max),
  );
  const assignedPartitions = listOf(assignment).flatMap(({ topicId, partitions }) => {
    const name = topics.findById(topicId)?.name;
    return name === undefined ? [] : [{ topic: name, partitions }];
  });
  return encodeVersioned(consumerProtocolAssignment, version, { assignedPartitions });
}

/** Whether all classic members have one of the protocols. */
function fits({ members }: ConsumerGroup, memberId: string, request: JoinRequest): boolean {
  if (request.protocolType !== CONSUMER_TYPE) return false;
  const others = [...members.values()].flatMap((member) =>
    member.profile.classic === null || member.memberId === memberId ? [] : [member.profile.classic]
  );
  return request.protocols.some(({ name }) =>
    others.every(({ protocols }) => protocols.some((one) => one.name === name))
  );
}

export function profileOfClassic(
  request: Omit<JoinRequest, "needsKnownId" | "canSkipAssignment" | "memberId" | "protocolType">,
  { topics, rackId }: Subscription,
): Profile {
  const { instanceId, clientId, clientHost, rebalanceTimeoutMs, sessionTimeoutMs, protocols } =
    request;
  return {
    instanceId,
    rackId,
    clientId,
    clientHost: `/${clientHost}`,
    topicNames: topics,
    topicRegex: null,
    rebalanceTimeoutMs,
    assignor: null,
    classic: { sessionTimeoutMs, protocols },
  };
}

/** `memberId` is new when the request has none. */
export function joinClassic(
  group: ConsumerGroup,
  request: JoinRequest,
  memberId: string,
  world: World,
  isStale: boolean,
): Beat | ConsumerRefused {
  if (group.members.size >= world.membersMax && !group.members.has(memberId)) {
    return refused("GROUP_MAX_SIZE_REACHED", "");
  }
  const metadata = request.protocols[0]?.metadata;
  const said = metadata === undefined ? null : readSubscription(metadata, world.topics);
  if (said === null || !fits(group, memberId, request)) {
    return refused("INCONSISTENT_GROUP_PROTOCOL", "");
  }
  const found = find(group, request, memberId);
  if (!found.ok) return found;
  const known = found.member?.profile;
  const next = profileOfClassic(request, said);
  const profile = known !== undefined && isSameProfile(known, next) ? known : next;
  return spoken(found, { memberId, profile, owned: said.owned, asksForAll: true }, world, isStale);
}

function find(
  group: ConsumerGroup,
  { memberId: givenId, instanceId }: JoinRequest,
  memberId: string,
): MemberFound | ConsumerRefused {
  const known = instanceId === null
    ? group.members.get(memberId)
    : staticMemberOf(group, instanceId);
  const isNew = instanceId === null || givenId === "";
  if (known === undefined && !isNew) return refused("UNKNOWN_MEMBER_ID", "");
  if (known === undefined || known.memberId === memberId) {
    return { ok: true, group, member: known, isReplaced: false };
  }
  return givenId === "" ? takeOver(group, known, memberId) : refused("FENCED_INSTANCE_ID", "");
}

export interface ClassicFound {
  readonly error: "NONE";
  readonly member: ConsumerMember;
  readonly protocols: readonly Protocol[];
}

/** A member that speaks the classic protocol, of that generation. */
function findClassic(
  group: ConsumerGroup,
  memberId: string,
  instanceId: string | null,
  generation: number,
): ClassicFound | { readonly error: Exclude<ErrorName, "NONE"> } {
  const member = instanceId === null
    ? group.members.get(memberId)
    : staticMemberOf(group, instanceId);
  if (member === undefined) return { error: "UNKNOWN_MEMBER_ID" };
  if (member.memberId !== memberId) return { error: "FENCED_INSTANCE_ID" };
  const { classic } = member.profile;
  if (classic === null) return { error: "UNKNOWN_MEMBER_ID" };
  if (member.place.epoch !== generation) return { error: "ILLEGAL_GENERATION" };
  return { error: "NONE", member, protocols: classic.protocols };
}

/** Whether it has to join again before it may go on; one that is asked to revoke has done so already. */
function isBehind(group: ConsumerGroup, { place }: ConsumerMember): boolean {
  return place.epoch < group.epoch && place.state !== "unrevoked";
}

export function syncClassic(
  group: ConsumerGroup,
  request: SyncRequest,
): ClassicFound | { readonly error: Exclude<ErrorName, "NONE"> } {
  const found = findClassic(group, request.memberId, request.instanceId, request.generation);
  if (found.error !== "NONE") return found;
  const { protocolType, protocolName } = request;
  const isOther = (protocolType !== null && protocolType !== CONSUMER_TYPE) ||
    (protocolName !== null && protocolName !== found.protocols[0]!.name);
  if (isOther) return { error: "INCONSISTENT_GROUP_PROTOCOL" };
  return isBehind(group, found.member) ? { error: "REBALANCE_IN_PROGRESS" } : found;
}

/** REBALANCE_IN_PROGRESS counts as heard of. */
export function beatClassic(
  group: ConsumerGroup,
  memberId: string,
  instanceId: string | null,
  generation: number,
): ErrorName {
  const found = findClassic(group, memberId, instanceId, generation);
  if (found.error !== "NONE") return found.error;
  const { place } = found.member;
  const mustJoin = place.epoch < group.epoch || place.state === "unrevoked" ||
    (place.state === "unreleased" && isReleased(group, found.member));
  return mustJoin ? "REBALANCE_IN_PROGRESS" : "NONE";
}

/** Whether something that it waits for is free by now. */
function isReleased(group: ConsumerGroup, { memberId, place }: ConsumerMember): boolean {
  const missing = difference(group.target.get(memberId) ?? NOTHING, place.assigned);
  return listOf(missing).some(({ topicId, partitions }) =>
    partitions.some((partition) => !isTaken(group, memberId, topicId, partition))
  );
}
