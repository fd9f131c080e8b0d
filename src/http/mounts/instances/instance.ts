/**
 * A consumer instance at work. With a subscription it is a member of its group, as Kafka's own consumers are: the
 * broker assigns, and keeps what was assigned; with partitions of its own choice it is none. Its requests run one
 * after the other; that it is alive is said beside them.
 */
import type { ErrorName } from "../../../protocol/error_code.ts";
import { Semaphore } from "../../../lib/semaphore.ts";
import type { Failure } from "../../port.ts";
import type {
  Committer,
  GroupGateway,
  OffsetAt,
  Place,
  Subscription,
  TopicPartition,
} from "../group_port.ts";
import type { InstanceRecord } from "./record.ts";
import { Places } from "./places.ts";

/** Errors after which a member joins anew, without its partitions. */
const LOST: ReadonlySet<ErrorName> = new Set([
  "UNKNOWN_MEMBER_ID",
  "FENCED_MEMBER_EPOCH",
  "STALE_MEMBER_EPOCH",
]);
/** A member that is told of partitions to give up says in the next beat that it has. */
const BEATS_MAX = 3;

export interface Named {
  readonly key: string;
  readonly group: string;
  readonly name: string;
}

export interface InstanceOptions {
  readonly named: Named;
  readonly record: InstanceRecord;
  readonly groups: GroupGateway;
  readonly nowMs: number;
  /** Takes jumps out of the record that do not count any more. */
  readonly forgetSeeks: (of: readonly TopicPartition[]) => Promise<void>;
}

export class Instance {
  readonly named: Named;
  record: InstanceRecord;
  readonly places = new Places();
  /** One request at a time. */
  readonly turn = new Semaphore(1);
  lastUsedMs: number;
  lastCommitMs: number;
  /** Nobody may use it any more. */
  isGone = false;
  readonly #groups: GroupGateway;
  readonly #forgetSeeks: (of: readonly TopicPartition[]) => Promise<void>;
  #epoch = 0;
  #beating: Promise<Failure | null> | null = null;
  #changed = new AbortController();

  constructor({ named, record, groups, nowMs, forgetSeeks }: InstanceOptions) {
    this.named = named;
    this.record = record;
    this.#groups = groups;
    this.#forgetSeeks = forgetSeeks;
    this.lastUsedMs = nowMs;
    this.lastCommitMs = nowMs;
  }

  get subscription(): Subscription | null {
    const { subscription } = this.record;
    return subscription === null || "partitions" in subscription ? null : subscription;
  }

  get isMember(): boolean {
    return this.#epoch > 0;
  }

  /** Aborted once it has other partitions, for those who wait for records of the old ones. */
  get changed(): AbortSignal {
    return this.#changed.signal;
  }

  /** Says that it is alive, joins where it has to, takes what it is given. Why not, or null. */
  beat(): Promise<Failure | null> {
    return this.#beating ??= this.#beatOnce().finally(() => (this.#beating = null));
  }

  async #beatOnce(): Promise<Failure | null> {
    for (let beats = 0; beats < BEATS_MAX; beats++) {
      const { subscription, named: { group, name: memberId } } = this;
      if (subscription === null || this.isGone) return null;
      const owned = this.places.list;
      const beaten = await this.#groups.beat({
        group,
        memberId,
        epoch: this.#epoch,
        subscription,
        owned,
      });
      if (!beaten.ok) {
        if (!LOST.has(beaten.error)) return beaten;
        this.#lose();
        continue;
      }
      // It was told otherwise meanwhile.
      if (this.subscription !== subscription) continue;
      const isJoin = this.#epoch === 0;
      this.#epoch = beaten.epoch;
      if (beaten.assigned === null || !(await this.#take(beaten.assigned)) && !isJoin) return null;
    }
    return null;
  }

  /** Whether it has others now than before. */
  async #take(assigned: readonly Place[]): Promise<boolean> {
    const lost = this.places.list.filter((place) =>
      !assigned.some((other) =>
        other.topicId === place.topicId && other.partition === place.partition
      )
    );
    const isSame = lost.length === 0 && assigned.length === this.places.size;
    if (isSame) return false;
    // From here on nothing more of them is given; whoever gets them begins behind what this one's client has.
    const given = this.record.autoCommit ? this.places.toCommit(lost) : [];
    this.setPlaces(assigned);
    await this.commit(given);
    await this.#forgetSeeks(lost);
    return true;
  }

  setPlaces(places: readonly Place[]): void {
    this.places.become(places);
    this.#changed.abort();
    this.#changed = new AbortController();
  }

  #lose(): void {
    this.#epoch = 0;
    this.setPlaces([]);
  }

  /** Gives its partitions back at once. */
  async leave(): Promise<void> {
    await this.#beating;
    this.#lose();
    // Whether it was one, its group knows: this node may have begun after it joined.
    await this.#groups.leave(this.named.group, this.named.name);
  }

  #committer(): Committer {
    const { group, name: id } = this.named;
    return { group, member: this.isMember ? { id, epoch: this.#epoch } : null };
  }

  /** A commit overtakes the jumps before it. */
  async commit(offsets: readonly OffsetAt[]): Promise<readonly ErrorName[]> {
    if (offsets.length === 0) return [];
    const errors = await this.#groups.commit(this.#committer(), offsets);
    await this.#forgetSeeks(offsets.filter((_, i) => errors[i] === "NONE"));
    return errors;
  }

  /** Commits what its client has been given; the first error, or null. */
  async commitGiven(): Promise<ErrorName | null> {
    const offsets = this.places.toCommit();
    const errors = await this.commit(offsets);
    for (const [i, error] of errors.entries()) {
      const { place, offset } = offsets[i]!;
      if (error === "NONE") this.places.setCommitted(place, offset);
    }
    return errors.find((error) => error !== "NONE") ?? null;
  }
}
