/** Members that go: on their own, for a while, or because they were silent too long. Pure. */
import { NOTHING } from "./assignment.ts";
import {
  type ConsumerGroup,
  type ConsumerMember,
  type ConsumerRefused,
  LEFT_FOR_A_WHILE,
  refused,
  staticMemberOf,
  withMember,
} from "./group.ts";
import { refreshed, type World } from "./target.ts";

export interface Left {
  readonly ok: true;
  readonly group: ConsumerGroup;
  readonly memberId: string;
}

export interface LeaveRequest {
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly epoch: number;
}

/** Those who stay get a new target at the next heartbeat of any of them. */
export function without(
  group: ConsumerGroup,
  memberIds: readonly string[],
  world: World,
): ConsumerGroup {
  const members = new Map(group.members);
  const target = new Map(group.target);
  for (const memberId of memberIds) {
    members.delete(memberId);
    target.delete(memberId);
  }
  return refreshed({ ...group, members, target }, world, true);
}

function awayForAWhile(member: ConsumerMember): ConsumerMember {
  return { ...member, place: { ...member.place, epoch: LEFT_FOR_A_WHILE, revoking: NOTHING } };
}

export function leave(
  group: ConsumerGroup,
  { memberId, instanceId, epoch }: LeaveRequest,
  world: World,
): Left | ConsumerRefused {
  const member = instanceId === null
    ? group.members.get(memberId)
    : staticMemberOf(group, instanceId);
  if (member === undefined) {
    const who = instanceId === null ? `Member ${memberId}` : `Instance id ${instanceId}`;
    return refused("UNKNOWN_MEMBER_ID", `${who} is not in the group.`);
  }
  if (instanceId !== null && member.memberId !== memberId) {
    const message = `Static member ${memberId} with instance id ${instanceId} was fenced by ` +
      `member ${member.memberId}.`;
    return refused("FENCED_INSTANCE_ID", message);
  }
  const left = epoch === LEFT_FOR_A_WHILE
    ? withMember(group, awayForAWhile(member))
    : without(group, [memberId], world);
  return { ok: true, group: left, memberId };
}
