/**
 * Writes what a log wants to find again after a restart. A checkpoint at offset o counts the batches below
 * o and no others, and goes out only once o is below the high watermark: it never knows more than the log.
 */
import type { Offset, StreamId } from "../lib/brand.ts";
import { ABORTED_RECENT_MAX, PRODUCER_SNAPSHOTS_MAX } from "../lib/limits.ts";
import type { Stream } from "../stream/stream.ts";
import { type CleanedPart, CleanedStreams } from "./clean/cleaned_streams.ts";
import { encodeAborted } from "./aborted_transactions.ts";
import { encodeEpochs } from "./leader_epochs.ts";
import { encodeLogMeta, encodePartitionMeta, type LogMeta } from "./log_meta.ts";
import type { LogState } from "./log_state.ts";
import type { MetaStream } from "./meta_stream.ts";
import { encodeSnapshot, encodeSnapshots, type ProducerSnapshot } from "./producer_snapshot.ts";
import { encodeRequests } from "./request_snapshot.ts";
import { encodeWriters } from "./writer_snapshot.ts";
import { extended, isEmptySlice, type Slice } from "./slice.ts";
import { encodeTimeEntries } from "./time_index.ts";

/** Names in the stream map, as AutoMQ's. */
export const LOG_STREAM = "log";
export const TIME_STREAM = "tim";
export const TXN_STREAM = "txn";

export interface CheckpointerOptions {
  readonly meta: MetaStream;
  readonly createStream: () => Promise<Stream>;
  readonly deleteStream: (id: StreamId) => Promise<void>;
  /** As stored. */
  readonly logMeta: LogMeta;
  /** Streams of cleaned segments. */
  readonly parts: Iterable<CleanedPart>;
  readonly time: Stream | null;
  readonly txn: Stream | null;
  readonly snapshots: readonly ProducerSnapshot[];
}

export interface CheckpointInput {
  readonly state: LogState;
  readonly log: Stream;
  /** Resolves once the high watermark has reached the offset. */
  readonly passed: (offset: Offset) => Promise<void>;
  /** Set by an orderly close. */
  readonly clean: boolean;
}

export class Checkpointer {
  readonly #meta: MetaStream;
  readonly #createStream: () => Promise<Stream>;
  readonly #streamMap: Map<string, StreamId>;
  /** Streams of cleaned segments; to be changed by whoever writes beside the log, one at a time. */
  readonly cleaned: CleanedStreams;
  /** The newest value of LOG. */
  #logMeta: LogMeta;
  #time: Stream | null;
  #txn: Stream | null;
  #snapshots: readonly ProducerSnapshot[];

  constructor(options: CheckpointerOptions) {
    this.#meta = options.meta;
    this.#createStream = options.createStream;
    this.#logMeta = options.logMeta;
    this.#streamMap = new Map(options.logMeta.streams);
    this.cleaned = new CleanedStreams({
      streamMap: this.#streamMap,
      parts: options.parts,
      createStream: options.createStream,
      deleteStream: options.deleteStream,
      save: () => this.#saveStreams(),
    });
    this.#time = options.time;
    this.#txn = options.txn;
    this.#snapshots = options.snapshots;
  }

  get time(): Stream | null {
    return this.#time;
  }
  get txn(): Stream | null {
    return this.#txn;
  }

