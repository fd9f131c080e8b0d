/** At rest: everything that anybody was told of is there, with the same value, and nothing is missing between. */
import type { World } from "../world.ts";
import type { ReadRecord } from "./contiguous.ts";
import { name, type PartitionHistory, watermarkSeen } from "./history.ts";

export interface WholeLog {
  readonly logStart: number;
  readonly watermark: number;
  readonly records: readonly ReadRecord[];
}

export function checkReadable(
  world: World,
  history: PartitionHistory,
  { logStart, watermark, records }: WholeLog,
  mayTrim: boolean,
): void {
  const where = name(history);
  const seen = watermarkSeen(history, Infinity);
  if (watermark < seen) world.violated(`I12: ${where} ends at ${watermark}, ${seen} was seen`);
  if (logStart > 0 && !mayTrim) world.violated(`${where} starts at ${logStart}, nothing trims it`);
  if (logStart < history.logStart) {
    world.violated(`${where} starts at ${logStart} after ${history.logStart} was seen`);
  }
  const values = new Map(records.map(({ offset, value }) => [offset, value]));
  for (let offset = logStart; offset < watermark; offset++) {
    if (!values.has(offset)) return world.violated(`${where}: offset ${offset} cannot be read`);
  }
  for (const [offset, value] of history.known) {
    if (offset < logStart) continue;
    const found = values.get(offset);
    if (found === value) continue;
    const how = history.acknowledged.has(offset) ? "acknowledged" : "read";
    return world.violated(`${where}: offset ${offset} was ${how} as ${value}, now ${found}`);
  }
}
