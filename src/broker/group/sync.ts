/** SyncGroup: holds members until the leader has assigned and the assignment is durable. */
import { isFault } from "../../lib/errors.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import {
  checkIdentity,
  type Group,
  type GroupHost,
  NO_BYTES,
  type Reply,
  setState,
  type SyncAnswer,
  type SyncRequest,
  touch,
} from "./group.ts";
import { prepareRebalance, removeMember, replySync } from "./rebalance.ts";

export function failed(error: ErrorName): SyncAnswer {
  return { error, protocolType: null, protocolName: null, assignment: NO_BYTES };
}

function check(group: Group, request: SyncRequest): ErrorName {
  if (group.state === "Dead") return "COORDINATOR_NOT_AVAILABLE";
  const identity = checkIdentity(group, request.memberId, request.instanceId);
  if (identity !== "NONE") return identity;
  if (request.generation !== group.generation) return "ILLEGAL_GENERATION";
  const { protocolType, protocolName } = request;
  if (protocolType !== null && protocolType !== group.protocolType) {
    return "INCONSISTENT_GROUP_PROTOCOL";
  }
  if (protocolName !== null && protocolName !== group.protocolName) {
    return "INCONSISTENT_GROUP_PROTOCOL";
  }
  if (group.state === "Empty") return "UNKNOWN_MEMBER_ID";
  return group.state === "PreparingRebalance" ? "REBALANCE_IN_PROGRESS" : "NONE";
}

/** Answers through `reply`: at once, or when the assignment is there. */
export function sync(
  group: Group,
  host: GroupHost,
  request: SyncRequest,
  reply: Reply<SyncAnswer>,
): void {
  const error = check(group, request);
  if (error !== "NONE") {
    return reply(failed(error));
  }
  const member = group.members.get(request.memberId)!;
  touch(member, host);
  const assigns = group.state === "CompletingRebalance" && member.memberId === group.leader &&
    !group.storing;
  if (assigns && !host.hasRoom(growth(group, request))) {
    return reply(failed("GROUP_MAX_SIZE_REACHED"));
  }
  replySync(group, member, "UNKNOWN_MEMBER_ID");
  member.syncing = reply;
  if (group.state === "Stable") return replySync(group, member, "NONE");
  if (assigns) assign(group, host, request.assignments);
}

/** How much more the assignments take up than those before them. */
function growth(group: Group, { assignments }: SyncRequest): number {
  let bytes = 0;
  for (const { assignment } of assignments) bytes += assignment.length;
  for (const { assignment } of group.members.values()) bytes -= assignment.length;
  return bytes;
}

function assign(group: Group, host: GroupHost, assignments: SyncRequest["assignments"]): void {
  for (const member of group.members.values()) member.assignment = NO_BYTES;
  for (const { memberId, assignment } of assignments) {
    const member = group.members.get(memberId);
    // A view of the request's frame would pin all of it for as long as the group lives.
    if (member !== undefined) member.assignment = assignment.slice();
  }
  const { generation } = group;
  group.storing = true;
  host.store(group).then(
    () => settle(group, host, generation, "NONE"),
    (error: unknown) => {
      // Trying again would bring the same assignments.
      const isHopeless = isFault(error, "too-large");
      const name = isHopeless ? "UNKNOWN_SERVER_ERROR" : "COORDINATOR_NOT_AVAILABLE";
      settle(group, host, generation, name);
    },
  );
}

/** The write has ended; when the group has moved on meanwhile, its outcome means nothing. */
function settle(group: Group, host: GroupHost, generation: number, error: ErrorName): void {
  if (group.state !== "CompletingRebalance" || group.generation !== generation) return;
  group.storing = false;
  if (error === "NONE") {
    setState(group, "Stable", host.nowMs());
    // Late members fetch the stored assignment; from here on their sessions watch over them.
    group.phaseDeadlineMs = null;
  }
  for (const member of group.members.values()) {
    if (error !== "NONE") member.assignment = NO_BYTES;
    if (member.syncing !== null) touch(member, host);
    replySync(group, member, error);
  }
  if (error !== "NONE") prepareRebalance(group, host);
}

/** The sync phase's deadline has passed: whoever did not sync is gone. */
export function endOfSyncPhase(group: Group, host: GroupHost): void {
  group.phaseDeadlineMs = null;
  for (const member of Array.from(group.members.values())) {
    if (group.state !== "CompletingRebalance") return;
    if (member.syncing === null) removeMember(group, host, member, "UNKNOWN_MEMBER_ID");
  }
}
