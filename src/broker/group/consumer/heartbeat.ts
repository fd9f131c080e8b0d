/**
 * ConsumerGroupHeartbeat as a decision: who may speak, what it changes, what the member is told. Pure; the
 * caller writes the difference to the group before it answers.
 */
import type { Uuid } from "../../../lib/uuid.ts";
import { type Assignment, holds, isSame, isWithin, NOTHING } from "./assignment.ts";
import { sameProtocols } from "../protocols.ts";
import {
  type ClassicSide,
  type ConsumerGroup,
  type ConsumerMember,
  type ConsumerRefused,
  isSameNames,
  JOIN,
  LEFT_FOR_A_WHILE,
  NEW_PLACE,
  type Profile,
  refused,
  sharedNames,
  staticMemberOf,
  withMember,
} from "./group.ts";
import { reconcile } from "./reconcile.ts";
import { refreshed, withTarget, type World } from "./target.ts";

/** Null is "as before". */
export interface HeartbeatRequest {
  readonly memberId: string;
  readonly epoch: number;
  readonly instanceId: string | null;
  readonly rackId: string | null;
  readonly rebalanceTimeoutMs: number | null;
  readonly topicNames: readonly string[] | null;
  readonly topicRegex: string | null;
  readonly assignor: string | null;
  readonly owned: Assignment | null;
  readonly clientId: string;
  readonly clientHost: string;
}

export interface Beat {
  readonly ok: true;
  readonly group: ConsumerGroup;
  readonly member: ConsumerMember;
  /** Null tells the member that nothing changed. */
  readonly assignment: Assignment | null;
}

export interface MemberFound {
  readonly ok: true;
  readonly group: ConsumerGroup;
  /** Undefined when it is about to be made. */
  readonly member: ConsumerMember | undefined;
  readonly isReplaced: boolean;
}

/** `isStale`: topics changed since the group looked at them. */
export function heartbeat(
  group: ConsumerGroup,
  request: HeartbeatRequest,
  world: World,
  isStale: boolean,
): Beat | ConsumerRefused {
  if (group.members.size >= world.membersMax && !group.members.has(request.memberId)) {
    return refused(
      "GROUP_MAX_SIZE_REACHED",
      "The consumer group has reached its maximum capacity.",
    );
  }
  const found = find(group, request);
  if (!found.ok) return found;
  const { memberId, epoch, owned } = request;
  const profile = profileOf(found.member?.profile, request, group);
  const asksForAll = epoch === JOIN || isFull(request);
  return spoken(found, { memberId, profile, owned, asksForAll }, world, isStale);
}

/** What a member has said, whichever protocol it speaks. */
export interface Speech {
  readonly memberId: string;
  readonly profile: Profile;
  readonly owned: Assignment | null;
  /** Asks for the assignment, changed or not. */
  readonly asksForAll: boolean;
}

/** What follows for the group, and for the member who speaks. */
export function spoken(
  found: MemberFound,
  { memberId, profile, owned, asksForAll }: Speech,
  world: World,
  isStale: boolean,
): Beat {
  const before = found.member;
  const place = before?.place ?? NEW_PLACE;
  const group = before?.profile === profile
    ? found.group
    : withMember(found.group, { memberId, profile, place });
  const wants = wantsOther(before?.profile, profile);
  let next = wants || isStale || group.epoch === 0
    ? refreshed(group, world, wants || group.epoch === 0)
    : group;
  const isBehind = next.epoch > next.targetEpoch || found.isReplaced;
  if (isBehind && !world.isFrozen) next = withTarget(next, world);
  next = stepped(next, memberId, owned);
  const member = next.members.get(memberId)!;
  const isTold = asksForAll || !isSame(before?.place.assigned ?? NOTHING, member.place.assigned);
  return { ok: true, group: next, member, assignment: isTold ? member.place.assigned : null };
}

function isFull({ rebalanceTimeoutMs, topicNames, topicRegex, owned }: HeartbeatRequest): boolean {
  return rebalanceTimeoutMs !== null && (topicNames !== null || topicRegex !== null) &&
    owned !== null;
}

function stepped(
  group: ConsumerGroup,
  memberId: string,
  owned: Assignment | null,
): ConsumerGroup {
  const member = group.members.get(memberId)!;
  const place = reconcile(member.place, {
    target: group.target.get(memberId) ?? NOTHING,
    targetEpoch: group.targetEpoch,
    owned,
    isTaken: (topicId, partition) => isTaken(group, memberId, topicId, partition),
  });
  return place === member.place ? group : withMember(group, { ...member, place });
}

/** Whether somebody else has a partition, or has not let go of it. */
export function isTaken(
  { members }: ConsumerGroup,
  memberId: string,
  topicId: Uuid,
  partition: number,
): boolean {
  for (const other of members.values()) {
    if (other.memberId === memberId) continue;
    const { assigned, revoking } = other.place;
    if (holds(assigned, topicId, partition) || holds(revoking, topicId, partition)) return true;
  }
  return false;
}

