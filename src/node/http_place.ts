/** Records of a request to partitions, and those of a partition to batches. */
import { partitionOfKey } from "../protocol/partitioner.ts";
import type { NewRecord } from "../protocol/record_writer.ts";
import type { RecordInput } from "../http/port.ts";
import { recordBytes } from "./record_bytes.ts";

/** A record with its place in the request. */
export interface Placed {
  readonly record: RecordInput;
  readonly index: number;
}

export interface Placing {
  /** How many partitions keys are spread over. */
  readonly partitions: number;
  /** Takes the records that name none and have no key. */
  readonly any: number;
}

export function place(
  records: readonly RecordInput[],
  { partitions, any }: Placing,
): Map<number, Placed[]> {
  const placed = new Map<number, Placed[]>();
  for (const [index, record] of records.entries()) {
    const partition = record.partition ??
      (record.key === null ? any : partitionOfKey(record.key, partitions));
    const list = placed.get(partition);
    if (list === undefined) placed.set(partition, [{ record, index }]);
    else list.push({ record, index });
  }
  return placed;
}

/** Cuts records into batches that stay below the limit; a larger record is alone, and the log judges it. */
export function cut(records: readonly Placed[], bytesMax: number): Placed[][] {
  const batches: Placed[][] = [];
  let bytes = Infinity;
  for (const placed of records) {
    const size = recordBytes(placed.record);
    if (bytes + size > bytesMax) {
      batches.push([]);
      bytes = 0;
    }
    batches.at(-1)!.push(placed);
    bytes += size;
  }
  return batches;
}

export function newRecord(record: RecordInput, nowMs: number): NewRecord {
  return {
    key: record.key,
    value: record.value,
    headers: record.headers.map(({ name, value }) => ({ key: name, value })),
    timestampMs: record.timestampMs ?? nowMs,
  };
}
