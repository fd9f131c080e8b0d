/** Sets of partitions by topic id, as values: never changed once made, and without empty topics. */
import type { Uuid } from "../../../lib/uuid.ts";

export type Assignment = ReadonlyMap<Uuid, ReadonlySet<number>>;

/** The form of messages and records. */
export interface TopicPartitions {
  readonly topicId: Uuid;
  readonly partitions: readonly number[];
}

export const NOTHING: Assignment = new Map();

export function assignmentOf(list: readonly TopicPartitions[]): Assignment {
  const made = new Map<Uuid, Set<number>>();
  for (const { topicId, partitions } of list) {
    if (partitions.length === 0) continue;
    const known = made.get(topicId);
    if (known === undefined) made.set(topicId, new Set(partitions));
    else for (const partition of partitions) known.add(partition);
  }
  return made;
}

/** In order of topic and partition: what is equal has equal bytes. */
export function listOf(assignment: Assignment): TopicPartitions[] {
  return [...assignment]
    .toSorted(([a], [b]) => a < b ? -1 : 1)
    .map(([topicId, partitions]) => ({
      topicId,
      partitions: [...partitions].toSorted((a, b) => a - b),
    }));
}

export function sizeOf(assignment: Assignment): number {
  let size = 0;
  for (const partitions of assignment.values()) size += partitions.size;
  return size;
}

export function holds(assignment: Assignment, topicId: Uuid, partition: number): boolean {
  return assignment.get(topicId)?.has(partition) === true;
}

export function partOf(
  assignment: Assignment,
  keep: (topicId: Uuid, partition: number) => boolean,
): Assignment {
  const made = new Map<Uuid, Set<number>>();
  for (const [topicId, partitions] of assignment) {
    const kept = [...partitions].filter((partition) => keep(topicId, partition));
    if (kept.length > 0) made.set(topicId, new Set(kept));
  }
  return made;
}

export function intersection(a: Assignment, b: Assignment): Assignment {
  return partOf(a, (topicId, partition) => holds(b, topicId, partition));
}

export function difference(a: Assignment, b: Assignment): Assignment {
  return partOf(a, (topicId, partition) => !holds(b, topicId, partition));
}

export function union(a: Assignment, b: Assignment): Assignment {
  const made = new Map<Uuid, ReadonlySet<number>>(a);
  for (const [topicId, partitions] of b) {
    made.set(topicId, new Set([...(a.get(topicId) ?? []), ...partitions]));
  }
  return made;
}

export function isWithin(part: Assignment, whole: Assignment): boolean {
  for (const [topicId, partitions] of part) {
    for (const partition of partitions) if (!holds(whole, topicId, partition)) return false;
  }
  return true;
}

export function meet(a: Assignment, b: Assignment): boolean {
  for (const [topicId, partitions] of a) {
    for (const partition of partitions) if (holds(b, topicId, partition)) return true;
  }
  return false;
}

export function isSame(a: Assignment, b: Assignment): boolean {
  return a === b || (sizeOf(a) === sizeOf(b) && isWithin(a, b));
}
