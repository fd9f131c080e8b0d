/**
 * One batch of a client against the topic's settings: the checks of Kafka's LogValidator, in its order.
 * It looks inside a batch only for compacted topics and for a forced codec; else the header and the
 * CRC-32C speak for the records (an allowed difference to Kafka).
 */
import type { Codecs } from "../env/codecs.ts";
import { DecodeError } from "../lib/bytes.ts";
import { isFault } from "../lib/errors.ts";
import type { ErrorName } from "../protocol/error_code.ts";
import {
  type BatchHeader,
  codecOf,
  isTransactionalBatch,
  validateBatch,
} from "../protocol/record_batch.ts";
import { type BatchRecord, readRecords } from "../protocol/record.ts";
import { recompressBatch } from "../protocol/recompress.ts";
import type { AppendRefused, LogConfig, RecordError } from "./partition_log.ts";

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
  const { header } = valid;
  // No transaction can be open here: only a coordinator begins them, and there is none yet.
  if (isTransactionalBatch(header)) {
    return refuse("INVALID_TXN_STATE", "The partition was not added to a transaction");
  }
  const refused = checkTimes(valid.batch, header, config, context);
  if (refused !== null) return refused;
  const looked = lookInside(valid.batch, header, config, context.codecs);
  return looked.ok ? checkStoredSize(looked, config) : looked;
}

function checkTimes(
  batch: Uint8Array,
  header: BatchHeader,
  config: LogConfig,
  { nowMs, codecs }: CheckContext,
): AppendRefused | null {
  if (config.timestampType === "log-append") return null;
  const latest = nowMs + config.timestampAfterMsMax;
  const earliest = nowMs - config.timestampBeforeMsMax;
  const isWrong = (time: number) => time >= 0 && (time > latest || time < earliest);
  if (!isWrong(header.maxTimestamp) && !isWrong(header.baseTimestamp)) return null;
  const problem = (time: number) =>
    isWrong(time) ? `Timestamp ${time} is not in ${earliest}-${latest}` : null;
  const errors = recordErrorsOf(batch, codecs, ({ timestamp }) => problem(timestamp));
  const message = problem(header.maxTimestamp) ?? problem(header.baseTimestamp) ?? "";
  return refuse("INVALID_TIMESTAMP", message, errors);
}

/** For a batch that is refused in any case, so what cannot be read needs no error of its own. */
function recordErrorsOf(
  batch: Uint8Array,
  codecs: Codecs,
  problem: (record: BatchRecord) => string | null,
): readonly RecordError[] {
  try {
    return findErrors(batch, codecs, problem);
  } catch (error) {
    if (error instanceof DecodeError || isFault(error, "corrupt")) return [];
    throw error;
  }
}

/** Reads all records, so all are sound when it returns. */
function findErrors(
  batch: Uint8Array,
  codecs: Codecs,
  problem: (record: BatchRecord) => string | null,
): readonly RecordError[] {
  const errors: RecordError[] = [];
  let index = 0;
  for (const record of readRecords(batch, codecs)) {
    const message = problem(record);
    if (message !== null) errors.push({ index, message });
    index++;
  }
  return errors;
}

function missingKey({ key }: BatchRecord): string | null {
  return key === null ? "A compacted topic needs a key" : null;
}

function lookInside(
  batch: Uint8Array,
  header: BatchHeader,
  config: LogConfig,
  codecs: Codecs,
): BatchChecked {
  const codec = config.compression === "uncompressed" ? null : config.compression;
  const isForced = codec !== "producer" && codec !== codecOf(header);
  if (!isForced && !config.cleanup.compact) return { ok: true, header, batch };
  try {
    const keyless = config.cleanup.compact ? findErrors(batch, codecs, missingKey) : [];
    if (keyless.length > 0) {
      const message = `${keyless.length} records have no key, which a compacted topic needs`;
      return refuse("INVALID_RECORD", message, keyless);
    }
    if (!isForced) return { ok: true, header, batch };
    return { ok: true, header, batch: recompressBatch(batch, codec, codecs) };
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
