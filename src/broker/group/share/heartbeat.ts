/**
 * ShareGroupHeartbeat as a decision: who may speak, what it changes, what the member is told. Pure; the caller
 * writes the difference to the group before it answers, and makes the states of what is initialising after that.
 */
import type { Uuid } from "../../../lib/uuid.ts";
import {
  type Assignment,
  difference,
  isSame,
  NOTHING,
  partOf,
  union,
} from "../consumer/assignment.ts";
import {
  type ConsumerRefused,
  JOIN,
  refused,
  type SubscribedTopic,
  type TopicView,
} from "../consumer/group.ts";
import { hashOf, keepingSame } from "../consumer/target.ts";
import { assignSimple } from "./assign_simple.ts";
import {
  NEW_SHARE_PLACE,
  type ShareGroup,
  type ShareMember,
  type SharePlace,
  type ShareProfile,
  subscribedNames,
  withShareMember,
} from "./group.ts";
import { assignableOf, missingOf, pruned, withInitializing } from "./state_partitions.ts";

/** Null is "as before". */
export interface ShareBeatRequest {
  readonly memberId: string;
  readonly epoch: number;
  readonly rackId: string | null;
  readonly topicNames: readonly string[] | null;
  readonly clientId: string;
  readonly clientHost: string;
}

/** What decisions look at beside the group. */
export interface ShareWorld {
  readonly topics: TopicView;
  readonly membersMax: number;
}

export interface ShareBeat {
  readonly ok: true;
  readonly group: ShareGroup;
  readonly member: ShareMember;
  /** Null tells the member that nothing changed. */
  readonly assignment: Assignment | null;
}

/** What changed since a heartbeat of the group looked at it. */
export interface ShareNews {
  readonly topics: boolean;
  /** Partitions whose state is made. */
  readonly states: boolean;
}

export function shareHeartbeat(
  group: ShareGroup,
  request: ShareBeatRequest,
  world: ShareWorld,
  news: ShareNews,
): ShareBeat | ConsumerRefused {
  const { memberId } = request;
  const known = group.members.get(memberId);
  const problem = speakerProblem(group, known, request, world);
  if (problem !== null) return problem;
  const profile = profileOf(known?.profile, request);
  const place = known?.place ?? NEW_SHARE_PLACE;
  const isPending = news.states && isTargetBehind(group, world.topics);
  let next = known?.profile === profile
    ? group
    : withShareMember(group, { memberId, profile, place });
  const wants = !sameNames(known?.profile.topicNames ?? [], profile.topicNames) || isPending;
  if (wants || news.topics) next = refreshed(next, world.topics, wants);
  if (next.epoch > next.targetEpoch) next = withTarget(next, world.topics);
  next = moved(next, memberId);
  if (wants || news.topics || news.states) next = withMissing(next, world.topics);
  const member = next.members.get(memberId)!;
  const isTold = request.epoch === JOIN || request.topicNames !== null ||
    !isSame(known?.place.assigned ?? NOTHING, member.place.assigned);
  return { ok: true, group: next, member, assignment: isTold ? member.place.assigned : null };
}

function speakerProblem(
  group: ShareGroup,
  known: ShareMember | undefined,
  { memberId, epoch }: ShareBeatRequest,
  { membersMax }: ShareWorld,
): ConsumerRefused | null {
  if (known === undefined && group.members.size >= membersMax) {
    const message = `The share group has reached its maximum capacity of ${membersMax} members.`;
    return refused("GROUP_MAX_SIZE_REACHED", message);
  }
  if (epoch === JOIN) return null;
  if (known === undefined) {
    const message = `Member ${memberId} is not a member of group ${group.groupId}.`;
    return refused("UNKNOWN_MEMBER_ID", message);
  }
  if (epoch === known.place.epoch) return null;
  if (epoch === known.place.previousEpoch && epoch < known.place.epoch) return null;
  const message =
    `The member has epoch ${epoch}, and the group coordinator knows ${known.place.epoch}. ` +
    "It must abandon all its partitions and rejoin.";
  return refused("FENCED_MEMBER_EPOCH", message);
}

function sameNames(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((name, at) => b[at] === name));
}

/** The very same profile when the request says nothing new. */
function profileOf(known: ShareProfile | undefined, request: ShareBeatRequest): ShareProfile {
  const { rackId, topicNames, clientId, clientHost } = request;
  const next: ShareProfile = {
    rackId: rackId ?? known?.rackId ?? null,
    clientId,
    clientHost,
    topicNames: topicNames === null ? known?.topicNames ?? [] : [...new Set(topicNames)].toSorted(),
  };
  const isSameProfile = known !== undefined && known.rackId === next.rackId &&
    known.clientId === clientId && known.clientHost === clientHost &&
    sameNames(known.topicNames, next.topicNames);
  return isSameProfile ? known : next;
}

