/** What groups and committed offsets take up in memory, estimated: what clients sent, and what an entry costs. */
import type { Group, JoinRequest, Member } from "./group.ts";
import type { OffsetEntry } from "./offset_table.ts";

const GROUP_BYTES = 512;
const MEMBER_BYTES = 512;
const PENDING_BYTES = 256;
const OFFSET_BYTES = 256;

function protocolBytes(protocols: Member["protocols"]): number {
  return protocols.reduce((sum, { name, metadata }) => sum + name.length + metadata.length, 0);
}

/** What a join adds to its group: a member, without its assignment. */
export function joinBytes(
  { memberId, instanceId, clientId, protocols }: Pick<
    JoinRequest,
    "memberId" | "instanceId" | "clientId" | "protocols"
  >,
): number {
  const names = memberId.length + (instanceId?.length ?? 0) + clientId.length;
  return MEMBER_BYTES + names + protocolBytes(protocols);
}

export function groupBytes(group: Group): number {
  let bytes = GROUP_BYTES + group.groupId.length + PENDING_BYTES * group.pending.size;
  for (const member of group.members.values()) {
    bytes += joinBytes(member) + member.assignment.length;
  }
  return bytes;
}

export function offsetBytes({ topic, metadata }: OffsetEntry): number {
  return OFFSET_BYTES + topic.length + metadata.length;
}