  #saveStreams(): Promise<void> {
    this.#logMeta = { ...this.#logMeta, streams: new Map(this.#streamMap) };
    return this.#meta.put("LOG", encodeLogMeta(this.#logMeta));
  }

  /** For good: a snapshot below what is compacted next would never see a marker that goes. */
  async dropSnapshotsBelow(offset: Offset): Promise<void> {
    this.#snapshots = this.#snapshots.filter((snapshot) => snapshot.offset >= offset);
    await this.#meta.put("PRODUCER_SNAPSHOTS", encodeSnapshots(this.#snapshots));
  }

  /** One at a time. Resolves to the offset of the checkpoint. */
  async write(input: CheckpointInput): Promise<Offset> {
    const { state, log, passed } = input;
    await this.#ensureTimeStream(state);
    if (this.#txn === null && state.aborted.hasUnstreamed) {
      this.#txn = await this.#newStream(TXN_STREAM);
    }
    // No await from here to the capture: the index has to hold every marker below the checkpoint.
    const indexed = [...this.#appendAborted(state), ...this.#appendTimes(state)];
    const at = log.nextOffset;
    const { logMeta, values } = this.#capture(input, at);
    await Promise.all([passed(at), ...indexed]);
    this.#logMeta = logMeta;
    await Promise.all(values.map(([key, value]) => this.#meta.put(key, value)));
    state.aborted.forget(at);
    await this.#meta.compactIfHollow();
    return at;
  }

  /** Whether a trim has something to do that an earlier one, perhaps before a crash, did not come to. */
  mustTrim({ segments, streamFrom }: LogState, log: Stream): boolean {
    return streamFrom > log.startOffset || this.cleaned.hasLeftovers(segments);
  }

  /** Gives back what no segment holds; the caller has written a checkpoint without it. */
  async trim({ segments, streamFrom }: LogState, log: Stream): Promise<void> {
    if (streamFrom > log.startOffset) await log.trim(streamFrom);
    const inLog = segments.filter(({ cleaned }) => cleaned === null);
    await trimIndex(this.#time, inLog.map(({ timeSlice }) => timeSlice));
    await trimIndex(this.#txn, inLog.map(({ txnSlice }) => txnSlice));
    await this.cleaned.tidy(segments);
  }

  #capture({ state, clean }: CheckpointInput, at: Offset) {
    const kept = this.#snapshots.filter(({ offset }) =>
      offset >= state.logStartOffset && offset < at
    );
    const snapshot = this.#snapshots.find(({ offset }) => offset === at) ??
      { offset: at, bytes: encodeSnapshot(state.producers.entries()) };
    this.#snapshots = [...kept, snapshot].slice(-PRODUCER_SNAPSHOTS_MAX);
    const logMeta = {
      streams: new Map(this.#streamMap),
      segments: state.segments.map((segment) => segment.toMeta()),
      countedTo: at,
    };
    const partition = {
      logStartOffset: state.logStartOffset,
      cleanerOffset: state.cleanedTo,
      recoveryPoint: at,
      cleanShutdown: clean,
    };
    // Written in this order: each later value makes sense on top of the earlier ones, after any crash.
    const values = [
      ...this.#requestsOf(state, at),
      ...this.#writersOf(state, at),
      ["LOG", encodeLogMeta(logMeta)],
      ["PRODUCER_SNAPSHOTS", encodeSnapshots(this.#snapshots)],
      ["LEADER_EPOCH_CHECKPOINT", encodeEpochs(state.epochs.entries)],
      ["PARTITION", encodePartitionMeta(partition)],
    ] as const;
    return { logMeta, values };
  }

  /** Before LOG: it has to count whatever LOG says is counted. A partition without any never has the key. */
  #requestsOf({ requests }: LogState, at: Offset): readonly (readonly ["REQUESTS", Uint8Array])[] {
    const isStored = this.#meta.get("REQUESTS") !== undefined;
    if (requests.size === 0 && !isStored) return [];
    return [["REQUESTS", encodeRequests(at, requests.entries())]];
  }

  /** Before LOG as well. */
  #writersOf({ writers }: LogState, at: Offset): readonly (readonly ["WRITERS", Uint8Array])[] {
    const isStored = this.#meta.get("WRITERS") !== undefined;
    return writers.isEmpty && !isStored ? [] : [["WRITERS", encodeWriters(at, writers)]];
  }

  /** Most logs never need one: it is made with the first entry. */
  async #ensureTimeStream({ segments }: LogState): Promise<void> {
    if (this.#time !== null || segments.every(({ timePending }) => timePending.length === 0)) {
      return;
    }
    this.#time = await this.#newStream(TIME_STREAM);
  }

  /** Named before its first record: nobody would ever find what a crash left in it. */
  async #newStream(name: string): Promise<Stream> {
    const stream = await this.#createStream();
    this.#streamMap.set(name, stream.streamId);
    await this.#saveStreams();
    return stream;
  }

  #appendAborted({ aborted, segments }: LogState): Promise<void>[] {
    const txn = this.#txn;
    if (txn === null) return [];
    const waits: Promise<void>[] = [];
    for (const segment of segments) {
      for (;;) {
        const entries = aborted.unstreamedBelow(segment.endOffset, ABORTED_RECENT_MAX);
        if (entries.length === 0) break;
        const payload = encodeAborted(entries);
        const { baseOffset, durable } = txn.append(payload.length, payload);
        durable.catch(() => {});
        waits.push(durable);
        segment.txnSlice = extended(segment.txnSlice, baseOffset, payload.length);
        aborted.markStreamed(entries.length);
      }
    }
    return waits;
  }

  #appendTimes({ segments }: LogState): Promise<void>[] {
    const time = this.#time;
    if (time === null) return [];
    const waits: Promise<void>[] = [];
    for (const segment of segments) {
      if (segment.timePending.length === 0) continue;
      const payload = encodeTimeEntries(segment.timePending, segment.baseOffset);
      const { baseOffset, durable } = time.append(payload.length, payload);
      segment.timeSlice = extended(segment.timeSlice, baseOffset, payload.length);
      segment.timePending.length = 0;
      durable.catch(() => {});
      waits.push(durable);
    }
    return waits;
  }

  /** The meta stream goes last: nothing else is written after it. */
  async close(): Promise<void> {
    try {
      await this.#time?.close();
      await this.#txn?.close();
    } finally {
      await this.cleaned.close().finally(() => this.#meta.close());
    }
  }
}

/** Gives back what lies before the first slice that holds anything. */
async function trimIndex(index: Stream | null, slices: readonly Slice[]): Promise<void> {
  if (index === null) return;
  const first = slices.find((slice) => !isEmptySlice(slice))?.start ?? index.confirmOffset;
  if (first > index.startOffset) await index.trim(first);
}
