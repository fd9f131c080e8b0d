/**
 * Writes what a log wants to find again after a restart. A checkpoint at offset o counts the batches below
 * o and no others, and goes out only once o is below the high watermark: it never knows more than the log.
 */
import type { Offset, StreamId } from "../lib/brand.ts";
import { PRODUCER_SNAPSHOTS_MAX } from "../lib/limits.ts";
import type { Stream } from "../stream/stream.ts";
import { encodeEpochs } from "./leader_epochs.ts";
import { encodeLogMeta, encodePartitionMeta } from "./log_meta.ts";
import type { LogState } from "./log_state.ts";
import type { MetaStream } from "./meta_stream.ts";
import { encodeSnapshot, encodeSnapshots, type ProducerSnapshot } from "./producer_snapshot.ts";
import { encodeTimeEntries } from "./time_index.ts";

const TIME_STREAM = "tim";

export interface CheckpointerOptions {
  readonly meta: MetaStream;
  readonly createStream: () => Promise<Stream>;
  readonly streamMap: ReadonlyMap<string, StreamId>;
  readonly time: Stream | null;
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
  #time: Stream | null;
  #snapshots: readonly ProducerSnapshot[];

  constructor(options: CheckpointerOptions) {
    this.#meta = options.meta;
    this.#createStream = options.createStream;
    this.#streamMap = new Map(options.streamMap);
    this.#time = options.time;
    this.#snapshots = options.snapshots;
  }

  get time(): Stream | null {
    return this.#time;
  }

  /** One at a time. Resolves to the offset of the checkpoint. */
  async write(input: CheckpointInput): Promise<Offset> {
    const { state, log, passed } = input;
    await this.#ensureTimeStream(state);
    const times = this.#appendTimes(state);
    const at = log.nextOffset;
    const values = this.#capture(input, at);
    await Promise.all([passed(at), ...times]);
    await Promise.all(values.map(([key, value]) => this.#meta.put(key, value)));
    await this.#meta.compactIfHollow();
    return at;
  }

  /** Gives back what lies before the first segment; the caller has written a checkpoint without it. */
  async trim(state: LogState, log: Stream): Promise<void> {
    const start = state.segments[0]!.baseOffset;
    if (start > log.startOffset) await log.trim(start);
    const time = this.#time;
    if (time === null) return;
    const slices = state.segments.map(({ timeSlice }) => timeSlice);
    const first = slices.find((slice) => slice.end > slice.start)?.start ?? time.confirmOffset;
    if (first > time.startOffset) await time.trim(first);
  }

  #capture({ state, clean }: CheckpointInput, at: Offset) {
    const kept = this.#snapshots.filter(({ offset }) =>
      offset >= state.logStartOffset && offset < at
    );
    const snapshot = this.#snapshots.find(({ offset }) => offset === at) ??
      { offset: at, bytes: encodeSnapshot(state.producers.entries()) };
    this.#snapshots = [...kept, snapshot].slice(-PRODUCER_SNAPSHOTS_MAX);
    const logMeta = {
      streams: this.#streamMap,
      segments: state.segments.map((segment) => segment.toMeta()),
      countedTo: at,
    };
    const partition = {
      logStartOffset: state.logStartOffset,
      cleanerOffset: 0,
      recoveryPoint: at,
      cleanShutdown: clean,
    };
    // Written in this order: each later value makes sense on top of the earlier ones, after any crash.
    return [
      ["LOG", encodeLogMeta(logMeta)],
      ["PRODUCER_SNAPSHOTS", encodeSnapshots(this.#snapshots)],
      ["LEADER_EPOCH_CHECKPOINT", encodeEpochs(state.epochs.entries)],
      ["PARTITION", encodePartitionMeta(partition)],
    ] as const;
  }

  /** Most logs never need one: it is made with the first entry. */
  async #ensureTimeStream({ segments }: LogState): Promise<void> {
    if (this.#time !== null || segments.every(({ timePending }) => timePending.length === 0)) {
      return;
    }
    this.#time = await this.#createStream();
    this.#streamMap.set(TIME_STREAM, this.#time.streamId);
  }

  #appendTimes({ segments }: LogState): Promise<void>[] {
    const time = this.#time;
    if (time === null) return [];
    const waits: Promise<void>[] = [];
    for (const segment of segments) {
      if (segment.timePending.length === 0) continue;
      const payload = encodeTimeEntries(segment.timePending, segment.baseOffset);
      const { baseOffset, durable } = time.append(payload.length, payload);
      const { start, end } = segment.timeSlice;
      segment.timeSlice = {
        start: start === end ? baseOffset : start,
        end: baseOffset + payload.length,
      };
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
    } finally {
      await this.#meta.close();
    }
  }
}
