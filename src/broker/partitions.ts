/**
 * The partitions that this node leads. A log opens on first use, once, and closes when its topic is
 * deleted, when another epoch leads or when the broker stops. Metadata changes are followed, not asked for.
 * One that cannot be opened is tried again after a pause that grows; until then its fault is the answer.
 */
import type { NodeId, StreamId } from "../lib/brand.ts";
import { messageOf } from "../lib/errors.ts";
import { PARTITION_TICK_MS } from "../lib/limits.ts";
import { SingleFlight } from "../lib/single_flight.ts";
import type { Uuid } from "../lib/uuid.ts";
import type { Cancel } from "../env/clock.ts";
import type { Env } from "../env/env.ts";
import type { ErrorName } from "../protocol/error_code.ts";
import type { StreamClient } from "../stream/stream.ts";
import type { LogConfig, PartitionLog } from "../log/partition_log.ts";
import type { Requester } from "../controller/command.ts";
import {
  partitionKey,
  type PartitionRow,
  type StreamRow,
  type TopicRow,
} from "../controller/image.ts";
import type { Change, MetadataStore } from "../controller/metadata_store.ts";
import { FailurePauses } from "./failure_pauses.ts";
import type { LogCleaner } from "./log_cleaner.ts";
import { type NamedLog, showPartitions } from "./partition_metrics.ts";
import type { TopicConfigs } from "./topic_config.ts";

export interface OpenLogOptions {
  readonly env: Env;
  readonly streams: StreamClient;
  readonly topic: string;
  readonly partition: number;
  /** Marks the partition's streams, so that all of them go with the topic. */
  readonly streamTag: string;
  readonly leaderEpoch: PartitionRow["leaderEpoch"];
  /** Null when the partition was never opened: a meta stream is then created. */
  readonly metaStreamId: StreamId | null;
  readonly config: LogConfig;
}

export interface OpenedLog {
  readonly log: PartitionLog;
  readonly metaStreamId: StreamId;
}

/** See `storedSize` of the log layer. */
export type SizeStored = (options: {
  readonly streams: StreamClient;
  readonly metaStream: StreamId;
  readonly rangeOf: (id: StreamId) => { readonly start: number; readonly end: number } | null;
}) => Promise<number | null>;

export type OpenLog = (options: OpenLogOptions) => Promise<OpenedLog>;

export interface PartitionsOptions {
  readonly env: Env;
  readonly nodeId: NodeId;
  readonly requester: () => Requester;
  readonly metadata: MetadataStore;
  readonly streams: StreamClient;
  readonly openLog: OpenLog;
  readonly sizeStored: SizeStored;
  /** What a topic's overrides amount to. */
  readonly configOf: (overrides: TopicConfigs) => LogConfig;
  /** Calls back when `configOf` may answer otherwise; never when absent. */
  readonly onConfigChange?: (listener: () => void) => () => void;
  /** Shown all open logs at each tick. */
  readonly cleaner?: Pick<LogCleaner, "look">;
  /** Partitions with rows of their own in the metrics; none when absent. */
  readonly metricRowsMax?: number;
}

export type Located =
  | { readonly ok: true; readonly log: PartitionLog }
  | { readonly ok: false; readonly error: ErrorName };

export interface Partitions {
  /** The log if it is open here and may serve; never waits. */
  peek(topicId: Uuid, partition: number): PartitionLog | undefined;
  /** Opens the log when needed. Throws FaultError when opening fails. */
  open(topicId: Uuid, partition: number): Promise<Located>;
  /** Who leads by the local replica; undefined for an unknown partition. */
  leaderOf(topicId: Uuid, partition: number): PartitionRow | undefined;
  /**
   * Bytes of a log that this node leads. One that nobody uses is not opened for it when its last owner has counted
   * it. Null when it is not led here, or cannot be opened now. Throws FaultError.
   */
  sizeOf(topicId: Uuid, partition: number): Promise<number | null>;
  /** Logs that are open now. */
  readonly size: number;
  /** Closes every log; new ones are refused from then on. */
  close(): Promise<void>;
}

interface OpenPartition {
  readonly topicId: Uuid;
  readonly partition: number;
  readonly log: PartitionLog;
  ticking: boolean;
}

const NOT_CHECKED = -1;

/** Kafka's rule for the epoch that a client believes in; only -1 asks for no check. */
export function epochProblem(log: PartitionLog, asked: number): ErrorName | null {
  if (asked === NOT_CHECKED || asked === log.leaderEpoch) return null;
  return asked < log.leaderEpoch ? "FENCED_LEADER_EPOCH" : "UNKNOWN_LEADER_EPOCH";
}

class LedPartitions implements Partitions {
  readonly #options: PartitionsOptions;
  readonly #open = new Map<string, OpenPartition>();
  readonly #opening = new SingleFlight<string, Located>();
  readonly #closing = new Map<string, Promise<void>>();
  /** With the row as it was: another leader epoch begins without a pause. */
  readonly #failures: FailurePauses<string, PartitionRow>;
  /** Of logs that are not open; the row of the meta stream is another one once somebody had it. */
  readonly #storedSizes = new WeakMap<StreamRow, number>();
  readonly #unsubscribe: () => void;
  readonly #hide: () => void;
  readonly #tickMs: number;
  #cancelTick: Cancel;
  #stopped = false;

