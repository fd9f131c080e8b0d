/** The leases of one group, as those use them who poll it: bound to the shard that has it now. */
import type { ErrorName } from "../../../protocol/error_code.ts";
import { isEmptyGroup } from "../group_entry.ts";
import type { Shard } from "../shard.ts";
import { type LeaseChange, type LeasedPartition, placeOf } from "./leases.ts";
import type { LeaseWindow } from "./window.ts";

/** Of the retention of offsets: how old a commit may get before a poll writes it again. */
const REFRESH_FRACTION = 10;

export class GroupLeases {
  readonly #shard: Shard;
  readonly #groupId: string;
  readonly #refreshMs: number;

  constructor(shard: Shard, groupId: string, retentionMs: number) {
    this.#shard = shard;
    this.#groupId = groupId;
    this.#refreshMs = retentionMs / REFRESH_FRACTION;
  }

  /** Why nothing may be leased or acknowledged; to be asked after each await. */
  get refusal(): ErrorName | null {
    if (this.#shard.closed) return "NOT_COORDINATOR";
    const entry = this.#shard.find(this.#groupId);
    if (entry === undefined) return null;
    if (entry.share !== null) return "INCONSISTENT_GROUP_PROTOCOL";
    return isEmptyGroup(entry) ? null : "NON_EMPTY_GROUP";
  }

  /** Null when neither leases nor an offset are known. */
  windowOf(at: LeasedPartition): LeaseWindow | null {
    return this.#shard.leases.windowOf(this.#groupId, at);
  }

  /** Whether its committed offset is so old that it is to be written again, or it expires. */
  isAging({ topic, partition, topicId }: LeasedPartition): boolean {
    const entry = this.#shard.find(this.#groupId)?.offsets.get(topic, partition, topicId);
    const nowMs = this.#shard.host.nowMs();
    return entry !== undefined && nowMs - entry.committedAtMs >= this.#refreshMs;
  }

  hasRoom(bytes: number): boolean {
    return this.#shard.host.hasRoom(bytes);
  }

  /** Somebody polls it: its offsets do not expire. Returns the partition to begin with, counted through all. */
  polled(partitions: number): number {
    const group = this.#shard.leases.groupOf(this.#groupId);
    group.polledAtMs = this.#shard.host.nowMs();
    return group.turn % partitions;
  }

  setTurn(turn: number): void {
    this.#shard.leases.groupOf(this.#groupId).turn = turn;
  }

  /** One poll reads a partition at a time. */
  tryLock(at: LeasedPartition): boolean {
    const group = this.#shard.leases.groupOf(this.#groupId);
    const place = placeOf(at);
    if (group.locked.has(place)) {
      group.isAwaited = true;
      return false;
    }
    group.locked.add(place);
    return true;
  }

  unlock(partitions: readonly LeasedPartition[]): void {
    if (this.#shard.closed) return;
    const { leases } = this.#shard;
    const group = leases.groupOf(this.#groupId);
    for (const at of partitions) group.locked.delete(placeOf(at));
    const { isAwaited } = group;
    group.isAwaited = false;
    leases.review(this.#groupId);
    if (isAwaited) this.wake();
  }

  /**
   * From this stretch on it is what the group knows; resolves when it is durable. Throws FaultError when the log
   * takes nothing.
   */
  change(changes: readonly LeaseChange[]): Promise<void> {
    return this.#shard.leases.change(this.#groupId, changes);
  }

  /** What the log need not know. */
  remember(change: Pick<LeaseChange, "at" | "window">): void {
    this.#shard.leases.remember(this.#groupId, change);
  }

  /** Tells those who wait that records may have become free. */
  wake(): void {
    const { wakes } = this.#shard.leases.groupOf(this.#groupId);
    for (const wake of Array.from(wakes)) wake();
  }

  /** Calls when records may have become free, and when the shard closes; returns the unsubscribe. */
  onFree(wake: () => void): () => void {
    const { leases } = this.#shard;
    const { wakes } = leases.groupOf(this.#groupId);
    wakes.add(wake);
    return () => {
      wakes.delete(wake);
      leases.review(this.#groupId);
    };
  }
}
