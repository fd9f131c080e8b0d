/** Heartbeat, leave, and what happens to a group as time passes. */
import type { ErrorName } from "../../protocol/error_code.ts";
import { checkIdentity, type Group, type GroupHost, staticMember, touch } from "./group.ts";
import { expireMembers } from "./join.ts";
import { endOfJoinPhase, removeMember, tryCompleteJoin } from "./rebalance.ts";
import { endOfSyncPhase } from "./sync.ts";

export function heartbeat(
  group: Group,
  host: GroupHost,
  memberId: string,
  instanceId: string | null,
  generation: number,
): ErrorName {
  if (group.state === "Dead") return "COORDINATOR_NOT_AVAILABLE";
  const identity = checkIdentity(group, memberId, instanceId);
  if (identity !== "NONE") return identity;
  if (group.state === "Empty") return "UNKNOWN_MEMBER_ID";
  if (generation !== group.generation) return "ILLEGAL_GENERATION";
  touch(group.members.get(memberId)!, host);
  return group.state === "PreparingRebalance" ? "REBALANCE_IN_PROGRESS" : "NONE";
}

/** One entry of a LeaveGroup; a static member may leave by its instance id alone (KIP-345). */
export function leave(
  group: Group,
  host: GroupHost,
  memberId: string,
  instanceId: string | null,
): ErrorName {
  if (group.state === "Dead") return "COORDINATOR_NOT_AVAILABLE";
  if (instanceId === null && group.pending.delete(memberId)) {
    tryCompleteJoin(group, host);
    return "NONE";
  }
  const id = memberId === "" && instanceId !== null
    ? staticMember(group, instanceId)?.memberId
    : memberId;
  if (id === undefined) return "UNKNOWN_MEMBER_ID";
  const identity = checkIdentity(group, id, instanceId);
  if (identity !== "NONE") return identity;
  removeMember(group, host, group.members.get(id)!, "UNKNOWN_MEMBER_ID");
  return "NONE";
}

/** Does what is due at this moment; call it at `nextDeadline`, or at any other time. */
export function tick(group: Group, host: GroupHost): void {
  expireMembers(group, host);
  if (group.phaseDeadlineMs === null || group.phaseDeadlineMs > host.monotonicMs()) return;
  if (group.state === "PreparingRebalance") endOfJoinPhase(group, host);
  else if (group.state === "CompletingRebalance") endOfSyncPhase(group, host);
}