function subscribedTopics(group: ShareGroup, topics: TopicView): SubscribedTopic[] {
  return [...subscribedNames(group)].flatMap((name) => topics.find(name) ?? []);
}

/** States that were made since the target was, or that went away. */
function isTargetBehind(group: ShareGroup, topics: TopicView): boolean {
  if (group.members.size === 0) return false;
  const assigned = new Map<Uuid, Set<number>>();
  for (const target of group.target.values()) {
    for (const [topicId, partitions] of target) {
      const all = assigned.get(topicId) ?? new Set<number>();
      assigned.set(topicId, all);
      for (const partition of partitions) all.add(partition);
    }
  }
  return subscribedTopics(group, topics).some((topic) => {
    const assignable = assignableOf(group.states, topic);
    const own = assigned.get(topic.topicId);
    return assignable.size !== (own?.size ?? 0) ||
      [...assignable].some((partition) => own?.has(partition) !== true);
  });
}

/** Looks at the topics again; the epoch rises if they changed, or if the caller knows of another reason. */
export function refreshed(group: ShareGroup, topics: TopicView, isChanged: boolean): ShareGroup {
  const states = pruned(group.states, topics);
  const metadataHash = hashOf(subscribedTopics(group, topics));
  if (isChanged || metadataHash !== group.metadataHash) {
    return { ...group, states, metadataHash, epoch: group.epoch + 1 };
  }
  return states === group.states ? group : { ...group, states };
}

function withTarget(group: ShareGroup, topics: TopicView): ShareGroup {
  const subscribed = new Map(subscribedTopics(group, topics).map((topic) => [topic.name, topic]));
  const made = assignSimple({
    members: [...group.members.values()].map(({ memberId, profile }) => ({
      memberId,
      topics: new Set(profile.topicNames.flatMap((name) => subscribed.get(name)?.topicId ?? [])),
      current: group.target.get(memberId) ?? NOTHING,
    })),
    topics: new Map(
      [...subscribed.values()].map((topic) => [topic.topicId, assignableOf(group.states, topic)]),
    ),
  });
  return { ...group, target: keepingSame(group.target, made), targetEpoch: group.epoch };
}

/** The member is where the target is at once. */
function moved(group: ShareGroup, memberId: string): ShareGroup {
  const member = group.members.get(memberId)!;
  const { place } = member;
  if (place.epoch === group.targetEpoch) return group;
  const next: SharePlace = {
    epoch: group.targetEpoch,
    previousEpoch: place.epoch,
    assigned: group.target.get(memberId) ?? NOTHING,
  };
  return withShareMember(group, { ...member, place: next });
}

/** What members subscribe to and has no state is to get one. */
function withMissing(group: ShareGroup, topics: TopicView): ShareGroup {
  let missing: Assignment = NOTHING;
  for (const topic of subscribedTopics(group, topics)) {
    missing = union(missing, missingOf(group.states, topic));
  }
  const nameOf = (topicId: string) => topics.findById(topicId)?.name ?? "";
  const states = withInitializing(group.states, missing, nameOf);
  return states === group.states ? group : { ...group, states };
}

/**
 * What is to be made for members that are there; the rest waits for somebody who subscribes to it. A state that is
 * there already was to begin elsewhere, and whoever asked for that has to ask again.
 */
export function initializingOf(group: ShareGroup, topics: TopicView): Assignment {
  const wanted = new Map(subscribedTopics(group, topics).map((topic) => [topic.topicId, topic]));
  return partOf(
    difference(group.states.initializing, group.states.initialized),
    (topicId, partition) => partition < (wanted.get(topicId)?.partitions ?? 0),
  );
}

export interface ShareLeft {
  readonly ok: true;
  readonly group: ShareGroup;
  readonly memberId: string;
}

/** Those who stay get a new target at the next heartbeat of any of them. */
export function withoutShareMembers(
  group: ShareGroup,
  memberIds: readonly string[],
  { topics }: ShareWorld,
): ShareGroup {
  const members = new Map(group.members);
  const target = new Map(group.target);
  for (const memberId of memberIds) {
    members.delete(memberId);
    target.delete(memberId);
  }
  return refreshed({ ...group, members, target }, topics, true);
}

export function leaveShareGroup(
  group: ShareGroup,
  memberId: string,
  world: ShareWorld,
): ShareLeft | ConsumerRefused {
  if (!group.members.has(memberId)) {
    const message = `Member ${memberId} is not a member of group ${group.groupId}.`;
    return refused("UNKNOWN_MEMBER_ID", message);
  }
  return { ok: true, group: withoutShareMembers(group, [memberId], world), memberId };
}
