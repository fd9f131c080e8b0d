/**
 * Uniform: partitions spread evenly over members, each topic as well as it goes when all subscribe alike,
 * and few move. With equal subscriptions the counts differ by one at most. With others no single
 * move can make them more even. Pure.
 */
import type { Uuid } from "../../../lib/uuid.ts";
import type { Assignment } from "./assignment.ts";
import type { AssignorInput, AssignorMember } from "./assignors.ts";

interface Seat {
  readonly member: AssignorMember;
  /** Of each topic the last one goes first when something has to go. */
  readonly held: Map<Uuid, number[]>;
  count: number;
  /** No topic has more of its partitions here. */
  peak: number;
}

function give(seat: Seat, topicId: Uuid, partition: number): void {
  const held = seat.held.get(topicId);
  if (held === undefined) seat.held.set(topicId, [partition]);
  else held.push(partition);
  seat.count += 1;
  seat.peak = Math.max(seat.peak, held?.length ?? 1);
}

function take(seat: Seat, topicId: Uuid): number {
  const held = seat.held.get(topicId)!;
  const partition = held.pop()!;
  if (held.length === 0) seat.held.delete(topicId);
  seat.count -= 1;
  return partition;
}

/** Everybody begins with what it had and still wants, each partition once. */
function seatsOf({ members, topics }: AssignorInput): { seats: Seat[]; free: Map<Uuid, number[]> } {
  const taken = new Map<Uuid, Set<number>>();
  const seats = members.toSorted((a, b) => a.memberId < b.memberId ? -1 : 1)
    .map((member): Seat => ({ member, held: new Map(), count: 0, peak: 0 }));
  for (const seat of seats) {
    for (const [topicId, partitions] of seat.member.current) {
      const total = topics.get(topicId) ?? 0;
      if (!seat.member.topics.has(topicId)) continue;
      const known = taken.get(topicId) ?? new Set();
      taken.set(topicId, known);
      for (const partition of [...partitions].toSorted((a, b) => a - b)) {
        if (partition >= total || known.has(partition)) continue;
        known.add(partition);
        give(seat, topicId, partition);
      }
    }
  }
  const free = new Map<Uuid, number[]>();
  for (const [topicId, total] of topics) {
    const left = Array.from({ length: total }, (_, partition) => partition)
      .filter((partition) => taken.get(topicId)?.has(partition) !== true);
    if (left.length > 0) free.set(topicId, left);
  }
  return { seats, free };
}

/** Seats by what they hold: the least loaded one is found without a look at all. */
class Loads {
  readonly #levels: Set<Seat>[] = [];
  /** No level below the first, or above the second, has a seat. */
  #least = 0;
  #most = 0;

  constructor(seats: readonly Seat[]) {
    for (const seat of seats) this.#put(seat);
  }

  #level(count: number): Set<Seat> {
    while (this.#levels.length <= count) this.#levels.push(new Set());
    return this.#levels[count]!;
  }

