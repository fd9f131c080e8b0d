/** What compaction may clean, and whether it is worth it, as Kafka decides it. Whole segments only. Pure. */
import type { Offset } from "../../lib/brand.ts";
import type { LogConfig } from "../partition_log.ts";
import type { RetainedSegment } from "../retention.ts";

export interface PlannedSegment extends RetainedSegment {
  /** Timestamp of the first batch; -1 when it has none. */
  readonly firstTimestampMs: number;
}

export interface CleanPlanInput {
  /** Oldest first; the last one is active. */
  readonly segments: readonly PlannedSegment[];
  readonly config: Pick<LogConfig, "cleanup" | "cleaning">;
  /** Below it the log is clean. */
  readonly cleanedTo: Offset;
  readonly logStartOffset: Offset;
  readonly lastStableOffset: Offset;
  readonly nowMs: number;
}

export interface CleanPlan {
  /** So many of the oldest segments take part. */
  readonly count: number;
  readonly firstDirty: Offset;
  readonly end: Offset;
  readonly dirtyBytes: number;
  /** Dirty bytes of all that take part. */
  readonly ratio: number;
  readonly isDue: boolean;
}

function isClean(segment: PlannedSegment, firstDirty: Offset): boolean {
  return segment.endOffset <= firstDirty;
}

/** Segments up to the first that is active, undecided or too young. */
function countCleanable(input: CleanPlanInput, firstDirty: Offset): number {
  const { segments, lastStableOffset, nowMs } = input;
  const { minLagMs } = input.config.cleaning;
  const past = segments.slice(0, -1).findIndex((segment) =>
    segment.endOffset > lastStableOffset ||
    (minLagMs > 0 && !isClean(segment, firstDirty) &&
      segment.largestTimestampMs > nowMs - minLagMs)
  );
  return past < 0 ? segments.length - 1 : past;
}

function isOverdue(dirty: readonly PlannedSegment[], input: CleanPlanInput): boolean {
  const times = dirty.map(({ firstTimestampMs }) => firstTimestampMs).filter((time) => time >= 0);
  return times.length > 0 && input.nowMs - Math.min(...times) > input.config.cleaning.maxLagMs;
}

function bytesOf(segments: readonly PlannedSegment[]): number {
  return segments.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Null when the topic is not compacted or nothing dirty may be cleaned. */
export function planClean(input: CleanPlanInput): CleanPlan | null {
  const { segments, config, logStartOffset } = input;
  if (!config.cleanup.compact) return null;
  const firstDirty = Math.max(input.cleanedTo, logStartOffset);
  const count = countCleanable(input, firstDirty);
  const part = segments.slice(0, count);
  const dirty = part.filter((segment) => !isClean(segment, firstDirty));
  const dirtyBytes = bytesOf(dirty);
  if (dirtyBytes === 0) return null;
  const ratio = dirtyBytes / bytesOf(part);
  const isDue = ratio > config.cleaning.minDirtyRatio || isOverdue(dirty, input);
  return { count, firstDirty, end: part.at(-1)!.endOffset, dirtyBytes, ratio, isDue };
}
