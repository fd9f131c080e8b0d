/**
 * The leases of the groups of one shard: windows rebuilt from its log, and each change of them written in the
 * stretch in which it becomes true. A window counts only while the committed offset is the one that it belongs
 * to: whoever commits another one from elsewhere goes before it, here and after a reload.
 */
import type { Env } from "../../../env/env.ts";
import { assert } from "../../../lib/assert.ts";
import type { PartitionLog } from "../../../log/partition_log.ts";
import { decodeLeaseKey } from "../../../protocol/message/lease_records.ts";
import { appendRecords, type KeyValue } from "../../shard/shard_log.ts";
import type { ShardMemory } from "../../shard/shard_memory.ts";
import type { GroupEntry } from "../group_entry.ts";
import { NEVER, type OffsetEntry, type TopicPartition } from "../offset_table.ts";
import { offsetRecord } from "../records.ts";
import { leaseRecord, leaseTombstone, readWindow } from "./records.ts";
import { isTrivial, type LeaseWindow, windowAt } from "./window.ts";

export interface LeasesPort {
  readonly env: Env;
  readonly log: PartitionLog;
  readonly memory: ShardMemory;
  find(groupId: string): GroupEntry | undefined;
  findOrCreate(groupId: string): GroupEntry;
  reschedule(entry: GroupEntry): void;
  /** Ends the shard: only a reload can tell what is true. */
  close(): void;
}

export interface LeasedPartition extends TopicPartition {
  readonly topicId: string;
}

export interface LeaseChange {
  readonly at: LeasedPartition;
  readonly window: LeaseWindow;
  /** Makes the window's start the committed offset. */
  readonly commit: boolean;
  /** Of that commit. */
  readonly metadata?: string;
}

/** What one partition of a group has under way. */
interface Slot {
  readonly at: TopicPartition;
  window: LeaseWindow;
  /** The log has a record of it. */
  isWritten: boolean;
  /** Of its newest own commit in the log; -1 without one. */
  position: number;
  /** Own commits that are in the log and not durable. */
  commits: number;
}

/** A group that is polled, or has something under way. */
export interface LeasingGroup {
  readonly slots: Map<string, Slot>;
  readonly wakes: Set<() => void>;
  /** Partitions that a poll reads now. */
  readonly locked: Set<string>;
  /** Somebody found one of them locked. */
  isAwaited: boolean;
  polledAtMs: number;
  /** The partition that the next poll begins with, counted through all that it names. */
  turn: number;
  bytes: number;
}

const GROUP_BYTES = 256;
const SLOT_BYTES = 256;
const SPAN_BYTES = 96;

export function placeOf({ topic, partition }: TopicPartition): string {
  return `${partition}/${topic}`;
}

function bytesOf(groupId: string, { slots }: LeasingGroup): number {
  let bytes = GROUP_BYTES + groupId.length;
  for (const { at, window } of slots.values()) {
    bytes += SLOT_BYTES + 2 * at.topic.length + SPAN_BYTES * window.spans.length;
  }
  return bytes;
}

export class Leases {
  readonly #port: LeasesPort;
  readonly #groups = new Map<string, LeasingGroup>();
  #closed = false;

