/**
 * Compacts one partition: at most one pass at a time, beside appends, reads and checkpoints. Old and new segments
 * change places in one stretch without an await; which of them a restart finds is one value of the meta stream.
 */
import { sleep } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import type { Offset } from "../../lib/brand.ts";
import { CLEAN_HOLE_OFFSETS_MAX } from "../../lib/limits.ts";
import type { Stream } from "../../stream/stream.ts";
import type { Checkpointer } from "../checkpoint.ts";
import type { LogState } from "../log_state.ts";
import { LogView } from "../log_view.ts";
import type { Cleanable, Cleaned, CleanOptions, LogConfig } from "../partition_log.ts";
import type { Segment } from "../segment.ts";
import { CleanPass } from "./clean_pass.ts";
import { type CleanPlan, planClean } from "./clean_plan.ts";
import { CleanWriter } from "./clean_writer.ts";

export interface PartitionCleanerOptions {
  readonly env: Env;
  readonly log: Stream;
  readonly state: LogState;
  readonly checkpointer: Checkpointer;
  readonly config: () => LogConfig;
  /** Runs when nothing else writes beside the log; rejects without it when the log is closed. */
  readonly exclusively: (work: () => Promise<void>) => Promise<void>;
  /** Makes a change of segments below an offset durable, with nothing from before that could undo it; exclusively. */
  readonly swap: (end: Offset, change: () => void) => Promise<void>;
}

const SECOND_MS = 1000;

export class PartitionCleaner {
  readonly #options: PartitionCleanerOptions;
  #running: { readonly stop: AbortController; readonly done: Promise<Cleaned | null> } | null =
    null;

  constructor(options: PartitionCleanerOptions) {
    this.#options = options;
  }

  #plan(nowMs: number): CleanPlan | null {
    const { state, log, config } = this.#options;
    const { segments, cleanedTo, logStartOffset } = state;
    const lastStableOffset = state.lastStableOffset(log.confirmOffset);
    const input = { segments, cleanedTo, logStartOffset, lastStableOffset };
    return planClean({ ...input, config: config(), nowMs });
  }

  cleanable(nowMs: number): Cleanable | null {
    const plan = this.#plan(nowMs);
    if (plan === null) return null;
    return { dirtyRatio: plan.ratio, dirtyBytes: plan.dirtyBytes, isDue: plan.isDue };
  }

  async clean(options: CleanOptions): Promise<Cleaned | null> {
    if (this.#running !== null) return null;
    const plan = this.#plan(this.#options.env.clock.nowMs());
    if (plan === null) return null;
    const stop = new AbortController();
    const done = this.#run(plan, options, stop.signal);
    this.#running = { stop, done };
    try {
      return await done;
    } finally {
      this.#running = null;
    }
  }

  /** Ends a pass that is under way; null when there is none. */
  stop(): Promise<unknown> | null {
    if (this.#running === null) return null;
    const { stop, done } = this.#running;
    stop.abort();
    return done.catch(() => {});
  }

  async #run(plan: CleanPlan, how: CleanOptions, signal: AbortSignal): Promise<Cleaned | null> {
    const { state, checkpointer } = this.#options;
    const sources = state.segments.slice(0, plan.count);
    try {
      return await this.#pass(plan, sources, how, signal);
    } catch (error) {
      // Retention took what was being read; or the log closes.
      if (signal.aborted || state.segments[0] !== sources[0]) return null;
      throw error;
    } finally {
      checkpointer.cleaned.end();
    }
  }

  async #pass(
    plan: CleanPlan,
    sources: readonly Segment[],
    how: CleanOptions,
    signal: AbortSignal,
  ): Promise<Cleaned | null> {
    const { env, state, log, checkpointer } = this.#options;
    const config = this.#options.config();
    const pass = new CleanPass({
      env,
      config,
      state,
      view: new LogView(log, [...state.segments]),
      txn: () => checkpointer.txn,
      segments: sources,
      firstDirty: plan.firstDirty,
      mapBytesMax: how.mapBytesMax,
      nowMs: env.clock.nowMs(),
      signal,
      pace: (bytes) => this.#pace(bytes, how.bytesPerSecond, signal),
    });
    const mapped = await pass.map();
    // That takes its time, and retention goes on.
    const left = mapped.filter((segment) => state.segments.includes(segment));
    const [first] = left;
    if (first === undefined) return null;
    const writer = await this.#begin(first.baseOffset, config.segmentBytes, signal);
    await pass.rewrite(left, writer);
    await this.#swap(left, writer, pass.cleanedTo);
    const { bytesRead, unreadable, cleanedTo } = pass;
    return { bytesRead, bytesWritten: writer.bytes, unreadable, cleanedTo };
  }

  async #begin(base: Offset, segmentBytes: number, signal: AbortSignal): Promise<CleanWriter> {
    const { env, checkpointer, exclusively } = this.#options;
    const holeOffsetsMax = CLEAN_HOLE_OFFSETS_MAX;
    let writer: CleanWriter | null = null;
    await exclusively(async () => {
      const part = await checkpointer.cleaned.begin();
      writer = new CleanWriter({
        part,
        base,
        segmentBytes,
        holeOffsetsMax,
        clock: env.clock,
        signal,
      });
    });
    return writer!;
  }

  async #swap(
    sources: readonly Segment[],
    writer: CleanWriter,
    cleanedTo: Offset,
  ): Promise<void> {
    const { state, checkpointer, exclusively, swap } = this.#options;
    await exclusively(async () => {
      const cleaned = await writer.finish(checkpointer.cleaned);
      await swap(writer.end, () => state.replaceOldest(sources, cleaned, cleanedTo));
    });
  }

  /** Others get their turn after each read, however fast it may go. */
  async #pace(bytes: number, bytesPerSecond: number, signal: AbortSignal): Promise<void> {
    if (bytesPerSecond === Infinity) return;
    const pauseMs = Math.max(1, bytes * SECOND_MS / bytesPerSecond);
    await sleep(this.#options.env.clock, pauseMs, signal);
  }
}
