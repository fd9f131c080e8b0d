/**
 * Range: each topic is cut into even ranges, one per subscriber. All topics are cut in one and the same order
 * of members, so that members of equal subscriptions get equal partitions of equally large topics. That order
 * follows what members had: a newcomer comes last, and nobody overtakes anybody. Pure.
 */
import type { Uuid } from "../../../lib/uuid.ts";
import type { Assignment } from "./assignment.ts";
import type { AssignorInput, AssignorMember } from "./assignors.ts";

function firstPartition({ current }: AssignorMember): number {
  let first = Infinity;
  for (const partitions of current.values()) {
    for (const partition of partitions) first = Math.min(first, partition);
  }
  return first;
}

function compareText(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

/** Static members keep their place over restarts: their instance id counts, and before dynamic ones. */
function compareIds(a: AssignorMember, b: AssignorMember): number {
  if (a.instanceId !== null && b.instanceId !== null) {
    return compareText(a.instanceId, b.instanceId);
  }
  if (a.instanceId !== null) return -1;
  return b.instanceId !== null ? 1 : compareText(a.memberId, b.memberId);
}

function inOrder(members: readonly AssignorMember[]): AssignorMember[] {
  return members
    .map((member) => ({ member, first: firstPartition(member) }))
    .toSorted((a, b) => a.first === b.first ? compareIds(a.member, b.member) : a.first - b.first)
    .map(({ member }) => member);
}

export function assignRange({ members, topics }: AssignorInput): ReadonlyMap<string, Assignment> {
  const ordered = inOrder(members);
  const made = new Map<string, Map<Uuid, Set<number>>>(
    members.map(({ memberId }) => [memberId, new Map()]),
  );
  for (const [topicId, partitions] of topics) {
    const subscribers = ordered.filter((member) => member.topics.has(topicId));
    if (subscribers.length === 0) continue;
    const each = Math.floor(partitions / subscribers.length);
    const withOneMore = partitions % subscribers.length;
    let next = 0;
    for (const [at, { memberId }] of subscribers.entries()) {
      const count = each + (at < withOneMore ? 1 : 0);
      if (count === 0) break;
      const range = Array.from({ length: count }, (_, index) => next + index);
      made.get(memberId)!.set(topicId, new Set(range));
      next += count;
    }
  }
  return made;
}
