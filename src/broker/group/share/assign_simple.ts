/**
 * Kafka's "simple" assignor for share groups: every partition has as many members as it takes to give each member
 * something, members have equally many partitions but for one, and as little as possible moves. Members who
 * subscribe alike share one pool of partitions; otherwise each topic is a pool of its own. Pure.
 */
import type { Uuid } from "../../../lib/uuid.ts";
import { type Assignment, union } from "../consumer/assignment.ts";

export interface SimpleMember {
  readonly memberId: string;
  readonly topics: ReadonlySet<Uuid>;
  /** The target so far. */
  readonly current: Assignment;
}

export interface SimpleInput {
  readonly members: readonly SimpleMember[];
  /** What may be given of every topic that somebody subscribes to. */
  readonly topics: ReadonlyMap<Uuid, ReadonlySet<number>>;
}

/** A partition in a pool, and who has it. */
interface Slot {
  readonly topicId: Uuid;
  readonly partition: number;
  readonly holders: Set<Taker>;
}

interface Taker {
  readonly member: SimpleMember;
  readonly countMax: number;
  count: number;
}

function slotsOf(topics: Iterable<readonly [Uuid, ReadonlySet<number>]>): Slot[] {
  return [...topics].flatMap(([topicId, partitions]) =>
    [...partitions].toSorted((a, b) => a - b)
      .map((partition): Slot => ({ topicId, partition, holders: new Set() }))
  );
}

/** Cuts `sharing` times all slots into parts that differ by one at most. */
function takersOf(members: readonly SimpleMember[], slots: number, sharing: number): Taker[] {
  const each = (sharing * slots) / members.length;
  return members.map((member, at) => ({
    member,
    countMax: Math.ceil(each * (at + 1)) - Math.ceil(each * at),
    count: 0,
  }));
}

/** What members have and may go on having. */
function keepHeld(slots: readonly Slot[], takers: readonly Taker[], sharing: number): void {
  const byTopic = new Map<Uuid, Map<number, Slot>>();
  for (const slot of slots) {
    const ofTopic = byTopic.get(slot.topicId) ?? new Map<number, Slot>();
    byTopic.set(slot.topicId, ofTopic.set(slot.partition, slot));
  }
  for (const taker of takers) {
    for (const [topicId, partitions] of taker.member.current) {
      for (const partition of partitions) {
        const holders = byTopic.get(topicId)?.get(partition)?.holders;
        if (holders === undefined || holders.size >= sharing) continue;
        if (taker.count < taker.countMax) give(holders, taker);
      }
    }
  }
}

function give(holders: Set<Taker>, taker: Taker): void {
  holders.add(taker);
  taker.count += 1;
}

/**
 * In rounds, those with the fewest holders first: so each partition has one before any has two. A member that
 * could only take what it has stays with less.
 */
function fill(slots: readonly Slot[], takers: readonly Taker[], sharing: number): void {
  const open = takers.filter(({ count, countMax }) => count < countMax);
  let next = 0;
  for (let round = 1; round <= sharing; round++) {
    for (const { holders } of slots) {
      if (holders.size >= round) continue;
      for (let tries = 0; tries < open.length; tries++) {
        const at = (next + tries) % open.length;
        const taker = open[at]!;
        if (holders.has(taker)) continue;
        give(holders, taker);
        next = at + 1;
        if (taker.count === taker.countMax) {
          open.splice(at, 1);
          next = at;
        }
        break;
      }
    }
  }
}

function assignPool(
  slots: readonly Slot[],
  members: readonly SimpleMember[],
): Map<string, Assignment> {
  const made = new Map<string, Map<Uuid, Set<number>>>();
  if (slots.length === 0 || members.length === 0) return made;
  const sharing = Math.ceil(members.length / slots.length);
  const takers = takersOf(members, slots.length, sharing);
  keepHeld(slots, takers, sharing);
  fill(slots, takers, sharing);
  for (const { topicId, partition, holders } of slots) {
    for (const { member: { memberId } } of holders) {
      const own = made.get(memberId) ?? new Map<Uuid, Set<number>>();
      made.set(memberId, own);
      const partitions = own.get(topicId) ?? new Set<number>();
      own.set(topicId, partitions.add(partition));
    }
  }
  return made;
}

function areAlike(members: readonly SimpleMember[]): boolean {
  const first = members[0]?.topics ?? new Set<Uuid>();
  return members.every(({ topics }) =>
    topics.size === first.size && [...topics].every((topicId) => first.has(topicId))
  );
}

export function assignSimple({ members, topics }: SimpleInput): ReadonlyMap<string, Assignment> {
  const ordered = members.toSorted((a, b) => a.memberId < b.memberId ? -1 : 1);
  const made = new Map<string, Assignment>(ordered.map(({ memberId }) => [memberId, new Map()]));
  const pools = areAlike(ordered) ? [[...topics]] : [...topics].map((topic) => [topic]);
  for (const pool of pools) {
    const readers = ordered.filter((member) =>
      pool.some(([topicId]) => member.topics.has(topicId))
    );
    for (const [memberId, part] of assignPool(slotsOf(pool), readers)) {
      made.set(memberId, union(made.get(memberId)!, part));
    }
  }
  return made;
}
