/** What a shard holds of one group: its state, its offsets, and what is on the way to the log. */
import { stateOf, subscriptionTo } from "./consumer/group.ts";
import type { LiveGroup } from "./consumer/live.ts";
import type { Group } from "./group.ts";
import { groupBytes } from "./memory.ts";
import type { OffsetEntry, OffsetTable } from "./offset_table.ts";
import { bytesOf, type KeyValue } from "../shard/shard_log.ts";
import { shareStateOf } from "./share/group.ts";
import type { LiveShareGroup } from "./share/live.ts";
import { subscribedTopics } from "./subscription.ts";

export interface GroupEntry {
  /** Of the classic protocol; without members while one of the next two is there. */
  group: Group;
  /** Of the consumer protocol: the group is of that kind as long as this is there. */
  consumer: LiveGroup | null;
  /** A share group, likewise. */
  share: LiveShareGroup | null;
  readonly offsets: OffsetTable;
  /** The group's newest durable record: what a reload finds, whatever the group does meanwhile. */
  record: KeyValue | null;
  /** Commits and records that are in the log and not yet in what stands above. */
  writes: number;
  /** What it counts for in the node's memory. */
  bytes: number;
  cancelTimer: () => void;
}

export type GroupType = "classic" | "consumer" | "share";

export function typeOf({ consumer, share }: GroupEntry): GroupType {
  if (share !== null) return "share";
  return consumer === null ? "classic" : "consumer";
}

/** The group, if it is one whose changes are differences of values. */
export function liveOf({ consumer, share }: GroupEntry): LiveGroup | LiveShareGroup | null {
  return consumer ?? share;
}

/** Nobody ever was in it and nothing of it is stored: it needs no tombstone. */
export function isUnused(entry: GroupEntry): boolean {
  const { group, offsets, writes } = entry;
  return liveOf(entry) === null && group.generation === 0 && group.members.size === 0 &&
    group.pending.size === 0 &&
    offsets.size === 0 && writes === 0;
}

export function entryBytes(entry: GroupEntry): number {
  const { group, offsets, record } = entry;
  const written = record === null ? 0 : bytesOf(record);
  return groupBytes(group) + (liveOf(entry)?.bytes ?? 0) + offsets.bytes + written;
}

/** As tools see it. */
export function stateNameOf({ group, consumer, share }: GroupEntry): string {
  if (share !== null) return shareStateOf(share.group);
  return consumer === null ? group.state : stateOf(consumer.group);
}

/** Nobody is in it or on the way into it. */
export function isEmptyGroup(entry: GroupEntry): boolean {
  const live = liveOf(entry);
  return live === null
    ? entry.group.state === "Empty" && entry.group.pending.size === 0
    : live.group.members.size === 0;
}

/** Null when it cannot be known. */
export function subscriptionOf(
  { group, consumer }: GroupEntry,
): ((topic: string) => boolean) | null {
  if (consumer !== null) return subscriptionTo(consumer.group);
  const topics = subscribedTopics(group);
  return topics === null ? null : (topic) => topics.has(topic);
}

export function growthBy({ offsets: table }: GroupEntry, offsets: readonly OffsetEntry[]): number {
  return offsets.reduce((sum, offset) => sum + table.growth(offset), 0);
}
