/**
 * Which committed offsets have outlived their retention (KIP-211). Pure.
 * A group with members keeps the offsets of topics that somebody subscribes to; a group without
 * members counts from when it became empty; a group that never had members counts from each commit.
 */
import type { Group } from "./group.ts";
import type { OffsetEntry, OffsetTable } from "./offset_table.ts";
import { subscribedTopics } from "./subscription.ts";

export function expiredOffsets(
  group: Group,
  offsets: OffsetTable,
  nowMs: number,
  retentionMs: number,
): OffsetEntry[] {
  const isOld = (sinceMs: number) => nowMs - sinceMs >= retentionMs;
  const all = [...offsets.entries()];
  if (group.members.size === 0) {
    const hadMembers = group.protocolType !== null;
    return all.filter((entry) =>
      isOld(
        hadMembers ? Math.max(group.stateChangedAtMs, entry.committedAtMs) : entry.committedAtMs,
      )
    );
  }
  const subscribed = subscribedTopics(group);
  if (subscribed === null) return [];
  return all.filter((entry) => !subscribed.has(entry.topic) && isOld(entry.committedAtMs));
}
