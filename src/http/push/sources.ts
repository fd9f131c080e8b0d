/**
 * The partitions of a subscription: follows its topics as they come, grow and go, begins where the group has
 * committed, and reads on while there is room. What is read is copied, so that the log's memory is free at once.
 */
import type { Env } from "../../env/env.ts";
import { isFault } from "../../lib/errors.ts";
import {
  PUSH_PARTITION_WINDOW_BYTES,
  PUSH_PARTITION_WINDOW_RECORDS,
  PUSH_PARTITIONS_MAX,
  PUSH_RECORD_BYTES_MAX,
  PUSH_REPEAT_MS_MAX,
  PUSH_REPEAT_MS_MIN,
  PUSH_WINDOW_BYTES,
} from "../../lib/limits.ts";
import type { Gateway, ReadAnswer, RecordOutput } from "../port.ts";
import { ProblemError } from "../problem.ts";
import { rawBytes } from "../record_json.ts";
import type { MetadataTexts } from "../texts.ts";
import type { Place } from "./delivery.ts";
import type { PushGroups } from "./push_port.ts";
import type { Subscription } from "./subscription.ts";
import { PartitionWindow } from "./window.ts";

export interface Source {
  readonly place: Place;
  readonly window: PartitionWindow;
  /** -1 until it is known that something is. */
  committed: number;
}

export interface SourcesOptions {
  readonly subscription: Subscription;
  readonly gateway: Gateway;
  readonly groups: PushGroups;
  readonly texts: MetadataTexts;
  readonly env: Env;
  readonly signal: AbortSignal;
  /** Something may be sent now that was not there before, or a position is to be committed. */
  readonly onNews: () => void;
  readonly onProblem: (problem: string | null) => void;
}

interface Failing {
  readonly pauseMs: number;
  readonly untilMs: number;
  readonly problem: string;
}

const ISOLATION = "committed";
const HAS_MEMBERS = "the group has members, which move its offsets";

function copied(bytes: Uint8Array | null): Uint8Array | null {
  return bytes === null ? null : bytes.slice();
}

function copyOf(record: RecordOutput): RecordOutput {
  const headers = record.headers.map(({ name, value }) => ({ name, value: copied(value) }));
  return { ...record, key: copied(record.key), value: copied(record.value), headers };
}

function emptyAt(offset: number): RecordOutput {
  return { offset, timestampMs: 0, key: null, value: null, headers: [] };
}

function keyOf({ topicId, partition }: Place): string {
  return `${topicId}/${partition}`;
}

/** In place of a partition: what all that are new wait for. */
const POSITIONS = "positions";

export class Sources {
  readonly #options: SourcesOptions;
  readonly #sources = new Map<string, Source>();
  readonly #failing = new Map<string, Failing>();
  #turn = 0;
  #missing: string | null = null;
  #isCut = false;
  #wake: () => void = () => {};

  constructor(options: SourcesOptions) {
    this.#options = options;
  }

  all(): readonly Source[] {
    return [...this.#sources.values()];
  }

  get heldBytes(): number {
    let bytes = 0;
    for (const { window } of this.#sources.values()) bytes += window.bytes;
    return bytes;
  }

  /** The group was moved by others: all begins anew where it is then. */
  forget(): void {
    this.#sources.clear();
    this.#wake();
  }

  /** Room has become free. */
  wake(): void {
    this.#wake();
  }

  /** Until the signal aborts. */
  async run(): Promise<void> {
    const { signal } = this.#options;
    while (!signal.aborted) {
      const missing = this.#follow();
      if (missing.length > 0) await this.#guarded(POSITIONS, () => this.#begin(missing));
      const source = this.#pick();
      if (source === null) {
        this.#report();
        await this.#wait();
        continue;
      }
      await this.#guarded(keyOf(source.place), () => this.#read(source));
    }
  }

  /** Partitions that are new here; those of topics that are gone are forgotten. */
  #follow(): Place[] {
    const { subscription, gateway } = this.#options;
    const known = new Set<string>();
    const missing: Place[] = [];
    this.#missing = null;
    this.#isCut = false;
    for (const topic of subscription.topics) {
      const found = gateway.findTopic(topic);
      if (found === null) this.#missing ??= topic;
      for (let partition = 0; partition < (found?.partitions ?? 0); partition++) {
        this.#isCut ||= known.size >= PUSH_PARTITIONS_MAX;
        if (this.#isCut) break;
        const place = { topic, topicId: found!.topicId, partition };
        const key = keyOf(place);
        known.add(key);
        if (!this.#sources.has(key)) missing.push(place);
      }
    }
    for (const key of this.#sources.keys()) if (!known.has(key)) this.#sources.delete(key);
    for (const key of this.#failing.keys()) {
      if (key !== POSITIONS && !known.has(key)) this.#failing.delete(key);
    }
    return this.#isFailing(POSITIONS) ? [] : missing;
  }

  async #begin(missing: readonly Place[]): Promise<string | null> {
    const { groups, subscription, onNews } = this.#options;
    const group = await groups.describeGroup(subscription.group);
    if (group.ok && group.members.length > 0) return HAS_MEMBERS;
    const found = await groups.committed(subscription.group, missing);
    if (!found.ok) return found.message ?? found.error;
    const offsets = new Map(
      found.offsets.map(({ topic, partition, offset }) => [`${topic}/${partition}`, offset]),
    );
    let problem: string | null = null;
    for (const place of missing) {
      const committed = offsets.get(`${place.topic}/${place.partition}`) ?? null;
      const position = committed ?? await this.#first(place);
      if (typeof position === "string") problem = position;
      else {
        const window = new PartitionWindow(position);
        this.#sources.set(keyOf(place), { place, window, committed: committed ?? -1 });
      }
    }
    onNews();
    return problem;
  }

  /** Where a group begins that has no offset there. */
  async #first({ topicId, partition }: Place): Promise<number | string> {
    const { gateway, subscription } = this.#options;
    const bounds = await gateway.bounds(topicId, partition, ISOLATION);
    if (!bounds.ok) return bounds.message ?? bounds.error;
    return subscription.from === "earliest" ? bounds.earliest : bounds.latest;
  }

  #isFailing(key: string): boolean {
    return this.#options.env.clock.monotonicMs() < (this.#failing.get(key)?.untilMs ?? 0);
  }

  /** The next partition with room and news, or of which nobody knows whether it has any. */
  #pick(): Source | null {
    if (this.heldBytes >= PUSH_WINDOW_BYTES) return null;
    const sources = this.all();
    for (let i = 0; i < sources.length; i++) {
      const at = (this.#turn + i) % sources.length;
      const source = sources[at]!;
      if (!this.#hasRoom(source) || this.#isFailing(keyOf(source.place))) continue;
      this.#turn = at + 1;
      return source;
    }
    return null;
  }

  #hasRoom({ place, window }: Source): boolean {
    if (window.bytes >= PUSH_PARTITION_WINDOW_BYTES) return false;
    if (window.count >= PUSH_PARTITION_WINDOW_RECORDS) return false;
    const end = this.#options.gateway.peekEnd(place.topicId, place.partition, ISOLATION);
    return end === null || end > window.end;
  }

  /** Null when it worked; else why not. */
  async #read(source: Source): Promise<string | null> {
    const { gateway, signal, onNews } = this.#options;
    const { place: { topic, topicId, partition }, window } = source;
    const answer = await gateway.read(topic, partition, {
      offset: window.end,
      recordsMax: PUSH_PARTITION_WINDOW_RECORDS - window.count,
      bytesMax: PUSH_PARTITION_WINDOW_BYTES,
      recordBytesMax: PUSH_RECORD_BYTES_MAX,
      waitMs: 0,
      isolation: ISOLATION,
      signal,
      topicId,
      isLive: true,
    });
    const problem = answer.ok ? this.#keep(source, answer) : this.#refused(source, answer);
    if (problem === null) onNews();
    return problem;
  }

