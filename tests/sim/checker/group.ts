/**
 * What members of a consumer group were told. A partition has one owner in a generation; generations do not come
 * again; a committed offset is the last that was committed, whatever crashes lie between: a register, where a
 * commit without an answer may count from any later moment on, and a refused one never does.
 */
import type { World } from "../world.ts";

interface Claim {
  readonly owner: string;
  readonly generation: number;
}

export interface Commit {
  readonly offset: number;
  /** Moments in the order of what clients did and heard. */
  readonly sentAt: number;
  answeredAt: number | null;
  isRefused: boolean;
  /** Epoch of the process that acknowledged it. */
  by: number;
}

interface Place {
  readonly claims: Claim[];
  readonly commits: Commit[];
  readonly processed: Set<number>;
}

export class GroupHistory {
  readonly #world: World;
  readonly groupId: string;
  readonly #places = new Map<number, Place>();
  #moment = 0;
  /** Largest generation that was handed out with partitions, by the process that did. */
  readonly #generations = new Map<number, number>();

  constructor(world: World, groupId: string) {
    this.#world = world;
    this.groupId = groupId;
  }

  #place(partition: number): Place {
    let place = this.#places.get(partition);
    if (place === undefined) {
      place = { claims: [], commits: [], processed: new Set() };
      this.#places.set(partition, place);
    }
    return place;
  }

  now(): number {
    return ++this.#moment;
  }

  /** The owner of a static member is its instance, which outlives its member ids. */
  claim(owner: string, generation: number, by: number, partitions: readonly number[]): void {
    for (const partition of partitions) {
      const { claims } = this.#place(partition);
      const other = claims.find((one) => one.generation === generation && one.owner !== owner);
      if (other !== undefined) {
        this.#world.violated(
          `${this.groupId}: ${owner} and ${other.owner} both own ${partition} in generation ${generation}`,
        );
      }
      claims.push({ owner, generation });
    }
    this.#generations.set(by, Math.max(generation, this.#generations.get(by) ?? 0));
  }

  /** An assignment is durable before a member hears of it, so no later process can know an older generation. */
  joined(generation: number, by: number): void {
    for (const [epoch, handedOut] of this.#generations) {
      if (epoch <= by && generation < handedOut) {
        this.#world.violated(
          `${this.groupId}: epoch ${by} joins generation ${generation}, ${handedOut} was handed out`,
        );
      }
    }
  }

  send(partition: number, offset: number): Commit {
    const commit = { offset, sentAt: this.now(), answeredAt: null, isRefused: false, by: -1 };
    this.#place(partition).commits.push(commit);
    return commit;
  }

  acknowledge(commit: Commit, by: number): void {
    commit.answeredAt = this.now();
    commit.by = by;
  }

  /** `askedAt` is when the question was sent, `by` who answered it: one that was replaced may lag. */
  checkFetched(partition: number, found: number, askedAt: number, by: number): void {
    const { commits } = this.#place(partition);
    const newest = commits.filter(({ answeredAt, isRefused, by: at }) =>
      !isRefused && answeredAt !== null && answeredAt < askedAt && at <= by
    );
    const isStale = (endedAt: number) => newest.some(({ sentAt }) => sentAt > endedAt);
    const isPossible = found < 0
      ? newest.length === 0
      : commits.some(({ offset, isRefused, answeredAt }) =>
        offset === found && !isRefused && !isStale(answeredAt ?? Infinity)
      );
    if (isPossible) return;
    const known = newest.map(({ offset }) => offset).slice(-3).join(" ");
    this.#world.violated(
      `${this.groupId}: epoch ${by} has ${found} for ${partition}; acknowledged: ${known}`,
    );
  }

  process(partition: number, offsets: readonly number[]): void {
    for (const offset of offsets) this.#place(partition).processed.add(offset);
  }

  /** The largest offset whose commit was answered, 0 for none. */
  committed(partition: number): number {
    const answered = this.#place(partition).commits.filter(({ answeredAt, isRefused }) =>
      answeredAt !== null && !isRefused
    );
    return Math.max(0, ...answered.map(({ offset }) => offset));
  }

  /** At rest: nothing below a committed offset was passed over. */
  checkProcessed(partition: number, committed: number, logStart: number): void {
    const { processed } = this.#place(partition);
    for (let offset = logStart; offset < committed; offset++) {
      if (processed.has(offset)) continue;
      return this.#world.violated(
        `${this.groupId}: ${committed} is committed for ${partition}, nobody has processed ${offset}`,
      );
    }
  }
}
