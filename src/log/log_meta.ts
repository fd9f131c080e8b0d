/**
 * The JSON values of a partition's meta stream, with AutoMQ's names.
 * LOG lists streams and segments; `ro` (ours) is the offset up to which the newest segment is counted. A segment's
 * `s` ends the names of its streams once it is cleaned, and LOG then has version 2.
 * PARTITION holds the log start, the cleaner's place, the recovery point and the clean flag; a clean flag
 * counts only while its recovery point is the log's end, so nothing has to clear it. Version 1 of both has
 * no field for it; a later one stands in `v`, and what a build does not know it refuses.
 */
import { type Offset, type StreamId, streamId } from "../lib/brand.ts";
import { toUtf8, utf8 } from "../lib/bytes.ts";
import { FaultError, messageOf } from "../lib/errors.ts";
import { OPEN_END, type Slice } from "./slice.ts";

export interface SegmentMeta {
  readonly baseOffset: Offset;
  readonly createdMs: number;
  readonly lastModifiedMs: number;
  readonly bytes: number;
  /** Of the names of its streams; absent for the partition's own. */
  readonly suffix?: string;
  readonly log: Slice;
  readonly time: Slice;
  readonly txn: Slice;
  /** -1 when there is none. */
  readonly firstBatchTimestampMs: number;
  /** Largest timestamp and the last offset of the first batch that has it; -1 when there is none. */
  readonly largest: { readonly timestampMs: number; readonly offset: Offset };
}

export interface LogMeta {
  readonly streams: ReadonlyMap<string, StreamId>;
  readonly segments: readonly SegmentMeta[];
  readonly countedTo: Offset;
}

export interface PartitionMeta {
  readonly logStartOffset: Offset;
  readonly cleanerOffset: Offset;
  readonly recoveryPoint: Offset;
  readonly cleanShutdown: boolean;
}

function toJson(value: unknown): Uint8Array {
  return toUtf8(JSON.stringify(value));
}

type Fields = Readonly<Record<string, unknown>>;

function objectOf(value: unknown, name: string): Fields {
  if (typeof value !== "object" || value === null) throw new TypeError(`${name} is not an object`);
  return value as Fields;
}

function integerOf(fields: Fields, name: string): number {
  const value = fields[name];
  if (!Number.isSafeInteger(value)) throw new TypeError(`${name} is not an integer`);
  return value as number;
}

/** A build that changes the meaning of a field writes the next one as `v`. */
const VERSION = 1;
/** LOG with cleaned segments: a build that reads them from the partition's own streams must not open it. */
const CLEANED_VERSION = 2;

function parse<T>(
  bytes: Uint8Array,
  what: string,
  known: number,
  read: (fields: Fields) => T,
): T {
  try {
    const fields = objectOf(JSON.parse(utf8(bytes)), what);
    const version: unknown = fields["v"] ?? VERSION;
    if (typeof version !== "number" || version < VERSION || version > known) {
      throw new TypeError(`it has version ${JSON.stringify(version)}, this build knows ${known}`);
    }
    return read(fields);
  } catch (cause) {
    const message = `Cannot read ${what} of a partition: ${messageOf(cause)}`;
    throw new FaultError("corrupt", message, { retriable: false, cause });
  }
}

function sliceOf(fields: Fields, name: string): Slice {
  const slice = fields[name];
  if (slice === undefined) return { start: 0, end: OPEN_END };
  const parts = objectOf(slice, name);
  return { start: integerOf(parts, "s"), end: integerOf(parts, "e") };
}

function suffixOf(fields: Fields): { readonly suffix?: string } {
  const suffix = fields["s"] ?? "";
  if (typeof suffix !== "string") throw new TypeError("s is not a text");
  return suffix === "" ? {} : { suffix };
}

function segmentOf(value: unknown): SegmentMeta {
  const fields = objectOf(value, "segment");
  const largest = fields["tle"] === undefined ? { t: -1, o: -1 } : objectOf(fields["tle"], "tle");
  return {
    baseOffset: integerOf(fields, "bo"),
    createdMs: integerOf(fields, "ct"),
    lastModifiedMs: integerOf(fields, "lmt"),
    bytes: integerOf(fields, "lsz"),
    ...suffixOf(fields),
    log: sliceOf(fields, "ls"),
    time: sliceOf(fields, "ts"),
    txn: sliceOf(fields, "txs"),
    firstBatchTimestampMs: integerOf(fields, "fbt"),
    largest: { timestampMs: integerOf(largest, "t"), offset: integerOf(largest, "o") },
  };
}

function segmentJson(segment: SegmentMeta): unknown {
  const slice = ({ start, end }: Slice) => ({ s: start, e: end });
  return {
    bo: segment.baseOffset,
    ct: segment.createdMs,
    lmt: segment.lastModifiedMs,
    s: segment.suffix ?? "",
    lsz: segment.bytes,
    ls: slice(segment.log),
    ts: slice(segment.time),
    txs: slice(segment.txn),
    fbt: segment.firstBatchTimestampMs,
    tle: { t: segment.largest.timestampMs, o: segment.largest.offset },
  };
}

export function encodeLogMeta(meta: LogMeta): Uint8Array {
  const isCleaned = meta.segments.some(({ suffix }) => suffix !== undefined);
  return toJson({
    ...(isCleaned ? { v: CLEANED_VERSION } : {}),
    streamMap: Object.fromEntries(meta.streams),
    segmentMetas: meta.segments.map(segmentJson),
    ro: meta.countedTo,
  });
}

/** Throws FaultError `corrupt`. */
export function decodeLogMeta(bytes: Uint8Array): LogMeta {
  return parse(bytes, "LOG", CLEANED_VERSION, (fields) => {
    const map = objectOf(fields["streamMap"], "streamMap");
    const list = fields["segmentMetas"];
    if (!Array.isArray(list)) throw new TypeError("segmentMetas is not an array");
    return {
      streams: new Map(Object.keys(map).map((name) => [name, streamId(integerOf(map, name))])),
      segments: list.map(segmentOf),
      countedTo: integerOf(fields, "ro"),
    };
  });
}

export function encodePartitionMeta(meta: PartitionMeta): Uint8Array {
  return toJson({
    s: meta.logStartOffset,
    c: meta.cleanerOffset,
    r: meta.recoveryPoint,
    cs: meta.cleanShutdown,
  });
}

/** Throws FaultError `corrupt`. */
export function decodePartitionMeta(bytes: Uint8Array): PartitionMeta {
  return parse(bytes, "PARTITION", VERSION, (fields) => ({
    logStartOffset: integerOf(fields, "s"),
    cleanerOffset: integerOf(fields, "c"),
    recoveryPoint: integerOf(fields, "r"),
    cleanShutdown: fields["cs"] === true,
  }));
}
