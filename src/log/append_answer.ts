/** What a log answers where nothing new was written, or nothing may be. */
import type { Offset } from "../lib/brand.ts";
import type { HighWatermark } from "./high_watermark.ts";
import type { Appended, AppendRefused, RememberedRequest } from "./partition_log.ts";
import type { ProducerBatch } from "./producer_state.ts";
import { REQUEST_SEQUENCE } from "./request_part.ts";
import type { RequestEntry } from "./request_table.ts";
import { STEP_SEQUENCE } from "./writer_step.ts";

/** What the answers depend on beside the batch. */
export interface AnswerContext {
  readonly logStartOffset: Offset;
  readonly logEndOffset: Offset;
  readonly watermark: HighWatermark;
}

export const RESERVED_SEQUENCE: AppendRefused = {
  ok: false,
  error: "INVALID_RECORD",
  message: `Base sequences ${REQUEST_SEQUENCE} and ${STEP_SEQUENCE} are the broker's own`,
};

/** Said to Kafka's producers too: retrying is of no use. */
export const CLOSED_FOR_GOOD: AppendRefused = {
  ok: false,
  error: "POLICY_VIOLATION",
  message: "The log is closed: nothing is appended to it any more",
};

/** Answered like the original: not before the high watermark has passed it. */
export function duplicateOf(
  baseOffset: Offset,
  batch: ProducerBatch,
  { logStartOffset, watermark }: AnswerContext,
): Appended {
  return {
    ok: true,
    baseOffset,
    lastOffset: batch.lastOffset,
    // Kafka answers the largest time of the original, whoever gave it.
    logAppendTimeMs: batch.timestampMs,
    logStartOffset,
    duplicate: true,
    durable: watermark.passed(batch.lastOffset + 1),
  };
}

/** Where the first marker lies is not kept; it is as durable as the log's end, or more. */
export function repeatedMarker(
  { logStartOffset, logEndOffset, watermark }: AnswerContext,
): Appended {
  return {
    ok: true,
    baseOffset: -1,
    lastOffset: -1,
    logAppendTimeMs: -1,
    logStartOffset,
    duplicate: true,
    durable: watermark.passed(logEndOffset),
  };
}

export function rememberedOf(entry: RequestEntry, watermark: HighWatermark): RememberedRequest {
  const { fingerprint, partitions, runs } = entry;
  const last = runs.at(-1)!;
  return {
    fingerprint,
    partitions,
    runs,
    durable: watermark.passed(last.baseOffset + last.count),
  };
}
