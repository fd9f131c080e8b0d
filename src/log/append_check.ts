/**
 * One batch of a client against the topic's settings: the checks of Kafka's LogValidator, in its order.
 * Records that are not compressed are walked over. Inside a compressed batch it looks only for compacted
 * topics, for a forced codec and where the topic says skerry.produce.validate=full; else the header and
 * the CRC-32C speak for the records (an allowed difference to Kafka).
 */
import type { Codecs } from "../env/codecs.ts";
import { DecodeError } from "../lib/bytes.ts";
import { isFault } from "../lib/errors.ts";
import type { ErrorName } from "../protocol/error_code.ts";
import {
  type BatchHeader,
  codecOf,
  dropAppendTime,
  isLogAppendTime,
  isTransactionalBatch,
  readBatchHeader,
  setMaxTimestamp,
  validateBatch,
} from "../protocol/record_batch.ts";
import { unsoundRecord } from "../protocol/record_walk.ts";
import { recompressBatch } from "../protocol/recompress.ts";
import type { AppendRefused, LogConfig, RecordError } from "./partition_log.ts";
import {
  findBroken,
  hasKey,
  isInPlace,
  isInWindow,
  isOutside,
  type RecordRule,
  timeMessage,
  type TimeWindow,
} from "./record_check.ts";

export interface CheckContext {
  readonly nowMs: number;
  readonly codecs: Codecs;
}

export type BatchChecked =
  | {
    readonly ok: true;
    /** Its codec may differ from the stored one's; nothing else that the log looks at does. */
    readonly header: BatchHeader;
    readonly batch: Uint8Array;
  }
  | AppendRefused;

function refuse(
  error: ErrorName,
  message: string,
  recordErrors: readonly RecordError[] = [],
): AppendRefused {
  return { ok: false, error, message, recordErrors };
}

export function checkBatch(
  bytes: Uint8Array,
  config: LogConfig,
  context: CheckContext,
): BatchChecked {
  const valid = validateBatch(bytes, config.messageBytesMax);
  if (!valid.ok) return valid;
  // Kafka takes the flag off as well, and lets the sender's times stand.
  const isClaimed = isLogAppendTime(valid.header);
  if (isClaimed) dropAppendTime(valid.batch);
  const header = isClaimed ? readBatchHeader(valid.batch) : valid.header;
  if (isTransactionalBatch(header) && header.producerId < 0) {
    return refuse("INVALID_RECORD", "A transactional batch needs a producer id");
  }
  const refused = checkTimes(valid.batch, header, config, context);
  if (refused !== null) return refused;
  const looked = lookInside(valid.batch, header, config, context);
  return looked.ok ? checkStoredSize(looked, config) : looked;
}

function windowOf(config: LogConfig, nowMs: number): TimeWindow | null {
  return config.timestampType === "log-append" ? null : {
    earliestMs: nowMs - config.timestampBeforeMsMax,
    latestMs: nowMs + config.timestampAfterMsMax,
  };
}

function checkTimes(
  batch: Uint8Array,
  header: BatchHeader,
  config: LogConfig,
  { nowMs, codecs }: CheckContext,
): AppendRefused | null {
  const window = windowOf(config, nowMs);
  if (window === null) return null;
  const wrong = [header.maxTimestamp, header.baseTimestamp].find((time) => isOutside(time, window));
  if (wrong === undefined) return null;
  const errors = recordErrorsOf(batch, codecs, isInWindow(window));
  return refuse("INVALID_TIMESTAMP", timeMessage(wrong, window), errors);
}

/** For a batch that is refused in any case, so what cannot be read needs no error of its own. */
function recordErrorsOf(
  batch: Uint8Array,
  codecs: Codecs,
  rule: RecordRule,
): readonly RecordError[] {
  try {
    return findBroken(batch, codecs, [rule]).broken[0]!.errors;
  } catch (error) {
    if (error instanceof DecodeError || isFault(error, "corrupt")) return [];
    throw error;
  }
}

/** Looks at each record; what the header says of their times is corrected, as Kafka does. */
function checkRecords(
  batch: Uint8Array,
  header: BatchHeader,
  config: LogConfig,
  { nowMs, codecs }: CheckContext,
): AppendRefused | null {
  const isFull = config.validate === "full";
  const window = isFull ? windowOf(config, nowMs) : null;
  const rules: readonly (readonly [ErrorName, string, RecordRule])[] = [
    ...(config.cleanup.compact
      ? [["INVALID_RECORD", "have no key, which a compacted topic needs", hasKey] as const]
      : []),
    ...(isFull
      ? [["INVALID_RECORD", "have another offset delta than their place", isInPlace] as const]
      : []),
    ...(window === null ? [] : [
      [
        "INVALID_TIMESTAMP",
        "have a time outside the topic's window",
        isInWindow(window),
      ] as const,
    ]),
  ];
  const { broken, maxTimestamp } = findBroken(batch, codecs, rules.map(([, , rule]) => rule));
  for (const [at, { count, errors }] of broken.entries()) {
    const [error, what] = rules[at]!;
    if (count > 0) {
      return refuse(error, `${count} records ${what}`, errors);
    }
  }
  if (window !== null && maxTimestamp !== header.maxTimestamp) {
    setMaxTimestamp(batch, maxTimestamp);
  }
  return null;
}

function unsoundMessage(index: number, { recordCount }: BatchHeader): string {
  return index < recordCount
    ? `Record ${index} has a wrong length or offset delta`
    : `Bytes are left over behind ${recordCount} records`;
}

function lookInside(
  batch: Uint8Array,
  header: BatchHeader,
  config: LogConfig,
  context: CheckContext,
): BatchChecked {
  const codec = config.compression === "uncompressed" ? null : config.compression;
  const isForced = codec !== "producer" && codec !== codecOf(header);
  const readsRecords = config.cleanup.compact || config.validate === "full";
  try {
    const refused = readsRecords ? checkRecords(batch, header, config, context) : null;
    if (refused !== null) return refused;
    const unsound = readsRecords || codecOf(header) !== null ? null : unsoundRecord(batch, header);
    if (unsound !== null) return refuse("INVALID_RECORD", unsoundMessage(unsound, header));
    if (!isForced) return { ok: true, header, batch };
    const stored = recompressBatch(batch, codec, context.codecs, config.compressionLevel);
    return { ok: true, header, batch: stored };
  } catch (error) {
    if (error instanceof DecodeError) return refuse("INVALID_RECORD", error.message);
    if (isFault(error, "corrupt")) return refuse("CORRUPT_MESSAGE", error.message);
    throw error;
  }
}

function checkStoredSize(
  checked: BatchChecked & { readonly ok: true },
  config: LogConfig,
): BatchChecked {
  const { length } = checked.batch;
  if (length > config.messageBytesMax) {
    const message = `Batch has ${length} bytes, ${config.messageBytesMax} are allowed`;
    return refuse("MESSAGE_TOO_LARGE", message);
  }
  if (length > config.segmentBytes) {
    return refuse("RECORD_LIST_TOO_LARGE", "Batch is larger than a segment");
  }
  return checked;
}
