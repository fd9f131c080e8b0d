/**
 * Groups of the consumer protocol in their shard: read from its log, begun, ended, and turned into and out of
 * classic ones. A group of one kind that takes the place of the other is written before the tombstone of
 * the other, so that a reload tells this from a group that was deleted with its offsets.
 */
import { isFault } from "../../../lib/errors.ts";
import { decodeConsumerGroupKey } from "../../../protocol/message/consumer_group_records.ts";
import { joinError, prepareRebalance, removeAllWaiting } from "../rebalance.ts";
import { createGroup, type GroupHost } from "../group.ts";
import type { GroupEntry } from "../group_entry.ts";
import { groupRecord, groupTombstone } from "../records.ts";
import type { KeyValue } from "../../shard/shard_log.ts";
import { appendTo, type EntryLogPort } from "../entry_log.ts";
import { toClassicGroup, toConsumerGroup } from "./convert.ts";
import { type ConsumerGroup, emptyGroup, isAllClassic } from "./group.ts";
import { type ConsumerHost, LiveGroup, type LivePort } from "./live.ts";
import { applyRecord, type Draft, emptyDraft, tombstonesOf } from "./records.ts";

export interface ShardSidePort extends EntryLogPort {
  readonly host: GroupHost;
  readonly consumers: ConsumerHost;
  find(groupId: string): GroupEntry | undefined;
  findOrCreate(groupId: string): GroupEntry;
  forget(groupId: string): void;
}

export class ShardSide {
  readonly #shard: ShardSidePort;
  /** Groups while the log is read. */
  readonly #drafts = new Map<string, Draft>();

  constructor(shard: ShardSidePort) {
    this.#shard = shard;
  }

  /** A record of the shard's log. Throws DecodeError. */
  replay(key: Uint8Array, value: Uint8Array | null): void {
    const of = decodeConsumerGroupKey(key);
    if (of === null) return;
    const { groupId } = of;
    if (of.kind === "group" && value === null) {
      this.#drafts.delete(groupId);
      if (this.#shard.find(groupId)?.record === null) this.#shard.forget(groupId);
      return;
    }
    this.#shard.findOrCreate(groupId);
    const draft = this.#drafts.get(groupId) ?? emptyDraft(groupId);
    this.#drafts.set(groupId, draft);
    applyRecord(draft, of, value);
  }

  /** The tombstone of a classic group. */
  replayClassicEnd(groupId: string): void {
    if (!this.#drafts.has(groupId)) return this.#shard.forget(groupId);
    this.#dropClassic(this.#shard.findOrCreate(groupId));
  }

  loaded(): void {
    for (const [groupId, draft] of this.#drafts) {
      if (draft.epoch > 0) this.#begin(this.#shard.findOrCreate(groupId), draft);
    }
    this.#drafts.clear();
  }

  #begin(entry: GroupEntry, group: ConsumerGroup, written = group): LiveGroup {
    const { env, host, consumers } = this.#shard;
    const port: LivePort = {
      monotonicMs: () => host.monotonicMs(),
      hasRoom: (bytes) => host.hasRoom(bytes),
      write: (records) => this.#write(entry, records),
      note: (event, reason) => env.log.log("warn", event, { group: group.groupId, reason }),
    };
    entry.consumer = new LiveGroup(consumers, port, group, written);
    return entry.consumer;
  }

  /**
   * The group as one of the consumer protocol. A classic group becomes one with its first record, and takes its
   * members along; null when there is none and none may be made. Call `reschedule` after what is done with it.
   */
  of(groupId: string, canCreate: boolean): LiveGroup | null {
    const known = this.#shard.find(groupId);
    if (known !== undefined && known.consumer !== null) return known.consumer;
    if (known !== undefined && known.share !== null) return null;
    if (!canCreate) return null;
    // Ids that were handed out and not used yet are no members: those who come with them are taken in.
    if (known === undefined || known.group.state === "Empty") {
      return this.#begin(this.#shard.findOrCreate(groupId), emptyGroup(groupId));
    }
    const { settings, topics } = this.#shard.consumers;
    if (!settings.canUpgrade || known.group.members.size > settings.membersMax) return null;
    const upgraded = toConsumerGroup(known.group, topics);
    return upgraded === null ? null : this.#begin(known, upgraded, emptyGroup(groupId));
  }

  /**
   * Drops what was begun and never written; turns a group that only classic members are left in into a
   * classic one, in which they gather again. Called after every change of a group.
   */
  review(entry: GroupEntry): void {
    const { consumer } = entry;
    if (consumer === null) return;
    if (consumer.isUnwritten) entry.consumer = null;
    else if (isAllClassic(consumer.group)) this.#downgrade(entry, consumer.group);
  }

  #downgrade(entry: GroupEntry, group: ConsumerGroup): void {
    const { host, consumers, env } = this.#shard;
    if (!consumers.settings.canDowngrade || group.members.size > host.settings.membersMax) return;
    const made = toClassicGroup(group, consumers.topics, host.nowMs(), host.monotonicMs());
    const record = groupRecord(made);
    try {
      // Whoever is answered from here on waits for a later record.
      appendTo(this.#shard, entry, [record, ...tombstonesOf(group)]).catch(() => {});
    } catch (error) {
      // It stays as it is, and the next change tries again.
      if (isFault(error)) return;
      throw error;
    }
    entry.consumer = null;
    entry.record = record;
    entry.group = made;
    prepareRebalance(made, host);
    env.log.log("info", "group-downgraded", { group: group.groupId, members: made.members.size });
  }

  /** Of a group without members. Throws FaultError. */
  async becomeClassic(entry: GroupEntry): Promise<void> {
    if (entry.consumer === null) return;
    const record = groupRecord(entry.group);
    const stored = appendTo(this.#shard, entry, [record, ...tombstonesOf(entry.consumer.group)]);
    entry.consumer = null;
    entry.record = record;
    await stored;
  }

  #write(entry: GroupEntry, records: readonly KeyValue[]): Promise<void> {
    const { record, consumer, group: { groupId } } = entry;
    const stored = appendTo(
      this.#shard,
      entry,
      record === null ? records : [...records, groupTombstone(groupId)],
    );
    if (record !== null || consumer?.isUnwritten === true) this.#dropClassic(entry);
    return stored;
  }

  /** Its members are told to join again: they find themselves in a group of the other protocol. */
  #dropClassic(entry: GroupEntry): void {
    removeAllWaiting(entry.group, (memberId) => joinError("REBALANCE_IN_PROGRESS", memberId));
    // A write of it that ends later must not move it on.
    entry.group.state = "Dead";
    entry.record = null;
    entry.group = createGroup(entry.group.groupId, this.#shard.host.nowMs());
  }
}
