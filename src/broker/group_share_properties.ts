/** Properties of share groups (KIP-932), with Kafka's names, defaults and bounds. */
import type { Property } from "./property.ts";

function int(
  name: string,
  fallback: number,
  [min, max]: readonly [min: number, max: number | null],
  documentation: string,
): Property {
  const upper = max === null ? {} : { max: BigInt(max) };
  return {
    name,
    type: "int",
    fallback: String(fallback),
    min: BigInt(min),
    ...upper,
    documentation,
  };
}

/** Bounds of what a group may set for itself; the group's own keys are in `group_properties.ts`. */
export const GROUP_SHARE_PROPERTIES: readonly Property[] = [
  int(
    "group.share.session.timeout.ms",
    45_000,
    [1, null],
    "Silence after which a member of a share group is fenced.",
  ),
  int(
    "group.share.min.session.timeout.ms",
    45_000,
    [1, null],
    "Shortest session timeout that a share group may set for itself.",
  ),
  int("group.share.max.session.timeout.ms", 60_000, [1, null], "Longest one."),
  int(
    "group.share.heartbeat.interval.ms",
    5000,
    [1, null],
    "How often members of a share group are told to send heartbeats.",
  ),
  int(
    "group.share.min.heartbeat.interval.ms",
    5000,
    [1, null],
    "Shortest heartbeat interval that a share group may set for itself.",
  ),
  int("group.share.max.heartbeat.interval.ms", 15_000, [1, null], "Longest one."),
  int("group.share.max.size", 200, [1, 1000], "Members of one share group at most."),
  int(
    "group.share.delivery.count.limit",
    5,
    [2, 10],
    "How often a record is delivered to a share group at most.",
  ),
  int(
    "group.share.record.lock.duration.ms",
    30_000,
    [1000, 3_600_000],
    "How long a member of a share group has a record for itself.",
  ),
  int(
    "group.share.min.record.lock.duration.ms",
    15_000,
    [1000, 30_000],
    "Shortest lock duration that a share group may set for itself.",
  ),
  int("group.share.max.record.lock.duration.ms", 60_000, [30_000, 3_600_000], "Longest one."),
  int(
    "group.share.partition.max.record.locks",
    2000,
    [100, 10_000],
    "Records of one partition that a share group may have under way.",
  ),
  int(
    "group.share.max.share.sessions",
    2000,
    [1, null],
    "Share sessions that are kept at once.",
  ),
];