  #put(seat: Seat): void {
    this.#level(seat.count).add(seat);
    this.#least = Math.min(this.#least, seat.count);
    this.#most = Math.max(this.#most, seat.count);
  }

  change(seat: Seat, work: () => void): void {
    this.#level(seat.count).delete(seat);
    work();
    this.#put(seat);
  }

  get range(): { readonly least: number; readonly most: number } {
    // Counts change by one, so that these are found after a step or two.
    while (this.#level(this.#least).size === 0) this.#least++;
    while (this.#level(this.#most).size === 0) this.#most--;
    return { least: this.#least, most: this.#most };
  }

  at(count: number): ReadonlySet<Seat> {
    return this.#level(count);
  }
}

/** Of the seats of a level, the one that has the fewest partitions of the topic. */
function fewestOf(seats: Iterable<Seat>, topicId: Uuid): Seat | undefined {
  let best: Seat | undefined;
  let fewest = Infinity;
  for (const seat of seats) {
    const held = seat.held.get(topicId)?.length ?? 0;
    if (held >= fewest) continue;
    best = seat;
    fewest = held;
    if (held === 0) break;
  }
  return best;
}

/** Subscriptions that are all the same need no search for who may have what. */
function isAlike(members: readonly AssignorMember[]): boolean {
  const first = members[0]!.topics;
  return members.every(({ topics }) =>
    topics === first ||
    (topics.size === first.size && [...topics].every((topic) => first.has(topic)))
  );
}

/** The topic that a seat has the most partitions of: giving from it keeps topics spread. */
function largestTopic(seat: Seat): Uuid {
  let best: Uuid | null = null;
  let most = 0;
  for (const [topicId, held] of seat.held) {
    if (held.length <= most) continue;
    best = topicId;
    most = held.length;
    if (most === seat.peak) break;
  }
  seat.peak = most;
  return best!;
}

function spreadAlike(seats: readonly Seat[], free: ReadonlyMap<Uuid, readonly number[]>): void {
  const loads = new Loads(seats);
  for (const [topicId, partitions] of free) {
    for (const partition of partitions) {
      const seat = fewestOf(loads.at(loads.range.least), topicId)!;
      loads.change(seat, () => give(seat, topicId, partition));
    }
  }
  for (;;) {
    const { least, most } = loads.range;
    if (most - least <= 1) return;
    const [from] = loads.at(most);
    const topicId = largestTopic(from!);
    const to = fewestOf(loads.at(least), topicId)!;
    let partition = -1;
    loads.change(from!, () => void (partition = take(from!, topicId)));
    loads.change(to, () => give(to, topicId, partition));
  }
}

function leastOf(seats: readonly Seat[]): Seat {
  let least = seats[0]!;
  for (const seat of seats) if (seat.count < least.count) least = seat;
  return least;
}

/** The subscriber with the fewest partitions, and one of those with two more that has some of the topic. */
function imbalance(seats: readonly Seat[], topicId: Uuid): { from: Seat; to: Seat } | null {
  const least = leastOf(seats);
  let from: Seat | null = null;
  for (const seat of seats) {
    if (seat.count - least.count <= 1 || !seat.held.has(topicId)) continue;
    if (from === null || seat.count > from.count) from = seat;
  }
  return from === null ? null : { from, to: least };
}

function spreadUnlike(
  seats: readonly Seat[],
  free: ReadonlyMap<Uuid, readonly number[]>,
  topics: Iterable<Uuid>,
): void {
  const subscribers = new Map(
    [...topics].map((
      topicId,
    ) => [topicId, seats.filter(({ member }) => member.topics.has(topicId))]),
  );
  // Topics that few may have go first: whoever is bound to them gets less of the others.
  const ordered = [...subscribers].filter(([, all]) => all.length > 0)
    .toSorted(([, a], [, b]) => a.length - b.length);
  for (const [topicId, all] of ordered) {
    for (const partition of free.get(topicId) ?? []) give(leastOf(all), topicId, partition);
  }
  // Each move lessens the sum of the squared counts by two at least, so this ends.
  for (let moved = true; moved;) {
    moved = false;
    for (const [topicId, all] of ordered) {
      for (let found = imbalance(all, topicId); found !== null; found = imbalance(all, topicId)) {
        give(found.to, topicId, take(found.from, topicId));
        moved = true;
      }
    }
  }
}

function setsOf(held: ReadonlyMap<Uuid, readonly number[]>): Assignment {
  return new Map([...held].map(([topicId, partitions]) => [topicId, new Set(partitions)]));
}

export function assignUniform(input: AssignorInput): ReadonlyMap<string, Assignment> {
  if (input.members.length === 0) return new Map();
  const { seats, free } = seatsOf(input);
  if (isAlike(input.members)) spreadAlike(seats, free);
  else spreadUnlike(seats, free, input.topics.keys());
  return new Map(seats.map(({ member, held }) => [member.memberId, setsOf(held)]));
}
