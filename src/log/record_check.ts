/**
 * What Kafka's LogValidator asks of single records, for batches that the broker looks into. Inflating is
 * bounded by the batch's size; errors are named one by one up to a bound.
 */
import type { Codecs } from "../env/codecs.ts";
import { RECORD_ERRORS_MAX } from "../lib/limits.ts";
import { type BatchRecord, readRecords } from "../protocol/record.ts";
import type { RecordError } from "./partition_log.ts";

/** What is wrong with a record, or null. */
export type RecordRule = (record: BatchRecord, index: number) => string | null;

export interface TimeWindow {
  readonly earliestMs: number;
  readonly latestMs: number;
}

/** Times below 0 say nothing, as in Kafka. */
export function isOutside(timeMs: number, { earliestMs, latestMs }: TimeWindow): boolean {
  return timeMs >= 0 && (timeMs > latestMs || timeMs < earliestMs);
}

export function timeMessage(timeMs: number, { earliestMs, latestMs }: TimeWindow): string {
  return `Timestamp ${timeMs} is not in ${earliestMs}-${latestMs}`;
}

export const hasKey: RecordRule = ({ key }) =>
  key === null ? "A compacted topic needs a key" : null;

/** Base offsets of producers are 0. */
export const isInPlace: RecordRule = ({ offset }, index) =>
  offset === index ? null : `Record ${index} has the offset delta ${offset}`;

export function isInWindow(window: TimeWindow): RecordRule {
  return ({ timestamp }) => {
    if (!Number.isSafeInteger(timestamp)) return "Timestamp is out of range";
    return isOutside(timestamp, window) ? timeMessage(timestamp, window) : null;
  };
}

/** The records that break a rule: their number, and which, unless they are too many to name. */
export interface Broken {
  readonly count: number;
  readonly errors: readonly RecordError[];
}

export interface RecordsFound {
  /** One per rule. */
  readonly broken: readonly Broken[];
  /** -1 when no record has a time. */
  readonly maxTimestamp: number;
}

/**
 * Reads all records, so all are sound when it returns. A partial list of errors is none: clients send
 * again what is not on it. Throws DecodeError or FaultError("corrupt").
 */
export function findBroken(
  batch: Uint8Array,
  codecs: Codecs,
  rules: readonly RecordRule[],
): RecordsFound {
  const broken = rules.map(() => ({ count: 0, errors: [] as RecordError[] }));
  let maxTimestamp = -1;
  let index = 0;
  for (const record of readRecords(batch, codecs)) {
    for (const [at, rule] of rules.entries()) {
      const message = rule(record, index);
      if (message === null) continue;
      const found = broken[at]!;
      found.count += 1;
      if (found.count <= RECORD_ERRORS_MAX) found.errors.push({ index, message });
      else found.errors.length = 0;
    }
    maxTimestamp = Math.max(maxTimestamp, record.timestamp);
    index += 1;
  }
  return { broken, maxTimestamp };
}
