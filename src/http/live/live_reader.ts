/**
 * One reader of a topic's partitions, as they grow: what comes next, in turns between the partitions, with the
 * position behind each record. Holds at most one page, and waits without a timer of its own.
 */
import type { Env } from "../../env/env.ts";
import { isFault } from "../../lib/errors.ts";
import {
  HTTP_READ_RECORDS_MAX,
  HTTP_RECORD_BYTES_MAX,
  HTTP_STREAM_PAUSE_MS_MAX,
  HTTP_STREAM_PAUSE_MS_MIN,
  HTTP_STREAM_WINDOW_BYTES,
} from "../../lib/limits.ts";
import type { ReadAnswer, ReadQuery, TopicSummary } from "../port.ts";
import { kafkaError, ProblemError } from "../problem.ts";
import type { Isolation, ReadGateway } from "../read_port.ts";
import { encodeCursor } from "../read/cursor.ts";
import { type Found, type NotFound, rawPath } from "../read/page.ts";
import { allPartitions, type Start } from "../read/positions.ts";
import type { EndReason, Gap } from "./formats.ts";
import type { LiveStreams } from "./live_streams.ts";

export interface ReaderOptions {
  readonly gateway: ReadGateway;
  readonly env: Env;
  readonly streams: LiveStreams;
  readonly start: Start;
  /** The partitions of a topic with so many of them; null for all. */
  readonly choose: ((count: number) => readonly number[]) | null;
  readonly isolation: Isolation;
  readonly filter: ReadQuery["filter"] | null;
  readonly signal: AbortSignal;
  /** Another text for where the reader stands. */
  readonly cursorOf?: (positions: ReadonlyMap<number, number>) => string;
}

export type Step =
  | { readonly kind: "page"; readonly partition: number; readonly page: Found }
  | { readonly kind: "gap"; readonly gap: Gap }
  | { readonly kind: "problem"; readonly problem: Readonly<Record<string, unknown>> }
  /** Nothing to show, but somewhere else. */
  | { readonly kind: "moved" }
  | { readonly kind: "end"; readonly reason: EndReason }
  | { readonly kind: "gone" };

interface Failing {
  readonly pauseMs: number;
  readonly untilMs: number;
}

export class LiveReader {
  readonly #options: ReaderOptions;
  readonly #positions: Map<number, number>;
  readonly #failing = new Map<number, Failing>();
  #partitions: readonly number[];
  #count: number;
  #turn: number;

  constructor(options: ReaderOptions) {
    const { start } = options;
    this.#options = options;
    this.#positions = start.positions;
    this.#partitions = start.partitions;
    this.#count = start.topic.partitions;
    this.#turn = start.turn;
  }

