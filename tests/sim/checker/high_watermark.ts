/**
 * The high watermark grows: no process shows a smaller one than it, or a process before it, has shown to
 * anybody by the time the question was asked. A process that was replaced may lag; it may not be ahead.
 */
import type { World } from "../world.ts";
import { name, type PartitionHistory } from "./history.ts";

export function checkWatermark(
  world: World,
  history: PartitionHistory,
  { watermark, by, seenBefore }: {
    readonly watermark: number;
    readonly by: number;
    /** `watermarkSeen` when the question was asked. */
    readonly seenBefore: number;
  },
): void {
  if (watermark < seenBefore) {
    world.violated(
      `I12: ${
        name(history)
      }: epoch ${by} shows high watermark ${watermark} after ${seenBefore} was seen`,
    );
  }
  const own = history.watermarks.get(by) ?? 0;
  history.watermarks.set(by, Math.max(own, watermark));
}
