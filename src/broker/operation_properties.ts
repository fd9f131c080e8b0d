/** The broker properties of whoever operates it: what metrics list, and what an upgrade may write. */
import { METRIC_PARTITIONS_MAX } from "../lib/limits.ts";
import { ownLong, type Property } from "./property.ts";

export const OPERATION_PROPERTIES: readonly Property[] = [
  ownLong(
    "metrics.partitions.max",
    METRIC_PARTITIONS_MAX,
    [0, 1_000_000],
    "Open partitions with rows of their own in /metrics, in order of topic and partition; 0 lists none.",
  ),
  ownLong(
    "feature.level",
    0,
    [0, 65_535],
    "Raises the feature level of the cluster at the start, for good: builds that do not know it cannot " +
      "open the store any more. 0 keeps it; a new cluster then gets the highest that the build knows.",
  ),
];
