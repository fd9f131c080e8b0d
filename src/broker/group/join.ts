/** JoinGroup: who may join, and whether that starts a rebalance. */
import {
  joinAnswer,
  joinError,
  prepareRebalance,
  removeMember,
  replyJoin,
  replySync,
} from "./rebalance.ts";
import {
  type Group,
  type GroupHost,
  type JoinAnswer,
  type JoinRequest,
  type Member,
  NEW_MEMBER_JOIN_MS,
  NO_BYTES,
  type Reply,
  staticMember,
  touch,
  waits,
} from "./group.ts";
import { joinBytes } from "./memory.ts";
import { chooseProtocol, fits, sameProtocols } from "./protocols.ts";

/** Answers through `reply`: at once, or when the join phase ends. */
export function join(
  group: Group,
  host: GroupHost,
  request: JoinRequest,
  reply: Reply<JoinAnswer>,
): void {
  const refuse = (error: JoinAnswer["error"], memberId = request.memberId) =>
    reply(joinError(error, memberId));
  if (group.state === "Dead") return refuse("COORDINATOR_NOT_AVAILABLE");
  if (!fits(group, request)) return refuse("INCONSISTENT_GROUP_PROTOCOL");
  if (isFull(group, host, request) || !host.hasRoom(growth(group, request))) {
    return refuse("GROUP_MAX_SIZE_REACHED");
  }
  if (request.memberId === "") return joinUnknown(group, host, request, reply);
  joinKnown(group, host, request, reply);
}

/** The member whose place the request takes. */
function placeOf(group: Group, { memberId, instanceId }: JoinRequest): Member | undefined {
  return group.members.get(memberId) ??
    (instanceId === null ? undefined : staticMember(group, instanceId));
}

/** Who is in may come again with no more than it has. */
function growth(group: Group, request: JoinRequest): number {
  const place = placeOf(group, request);
  return joinBytes(request) - (place === undefined ? 0 : joinBytes(place));
}

function isFull(group: Group, host: GroupHost, request: JoinRequest): boolean {
  if (group.pending.has(request.memberId) || placeOf(group, request) !== undefined) return false;
  return group.members.size + group.pending.size >= host.settings.membersMax;
}

function joinUnknown(
  group: Group,
  host: GroupHost,
  request: JoinRequest,
  reply: Reply<JoinAnswer>,
): void {
  const { instanceId } = request;
  const memberId = host.newMemberId(instanceId ?? request.clientId);
  const known = instanceId === null ? undefined : staticMember(group, instanceId);
  if (known !== undefined) return replaceStatic(group, host, known, memberId, request, reply);
  if (instanceId === null && request.needsKnownId) {
    group.pending.set(memberId, host.monotonicMs() + request.sessionTimeoutMs);
    return reply(joinError("MEMBER_ID_REQUIRED", memberId));
  }
  addMember(group, host, memberId, request, reply);
}

function joinKnown(
  group: Group,
  host: GroupHost,
  request: JoinRequest,
  reply: Reply<JoinAnswer>,
): void {
  const { memberId, instanceId } = request;
  if (group.pending.has(memberId) && instanceId === null) {
    group.pending.delete(memberId);
    return addMember(group, host, memberId, request, reply);
  }
  if (instanceId !== null) {
    const holder = staticMember(group, instanceId);
    if (holder !== undefined && holder.memberId !== memberId) {
      return reply(joinError("FENCED_INSTANCE_ID", memberId));
    }
  }
  const member = group.members.get(memberId);
  if (member === undefined || member.instanceId !== instanceId) {
    return reply(joinError("UNKNOWN_MEMBER_ID", memberId));
  }
  rejoin(group, host, member, request, reply);
}

function rejoin(
  group: Group,
  host: GroupHost,
  member: Member,
  request: JoinRequest,
  reply: Reply<JoinAnswer>,
): void {
  const unchanged = sameProtocols(member.protocols, request.protocols);
  const answerNow = unchanged &&
    (group.state === "CompletingRebalance" ||
      (group.state === "Stable" && group.leader !== member.memberId));
  update(member, host, request);
  if (answerNow) return reply(joinAnswer(group, member));
  hold(group, member, reply);
  prepareRebalance(group, host);
}

