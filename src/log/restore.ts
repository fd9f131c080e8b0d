/**
 * Opens a log's state: what the meta stream says, corrected by what the log stream really holds, then a
 * replay of the rest. Replay only learns; it checks no sequence, no epoch and no clock (rule R1).
 */
import type { Codecs } from "../env/codecs.ts";
import type { Offset } from "../lib/brand.ts";
import { DecodeError } from "../lib/bytes.ts";
import { FaultError } from "../lib/errors.ts";
import { LOG_SCAN_BYTES } from "../lib/limits.ts";
import { lastOffset, readBatchHeader } from "../protocol/record_batch.ts";
import type { StreamRecord } from "../storage/stream_record.ts";
import type { Stream } from "../stream/stream.ts";
import type { CleanedPart } from "./clean/cleaned_streams.ts";
import { decodeEpochs, LeaderEpochs } from "./leader_epochs.ts";
import { decodePartitionMeta, type LogMeta, type SegmentMeta } from "./log_meta.ts";
import { LogState } from "./log_state.ts";
import { LogView } from "./log_view.ts";
import type { MetaStream } from "./meta_stream.ts";
import type { LogConfig } from "./partition_log.ts";
import { decodeSnapshot, decodeSnapshots, type ProducerSnapshot } from "./producer_snapshot.ts";
import type { ProducerState } from "./producer_state.ts";
import { decodeRequests } from "./request_snapshot.ts";
import type { RequestTable } from "./request_table.ts";
import { Segment } from "./segment.ts";
import { isEmptySlice, OPEN_END, scanToOpen } from "./slice.ts";
import { decodeWriters } from "./writer_snapshot.ts";
import type { WriterTable } from "./writer_table.ts";

export interface Restored {
  readonly state: LogState;
  /** Sound snapshots that the log still covers, oldest first. */
  readonly snapshots: readonly ProducerSnapshot[];
  readonly replayedBytes: number;
  /** The log's end when a checkpoint says all of it; else -1. */
  readonly checkpointedTo: Offset;
}

export interface RestoreInput {
  readonly meta: MetaStream;
  readonly logMeta: LogMeta;
  readonly log: Stream;
  /** Streams of cleaned segments, by suffix. */
  readonly parts: ReadonlyMap<string, CleanedPart>;
  readonly time: Stream | null;
  readonly txn: Stream | null;
  readonly config: LogConfig;
  readonly codecs: Codecs;
  readonly nowMs: number;
}

interface Account {
  readonly segments: readonly Segment[];
  /** The newest segment's account stops here. */
  readonly countedTo: Offset;
}

function partOf(
  { suffix }: SegmentMeta,
  parts: ReadonlyMap<string, CleanedPart>,
): CleanedPart | null {
  return suffix === undefined ? null : parts.get(suffix) ?? null;
}

function lostTail({ streamId }: Stream): FaultError {
  const message = `Cannot open partition: stream ${streamId} ends below its cleaned segments`;
  return new FaultError("data-loss", message, { retriable: false });
}

/** Segments as stored, without what the stream no longer or never had. */
function accountOf({ logMeta, log, parts, nowMs }: RestoreInput): Account {
  const { startOffset, nextOffset } = log;
  const stored = logMeta.segments.filter(({ baseOffset }) => baseOffset <= nextOffset);
  const sound = logMeta.countedTo <= nextOffset && stored.length === logMeta.segments.length;
  const last = stored.at(-1);
  if (last === undefined) {
    return { segments: [new Segment(startOffset, nowMs)], countedTo: startOffset };
  }
  if (last.suffix !== undefined) throw lostTail(log);
  const sealed = stored.slice(0, -1)
    .filter((meta) => meta.log.end > (partOf(meta, parts)?.log ?? log).startOffset)
    .map((meta) => {
      const endOffset = meta.baseOffset + meta.log.end - meta.log.start;
      return Segment.fromMeta(meta, endOffset, partOf(meta, parts));
    });
  // The log lost its tail: count the segment that is now the newest again.
  if (!sound || last.log.end !== OPEN_END) {
    const active = new Segment(last.baseOffset, last.createdMs);
    return { segments: [...sealed, active], countedTo: last.baseOffset };
  }
  const active = Segment.fromMeta(last, logMeta.countedTo);
  return { segments: [...sealed, active], countedTo: logMeta.countedTo };
}

/** Entries behind the account may belong to any segment: the newest one then starts a slice anew. */
function settleTimeSlice(active: Segment, time: Stream | null): void {
  const end = time?.nextOffset ?? 0;
  if (active.timeSlice.end !== end) active.timeSlice = { start: end, end };
}

/**
 * A checkpoint that did not come through may have left entries behind the account, even of markers that the
 * log lost. The newest segment ends there, so that the next one's slice begins behind them.
 */
function settleTxnSlice(state: LogState, txn: Stream | null): void {
  const { txnSlice, endOffset, lastModifiedMs } = state.active;
  if (txn === null || isEmptySlice(txnSlice) || txnSlice.end === txn.nextOffset) return;
  state.roll(endOffset, lastModifiedMs);
}

function epochsOf(meta: MetaStream): LeaderEpochs {
  const value = meta.get("LEADER_EPOCH_CHECKPOINT");
  if (value === undefined) return new LeaderEpochs();
  try {
    return new LeaderEpochs(decodeEpochs(value));
  } catch (cause) {
    if (!(cause instanceof DecodeError)) throw cause;
    const message = "Cannot read leader epochs of a partition";
    throw new FaultError("corrupt", message, { retriable: false, cause });
  }
}

