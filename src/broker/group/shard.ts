/**
 * One partition of `__consumer_offsets`: the groups that hash to it, rebuilt from its log, and every
 * change of them made durable through it. One owner, changed in synchronous stretches only.
 */
import type { Env } from "../../env/env.ts";
import { assert } from "../../lib/assert.ts";
import { FaultError, messageOf } from "../../lib/errors.ts";
import { GROUP_LOAD_BYTES } from "../../lib/limits.ts";
import type { Uuid } from "../../lib/uuid.ts";
import type { PartitionLog } from "../../log/partition_log.ts";
import { buildBatch, isControlBatch, readBatchHeader } from "../../protocol/record_batch.ts";
import { readRecords } from "../../protocol/record.ts";
import { expiredOffsets } from "./expiry.ts";
import {
  createGroup,
  type Group,
  type GroupHost,
  type GroupSettings,
  nextDeadline,
} from "./group.ts";
import { tick } from "./membership.ts";
import { groupBytes, type GroupMemory } from "./memory.ts";
import { type OffsetEntry, OffsetTable } from "./offset_table.ts";
import { joinError, removeAllWaiting } from "./rebalance.ts";
import {
  batchesOf,
  bytesOf,
  groupRecord,
  groupTombstone,
  type KeyValue,
  offsetRecord,
  offsetTombstone,
  readGroupRecord,
} from "./records.ts";

export interface ShardOptions {
  readonly env: Env;
  readonly log: PartitionLog;
  readonly settings: GroupSettings;
  readonly retentionMs: number;
  readonly newMemberId: (prefix: string) => string;
  /** The node's, shared by its shards. */
  readonly memory: GroupMemory;
  /** Whether a topic still exists; offsets of deleted ones are dropped. */
  readonly topicExists: (topicId: Uuid) => boolean;
  /** A smaller log is not rewritten. */
  readonly compactBytesMin: number;
}

export interface GroupEntry {
  readonly group: Group;
  readonly offsets: OffsetTable;
  /** The group's newest durable record: what a reload finds, whatever the group does meanwhile. */
  record: KeyValue | null;
  /** Commits and records that are in the log and not yet in what stands above. */
  writes: number;
  /** What it counts for in the node's memory. */
  bytes: number;
  cancelTimer: () => void;
}

/** Nobody ever was in it and nothing of it is stored: it needs no tombstone. */
function isUnused({ group, offsets, writes }: GroupEntry): boolean {
  return group.generation === 0 && group.members.size === 0 && group.pending.size === 0 &&
    offsets.size === 0 && writes === 0;
}

/** The log is rewritten when it is this many times larger than what is alive in it. */
const HOLLOW_FACTOR = 4;

function entryBytes({ group, offsets, record }: GroupEntry): number {
  return groupBytes(group) + offsets.bytes + (record === null ? 0 : bytesOf(record));
}

function growthBy({ offsets: table }: GroupEntry, offsets: readonly OffsetEntry[]): number {
  return offsets.reduce((sum, offset) => sum + table.growth(offset), 0);
}

export class Shard {
  readonly log: PartitionLog;
  readonly host: GroupHost;
  readonly #options: ShardOptions;
  readonly #groups = new Map<string, GroupEntry>();
  #compacting = false;
  #closed = false;
  #stored: Promise<void> = Promise.resolve();

