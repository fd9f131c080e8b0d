/** Offsets of an answer follow each other without a hole, begin at or below the asked one and end at the watermark. */
import type { World } from "../world.ts";
import { name, type PartitionHistory } from "./history.ts";

export interface ReadRecord {
  readonly offset: number;
  readonly value: string;
}

export function checkContiguous(
  world: World,
  history: PartitionHistory,
  asked: number,
  watermark: number,
  records: readonly ReadRecord[],
): void {
  const [first] = records;
  if (first === undefined) return;
  const where = `${name(history)} read from ${asked}`;
  if (first.offset > asked) world.violated(`${where} begins at ${first.offset}`);
  for (const [i, { offset }] of records.entries()) {
    if (offset !== first.offset + i) {
      return world.violated(`${where}: offset ${offset} stands where ${first.offset + i} should`);
    }
  }
  const last = first.offset + records.length - 1;
  if (last < asked) world.violated(`${where} ends at ${last}`);
  if (last >= watermark) {
    world.violated(`I12: ${where} shows offset ${last} at high watermark ${watermark}`);
  }
}
