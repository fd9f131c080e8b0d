/** Properties of groups of the consumer protocol (KIP-848), with Kafka's names and defaults. */
import { INT_MAX, type Property } from "./property.ts";

function int(name: string, fallback: number, documentation: string): Property {
  return { name, type: "int", fallback: String(fallback), min: 1n, documentation };
}

export const GROUP_CONSUMER_PROPERTIES: readonly Property[] = [
  {
    name: "group.coordinator.rebalance.protocols",
    type: "list",
    fallback: "classic,consumer",
    words: ["classic", "consumer"],
    documentation: "Group protocols that are served; classic always is.",
  },
  {
    name: "group.consumer.assignors",
    type: "list",
    fallback: "uniform,range",
    words: ["uniform", "range"],
    documentation: "Assignors that members may ask for; the first is used when none asks.",
  },
  {
    name: "group.consumer.migration.policy",
    type: "string",
    fallback: "bidirectional",
    words: ["bidirectional", "upgrade", "downgrade", "disabled"],
    documentation: "Whether groups change their protocol while they have classic members.",
  },
  int(
    "group.consumer.heartbeat.interval.ms",
    5000,
    "How often members are told to send heartbeats.",
  ),
  int(
    "group.consumer.min.heartbeat.interval.ms",
    5000,
    "Shortest heartbeat interval that a consumer group may set for itself.",
  ),
  int("group.consumer.max.heartbeat.interval.ms", 15_000, "Longest one."),
  int("group.consumer.session.timeout.ms", 45_000, "Silence after which a member is fenced."),
  int(
    "group.consumer.min.session.timeout.ms",
    45_000,
    "Shortest session timeout that a consumer group may set for itself.",
  ),
  int("group.consumer.max.session.timeout.ms", 60_000, "Longest one."),
  int("group.consumer.max.size", Number(INT_MAX), "Members of one consumer group at most."),
];
