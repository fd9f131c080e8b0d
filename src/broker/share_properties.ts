/** Broker properties of the durable state of share groups, with Kafka's names and defaults but where a comment says so. */
import { TOPIC_PARTITIONS_MAX } from "../lib/limits.ts";
import type { Property } from "./property.ts";

export const SHARE_PROPERTIES: readonly Property[] = [
  {
    name: "share.coordinator.state.topic.num.partitions",
    type: "int",
    // Kafka has 50; each one that is used is a log with streams of its own, as for groups and transactions.
    fallback: "8",
    min: 1n,
    max: BigInt(TOPIC_PARTITIONS_MAX),
    documentation: "Partitions of __share_group_state, fixed when it is created.",
  },
  {
    name: "share.coordinator.snapshot.update.records.per.snapshot",
    type: "int",
    fallback: "500",
    min: 0n,
    documentation:
      "Changes of a share partition's state that are stored before all of it is again.",
  },
];
