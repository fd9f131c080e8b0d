/** I13: the leader epochs that clients find in batches only grow with the offsets, whoever reads them when. */
import type { World } from "../world.ts";
import type { PartitionHistory } from "./history.ts";

export interface EpochSpan {
  first: number;
  last: number;
}

export function checkLeaderEpoch(
  world: World,
  { topicId, partition, epochs }: Pick<PartitionHistory, "topicId" | "partition" | "epochs">,
  offset: number,
  epoch: number,
): void {
  const span = epochs.get(epoch);
  if (span === undefined) epochs.set(epoch, { first: offset, last: offset });
  else {
    span.first = Math.min(span.first, offset);
    span.last = Math.max(span.last, offset);
  }
  for (const [other, { first, last }] of epochs) {
    if (other < epoch ? last < offset : other === epoch || first > offset) continue;
    world.violated(
      `I13: ${topicId}-${partition}: offset ${offset} has leader epoch ${epoch}, ` +
        `epoch ${other} has [${first}, ${last}]`,
    );
  }
}
