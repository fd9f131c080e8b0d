/**
 * Which committed offsets have outlived their retention (KIP-211). Pure.
 * A group with members keeps the offsets of topics that somebody subscribes to, and all while it
 * rebalances, when a subscriber may only be late (KAFKA-13636); a group without members counts from when it became empty; a group that never had members counts from each commit.
 * An expiry that a client from before KIP-211 set for its commit stands in place of the retention.
 */
import type { Group } from "./group.ts";
import { type ConsumerGroup, subscriptionTo } from "./consumer/group.ts";
import { NEVER, type OffsetEntry, type OffsetTable } from "./offset_table.ts";
import { subscribedTopics } from "./subscription.ts";

function isPast(
  { expireAtMs }: OffsetEntry,
  sinceMs: number,
  nowMs: number,
  retentionMs: number,
): boolean {
  return expireAtMs === NEVER ? nowMs - sinceMs >= retentionMs : nowMs >= expireAtMs;
}

/** Groups of the consumer protocol do not record when they became empty: each commit counts, as in Kafka. */
export function expiredConsumerOffsets(
  group: ConsumerGroup,
  offsets: OffsetTable,
  nowMs: number,
  retentionMs: number,
): OffsetEntry[] {
  const isSubscribed = subscriptionTo(group);
  return [...offsets.entries()].filter((entry) =>
    isPast(entry, entry.committedAtMs, nowMs, retentionMs) && !isSubscribed(entry.topic)
  );
}

export function expiredOffsets(
  group: Group,
  offsets: OffsetTable,
  nowMs: number,
  retentionMs: number,
): OffsetEntry[] {
  const isOld = (entry: OffsetEntry, sinceMs: number) => isPast(entry, sinceMs, nowMs, retentionMs);
  const all = [...offsets.entries()];
  if (group.members.size === 0) {
    const hadMembers = group.protocolType !== null;
    return all.filter((entry) => {
      const { committedAtMs } = entry;
      return isOld(
        entry,
        hadMembers ? Math.max(group.stateChangedAtMs, committedAtMs) : committedAtMs,
      );
    });
  }
  const subscribed = group.state === "Stable" ? subscribedTopics(group) : null;
  if (subscribed === null) return [];
  return all.filter((entry) => !subscribed.has(entry.topic) && isOld(entry, entry.committedAtMs));
}
