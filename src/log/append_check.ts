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
import { readRecords } from "../protocol/record.ts";
import { recompressBatch } from "../protocol/recompress.ts";
import type { AppendRefused, LogConfig } from "./partition_log.ts";

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

function refuse(error: ErrorName, message: string): AppendRefused {
  return { ok: false, error, message };
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
  const refused = checkTimes(header, config, context.nowMs);
  if (refused !== null) return refused;
  const looked = lookInside(valid.batch, header, config, context.codecs);
  return looked.ok ? checkStoredSize(looked, config) : looked;
}

function checkTimes(header: BatchHeader, config: LogConfig, nowMs: number): AppendRefused | null {
  if (config.timestampType === "log-append") return null;
  const { maxTimestamp: latest, baseTimestamp: first } = header;
  if (latest >= 0 && latest > nowMs + config.timestampAfterMsMax) {
    return refuse("INVALID_TIMESTAMP", `Timestamp ${latest} is too far in the future`);
  }
  if (first >= 0 && first < nowMs - config.timestampBeforeMsMax) {
    return refuse("INVALID_TIMESTAMP", `Timestamp ${first} is too old`);
  }
  return null;
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
    const keyless = config.cleanup.compact ? findKeyless(batch, codecs) : -1;
    if (keyless >= 0) {
      const message = `Record ${keyless} has no key, which a compacted topic needs`;
      return refuse("INVALID_RECORD", message);
    }
    if (!isForced) return { ok: true, header, batch };
    return { ok: true, header, batch: recompressBatch(batch, codec, codecs) };
  } catch (error) {
    if (error instanceof DecodeError) return refuse("INVALID_RECORD", error.message);
    if (isFault(error, "corrupt")) return refuse("CORRUPT_MESSAGE", error.message);
    throw error;
  }
}

/** Place of the first record without a key; -1 when all have one. Reads all, so all are sound. */
function findKeyless(batch: Uint8Array, codecs: Codecs): number {
  let keyless = -1;
  let at = 0;
  for (const { key } of readRecords(batch, codecs)) {
    if (key === null && keyless < 0) keyless = at;
    at++;
  }
  return keyless;
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
