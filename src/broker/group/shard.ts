/**
 * One partition of `__consumer_offsets`: the groups that hash to it, rebuilt from its log, and every
 * change of them made durable through it. One owner, changed in synchronous stretches only.
 */
import type { Env } from "../../env/env.ts";
import { assert } from "../../lib/assert.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Uuid } from "../../lib/uuid.ts";
import type { PartitionLog, Verification } from "../../log/partition_log.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import {
  type BatchHeader,
  isControlBatch,
  isTransactionalBatch,
  readBatchHeader,
} from "../../protocol/record_batch.ts";
import { readRecords } from "../../protocol/record.ts";
import { lastOfEach } from "../many.ts";
import type { ConsumerHost } from "./consumer/live.ts";
import { ShardSide } from "./consumer/shard_side.ts";
import {
  createGroup,
  type Group,
  type GroupHost,
  type GroupSettings,
  nextDeadline,
} from "./group.ts";
import { Leases } from "./lease/leases.ts";
import { tick } from "./membership.ts";
import { groupTombstones } from "./entry_records.ts";
import { entryBytes, type GroupEntry, growthBy, isUnused, liveOf } from "./group_entry.ts";
import type { ShardMemory } from "../shard/shard_memory.ts";
import { type OffsetEntry, OffsetTable, type TopicPartition } from "./offset_table.ts";
import { joinError, removeAllWaiting } from "./rebalance.ts";
import { appendRecords, type KeyValue, storedBatches } from "../shard/shard_log.ts";
import { ShardMaintenance } from "./shard_maintenance.ts";
import type { ShareHost } from "./share/live.ts";
import { ShareSide } from "./share/share_side.ts";
import { TxnOffsets, type TxnProducer } from "./txn_offsets.ts";
import { groupRecord, offsetRecord, offsetTombstone, readGroupRecord } from "./records.ts";

export type { GroupEntry } from "./group_entry.ts";

export interface ShardOptions {
  readonly env: Env;
  readonly log: PartitionLog;
  readonly settings: GroupSettings;
  readonly retentionMs: number;
  readonly newMemberId: (prefix: string) => string;
  /** The node's, shared by its shards. */
  readonly memory: ShardMemory;
  /** Whether a topic still exists; offsets of deleted ones are dropped. */
  readonly topicExists: (topicId: Uuid) => boolean;
  /** For groups of the consumer protocol. */
  readonly consumers: ConsumerHost;
  readonly shares: ShareHost;
  /** A smaller log is not rewritten. */
  readonly compactBytesMin: number;
}

export class Shard {
  readonly log: PartitionLog;
  readonly host: GroupHost;
  /** Offsets in open transactions. */
  readonly pending: TxnOffsets;
  /** Groups of the consumer protocol. */
  readonly consumers: ShardSide;
  /** What groups over HTTP have under way. */
  readonly leases: Leases;
  readonly shares: ShareSide;
  readonly #maintenance: ShardMaintenance;
  readonly #options: ShardOptions;
  readonly #groups = new Map<string, GroupEntry>();
  #closed = false;
  #stored: Promise<void> = Promise.resolve();

  constructor(options: ShardOptions) {
    this.#options = options;
    this.log = options.log;
    const { env } = options;
    this.pending = new TxnOffsets({
      env,
      log: options.log,
      memory: options.memory,
      ended: ({ groupId, entry, position }, commit) => {
        const found = this.findOrCreate(groupId);
        if (commit) found.offsets.set(entry, position);
        this.reschedule(found);
      },
    });
    this.host = {
      settings: options.settings,
      nowMs: () => env.clock.nowMs(),
      monotonicMs: () => env.clock.monotonicMs(),
      newMemberId: options.newMemberId,
      hasRoom: (bytes) => options.memory.hasRoom(bytes),
      store: (group) => this.#store(group),
    };
    const side = {
      env,
      log: options.log,
      host: this.host,
      find: (groupId: string) => this.find(groupId),
      findOrCreate: (groupId: string) => this.findOrCreate(groupId),
      forget: (groupId: string) => this.#forget(groupId),
      reschedule: (entry: GroupEntry) => this.reschedule(entry),
      close: () => this.close(),
    };
    this.consumers = new ShardSide({ ...side, consumers: options.consumers });
    this.shares = new ShareSide({ ...side, shares: options.shares });
    this.leases = new Leases({ ...side, memory: options.memory });
    this.#maintenance = new ShardMaintenance(this, options);
  }