/** Snapshots within the log that parse; the others count as missing and are dropped for good. */
function soundSnapshots(meta: MetaStream, start: Offset, end: Offset): readonly ProducerSnapshot[] {
  const value = meta.get("PRODUCER_SNAPSHOTS");
  if (value === undefined) return [];
  return decodeSnapshots(value)
    .filter(({ offset, bytes }) =>
      offset >= start && offset <= end && decodeSnapshot(bytes) !== null
    )
    .toSorted((a, b) => a.offset - b.offset);
}

function loadProducers(
  producers: ProducerState,
  snapshot: ProducerSnapshot,
  nowMs: number,
): void {
  const entries = decodeSnapshot(snapshot.bytes) ?? [];
  // A clock that was ahead must not keep an entry for longer than the expiration.
  producers.load(
    entries.map((entry) => ({ ...entry, appendedMs: Math.min(entry.appendedMs, nowMs) })),
  );
}

/**
 * Loads what is stored and returns from where batches are to be looked at. The value is written before a LOG
 * that counts as much: one that is older was left by a build that knew of no requests.
 */
function loadRequests(
  requests: RequestTable,
  value: Uint8Array | undefined,
  { countedTo, end, nowMs }: { countedTo: Offset; end: Offset; nowMs: number },
): Offset {
  if (value === undefined) return countedTo;
  const stored = decodeRequests(value);
  if (stored === null) return 0;
  requests.load(stored.entries, end, nowMs);
  return Math.max(countedTo, Math.min(stored.offset, end));
}

/** The same for named writers; but what does not parse may have said that the log is closed. */
function loadWriters(
  writers: WriterTable,
  value: Uint8Array | undefined,
  { countedTo, end }: { countedTo: Offset; end: Offset },
): Offset {
  if (value === undefined) return countedTo;
  const stored = decodeWriters(value);
  if (stored === null) {
    throw new FaultError("corrupt", "Cannot read the named writers of a partition", {
      retriable: false,
    });
  }
  writers.load(stored, end);
  return Math.max(countedTo, Math.min(stored.offset, end));
}

/** A record of a cleaned stream begins before its batch where others were compacted away. */
function headerOf(record: StreamRecord, log: Stream) {
  try {
    const header = readBatchHeader(record.payload);
    const isInPlace = record.streamId !== log.streamId || header.baseOffset === record.baseOffset;
    if (isInPlace && lastOffset(header) + 1 === record.baseOffset + record.count) return header;
  } catch (cause) {
    if (!(cause instanceof DecodeError)) throw cause;
  }
  const where = `stream ${record.streamId} at offset ${record.baseOffset}`;
  throw new FaultError("corrupt", `Cannot replay ${where}: not its record batch`, {
    retriable: false,
  });
}

/** When a replayed batch was appended, as well as we can know: never before its segment began. */
function appendedMsOf(timestampMs: number, segment: Segment, nowMs: number): number {
  return Math.min(nowMs, Math.max(timestampMs, segment.createdMs));
}

export async function restore(input: RestoreInput): Promise<Restored> {
  const { meta, log, config, nowMs } = input;
  const { startOffset, nextOffset: end } = log;
  const { segments, countedTo } = accountOf(input);
  settleTimeSlice(segments.at(-1)!, input.time);
  const stored = meta.get("PARTITION");
  const partition = stored === undefined ? null : decodePartitionMeta(stored);
  const [first] = segments;
  const readableFrom = first!.cleaned === null ? startOffset : first!.baseOffset;
  const start = Math.min(
    end,
    Math.max(readableFrom, first!.baseOffset, partition?.logStartOffset ?? 0),
  );
  const epochs = epochsOf(meta);
  epochs.truncateFromEnd(end);
  const state = new LogState(segments, epochs, start, countedTo, input.codecs);
  state.loadCleanedTo(Math.min(partition?.cleanerOffset ?? 0, state.active.baseOffset));
  settleTxnSlice(state, input.txn);
  const snapshots = soundSnapshots(meta, start, end);
  // Where transactions began has to be known wherever their markers are counted.
  const base = snapshots.findLast(({ offset }) => offset <= countedTo);
  if (base !== undefined) loadProducers(state.producers, base, nowMs);
  const requests = loadRequests(state.requests, meta.get("REQUESTS"), { countedTo, end, nowMs });
  const writers = loadWriters(state.writers, meta.get("WRITERS"), { countedTo, end });
  const from = { segments: countedTo, producers: base?.offset ?? 0, requests, writers };
  const replayedFrom = Math.max(readableFrom, Math.min(countedTo, base?.offset ?? start));
  let replayedBytes = 0;
  let lastAppendMs = -Infinity;
  const view = new LogView(log, [...segments]);
  for await (const record of scanToOpen(view, replayedFrom, end, LOG_SCAN_BYTES)) {
    const header = headerOf(record, log);
    const appendedMs = appendedMsOf(header.maxTimestamp, state.segmentAt(header.baseOffset), nowMs);
    state.learn(header, record.payload, config, appendedMs, from);
    replayedBytes += record.payload.length;
    lastAppendMs = Math.max(lastAppendMs, appendedMs);
  }
  state.producers.settle(nowMs, lastAppendMs, config.producerExpirationMs);
  state.requests.settle(nowMs, lastAppendMs);
  epochs.truncateFromStart(start);
  const isWhole = replayedFrom === end && (stored !== undefined || end === 0);
  return { state, snapshots, replayedBytes, checkpointedTo: isWhole ? end : -1 };
}