  #keep({ window }: Source, page: Extract<ReadAnswer, { ok: true }>): null {
    try {
      const kept: RecordOutput[] = [];
      let { next } = page;
      let bytes = 0;
      for (const record of page.records) {
        bytes += rawBytes(record);
        if (kept.length > 0 && bytes > PUSH_PARTITION_WINDOW_BYTES) {
          next = record.offset;
          break;
        }
        kept.push(copyOf(record));
      }
      window.add(kept, next);
      if (page.oversized !== null && next === page.oversized.offset) {
        const { offset, bytes: size } = page.oversized;
        window.add([emptyAt(offset)], offset + 1, `too large to be pushed: ${size} bytes`);
      }
      return null;
    } finally {
      page.release();
    }
  }

  #refused(
    { place: { topic, partition }, window }: Source,
    { error, message, logStart, next }: Exclude<ReadAnswer, { ok: true }>,
  ): string | null {
    if (error === "OFFSET_OUT_OF_RANGE" && logStart !== undefined && logStart > window.end) {
      const fields = { topic, partition, from: window.end, to: logStart };
      this.#options.env.log.log("warn", "push-records-gone", fields);
      window.add([], logStart);
      return null;
    }
    if (next !== undefined && next > window.end) {
      window.add([emptyAt(window.end)], next, message ?? error);
      return null;
    }
    return message ?? error;
  }

  /** What fails is tried again after pauses that grow, while the rest goes on. */
  async #guarded(key: string, work: () => Promise<string | null>): Promise<void> {
    const { env, signal } = this.#options;
    let problem: string | null;
    try {
      problem = await work();
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ProblemError) && !isFault(error)) throw error;
      problem = error.message;
    }
    if (problem === null) return void this.#failing.delete(key);
    const before = this.#failing.get(key)?.pauseMs;
    const pauseMs = before === undefined
      ? PUSH_REPEAT_MS_MIN
      : Math.min(PUSH_REPEAT_MS_MAX, 2 * before);
    this.#failing.set(key, { pauseMs, untilMs: env.clock.monotonicMs() + pauseMs, problem });
    this.#report();
  }

  #report(): void {
    const [first] = this.#failing.values();
    const missing = this.#missing === null ? null : `topic ${this.#missing} is not there`;
    const cut = this.#isCut
      ? `more than ${PUSH_PARTITIONS_MAX} partitions: the rest is not read`
      : null;
    this.#options.onProblem(first?.problem ?? missing ?? cut);
  }

  /** Begins to watch in the same stretch in which nothing was found. */
  async #wait(): Promise<void> {
    const { gateway, texts, env, signal, subscription } = this.#options;
    let wake: () => void = () => {};
    const waking = new Promise<void>((resolve) => void (wake = resolve));
    const stops = subscription.topics.flatMap((topic) => {
      const found = gateway.findTopic(topic);
      return found === null ? [] : [gateway.watch(found.topicId, null, wake)];
    });
    if (this.#missing !== null) stops.push(texts.onChange(wake));
    const dues = [...this.#failing.values()].map(({ untilMs }) => untilMs);
    if (dues.length > 0) {
      stops.push(env.clock.after(Math.min(...dues) - env.clock.monotonicMs(), wake));
    }
    signal.addEventListener("abort", wake, { once: true });
    this.#wake = wake;
    try {
      if (!signal.aborted) await waking;
    } finally {
      for (const stop of stops) stop();
      signal.removeEventListener("abort", wake);
      this.#wake = () => {};
    }
  }
}