  constructor(port: LeasesPort) {
    this.#port = port;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** A record of the shard's log; false when it is of another kind. Throws DecodeError. */
  replay(key: Uint8Array, value: Uint8Array | null): boolean {
    const of = decodeLeaseKey(key);
    if (of === null) return false;
    const { group: groupId, topic, partition } = of;
    const place = placeOf(of);
    if (value === null) this.#groups.get(groupId)?.slots.delete(place);
    else {
      const at = { topic, partition };
      const read = { at, window: readWindow(value), isWritten: true, position: -1, commits: 0 };
      this.groupOf(groupId).slots.set(place, read);
      this.#port.findOrCreate(groupId);
    }
    return true;
  }

  loaded(): void {
    for (const groupId of Array.from(this.#groups.keys())) this.review(groupId);
  }

  /** Whether anything of it is stored, or on the way to the log. */
  hasGroup(groupId: string): boolean {
    const slots = this.#groups.get(groupId)?.slots;
    if (slots === undefined) return false;
    for (const { isWritten, commits } of slots.values()) if (isWritten || commits > 0) return true;
    return false;
  }

  /** With something under way. */
  partitionsOf(groupId: string): TopicPartition[] {
    return [...this.#groups.get(groupId)?.slots.values() ?? []].map(({ at }) => at);
  }

  /** Begun if it is not known; `review` ends it. */
  groupOf(groupId: string): LeasingGroup {
    const known = this.#groups.get(groupId);
    if (known !== undefined) return known;
    const group: LeasingGroup = {
      slots: new Map(),
      wakes: new Set(),
      locked: new Set(),
      isAwaited: false,
      polledAtMs: 0,
      turn: 0,
      bytes: 0,
    };
    this.#groups.set(groupId, group);
    return group;
  }

  /** Counts what a group takes up, and lets it go when nobody needs it. */
  review(groupId: string): void {
    const group = this.#groups.get(groupId);
    if (group === undefined || this.#closed) return;
    const isIdle = group.wakes.size === 0 && group.locked.size === 0 && !this.hasGroup(groupId);
    // What nobody has to know is not kept for names that anybody may think of.
    if (isIdle && this.#port.find(groupId) === undefined) return this.#drop(groupId, group);
    this.#count(group, bytesOf(groupId, group));
  }

  #count(group: LeasingGroup, bytes: number): void {
    this.#port.memory.change(bytes - group.bytes);
    group.bytes = bytes;
  }

  #drop(groupId: string, group: LeasingGroup): void {
    this.#count(group, 0);
    this.#groups.delete(groupId);
  }

  /** The group is deleted, or its name is nobody's any more. */
  forget(groupId: string): void {
    const group = this.#groups.get(groupId);
    if (group === undefined) return;
    group.slots.clear();
    if (group.wakes.size === 0 && group.locked.size === 0) this.#drop(groupId, group);
    else this.#count(group, bytesOf(groupId, group));
    for (const wake of Array.from(group.wakes)) wake();
  }

  /** Whether somebody has polled it, or holds something of it, so lately that its offsets stay. */
  isInUse(groupId: string, nowMs: number, retentionMs: number): boolean {
    const group = this.#groups.get(groupId);
    if (group === undefined) return false;
    let lastMs = group.polledAtMs;
    for (const { window } of group.slots.values()) {
      for (const { untilMs } of window.spans) lastMs = Math.max(lastMs, untilMs);
    }
    return nowMs - lastMs < retentionMs;
  }

  /** What a reload would find, for a log that is written anew. */
  *records(): Generator<KeyValue, void> {
    for (const [groupId, { slots }] of this.#groups) {
      for (const { at, window, isWritten } of slots.values()) {
        if (isWritten) yield leaseRecord(groupId, at, window);
      }
    }
  }

  tombstones(groupId: string): KeyValue[] {
    return [...this.#groups.get(groupId)?.slots.values() ?? []]
      .filter(({ isWritten }) => isWritten)
      .map(({ at }) => leaseTombstone(groupId, at));
  }

  /** The window of a partition; null when neither leases nor an offset are known. */
  windowOf(groupId: string, at: LeasedPartition): LeaseWindow | null {
    const offsets = this.#port.find(groupId)?.offsets;
    const slot = this.#groups.get(groupId)?.slots.get(placeOf(at));
    const window = slot === undefined ? null : this.#current(groupId, slot, at.topicId);
    if (window !== null) return window;
    const committed = offsets?.get(at.topic, at.partition, at.topicId)?.offset;
    return committed === undefined ? null : windowAt(at.topicId, committed);
  }

  /** The window, while the newest commit in the log is the one that it belongs to. */
  #current(groupId: string, slot: Slot, topicId: string): LeaseWindow | null {
    const { window, at } = slot;
    const offsets = this.#port.find(groupId)?.offsets;
    const position = offsets?.positionOf(at) ?? -1;
    const committed = position < 0
      ? -1
      : offsets?.get(at.topic, at.partition, topicId)?.offset ?? -1;
    // Its own commit is behind all that is known, or what is known says the same.
    const isOwn = slot.commits > 0 && position <= slot.position;
    const isCurrent = window.topicId === topicId && (isOwn || committed === window.committed);
    return isCurrent ? window : null;
  }

  /** What is known of a partition without records or reads: it is not written. */
  remember(groupId: string, { at, window }: Pick<LeaseChange, "at" | "window">): void {
    const slot = this.#set(groupId, at, window);
    const isOver = isTrivial(window) && !slot.isWritten && slot.commits === 0;
    if (isOver) this.groupOf(groupId).slots.delete(placeOf(at));
    this.review(groupId);
  }

  #set(groupId: string, { topic, partition }: TopicPartition, window: LeaseWindow): Slot {
    const { slots } = this.groupOf(groupId);
    const at = { topic, partition };
    const slot = slots.get(placeOf(at)) ??
      { at, window, isWritten: false, position: -1, commits: 0 };
    slot.window = window;
    slots.set(placeOf(at), slot);
    return slot;
  }

  /**
   * Appends all of it in this very stretch, from which on it is what memory says, and resolves when it is durable.
   * Throws FaultError when the log takes nothing: nothing has happened then.
   */
  change(groupId: string, changes: readonly LeaseChange[]): Promise<void> {
    assert(!this.#closed, "a closed shard writes nothing");
    const written = changes.map((change) => this.#written(groupId, change));
    const records = written.flatMap(({ records: some }) => some);
    if (records.length === 0) return Promise.resolve();
    const entry = this.#port.findOrCreate(groupId);
    const { env, log } = this.#port;
    const before = log.logEndOffset;
    try {
      const { first, durable } = appendRecords(env, log, records);
      let position = first;
      for (const one of written) {
        this.#apply(groupId, one, position);
        position += one.records.length;
      }
      entry.writes += 1;
      return this.#settle(entry, written, first, durable);
    } catch (error) {
      // A part of it is in the log.
      if (log.logEndOffset !== before) this.#port.close();
      throw error;
    } finally {
      this.review(groupId);
    }
  }

  #written(groupId: string, { at, window, commit, metadata = "" }: LeaseChange): Written {
    const committed = commit ? window.start : window.committed;
    const next = { ...window, committed };
    const isWritten = this.#groups.get(groupId)?.slots.get(placeOf(at))?.isWritten ?? false;
    const offset = commit ? this.#offsetOf(at, committed, metadata) : null;
    const records: KeyValue[] = offset === null ? [] : [offsetRecord(groupId, offset)];
    if (!isTrivial(next)) records.push(leaseRecord(groupId, at, next));
    else if (isWritten) records.push(leaseTombstone(groupId, at));
    return { at, window: next, offset, records };
  }

  #offsetOf(
    { topic, partition, topicId }: LeasedPartition,
    offset: number,
    metadata: string,
  ): OffsetEntry {
    const committedAtMs = this.#port.env.clock.nowMs();
    const rest = { leaderEpoch: -1, metadata, committedAtMs, expireAtMs: NEVER, topicId };
    return { topic, partition, offset, ...rest };
  }

  #apply(groupId: string, { at, window, offset }: Written, position: number): void {
    const slot = this.#set(groupId, at, window);
    slot.isWritten = !isTrivial(window);
    if (offset !== null) {
      slot.position = position;
      slot.commits += 1;
    }
  }

  async #settle(
    entry: GroupEntry,
    written: readonly Written[],
    first: number,
    durable: Promise<unknown>,
  ): Promise<void> {
    const { groupId } = entry.group;
    try {
      await durable;
      let position = first;
      for (const { offset, records } of written) {
        if (offset !== null) entry.offsets.set(offset, position);
        position += records.length;
      }
    } catch (error) {
      this.#port.close();
      throw error;
    } finally {
      entry.writes -= 1;
      this.#settled(groupId, written);
      this.#port.reschedule(entry);
    }
  }

  /** What is trivial now needs no place any more. */
  #settled(groupId: string, written: readonly Written[]): void {
    const group = this.#groups.get(groupId);
    for (const { at, offset } of written) {
      const place = placeOf(at);
      const slot = group?.slots.get(place);
      if (slot === undefined) continue;
      if (offset !== null) slot.commits = Math.max(0, slot.commits - 1);
      if (isTrivial(slot.window) && !slot.isWritten && slot.commits === 0) {
        group?.slots.delete(place);
      }
    }
    this.review(groupId);
  }

  /** Windows of topics that are gone have ended. Throws FaultError. */
  async prune(entry: GroupEntry, topicExists: (topicId: string) => boolean): Promise<void> {
    const { groupId } = entry.group;
    const group = this.#groups.get(groupId);
    const gone = [...group?.slots.values() ?? []].filter(({ window, isWritten }) =>
      isWritten && !topicExists(window.topicId)
    );
    if (group === undefined || gone.length === 0) return;
    const { env, log } = this.#port;
    const tombstones = gone.map(({ at }) => leaseTombstone(groupId, at));
    const { durable } = appendRecords(env, log, tombstones);
    for (const { at } of gone) group.slots.delete(placeOf(at));
    this.review(groupId);
    await durable;
    this.#port.reschedule(entry);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    const groups = [...this.#groups.values()];
    this.#groups.clear();
    for (const group of groups) {
      this.#count(group, 0);
      for (const wake of Array.from(group.wakes)) wake();
    }
  }
}

interface Written {
  readonly at: LeasedPartition;
  readonly window: LeaseWindow;
  readonly offset: OffsetEntry | null;
  readonly records: readonly KeyValue[];
}