function find(group: ConsumerGroup, request: HeartbeatRequest): MemberFound | ConsumerRefused {
  const { memberId, instanceId, epoch } = request;
  const known = instanceId === null
    ? group.members.get(memberId)
    : staticMemberOf(group, instanceId);
  if (epoch !== JOIN) {
    const error = speakerError(known, request);
    return error ?? { ok: true, group, member: known, isReplaced: false };
  }
  const isAway = known?.place.epoch === LEFT_FOR_A_WHILE;
  if (known === undefined || (known.memberId === memberId && !isAway)) {
    return { ok: true, group, member: known, isReplaced: false };
  }
  if (!isAway && known.profile.classic === null) {
    const message =
      `Static member ${memberId} with instance id ${instanceId} cannot join the group: ` +
      `the instance id is owned by member ${known.memberId}.`;
    return refused("UNRELEASED_INSTANCE_ID", message);
  }
  return takeOver(group, known, memberId);
}

/** A static member that is back takes its partitions and its part of the target along under the new id. */
export function takeOver(
  group: ConsumerGroup,
  old: ConsumerMember,
  memberId: string,
): MemberFound {
  const place = { ...old.place, epoch: 0, previousEpoch: 0 };
  const member = { ...old, memberId, place };
  const members = new Map(group.members);
  members.delete(old.memberId);
  members.set(memberId, member);
  const target = new Map(group.target);
  target.delete(old.memberId);
  target.set(memberId, group.target.get(old.memberId) ?? NOTHING);
  return { ok: true, group: { ...group, members, target }, member, isReplaced: true };
}

function speakerError(
  known: ConsumerMember | undefined,
  request: HeartbeatRequest,
): ConsumerRefused | null {
  const { memberId, instanceId, epoch, owned } = request;
  if (known === undefined) {
    return refused(
      "UNKNOWN_MEMBER_ID",
      instanceId === null
        ? `Member ${memberId} is not a member of the group.`
        : `Instance id ${instanceId} is unknown.`,
    );
  }
  if (known.memberId !== memberId) {
    const message = `Static member ${memberId} with instance id ${instanceId} was fenced by ` +
      `member ${known.memberId}.`;
    return refused("FENCED_INSTANCE_ID", message);
  }
  const { place } = known;
  if (epoch === place.epoch) return null;
  const isLostAnswer = epoch === place.previousEpoch && epoch < place.epoch && owned !== null &&
    isWithin(owned, place.assigned);
  if (isLostAnswer) return null;
  const message =
    `The member has epoch ${epoch}, and the group coordinator knows ${place.epoch}. ` +
    "It must abandon all its partitions and rejoin.";
  return refused("FENCED_MEMBER_EPOCH", message);
}

/** The very same profile when the request says nothing new. */
function profileOf(
  known: Profile | undefined,
  request: HeartbeatRequest,
  { members }: ConsumerGroup,
): Profile {
  const names = request.topicNames === null
    ? null
    : sharedNames(members.values(), [...new Set(request.topicNames)].toSorted());
  const next: Profile = {
    instanceId: request.instanceId ?? known?.instanceId ?? null,
    rackId: request.rackId ?? known?.rackId ?? null,
    clientId: request.clientId,
    clientHost: request.clientHost,
    topicNames: names ?? known?.topicNames ?? [],
    topicRegex: request.topicRegex ?? known?.topicRegex ?? null,
    rebalanceTimeoutMs: request.rebalanceTimeoutMs ?? known?.rebalanceTimeoutMs ?? -1,
    assignor: request.assignor ?? known?.assignor ?? null,
    classic: null,
  };
  return known !== undefined && isSameProfile(known, next) ? known : next;
}

function isSameClassic(a: ClassicSide | null, b: ClassicSide | null): boolean {
  if (a === null || b === null) return a === b;
  return a.sessionTimeoutMs === b.sessionTimeoutMs && sameProtocols(a.protocols, b.protocols);
}

export function isSameProfile(a: Profile, b: Profile): boolean {
  return isSameClassic(a.classic, b.classic) && a.instanceId === b.instanceId &&
    a.rackId === b.rackId && a.clientId === b.clientId &&
    a.clientHost === b.clientHost && a.topicRegex === b.topicRegex && a.assignor === b.assignor &&
    a.rebalanceTimeoutMs === b.rebalanceTimeoutMs && isSameNames(a.topicNames, b.topicNames);
}

/** Whether the group has to be assigned anew for the member's sake. */
function wantsOther(known: Profile | undefined, next: Profile): boolean {
  if (known === next) return false;
  const topicsChanged = !isSameNames(known?.topicNames ?? [], next.topicNames) ||
    (known?.topicRegex ?? "") !== (next.topicRegex ?? "");
  return topicsChanged || (known !== undefined && known.assignor !== next.assignor);
}