  constructor(options: PartitionsOptions) {
    this.#options = options;
    this.#failures = new FailurePauses(options.env.clock);
    // A log looks at retention in a tick, so that it must tick as often.
    this.#tickMs = Math.min(PARTITION_TICK_MS, options.configOf({}).retentionCheckMs);
    this.#cancelTick = options.env.clock.after(this.#tickMs, () => this.#tickAll());
    const unfollow = options.metadata.onChange((change) => this.#follow(change));
    const unconfigure = options.onConfigChange?.(() => this.#reconfigure());
    this.#unsubscribe = () => {
      unfollow();
      unconfigure?.();
    };
    this.#hide = showPartitions(options.env, () => this.#named(), options.metricRowsMax ?? 0);
  }

  get size(): number {
    return this.#open.size;
  }

  peek(topicId: Uuid, partition: number): PartitionLog | undefined {
    return this.#stopped ? undefined : this.#open.get(partitionKey(topicId, partition))?.log;
  }

  async open(topicId: Uuid, partition: number): Promise<Located> {
    const key = partitionKey(topicId, partition);
    const opened = this.#open.get(key);
    if (opened !== undefined && !this.#stopped) return { ok: true, log: opened.log };
    const refused = this.#refusal(topicId, partition);
    if (refused !== null) return { ok: false, error: refused };
    return await this.#opening.run(key, () => this.#tryLoad(topicId, partition));
  }

  async sizeOf(topicId: Uuid, partition: number): Promise<number | null> {
    const key = partitionKey(topicId, partition);
    await this.#closing.get(key);
    const open = this.peek(topicId, partition);
    if (open !== undefined) return open.sizeBytes;
    if (this.#refusal(topicId, partition) !== null) return null;
    const { metaStream } = this.#rows(topicId, partition)!.row;
    // Nobody ever had it.
    if (metaStream === null) return 0;
    const stored = await this.#storedSize(metaStream);
    if (stored !== null) return stored;
    const located = await this.open(topicId, partition);
    return located.ok ? located.log.sizeBytes : null;
  }

  async #storedSize(metaStream: StreamId): Promise<number | null> {
    const { metadata, streams, sizeStored } = this.#options;
    const row = metadata.view().streams.get(metaStream);
    const known = row === undefined ? undefined : this.#storedSizes.get(row);
    if (known !== undefined) return known;
    const rangeOf = (id: StreamId) => {
      const stream = metadata.view().streams.get(id);
      return stream?.open === false ? stream : null;
    };
    const bytes = await sizeStored({ streams, metaStream, rangeOf });
    if (row !== undefined && bytes !== null) this.#storedSizes.set(row, bytes);
    return bytes;
  }

  leaderOf(topicId: Uuid, partition: number): PartitionRow | undefined {
    return this.#options.metadata.view().partitions.get(partitionKey(topicId, partition));
  }

  async close(): Promise<void> {
    this.#stopped = true;
    this.#cancelTick();
    this.#unsubscribe();
    this.#hide();
    await Promise.all([...this.#open].map(([key, { log }]) => this.#retire(key, log)));
    // A log that was just being opened closes itself again, and the storage below must still be there.
    await this.#opening.settled();
    await Promise.all(this.#closing.values());
  }

  #named(): NamedLog[] {
    const { topics } = this.#options.metadata.view();
    return [...this.#open.values()].flatMap(({ topicId, partition, log }) => {
      const topic = topics.get(topicId)?.name;
      return topic === undefined ? [] : [{ topic, partition, log }];
    });
  }

  #rows(topicId: Uuid, partition: number): { topic: TopicRow; row: PartitionRow } | null {
    const image = this.#options.metadata.view();
    const topic = image.topics.get(topicId);
    const row = image.partitions.get(partitionKey(topicId, partition));
    return topic === undefined || row === undefined ? null : { topic, row };
  }

  /** Why this node must not serve the partition, by the local replica. */
  #refusal(topicId: Uuid, partition: number): ErrorName | null {
    const found = this.#rows(topicId, partition);
    if (found === null) return "UNKNOWN_TOPIC_OR_PARTITION";
    return this.#stopped || found.row.leader !== this.#options.nodeId
      ? "NOT_LEADER_OR_FOLLOWER"
      : null;
  }

  #isCurrent({ topicId, partition, log }: OpenPartition): boolean {
    const row = this.#rows(topicId, partition)?.row;
    return row !== undefined && row.leader === this.#options.nodeId &&
      row.leaderEpoch === log.leaderEpoch;
  }

