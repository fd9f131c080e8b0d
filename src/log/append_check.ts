/**
 * One batch of a client against the topic's settings: the checks of Kafka's LogValidator, in its order.
 * It looks inside a batch only for compacted topics and for a forced codec; else the header and the
 * CRC-32C speak for the records (docs/formats.md lists this difference).
 */
import type { Codecs } from "../env/codecs.ts";
import { DecodeError, viewOf } from "../lib/bytes.ts";
import { crc32c } from "../lib/crc32c.ts";
import { isFault } from "../lib/errors.ts";
import type { ErrorName } from "../protocol/error_code.ts";
import {
  BATCH_HEADER_BYTES,
  type BatchHeader,
  buildBatch,
  codecOf,
  isControlBatch,
  isLogAppendTime,
  isTransactionalBatch,
  readBatchHeader,
} from "../protocol/record_batch.ts";
import { type BatchRecord, readRecords } from "../protocol/record.ts";
import type { AppendRefused, LogConfig } from "./partition_log.ts";

export interface CheckContext {
  readonly nowMs: number;
  readonly codecs: Codecs;
}

export type BatchChecked =
  | { readonly ok: true; readonly header: BatchHeader; readonly batch: Uint8Array }
  | AppendRefused;

const CRC_FROM = 21;
const MAGIC_AT = 16;
const MAGIC = 2;

function refuse(error: ErrorName, message: string): AppendRefused {
  return { ok: false, error, message };
}

export function checkBatch(
  batch: Uint8Array,
  config: LogConfig,
  context: CheckContext,
): BatchChecked {
  const header = headerOf(batch);
  if ("ok" in header) return header;
  const refused = checkFrame(batch, header, config) ?? checkFields(header) ??
    checkTimes(header, config, context.nowMs);
  if (refused !== null) return refused;
  const looked = lookInside(batch, header, config, context.codecs);
  if (looked.ok && looked.batch.length > config.messageBytesMax) return tooLarge(looked.batch, config);
  if (looked.ok && looked.batch.length > config.segmentBytes) {
    return refuse("RECORD_LIST_TOO_LARGE", "the batch is larger than a segment");
  }
  return looked;
}

function headerOf(batch: Uint8Array): BatchHeader | AppendRefused {
  if (batch.length > MAGIC_AT && batch[MAGIC_AT] !== MAGIC) {
    return refuse("INVALID_RECORD", `record format ${batch[MAGIC_AT]} is not supported`);
  }
  if (batch.length < BATCH_HEADER_BYTES) return refuse("CORRUPT_MESSAGE", "the batch is cut off");
  try {
    return readBatchHeader(batch);
  } catch (error) {
    if (error instanceof DecodeError) return refuse("CORRUPT_MESSAGE", error.message);
    throw error;
  }
}

function tooLarge(batch: Uint8Array, config: LogConfig): AppendRefused {
  const message = `the batch has ${batch.length} bytes, at most ${config.messageBytesMax} are allowed`;
  return refuse("MESSAGE_TOO_LARGE", message);
}

function checkFrame(
  batch: Uint8Array,
  header: BatchHeader,
  config: LogConfig,
): AppendRefused | null {
  if (header.baseOffset !== 0) {
    return refuse("INVALID_RECORD", `the base offset must be 0, not ${header.baseOffset}`);
  }
  if (batch.length > config.messageBytesMax) return tooLarge(batch, config);
  if (header.batchLength + 12 !== batch.length) {
    return refuse("CORRUPT_MESSAGE", "the batch length does not fit");
  }
  if (crc32c(batch.subarray(CRC_FROM)) !== header.crc) {
    return refuse("CORRUPT_MESSAGE", "the checksum does not fit");
  }
  return null;
}

function checkFields(header: BatchHeader): AppendRefused | null {
  if (header.recordCount <= 0) return refuse("INVALID_RECORD", "the batch has no records");
  if (header.lastOffsetDelta !== header.recordCount - 1) {
    return refuse("INVALID_RECORD", "the last offset delta does not fit the record count");
  }
  if (isControlBatch(header)) return refuse("INVALID_RECORD", "clients may not write control batches");
  if (header.producerId >= 0 && (header.baseSequence < 0 || header.producerEpoch < 0)) {
    return refuse("INVALID_RECORD", "a producer id needs a sequence and an epoch");
  }
  // No transaction can be open here: only a coordinator begins them, and there is none yet.
  if (isTransactionalBatch(header)) {
    return refuse("INVALID_TXN_STATE", "the partition was not added to a transaction");
  }
  return null;
}

function checkTimes(header: BatchHeader, config: LogConfig, nowMs: number): AppendRefused | null {
  if (isLogAppendTime(header)) {
    return refuse("INVALID_TIMESTAMP", "clients may not set the log append time");
  }
  if (config.timestampType === "log-append") return null;
  const { maxTimestamp: latest, baseTimestamp: first } = header;
  if (latest >= 0 && latest > nowMs + config.timestampAfterMsMax) {
    return refuse("INVALID_TIMESTAMP", `timestamp ${latest} is too far in the future`);
  }
  if (first >= 0 && first < nowMs - config.timestampBeforeMsMax) {
    return refuse("INVALID_TIMESTAMP", `timestamp ${first} is too old`);
  }
  return null;
}

/** The codec that the topic forces; undefined leaves the batch as it is. */
function forcedCodec(header: BatchHeader, { compression }: LogConfig) {
  if (compression === "producer") return undefined;
  const wanted = compression === "uncompressed" ? null : compression;
  return wanted === codecOf(header) ? undefined : wanted;
}

function lookInside(
  batch: Uint8Array,
  header: BatchHeader,
  config: LogConfig,
  codecs: Codecs,
): BatchChecked {
  if (codecOf(header) === undefined) {
    return refuse("UNSUPPORTED_COMPRESSION_TYPE", "the codec is unknown");
  }
  const codec = forcedCodec(header, config);
  if (codec === undefined && !config.cleanup.compact) return { ok: true, header, batch };
  const records = recordsOf(batch, codecs);
  if (!Array.isArray(records)) return records;
  const keyless = config.cleanup.compact ? records.findIndex(({ key }) => key === null) : -1;
  if (keyless >= 0) {
    return refuse("INVALID_RECORD", `record ${keyless} has no key, which a compacted topic needs`);
  }
  if (codec === undefined) return { ok: true, header, batch };
  const rebuilt = buildBatch({
    records,
    codec,
    codecs,
    producerId: header.producerId,
    producerEpoch: header.producerEpoch,
    baseSequence: header.baseSequence,
  });
  return { ok: true, header: readBatchHeader(rebuilt), batch: rebuilt };
}

function recordsOf(batch: Uint8Array, codecs: Codecs): BatchRecord[] | AppendRefused {
  try {
    return [...readRecords(batch, codecs)];
  } catch (error) {
    if (error instanceof DecodeError) return refuse("INVALID_RECORD", error.message);
    if (isFault(error, "corrupt")) return refuse("CORRUPT_MESSAGE", error.message);
    throw error;
  }
}

/** Stamps an accepted batch with our time and mends its checksum. */
export function stampAppendTime(batch: Uint8Array, nowMs: number): void {
  const view = viewOf(batch);
  view.setInt16(21, view.getInt16(21) | 0x08);
  view.setBigInt64(35, BigInt(nowMs));
  view.setUint32(17, crc32c(batch.subarray(CRC_FROM)));
}
