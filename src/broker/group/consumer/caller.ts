/** Whether a member of a consumer group may commit or read offsets, by the epoch that it shows. Pure. */
import type { ErrorName } from "../../../protocol/error_code.ts";
import type { ConsumerGroup } from "./group.ts";

/** Older commits carry a generation and cannot name a stale epoch. */
const EPOCHS_SINCE = 9;

function checkEpoch(group: ConsumerGroup, memberId: string, epoch: number): ErrorName {
  const member = group.members.get(memberId);
  if (member === undefined) return "UNKNOWN_MEMBER_ID";
  if (member.place.epoch === epoch) return "NONE";
  return member.profile.classic === null ? "STALE_MEMBER_EPOCH" : "ILLEGAL_GENERATION";
}

export function checkCommit(
  group: ConsumerGroup,
  memberId: string,
  epoch: number,
  version: number,
): ErrorName {
  if (epoch < 0 && group.members.size === 0) return "NONE";
  const isOwn = group.members.get(memberId)?.profile.classic === null;
  if (isOwn && version < EPOCHS_SINCE) return "UNSUPPORTED_VERSION";
  return checkEpoch(group, memberId, epoch);
}

/** A transaction may come from outside of the group, and says then nothing of a member. */
export function checkTxnCommit(
  group: ConsumerGroup,
  memberId: string,
  instanceId: string | null,
  epoch: number,
): ErrorName {
  if (memberId === "" && instanceId === null && epoch < 0) return "NONE";
  if (epoch < 0 && group.members.size === 0) return "NONE";
  return checkEpoch(group, memberId, epoch);
}

/** Whoever names no member is an outsider that may read. */
export function checkFetch(
  group: ConsumerGroup,
  memberId: string | null,
  epoch: number,
): ErrorName {
  if ((memberId === null || memberId === "") && epoch < 0) return "NONE";
  return checkEpoch(group, memberId ?? "", epoch);
}
