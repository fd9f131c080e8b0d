/** Which of the oldest segments retention lets go, as Kafka decides it. Pure. */
import type { Offset } from "../lib/brand.ts";
import type { LogConfig } from "./partition_log.ts";

export interface RetainedSegment {
  readonly baseOffset: Offset;
  readonly endOffset: Offset;
  readonly bytes: number;
  /** Largest record timestamp; -1 when there is none. */
  readonly largestTimestampMs: number;
  readonly lastModifiedMs: number;
}

export interface RetentionInput {
  /** Oldest first; the last one is active. */
  readonly segments: readonly RetainedSegment[];
  /** Null: only what lies below the log start goes, whatever its age and size. */
  readonly config: Pick<LogConfig, "cleanup" | "retentionMs" | "retentionBytes"> | null;
  readonly highWatermark: Offset;
  readonly logStartOffset: Offset;
  readonly nowMs: number;
}

/** How many segments go, counted from the oldest. An empty active segment never goes. */
export function segmentsToDelete(input: RetentionInput): number {
  const { segments, highWatermark, config } = input;
  const limitBytes = config?.cleanup.delete === true ? config.retentionBytes : -1;
  let surplusBytes = segments.reduce((sum, { bytes }) => sum + bytes, 0) - limitBytes;
  let count = 0;
  for (const segment of segments) {
    if (segment.endOffset === segment.baseOffset || segment.endOffset > highWatermark) break;
    const bySize = limitBytes >= 0 && surplusBytes >= segment.bytes;
    if (!bySize && !isBelowStart(segment, input) && !isTooOld(segment, input)) break;
    surplusBytes -= segment.bytes;
    count++;
  }
  return count;
}

function isBelowStart(segment: RetainedSegment, { logStartOffset }: RetentionInput): boolean {
  return segment.endOffset <= logStartOffset;
}

function isTooOld(segment: RetainedSegment, { config, nowMs }: RetentionInput): boolean {
  if (config === null || !config.cleanup.delete || config.retentionMs < 0) return false;
  const timestamp = segment.largestTimestampMs;
  return nowMs - (timestamp >= 0 ? timestamp : segment.lastModifiedMs) > config.retentionMs;
}