  /** A log that cannot close cleanly is recovered by whoever opens it next, so that is only a log line. */
  async #closeLog(key: string, log: PartitionLog): Promise<void> {
    try {
      await log.close();
    } catch (error) {
      this.#options.env.log.log("warn", "partition-close-failed", {
        partition: key,
        reason: messageOf(error),
      });
    }
  }

  #retire(key: string, log: PartitionLog): Promise<void> {
    this.#open.delete(key);
    const done = this.#closeLog(key, log).finally(() => {
      if (this.#closing.get(key) === done) this.#closing.delete(key);
    });
    this.#closing.set(key, done);
    return done;
  }

  /** True when the partition's row now names the stream. */
  async #keepMetaStream(row: PartitionRow, streamId: StreamId): Promise<boolean> {
    if (row.metaStream === streamId) return true;
    const { topicId, partition, leaderEpoch } = row;
    const by = this.#options.requester();
    const decided = await this.#options.metadata.submit(
      { type: "set-meta-stream", by, topicId, partition, leaderEpoch, streamId },
    );
    return decided.ok;
  }

  async #tryLoad(topicId: Uuid, partition: number): Promise<Located> {
    const key = partitionKey(topicId, partition);
    this.#failures.check(key);
    try {
      const located = await this.#load(topicId, partition);
      this.#failures.forget(key);
      return located;
    } catch (error) {
      this.#noteFailure(topicId, partition, error);
      throw error;
    }
  }

  #noteFailure(topicId: Uuid, partition: number, error: unknown): void {
    const found = this.#rows(topicId, partition);
    if (found === null || this.#refusal(topicId, partition) !== null) return;
    const key = partitionKey(topicId, partition);
    const pauseMs = this.#failures.failed(key, error, found.row);
    this.#options.env.log.log("warn", "partition-open-failed", {
      partition: key,
      topic: found.topic.name,
      pauseMs,
      reason: messageOf(error),
    });
  }

  /** Whether the row still says what it said when opening failed. */
  #isSame({ topicId, partition, leaderEpoch }: PartitionRow): boolean {
    return this.#refusal(topicId, partition) === null &&
      this.#rows(topicId, partition)?.row.leaderEpoch === leaderEpoch;
  }

  async #load(topicId: Uuid, partition: number): Promise<Located> {
    const key = partitionKey(topicId, partition);
    await this.#closing.get(key);
    const refused = this.#refusal(topicId, partition);
    if (refused !== null) return { ok: false, error: refused };
    const { topic, row } = this.#rows(topicId, partition)!;
    const { log, metaStreamId } = await this.#options.openLog({
      env: this.#options.env,
      streams: this.#options.streams,
      topic: topic.name,
      partition,
      streamTag: key,
      leaderEpoch: row.leaderEpoch,
      metaStreamId: row.metaStream,
      config: this.#options.configOf(topic.configs),
    });
    const opened: OpenPartition = { topicId, partition, log, ticking: false };
    let kept = false;
    try {
      kept = await this.#keepMetaStream(row, metaStreamId);
    } finally {
      if (!kept || this.#stopped || !this.#isCurrent(opened)) await this.#retire(key, log);
      else this.#open.set(key, opened);
    }
    if (this.#open.get(key) === opened) {
      log.updateConfig(this.#options.configOf(this.#rows(topicId, partition)!.topic.configs));
      return { ok: true, log };
    }
    return { ok: false, error: this.#refusal(topicId, partition) ?? "NOT_LEADER_OR_FOLLOWER" };
  }

  /** Compares what is open with the rows that an entry touched. */
  #follow(change: Change): void {
    this.#failures.forgetWhere((row, key) =>
      (change.topics.has(row.topicId) || change.partitions.has(key)) && !this.#isSame(row)
    );
    for (const [key, opened] of this.#open) {
      const touched = change.topics.has(opened.topicId) || change.partitions.has(key);
      if (!touched) continue;
      if (!this.#isCurrent(opened)) void this.#retire(key, opened.log);
      else this.#updateConfig(opened);
    }
  }

  #updateConfig({ topicId, partition, log }: OpenPartition): void {
    const found = this.#rows(topicId, partition);
    if (found !== null) log.updateConfig(this.#options.configOf(found.topic.configs));
  }

  /** The defaults of topics changed. */
  #reconfigure(): void {
    for (const opened of this.#open.values()) this.#updateConfig(opened);
  }

  /** One tick of a log at a time; a slow store skips ticks instead of piling them up. */
  async #tick(key: string, opened: OpenPartition): Promise<void> {
    if (opened.ticking) return;
    opened.ticking = true;
    try {
      await opened.log.tick(this.#options.env.clock.nowMs());
    } catch (error) {
      this.#options.env.log.log("warn", "partition-tick-failed", {
        partition: key,
        reason: messageOf(error),
      });
    } finally {
      opened.ticking = false;
    }
  }

  #tickAll(): void {
    for (const [key, opened] of this.#open) void this.#tick(key, opened);
    this.#options.cleaner?.look(this.#named());
    this.#options.env.metrics.gauge("skerry_partitions_open", this.#open.size);
    this.#options.env.metrics.gauge("skerry_partitions_unreadable", this.#failures.size);
    this.#cancelTick = this.#options.env.clock.after(this.#tickMs, () => this.#tickAll());
  }
}

export function createPartitions(options: PartitionsOptions): Partitions {
  return new LedPartitions(options);
}
