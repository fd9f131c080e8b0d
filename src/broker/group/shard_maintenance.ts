/** What a shard does from time to time: expires offsets, and writes a hollow log anew. */
import type { Env } from "../../env/env.ts";
import type { Uuid } from "../../lib/uuid.ts";
import { groupRecords } from "./entry_records.ts";
import { expiredConsumerOffsets, expiredOffsets } from "./expiry.ts";
import { type GroupEntry, isEmptyGroup } from "./group_entry.ts";
import { HollowLog } from "../shard/hollow_log.ts";
import { bytesOf, type KeyValue } from "../shard/shard_log.ts";
import { offsetRecord, offsetTombstone } from "./records.ts";
import type { Shard } from "./shard.ts";

export interface MaintenanceOptions {
  readonly env: Env;
  readonly retentionMs: number;
  /** Whether a topic still exists; offsets of deleted ones are dropped. */
  readonly topicExists: (topicId: Uuid) => boolean;
  /** A smaller log is not rewritten. */
  readonly compactBytesMin: number;
}

export class ShardMaintenance {
  readonly #shard: Shard;
  readonly #options: MaintenanceOptions;
  readonly #hollow: HollowLog;

  constructor(shard: Shard, options: MaintenanceOptions) {
    this.#shard = shard;
    this.#options = options;
    this.#hollow = new HollowLog({
      env: options.env,
      log: shard.log,
      event: "group-log-rewritten",
      bytesMin: options.compactBytesMin,
    });
  }

  /** Writes nothing when there is nothing to do. Throws FaultError. */
  async run(nowMs: number): Promise<void> {
    const shard = this.#shard;
    for (const entry of Array.from(shard.groups.values())) {
      if (shard.closed) return;
      // A tombstone for a group that was deleted meanwhile would take along a new one of that name.
      if (shard.find(entry.group.groupId) === entry) await this.#expire(entry, nowMs);
    }
    if (!shard.closed) await this.#compact();
  }

  async #expire(entry: GroupEntry, nowMs: number): Promise<void> {
    const { pending, leases } = this.#shard;
    const { group, consumer, share, offsets } = entry;
    await leases.prune(entry, this.#options.topicExists);
    // Share groups stay until they are deleted, as in Kafka; they have no offsets of this kind.
    if (share !== null) return await share.prune();
    // A tombstone behind a commit that is under way would take the new offset along.
    if (entry.writes > 0) return;
    const { retentionMs } = this.#options;
    if (leases.isInUse(group.groupId, nowMs, retentionMs)) return;
    const expired = consumer === null
      ? expiredOffsets(group, offsets, nowMs, retentionMs)
      : expiredConsumerOffsets(consumer.group, offsets, nowMs, retentionMs);
    const gone = [...offsets.entries()].filter(({ topicId }) =>
      !this.#options.topicExists(topicId)
    );
    const dropped = new Set(
      [...expired, ...gone].filter((offset) => !pending.has(group.groupId, offset)),
    );
    const empty = isEmptyGroup(entry) && !pending.hasGroup(group.groupId);
    if (empty && dropped.size === offsets.size) return await this.#shard.delete(entry);
    if (dropped.size === 0) return;
    await this.#shard.append([...dropped].map((offset) => offsetTombstone(group.groupId, offset)));
    for (const offset of dropped) {
      if (offsets.holds(offset)) offsets.delete(offset.topic, offset.partition);
    }
    this.#shard.reschedule(entry);
  }

  /** What was written may be durable and still a step away from its entry. */
  get #isWriting(): boolean {
    return [...this.#shard.groups.values()].some(({ writes }) => writes > 0);
  }

  /**
   * The records that a reload would find now. A group in a rebalance is not what may be stored: it has a
   * generation and no assignments, and would come back stable with nobody to consume.
   */
  #alive(): KeyValue[] {
    const ofGroups = [...this.#shard.groups.values()].flatMap((entry) => [
      ...[...entry.offsets.entries()].map((at) => offsetRecord(entry.group.groupId, at)),
      ...groupRecords(entry),
    ]);
    return [...ofGroups, ...this.#shard.leases.records()];
  }

  async #compact(): Promise<void> {
    const { log, pending } = this.#shard;
    if (!this.#hollow.isLarge) return;
    // What is being written is not in the entries yet, so the log must be at rest.
    if (log.highWatermark !== log.logEndOffset || this.#isWriting) return;
    // Pending offsets stand before the picture, and their marker behind it would find nothing.
    if (!pending.isEmpty || log.lastStableOffset !== log.logEndOffset) return;
    const alive = this.#alive();
    const bytes = alive.reduce((sum, record) => sum + bytesOf(record), 0);
    await this.#hollow.rewriteIfHollow({ bytes, records: () => alive });
  }
}
