/**
 * The join phase: gathering members, its timers and its end; and members that go. Every function runs
 * in one synchronous stretch and sends the answers that its change has made due.
 */
import type { ErrorName } from "../../protocol/error_code.ts";
import {
  type Group,
  type GroupHost,
  type JoinAnswer,
  type JoinedMember,
  type Member,
  metadataOf,
  NO_BYTES,
  NO_GENERATION,
  setState,
  touch,
} from "./group.ts";
import { chooseProtocol } from "./protocols.ts";

export function joinError(error: ErrorName, memberId: string): JoinAnswer {
  return {
    error,
    memberId,
    generation: NO_GENERATION,
    protocolType: null,
    protocolName: null,
    leader: "",
    skipAssignment: false,
    members: [],
  };
}

function memberList(group: Group): JoinedMember[] {
  return [...group.members.values()].map((member) => ({
    memberId: member.memberId,
    instanceId: member.instanceId,
    metadata: metadataOf(member, group.protocolName),
  }));
}

/** The answer of a completed join; only the leader sees the members. */
export function joinAnswer(group: Group, member: Member): JoinAnswer {
  return {
    error: "NONE",
    memberId: member.memberId,
    generation: group.generation,
    protocolType: group.protocolType,
    protocolName: group.protocolName,
    leader: group.leader ?? "",
    skipAssignment: false,
    members: group.leader === member.memberId ? memberList(group) : [],
  };
}

export function replyJoin(member: Member, answer: JoinAnswer): void {
  const reply = member.joining;
  member.joining = null;
  reply?.(answer);
}

export function replySync(group: Group, member: Member, error: ErrorName): void {
  const reply = member.syncing;
  member.syncing = null;
  reply?.({
    error,
    protocolType: error === "NONE" ? group.protocolType : null,
    protocolName: error === "NONE" ? group.protocolName : null,
    assignment: error === "NONE" ? member.assignment : NO_BYTES,
  });
}

function rebalanceTimeoutMs(group: Group): number {
  let longest = 0;
  for (const member of group.members.values()) {
    longest = Math.max(longest, member.rebalanceTimeoutMs);
  }
  return longest;
}

/** Enters the join phase, or looks whether the one that runs can end. */
export function prepareRebalance(group: Group, host: GroupHost): void {
  if (group.state !== "PreparingRebalance") {
    const wasEmpty = group.state === "Empty";
    // Assignments stay until the next ones: members own them until they join again.
    for (const member of group.members.values()) {
      replySync(group, member, "REBALANCE_IN_PROGRESS");
    }
    setState(group, "PreparingRebalance", host.nowMs());
    const limitMs = rebalanceTimeoutMs(group);
    if (wasEmpty) startInitialDelay(group, host, limitMs);
    else group.phaseDeadlineMs = host.monotonicMs() + limitMs;
  }
  tryCompleteJoin(group, host);
}

function startInitialDelay(group: Group, host: GroupHost, limitMs: number): void {
  const delayMs = Math.min(host.settings.initialRebalanceDelayMs, limitMs);
  group.initial = { leftMs: limitMs - delayMs, newcomers: false };
  group.phaseDeadlineMs = host.monotonicMs() + delayMs;
}

function allJoined(group: Group): boolean {
  for (const member of group.members.values()) if (member.joining === null) return false;
  return group.pending.size === 0;
}

export function tryCompleteJoin(group: Group, host: GroupHost): void {
  if (group.state !== "PreparingRebalance") return;
  if (group.members.size === 0 && group.pending.size === 0) return completeJoin(group, host);
  if (group.initial === null && allJoined(group)) completeJoin(group, host);
}

/** The join phase's deadline has passed. */
export function endOfJoinPhase(group: Group, host: GroupHost): void {
  const initial = group.initial;
  if (initial !== null && initial.newcomers && initial.leftMs > 0) {
    const delayMs = Math.min(host.settings.initialRebalanceDelayMs, initial.leftMs);
    group.initial = { leftMs: initial.leftMs - delayMs, newcomers: false };
    group.phaseDeadlineMs = host.monotonicMs() + delayMs;
    return;
  }
  completeJoin(group, host);
}

function dropAbsent(group: Group): void {
  for (const member of group.members.values()) {
    if (member.joining === null && member.instanceId === null) {
      group.members.delete(member.memberId);
    }
  }
}

function electLeader(group: Group): void {
  const old = group.leader === null ? undefined : group.members.get(group.leader);
  if (old !== undefined && old.joining !== null) return;
  for (const member of group.members.values()) {
    if (member.joining === null) continue;
    group.leader = member.memberId;
    return;
  }
}

function completeJoin(group: Group, host: GroupHost): void {
  group.initial = null;
  dropAbsent(group);
  const joined = [...group.members.values()].filter(({ joining }) => joining !== null);
  if (group.members.size > 0 && joined.length === 0) {
    // Only absent static members are left: they keep their place, and the phase starts again.
    group.phaseDeadlineMs = host.monotonicMs() + rebalanceTimeoutMs(group);
    return;
  }
  group.generation += 1;
  // The write of an earlier generation may still be under way; it must not hold up this one.
  group.storing = false;
  if (group.members.size === 0) return becomeEmpty(group, host);
  electLeader(group);
  group.protocolName = chooseProtocol(group.members.values());
  setState(group, "CompletingRebalance", host.nowMs());
  group.phaseDeadlineMs = host.monotonicMs() + rebalanceTimeoutMs(group);
  for (const member of joined) {
    touch(member, host);
    member.isNew = false;
    replyJoin(member, joinAnswer(group, member));
  }
}

function becomeEmpty(group: Group, host: GroupHost): void {
  setState(group, "Empty", host.nowMs());
  group.phaseDeadlineMs = null;
  group.protocolName = null;
  group.leader = null;
  // Best effort: after a crash the last stored members simply expire again.
  host.store(group).catch(() => {});
}

/** Takes a member out; the ones that stay gather again. */
export function removeMember(
  group: Group,
  host: GroupHost,
  member: Member,
  error: ErrorName,
): void {
  replyJoin(member, joinError(error, member.memberId));
  replySync(group, member, error);
  group.members.delete(member.memberId);
  if (group.leader === member.memberId) group.leader = group.members.keys().next().value ?? null;
  if (group.state === "Stable" || group.state === "CompletingRebalance") {
    prepareRebalance(group, host);
  } else tryCompleteJoin(group, host);
}

/** Answers everybody who waits, for a group that ends here. */
export function removeAllWaiting(group: Group, answer: (memberId: string) => JoinAnswer): void {
  for (const member of group.members.values()) {
    const last = answer(member.memberId);
    replyJoin(member, last);
    replySync(group, member, last.error);
  }
}