  get #topic(): TopicSummary {
    return this.#options.start.topic;
  }

  cursor(): string {
    const { cursorOf } = this.#options;
    if (cursorOf !== undefined) return cursorOf(this.#positions);
    const { name, topicId } = this.#topic;
    return encodeCursor(name, { topicId, turn: this.#turn, positions: this.#positions });
  }

  /** The reader has got everything before `next`. */
  moveTo(partition: number, next: number): void {
    this.#positions.set(partition, next);
  }

  async next(): Promise<Step> {
    const { signal, streams } = this.#options;
    while (!signal.aborted) {
      const turn = streams.turn();
      if (turn !== null) await turn;
      const end = this.#follow();
      if (end !== null) return { kind: "end", reason: end };
      const partition = this.#pick();
      if (partition === null) {
        await this.#wait();
        continue;
      }
      this.#turn = partition + 1;
      const step = await this.#read(partition);
      if (step !== null) return step;
    }
    return { kind: "gone" };
  }

  /** The topic as it is now: its end, or more partitions than before. */
  #follow(): EndReason | null {
    const { gateway, choose } = this.#options;
    const { name, topicId } = this.#topic;
    const topic = gateway.findTopic(name);
    if (topic === null) return "topic-deleted";
    if (topic.topicId !== topicId) return "topic-recreated";
    if (topic.partitions !== this.#count) {
      this.#count = topic.partitions;
      this.#partitions = choose === null ? allPartitions(topic) : choose(topic.partitions);
    }
    return null;
  }

  /** The next partition that has something, or of which nobody knows; null where all are read to their ends. */
  #pick(): number | null {
    const { gateway, isolation, env } = this.#options;
    const nowMs = this.#failing.size === 0 ? 0 : env.clock.monotonicMs();
    const count = this.#partitions.length;
    const from = Math.max(0, this.#partitions.findIndex((one) => one >= this.#turn));
    for (let i = 0; i < count; i++) {
      const partition = this.#partitions[(from + i) % count]!;
      if (nowMs < (this.#failing.get(partition)?.untilMs ?? 0)) continue;
      const position = this.#positions.get(partition);
      const end = gateway.peekEnd(this.#topic.topicId, partition, isolation);
      if (position === undefined || end === null || end > position) return partition;
    }
    return null;
  }

  /** Begins to watch in the same stretch in which nothing was found, so that nothing comes in between. */
  async #wait(): Promise<void> {
    const { gateway, env, signal, choose } = this.#options;
    let wake: () => void = () => {};
    const waking = new Promise<void>((resolve) => void (wake = resolve));
    const watched = choose === null ? null : this.#partitions;
    const stop = gateway.watch(this.#topic.topicId, watched, wake);
    signal.addEventListener("abort", wake, { once: true });
    const retryMs = this.#nextRetryMs();
    const cancel = retryMs === null ? null : env.clock.after(retryMs, wake);
    try {
      if (!signal.aborted) await waking;
    } finally {
      cancel?.();
      stop();
      signal.removeEventListener("abort", wake);
    }
  }

  #nextRetryMs(): number | null {
    if (this.#failing.size === 0) return null;
    const untilMs = Math.min(...[...this.#failing.values()].map((one) => one.untilMs));
    return Math.max(0, untilMs - this.#options.env.clock.monotonicMs());
  }

  async #read(partition: number): Promise<Step | null> {
    const { signal } = this.#options;
    try {
      const answer = await this.#ask(partition);
      if (signal.aborted && answer.ok) answer.release();
      if (signal.aborted) return { kind: "gone" };
      return answer.ok ? this.#found(partition, answer) : this.#refused(partition, answer);
    } catch (error) {
      if (signal.aborted) return { kind: "gone" };
      if (!(error instanceof ProblemError) && !isFault(error)) throw error;
      return this.#failed(partition, { detail: error.message });
    }
  }

  /** Those who want the same share one read. */
  async #ask(partition: number): Promise<ReadAnswer> {
    const { gateway, isolation, filter, signal, streams } = this.#options;
    const { name, topicId } = this.#topic;
    const query = {
      offset: this.#positions.get(partition) ?? "earliest",
      recordsMax: HTTP_READ_RECORDS_MAX,
      bytesMax: HTTP_STREAM_WINDOW_BYTES,
      recordBytesMax: HTTP_RECORD_BYTES_MAX,
      isolation,
      topicId,
      isLive: true,
    } as const;
    return filter === null || filter === undefined
      ? await streams.reads.read(gateway, name, partition, query)
      : await gateway.read(name, partition, { ...query, waitMs: 0, signal, filter });
  }

  #found(partition: number, page: Found): Step | null {
    this.#failing.delete(partition);
    if (page.records.length > 0) return { kind: "page", partition, page };
    page.release();
    const isNew = this.#positions.get(partition) !== page.next;
    this.#positions.set(partition, page.next);
    if (page.oversized !== null) return this.#tooLarge(partition, page.oversized);
    return isNew ? { kind: "moved" } : null;
  }

  #tooLarge(partition: number, { offset, bytes }: NonNullable<Found["oversized"]>): Step {
    this.#positions.set(partition, offset + 1);
    const problem = {
      partition,
      offset,
      detail: `Cannot show offset ${offset} as JSON: it has ${bytes} bytes`,
      raw: rawPath(this.#topic.name, partition, offset),
      next: offset + 1,
    };
    return { kind: "problem", problem };
  }

  #refused(partition: number, answer: NotFound): Step | null {
    const { error, message, logStart, next } = answer;
    const from = this.#positions.get(partition) ?? 0;
    if (error === "OFFSET_OUT_OF_RANGE" && logStart !== undefined) {
      // Behind the end there will be other records than those that the reader has seen.
      if (logStart <= from) return { kind: "end", reason: "offset-out-of-range" };
      this.#positions.set(partition, logStart);
      return { kind: "gap", gap: { partition, from, to: logStart } };
    }
    if (next !== undefined && next > from) {
      this.#positions.set(partition, next);
      const detail = message ?? error;
      const problem = { partition, offset: from, detail, kafka: kafkaError(error), next };
      return { kind: "problem", problem };
    }
    return this.#failed(partition, { detail: message ?? error, kafka: kafkaError(error) });
  }

  /** Told once; then tried again after pauses that grow, while the other partitions go on. */
  #failed(partition: number, what: Readonly<Record<string, unknown>>): Step | null {
    const before = this.#failing.get(partition);
    const pauseMs = before === undefined
      ? HTTP_STREAM_PAUSE_MS_MIN
      : Math.min(HTTP_STREAM_PAUSE_MS_MAX, 2 * before.pauseMs);
    const untilMs = this.#options.env.clock.monotonicMs() + pauseMs;
    this.#failing.set(partition, { pauseMs, untilMs });
    if (before !== undefined) return null;
    return { kind: "problem", problem: { partition, ...what } };
  }
}