function update(member: Member, host: GroupHost, request: JoinRequest): void {
  member.clientId = request.clientId;
  member.clientHost = request.clientHost;
  member.sessionTimeoutMs = request.sessionTimeoutMs;
  member.rebalanceTimeoutMs = request.rebalanceTimeoutMs;
  member.protocols = request.protocols;
  touch(member, host);
}

/** A second join of the same member takes the place of the first, whose connection is gone. */
function hold(group: Group, member: Member, reply: Reply<JoinAnswer>): void {
  replyJoin(member, joinError("UNKNOWN_MEMBER_ID", member.memberId));
  member.joining = reply;
  group.pending.delete(member.memberId);
}

function addMember(
  group: Group,
  host: GroupHost,
  memberId: string,
  request: JoinRequest,
  reply: Reply<JoinAnswer>,
): void {
  const { instanceId, clientId, clientHost, sessionTimeoutMs, rebalanceTimeoutMs, protocols } =
    request;
  const member: Member = {
    memberId,
    instanceId,
    clientId,
    clientHost,
    sessionTimeoutMs,
    rebalanceTimeoutMs,
    protocols,
    assignment: NO_BYTES,
    joining: reply,
    syncing: null,
    deadlineMs: host.monotonicMs() + NEW_MEMBER_JOIN_MS,
    isNew: true,
  };
  if (group.members.size === 0) group.protocolType = request.protocolType;
  group.members.set(memberId, member);
  group.leader ??= memberId;
  if (group.initial !== null) group.initial.newcomers = true;
  prepareRebalance(group, host);
}

/** A restarted static member takes its old place under a new id; the old id is fenced (KIP-345). */
function replaceStatic(
  group: Group,
  host: GroupHost,
  old: Member,
  memberId: string,
  request: JoinRequest,
  reply: Reply<JoinAnswer>,
): void {
  replyJoin(old, joinError("FENCED_INSTANCE_ID", old.memberId));
  replySync(group, old, "FENCED_INSTANCE_ID");
  const oldId = old.memberId;
  const wasLeader = group.leader === oldId;
  const unchanged = sameProtocols(old.protocols, request.protocols);
  rename(group, old, memberId);
  update(old, host, request);
  if (
    group.state === "Stable" &&
    (unchanged || chooseProtocol(group.members.values()) === group.protocolName)
  ) {
    return answerReplaced(group, host, old, oldId, wasLeader, request, reply);
  }
  hold(group, old, reply);
  prepareRebalance(group, host);
}

/** Keeps the order of arrival, which decides about the next leader. */
function rename(group: Group, member: Member, memberId: string): void {
  const ordered = [...group.members.values()];
  const oldId = member.memberId;
  member.memberId = memberId;
  group.members.clear();
  for (const each of ordered) group.members.set(each.memberId, each);
  if (group.leader === oldId) group.leader = memberId;
}

/** The assignment stands; the new id must be durable before its owner uses it. */
function answerReplaced(
  group: Group,
  host: GroupHost,
  member: Member,
  oldId: string,
  wasLeader: boolean,
  request: JoinRequest,
  reply: Reply<JoinAnswer>,
): void {
  const answer = joinAnswer(group, member);
  const skipAssignment = wasLeader && request.canSkipAssignment;
  // An old client that sees itself as leader would assign again: it is shown its former id as leader.
  const leader = wasLeader && !skipAssignment ? oldId : answer.leader;
  const members = skipAssignment ? answer.members : [];
  host.store(group).then(
    () => reply({ ...answer, leader, members, skipAssignment }),
    () => reply(joinError("COORDINATOR_NOT_AVAILABLE", member.memberId)),
  );
}

/** Members whose session, first join or id hand-out ran out. */
export function expireMembers(group: Group, host: GroupHost): void {
  const nowMs = host.monotonicMs();
  let dropped = false;
  for (const [memberId, deadlineMs] of group.pending) {
    if (deadlineMs <= nowMs) dropped = group.pending.delete(memberId);
  }
  for (const member of Array.from(group.members.values())) {
    if (waits(member) || member.deadlineMs > nowMs) continue;
    removeMember(group, host, member, "UNKNOWN_MEMBER_ID");
  }
  if (dropped && group.state === "PreparingRebalance") prepareRebalance(group, host);
}