  #store(group: Group): Promise<void> {
    const stored = this.#write(group);
    this.#stored = stored.catch(() => {});
    return stored;
  }

  async #write(group: Group): Promise<void> {
    const entry = this.#groups.get(group.groupId);
    assert(entry?.group === group, "a group that is gone is not written behind its tombstone");
    const record = groupRecord(group);
    entry.writes += 1;
    try {
      await this.append([record]);
      entry.record = record;
    } finally {
      entry.writes -= 1;
      this.#recount(entry);
    }
  }

  /** Resolves when the newest record of a group is durable or refused. */
  get stored(): Promise<void> {
    return this.#stored;
  }

  get groups(): ReadonlyMap<string, GroupEntry> {
    return this.#groups;
  }
  get closed(): boolean {
    return this.#closed;
  }

  find(groupId: string): GroupEntry | undefined {
    return this.#groups.get(groupId);
  }

  findOrCreate(groupId: string): GroupEntry {
    return this.#groups.get(groupId) ?? this.#put(createGroup(groupId, this.host.nowMs()), null);
  }

  #put(group: Group, record: KeyValue | null): GroupEntry {
    const old = this.#groups.get(group.groupId);
    old?.cancelTimer();
    const entry = {
      group,
      consumer: null,
      share: null,
      offsets: old?.offsets ?? new OffsetTable(),
      record,
      writes: old?.writes ?? 0,
      bytes: old?.bytes ?? 0,
      cancelTimer: () => {},
    };
    this.#groups.set(group.groupId, entry);
    return entry;
  }

  /** Replays the log; the shard answers nobody before that. */
  async load(): Promise<void> {
    for await (const batch of storedBatches(this.log, "groups")) this.#replay(batch);
    this.consumers.loaded();
    this.leases.loaded();
    this.shares.loaded();
    for (const entry of Array.from(this.#groups.values())) this.reschedule(entry);
  }

  #replay(batch: Uint8Array): void {
    const header = readBatchHeader(batch);
    if (isControlBatch(header)) this.pending.replayMarker(header, batch);
    else {
      for (const { key, value, offset } of readRecords(batch, this.#options.env.codecs)) {
        if (key !== null) this.#apply(key, value, header, offset);
      }
    }
  }

  /** What is in the log is true; a record that does not parse is named and passed over. */
  #apply(key: Uint8Array, value: Uint8Array | null, header: BatchHeader, position: number): void {
    try {
      const record = readGroupRecord(key, value, this.host.monotonicMs());
      if (record.kind === "group") {
        if (record.group === null) this.consumers.replayClassicEnd(record.groupId);
        // Views of the batch would pin all of it for as long as the group lives.
        else this.#put(record.group, { key: key.slice(), value: value?.slice() ?? null });
      } else if (record.kind === "offset") {
        const { groupId, at, entry } = record;
        const { offsets } = this.findOrCreate(groupId);
        if (entry === null) this.#drop(groupId, offsets, at);
        else if (!isTransactionalBatch(header)) offsets.set(entry, position);
        else this.pending.replay(header.producerId, { groupId, entry, position });
      } else if (!this.leases.replay(key, value) && !this.shares.replay(key, value)) {
        this.consumers.replay(key, value);
      }
    } catch (error) {
      this.#options.env.log.log("warn", "group-record-unreadable", { reason: messageOf(error) });
    }
  }

  /** A deleted offset is gone for open transactions as well. */
  #drop(groupId: string, offsets: OffsetTable, at: TopicPartition): void {
    offsets.delete(at.topic, at.partition);
    this.pending.drop(groupId, at);
  }

  #forget(groupId: string): void {
    const entry = this.#groups.get(groupId);
    entry?.cancelTimer();
    this.#groups.delete(groupId);
    this.leases.forget(groupId);
    if (entry === undefined) return;
    entry.group.state = "Dead";
    this.#count(entry, 0);
  }

  #count(entry: GroupEntry, bytes: number): void {
    this.#options.memory.change(bytes - entry.bytes);
    entry.bytes = bytes;
  }

  /** A group that is not listed any more counts for nothing, whatever still happens to it. */
  #recount(entry: GroupEntry): void {
    const isListed = this.#groups.get(entry.group.groupId) === entry;
    this.#count(entry, isListed ? entryBytes(entry) : 0);
  }

  /** Resolves when the records are durable. Throws FaultError. */
  async append(records: readonly KeyValue[]): Promise<void> {
    await appendRecords(this.#options.env, this.log, records).durable;
  }

  /** Throws before anything has happened; when the log took a part of it only a reload tells what is true. */
  #appendWhole(records: readonly KeyValue[]): Promise<unknown> {
    const { log } = this;
    const before = log.logEndOffset;
    try {
      return appendRecords(this.#options.env, log, records).durable;
    } catch (error) {
      if (log.logEndOffset !== before) this.close();
      throw error;
    }
  }

  /** Whether the offsets may be added to what the node's groups hold. */
  hasRoomFor(entry: GroupEntry, offsets: readonly OffsetEntry[]): boolean {
    return this.#options.memory.hasRoom(growthBy(entry, offsets));
  }

  /** Offsets count once they are durable. */
  async commit(entry: GroupEntry, offsets: readonly OffsetEntry[]): Promise<void> {
    const { memory } = this.#options;
    const growth = growthBy(entry, offsets);
    entry.writes += 1;
    memory.change(growth);
    try {
      const records = offsets.map((offset) => offsetRecord(entry.group.groupId, offset));
      const { first, durable } = appendRecords(this.#options.env, this.log, records);
      await durable;
      for (const [at, offset] of offsets.entries()) entry.offsets.set(offset, first + at);
    } finally {
      entry.writes -= 1;
      memory.change(-growth);
      this.reschedule(entry);
    }
  }

  /** Offsets inside a transaction. Returns the log's refusal; throws FaultError. */
  async commitPending(
    entry: GroupEntry,
    producer: TxnProducer,
    offsets: readonly OffsetEntry[],
    verification: Verification | null,
  ): Promise<ErrorName> {
    entry.writes += 1;
    try {
      return await this.pending.append(entry.group.groupId, producer, offsets, verification);
    } finally {
      entry.writes -= 1;
      this.reschedule(entry);
    }
  }

  /** Forgets offsets, durably; one that is committed behind the tombstones stays. Throws FaultError. */
  async deleteOffsets(entry: GroupEntry, of: readonly TopicPartition[]): Promise<void> {
    const { group: { groupId }, offsets } = entry;
    // A commit that is on its way to the log stands before the tombstone.
    const distinct = lastOfEach(of, ({ topic, partition }) => `${partition}/${topic}`);
    const known = distinct.filter((at) =>
      entry.writes > 0 || offsets.positionOf(at) >= 0 || this.pending.has(groupId, at)
    );
    if (known.length === 0) return;
    entry.writes += 1;
    try {
      const tombstones = known.map((at) => offsetTombstone(groupId, at));
      const { first, durable } = appendRecords(this.#options.env, this.log, tombstones);
      await durable;
      for (const at of known) {
        if (offsets.positionOf(at) < first) this.#drop(groupId, offsets, at);
      }
    } finally {
      entry.writes -= 1;
      this.reschedule(entry);
    }
  }

  /**
   * Removes an empty group and all its offsets. It is forgotten where its tombstone stands in the log:
   * what comes later belongs to a new group of that name.
   */
  async delete(entry: GroupEntry): Promise<void> {
    const { groupId } = entry.group;
    const pending = this.pending.of(groupId);
    const tombstones = [...entry.offsets.entries(), ...pending].map((offset) =>
      offsetTombstone(groupId, offset)
    );
    const stored = this.#appendWhole([
      ...tombstones,
      ...this.leases.tombstones(groupId),
      ...groupTombstones(entry),
    ]);
    this.#forget(groupId);
    for (const at of pending) this.#drop(groupId, entry.offsets, at);
    try {
      await stored;
    } catch (error) {
      if (!this.#closed && !this.#groups.has(groupId)) {
        entry.group.state = "Empty";
        this.#groups.set(groupId, entry);
        this.#recount(entry);
      }
      throw error;
    }
  }

  /** Sets the group's one timer to its next deadline; call it after every change of the group. */
  reschedule(entry: GroupEntry): void {
    entry.cancelTimer();
    this.#recount(entry);
    if (this.#groups.get(entry.group.groupId) !== entry) return;
    this.consumers.review(entry);
    this.shares.review(entry);
    const { groupId } = entry.group;
    if (isUnused(entry) && !this.pending.hasGroup(groupId) && !this.leases.hasGroup(groupId)) {
      return this.#forget(groupId);
    }
    const live = liveOf(entry);
    const deadlineMs = live === null ? nextDeadline(entry.group) : live.nextDeadline;
    if (deadlineMs === null || this.#closed) return;
    const delayMs = Math.max(0, deadlineMs - this.host.monotonicMs());
    entry.cancelTimer = this.#options.env.clock.after(delayMs, () => {
      if (live === null) tick(entry.group, this.host);
      else this.#fenced(entry.group.groupId, live.tick());
      this.reschedule(entry);
    });
  }

  #fenced(group: string, gone: readonly string[]): void {
    if (gone.length === 0) return;
    const fields = { group, members: gone.length };
    this.#options.env.log.log("info", "group-members-fenced", fields);
  }

  /** Expires offsets and rewrites a hollow log. Writes nothing when there is nothing to do. */
  maintain(nowMs: number): Promise<void> {
    return this.#maintenance.run(nowMs);
  }

  /** Everybody who waits is sent to look for the coordinator again. */
  close(): void {
    this.#closed = true;
    for (const entry of this.#groups.values()) {
      entry.cancelTimer();
      entry.group.state = "Dead";
      removeAllWaiting(entry.group, (memberId) => joinError("NOT_COORDINATOR", memberId));
      this.#count(entry, 0);
    }
    this.#groups.clear();
    this.pending.clear();
    this.leases.close();
  }
}
