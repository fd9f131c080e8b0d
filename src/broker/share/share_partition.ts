/**
 * A partition as one share group reads it on its leader: the window in memory, its locks, and the order of its
 * writes. An acknowledgement counts, and is answered, once it is durable; when its write fails the records are
 * what they were. Deliveries are not written: after a restart what was acquired is available again.
 */
import type { Cancel } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import { isFault, messageOf } from "../../lib/errors.ts";
import { AbortedFilter } from "../../log/aborted_filter.ts";
import type { AbortedTransaction, PartitionLog } from "../../log/partition_log.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import { isControlBatch, lastOffset, readBatchHeader } from "../../protocol/record_batch.ts";
import type { ShardMemory } from "../shard/shard_memory.ts";
import type { Acquired, LogBatch } from "./acquire.ts";
import type { ShareStateChange } from "./share_state.ts";
import type { SharePartitionKey } from "./share_states.ts";
import type { Acknowledgement, Begun, ShareWindow, StateBatch } from "./window.ts";

/** A write in its place in the log, and its outcome once that is known. */
export interface Stored {
  readonly outcome: Promise<ErrorName | null>;
}

export interface SharePartitionOptions {
  readonly env: Env;
  readonly key: SharePartitionKey;
  readonly log: PartitionLog;
  readonly stateEpoch: number;
  readonly window: ShareWindow;
  readonly recordLockMs: () => number;
  /** Resolves when the change is in the log, durable or not. Throws FaultError. */
  readonly store: (change: ShareStateChange) => Promise<Stored>;
  /** Records of all windows of the node. */
  readonly inFlight: ShardMemory;
  /** Somebody else has the state now. */
  readonly onFenced: () => void;
}

export interface AcquireRequest {
  readonly member: string;
  readonly isRecordLimit: boolean;
  readonly batchSize: number;
  readonly recordsMax: number;
}

/** What a read of the log gave. */
export interface ShareRead {
  readonly fetchOffset: number;
  readonly batches: readonly Uint8Array[];
  readonly aborted: readonly AbortedTransaction[];
}

export interface Delivery {
  readonly acquired: readonly Acquired[];
  /** The batches that have them. */
  readonly batches: readonly Uint8Array[];
}

const NOTHING: Delivery = { acquired: [], batches: [] };
const FENCED: ReadonlySet<ErrorName> = new Set(["FENCED_LEADER_EPOCH", "FENCED_STATE_EPOCH"]);
/** The state is somewhere else, or not to be had now. Java's client gives up on errors of coordinators. */
export const STATE_UNAVAILABLE: ErrorName = "KAFKA_STORAGE_ERROR";

/** The batches of aborted transactions; markers are left to the client, which knows what they are. */
function abortedBatches(read: ShareRead): LogBatch[] {
  if (read.aborted.length === 0) return [];
  const filter = new AbortedFilter(read.aborted);
  return read.batches.flatMap((batch) => {
    const header = readBatchHeader(batch);
    if (!filter.hides(header, batch) || isControlBatch(header)) return [];
    return [{ first: header.baseOffset, last: lastOffset(header) }];
  });
}

/** What is left of ranges without others; both in order. */
function without(acquired: readonly Acquired[], gone: readonly LogBatch[]): Acquired[] {
  let left = [...acquired];
  for (const { first, last } of gone) {
    left = left.flatMap((range) => {
      if (range.last < first || range.first > last) return [range];
      const parts: Acquired[] = [];
      if (range.first < first) parts.push({ ...range, last: first - 1 });
      if (range.last > last) parts.push({ ...range, first: last + 1 });
      return parts;
    });
  }
  return left;
}

export class SharePartition {
  readonly key: SharePartitionKey;
  readonly log: PartitionLog;
  readonly stateEpoch: number;
  readonly #options: SharePartitionOptions;
  readonly #window: ShareWindow;
  readonly #listeners = new Set<() => void>();
  /** Fetches that wait for the one that reads now. */
  readonly #queue = new Set<() => void>();
  /** Writes go into the log in the order in which they were asked for. */
  #tail: Promise<unknown> = Promise.resolve();
  #isFetched = false;
  #counted = 0;
  #cancelTimer: Cancel = () => {};
  #timerAtMs = Infinity;
  #closed = false;

