/**
 * Opens a log's state: what the meta stream says, corrected by what the log stream really holds, then a
 * replay of the rest. Replay only learns; it checks no sequence, no epoch and no clock (rule R1).
 */
import type { Offset } from "../lib/brand.ts";
import { DecodeError } from "../lib/bytes.ts";
import { FaultError } from "../lib/errors.ts";
import { LOG_SCAN_BYTES } from "../lib/limits.ts";
import { readBatchHeader } from "../protocol/record_batch.ts";
import type { StreamRecord } from "../storage/stream_record.ts";
import type { Stream } from "../stream/stream.ts";
import { decodeEpochs, LeaderEpochs } from "./leader_epochs.ts";
import { decodePartitionMeta, type LogMeta } from "./log_meta.ts";
import { LogState } from "./log_state.ts";
import type { MetaStream } from "./meta_stream.ts";
import type { LogConfig } from "./partition_log.ts";
import { decodeSnapshot, decodeSnapshots, type ProducerSnapshot } from "./producer_snapshot.ts";
import type { ProducerState } from "./producer_state.ts";
import { Segment } from "./segment.ts";
import { OPEN_END, scan } from "./slice.ts";

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
  readonly time: Stream | null;
  readonly config: LogConfig;
  readonly nowMs: number;
}

interface Account {
  readonly segments: readonly Segment[];
  /** The newest segment's account stops here. */
  readonly countedTo: Offset;
}

/** Segments as stored, without what the stream no longer or never had. */
function accountOf({ logMeta, log, nowMs }: RestoreInput): Account {
  const { startOffset, nextOffset } = log;
  const stored = logMeta.segments.filter(({ baseOffset }) => baseOffset <= nextOffset);
  const sound = logMeta.countedTo <= nextOffset && stored.length === logMeta.segments.length;
  const last = stored.at(-1);
  if (last === undefined) {
    return { segments: [new Segment(startOffset, nowMs)], countedTo: startOffset };
  }
  const sealed = stored.slice(0, -1)
    .filter(({ log: slice }) => slice.end > startOffset)
    .map((meta) => Segment.fromMeta(meta, meta.log.end));
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
  for (const entry of decodeSnapshot(snapshot.bytes) ?? []) {
    // A clock that was ahead must not keep an entry for longer than the expiration.
    producers.put({ ...entry, appendedMs: Math.min(entry.appendedMs, nowMs) });
  }
}

function headerOf(record: StreamRecord) {
  try {
    const header = readBatchHeader(record.payload);
    if (
      header.baseOffset === record.baseOffset && header.lastOffsetDelta + 1 === record.count
    ) return header;
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
  const storedStart = stored === undefined ? 0 : decodePartitionMeta(stored).logStartOffset;
  const start = Math.min(end, Math.max(startOffset, segments[0]!.baseOffset, storedStart));
  const epochs = epochsOf(meta);
  epochs.truncateFromEnd(end);
  const state = new LogState(segments, epochs, start);
  const snapshots = soundSnapshots(meta, start, end);
  const newest = snapshots.at(-1);
  if (newest !== undefined) loadProducers(state.producers, newest, nowMs);
  const from = { segments: countedTo, producers: newest?.offset ?? 0 };
  const replayedFrom = Math.max(startOffset, Math.min(countedTo, newest?.offset ?? start));
  let replayedBytes = 0;
  let lastAppendMs = -Infinity;
  for await (const record of scan(log, replayedFrom, end, LOG_SCAN_BYTES)) {
    const header = headerOf(record);
    const appendedMs = appendedMsOf(header.maxTimestamp, state.segmentAt(header.baseOffset), nowMs);
    state.learn(header, record.payload.length, config, appendedMs, from);
    replayedBytes += record.payload.length;
    lastAppendMs = Math.max(lastAppendMs, appendedMs);
  }
  state.producers.settle(nowMs, lastAppendMs, config.producerExpirationMs);
  epochs.truncateFromStart(start);
  const isWhole = replayedFrom === end && (stored !== undefined || end === 0);
  return { state, snapshots, replayedBytes, checkpointedTo: isWhole ? end : -1 };
}