  constructor(options: ShardOptions) {
    this.#options = options;
    this.log = options.log;
    const { env } = options;
    this.host = {
      settings: options.settings,
      nowMs: () => env.clock.nowMs(),
      monotonicMs: () => env.clock.monotonicMs(),
      newMemberId: options.newMemberId,
      hasRoom: (bytes) => options.memory.hasRoom(bytes),
      store: (group) => this.#store(group),
    };
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
    const { log } = this;
    for (let at = log.logStartOffset; at < log.highWatermark;) {
      const read = await log.read(at, { bytesMax: GROUP_LOAD_BYTES, isolation: "committed" });
      if (read === null || !read.ok) {
        throw new FaultError("closed", "Cannot load groups: the log moved", { retriable: true });
      }
      if (read.batches.length === 0) break;
      for (const batch of read.batches) at = this.#replay(batch);
    }
    for (const entry of Array.from(this.#groups.values())) this.reschedule(entry);
  }

  #replay(batch: Uint8Array): number {
    const header = readBatchHeader(batch);
    if (!isControlBatch(header)) {
      for (const { key, value } of readRecords(batch, this.#options.env.codecs)) {
        if (key !== null) this.#apply(key, value);
      }
    }
    return header.baseOffset + header.lastOffsetDelta + 1;
  }

  /** What is in the log is true; a record that does not parse is named and passed over. */
  #apply(key: Uint8Array, value: Uint8Array | null): void {
    try {
      const record = readGroupRecord(key, value, this.host.monotonicMs());
      if (record.kind === "group") {
        if (record.group === null) this.#forget(record.groupId);
        // Views of the batch would pin all of it for as long as the group lives.
        else this.#put(record.group, { key: key.slice(), value: value?.slice() ?? null });
      } else if (record.kind === "offset") {
        const { offsets } = this.findOrCreate(record.groupId);
        if (record.entry === null) offsets.delete(record.at.topic, record.at.partition);
        else offsets.set(record.entry);
      }
    } catch (error) {
      this.#options.env.log.log("warn", "group-record-unreadable", { reason: messageOf(error) });
    }
  }

  #forget(groupId: string): void {
    const entry = this.#groups.get(groupId);
    entry?.cancelTimer();
    this.#groups.delete(groupId);
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
    const { env } = this.#options;
    const timestampMs = env.clock.nowMs();
    const waits: Promise<void>[] = [];
    for (const part of batchesOf(records)) {
      const batch = buildBatch({
        records: part.map(({ key, value }) => ({ key, value, headers: [], timestampMs })),
        codec: null,
        codecs: env.codecs,
      });
      const appended = this.log.append(batch);
      if (!appended.ok) {
        throw new FaultError("overloaded", `Cannot store the group: ${appended.error}`, {
          retriable: true,
        });
      }
      // When a later batch is refused nobody waits for this one any more.
      appended.durable.catch(() => {});
      waits.push(appended.durable);
    }
    await Promise.all(waits);
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
      await this.append(offsets.map((offset) => offsetRecord(entry.group.groupId, offset)));
      for (const offset of offsets) entry.offsets.set(offset);
    } finally {
      entry.writes -= 1;
      memory.change(-growth);
      this.reschedule(entry);
    }
  }

  /**
   * Removes an empty group and all its offsets. It is forgotten where its tombstone stands in the log:
   * what comes later belongs to a new group of that name.
   */
  async delete(entry: GroupEntry): Promise<void> {
    const { groupId } = entry.group;
    const tombstones = [...entry.offsets.entries()].map((offset) =>
      offsetTombstone(groupId, offset)
    );
    const stored = this.append([...tombstones, groupTombstone(groupId)]);
    this.#forget(groupId);
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
    if (isUnused(entry)) return this.#forget(entry.group.groupId);
    const deadlineMs = nextDeadline(entry.group);
    if (deadlineMs === null || this.#closed) return;
    const delayMs = Math.max(0, deadlineMs - this.host.monotonicMs());
    entry.cancelTimer = this.#options.env.clock.after(delayMs, () => {
      tick(entry.group, this.host);
      this.reschedule(entry);
    });
  }

  /** Expires offsets and rewrites a hollow log. Writes nothing when there is nothing to do. */
  async maintain(nowMs: number): Promise<void> {
    for (const entry of Array.from(this.#groups.values())) {
      if (this.#closed) return;
      // A tombstone for a group that was deleted meanwhile would take along a new one of that name.
      if (this.#groups.get(entry.group.groupId) === entry) await this.#expire(entry, nowMs);
    }
    if (!this.#closed) await this.#compact();
  }

  async #expire(entry: GroupEntry, nowMs: number): Promise<void> {
    const { group, offsets } = entry;
    // A tombstone behind a commit that is under way would take the new offset along.
    if (entry.writes > 0) return;
    const expired = expiredOffsets(group, offsets, nowMs, this.#options.retentionMs);
    const gone = [...offsets.entries()].filter(({ topicId }) =>
      !this.#options.topicExists(topicId)
    );
    const dropped = new Set([...expired, ...gone]);
    const empty = group.state === "Empty" && group.pending.size === 0;
    if (empty && dropped.size === offsets.size) return await this.delete(entry);
    if (dropped.size === 0) return;
    await this.append([...dropped].map((offset) => offsetTombstone(group.groupId, offset)));
    for (const offset of dropped) {
      if (offsets.holds(offset)) offsets.delete(offset.topic, offset.partition);
    }
    this.#recount(entry);
  }

  /** What was written may be durable and still a step away from its entry. */
  get #isWriting(): boolean {
    return [...this.#groups.values()].some(({ writes }) => writes > 0);
  }

  /**
   * The records that a reload would find now. A group in a rebalance is not what may be stored: it has a
   * generation and no assignments, and would come back stable with nobody to consume.
   */
  #alive(): KeyValue[] {
    return [...this.#groups.values()].flatMap(({ group, offsets, record }) => [
      ...[...offsets.entries()].map((offset) => offsetRecord(group.groupId, offset)),
      ...(record === null ? [] : [record]),
    ]);
  }

  /**
   * Writes all that is alive once more and cuts the log before it. The start of the rewrite is taken
   * in the same stretch as the picture, so nothing that came later can be lost.
   */
  async #compact(): Promise<void> {
    const { log } = this;
    if (this.#compacting || log.sizeBytes < this.#options.compactBytesMin) return;
    // What is being written is not in the entries yet, so the log must be at rest.
    if (log.highWatermark !== log.logEndOffset || this.#isWriting) return;
    const alive = this.#alive();
    const bytes = alive.reduce((sum, record) => sum + bytesOf(record), 0);
    if (log.sizeBytes < HOLLOW_FACTOR * bytes) return;
    this.#compacting = true;
    try {
      const start = log.logEndOffset;
      await this.append(alive);
      await log.deleteRecords(start);
      this.#options.env.log.log("debug", "group-log-rewritten", { bytes, start });
    } finally {
      this.#compacting = false;
    }
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
  }
}