  constructor(options: SharePartitionOptions) {
    this.#options = options;
    this.key = options.key;
    this.log = options.log;
    this.stateEpoch = options.stateEpoch;
    this.#window = options.window;
    this.#count();
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Where the next read begins; null when nothing may be given out now. */
  get fetchOffset(): number | null {
    this.#window.trimTo(this.log.logStartOffset);
    this.#count();
    if (this.#closed || !this.#window.canAcquire) return null;
    const offset = this.#window.nextFetchOffset;
    return offset >= this.#window.next && !this.#options.inFlight.hasRoom(1) ? null : offset;
  }

  /** One fetch reads at a time, or two would read the same for nothing. The other is called when it is over. */
  tryLock(wake: () => void): boolean {
    if (this.#closed) return false;
    if (this.#isFetched) {
      this.#queue.add(wake);
      return false;
    }
    this.#isFetched = true;
    return true;
  }

  unlock(): void {
    this.#isFetched = false;
    const waiting = [...this.#queue];
    this.#queue.clear();
    for (const wake of waiting) wake();
  }

  /** A fetch does not wait any more. */
  leaveQueue(wake: () => void): void {
    this.#queue.delete(wake);
  }

  /** Called when records may have become free, and when it closes; returns the unsubscribe. */
  onAdvance(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #advance(): void {
    this.#count();
    for (const listener of this.#listeners) listener();
  }

  #count(): void {
    const size = this.#closed ? 0 : this.#window.recordsAtMost;
    this.#options.inFlight.change(size - this.#counted);
    this.#counted = size;
  }

  /** In one synchronous stretch. */
  acquire(request: AcquireRequest, read: ShareRead): Delivery {
    if (this.#closed) return NOTHING;
    const { env, inFlight, recordLockMs } = this.#options;
    const headers = read.batches.map((batch) => readBatchHeader(batch));
    const known = this.#window.next;
    const batches = headers
      .map((header) => ({ first: header.baseOffset, last: lastOffset(header) }))
      .filter(({ first }) => first < known || inFlight.hasRoom(1));
    const lockUntilMs = env.clock.monotonicMs() + recordLockMs();
    const { fetchOffset } = read;
    const all = this.#window.acquire({ ...request, fetchOffset, batches, lockUntilMs });
    const gone = abortedBatches(read);
    if (gone.length > 0) this.#window.archive(request.member, gone);
    this.#count();
    const acquired = without(all, gone);
    const first = acquired[0]?.first;
    const last = acquired.at(-1)?.last;
    if (first === undefined || last === undefined) return NOTHING;
    this.#arm(lockUntilMs);
    const wanted = read.batches.filter((_, at) => {
      const header = headers[at]!;
      return lastOffset(header) >= first && header.baseOffset <= last;
    });
    return { acquired, batches: wanted };
  }

  /** Null once it is durable. */
  async acknowledge(
    member: string,
    acknowledgements: readonly Acknowledgement[],
  ): Promise<ErrorName | null> {
    if (this.#closed) return "NOT_LEADER_OR_FOLLOWER";
    const lockUntilMs = this.#options.env.clock.monotonicMs() + this.#options.recordLockMs();
    const begun = this.#window.acknowledge(member, acknowledgements, lockUntilMs);
    if (typeof begun === "string") return begun;
    return await this.#settle(begun);
  }

  /** Gives back what a member has; null once that is durable. */
  async release(member: string): Promise<ErrorName | null> {
    return this.#closed ? null : await this.#settle(this.#window.release(member));
  }

  async #settle(begun: Begun): Promise<ErrorName | null> {
    if (begun.changes.length === 0) return null;
    const error = await this.#store(begun.changes);
    if (this.#closed) return error === null ? null : "NOT_LEADER_OR_FOLLOWER";
    if (error === null) this.#window.commit(begun);
    else {
      const ended = this.#window.rollback(begun, this.#options.env.clock.monotonicMs());
      this.#storeLater(ended);
      this.#arm(this.#window.firstLockEndMs);
    }
    this.#advance();
    return error;
  }

  async #store(batches: readonly StateBatch[]): Promise<ErrorName | null> {
    const change = {
      leaderEpoch: this.log.leaderEpoch,
      startOffset: this.#window.start,
      finalCount: this.#window.finalCount,
      batches,
    };
    const placed = this.#tail.then(() => this.#options.store(change));
    this.#tail = placed.catch(() => {});
    try {
      const error = await (await placed).outcome;
      if (error === null) return null;
      if (!FENCED.has(error)) return STATE_UNAVAILABLE;
      this.#options.onFenced();
      return "NOT_LEADER_OR_FOLLOWER";
    } catch (error) {
      if (!isFault(error)) throw error;
      const { groupId, topicId, partition } = this.key;
      const fields = { groupId, topicId, partition, reason: messageOf(error) };
      this.#options.env.log.log("warn", "share-state-not-stored", fields);
      return STATE_UNAVAILABLE;
    }
  }

  /** What counts already: a restart that has not heard of it gives the records out again. */
  #storeLater(changes: readonly StateBatch[]): void {
    if (changes.length > 0) this.#store(changes).catch(() => {});
  }

  #arm(atMs: number): void {
    if (this.#closed || atMs >= this.#timerAtMs) return;
    const { clock } = this.#options.env;
    this.#cancelTimer();
    this.#timerAtMs = atMs;
    this.#cancelTimer = clock.after(Math.max(0, atMs - clock.monotonicMs()), () => this.#expire());
  }

  #expire(): void {
    this.#timerAtMs = Infinity;
    const { clock, metrics } = this.#options.env;
    const changes = this.#window.expire(clock.monotonicMs());
    const records = changes.reduce((sum, { first, last }) => sum + last - first + 1, 0);
    metrics.count("skerry_share_locks_expired_total", {}, records);
    this.#storeLater(changes);
    this.#arm(this.#window.firstLockEndMs);
    if (changes.length > 0) this.#advance();
  }

  /** Resolves when all that was to be written is in the log, or was refused. */
  async placed(): Promise<void> {
    await this.#tail;
  }

  /** Whoever waits is told; what is under way keeps its answer. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelTimer();
    this.#advance();
    this.unlock();
    this.#listeners.clear();
  }
}
