/**
 * Group coordination as plain calls: finds the shard of a group, loads it on first use, and runs the
 * group functions on it. Every node leads some partitions of `__consumer_offsets`; for the others it
 * answers NOT_COORDINATOR. A shard ends with its partition: whoever waits in it is told at once.
 */
import { sleep } from "../../env/clock.ts";
import { randomUuid } from "../../env/random.ts";
import { messageOf } from "../../lib/errors.ts";
import {
  GROUP_COMPACT_BYTES_MIN,
  GROUP_LOAD_WAIT_MS,
  GROUP_STATE_BYTES_MAX,
} from "../../lib/limits.ts";
import { SingleFlight } from "../../lib/single_flight.ts";
import { uuidOf, ZERO_UUID } from "../../lib/uuid.ts";
import type { PartitionLog } from "../../log/partition_log.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import type { BrokerServices } from "../handler.ts";
import { faultToCode } from "../fault_to_code.ts";
import { javaHash } from "../java_hash.ts";
import { OFFSETS_TOPIC } from "../topic_name.ts";
import { partitionKey, type TopicRow } from "../../controller/image.ts";
import { FailurePauses } from "../failure_pauses.ts";
import { listOf } from "../property.ts";
import type { ConsumerHost } from "./consumer/live.ts";
import { RegexTopics } from "./consumer/regex_topics.ts";
import { MetadataTopics } from "./consumer/topic_view.ts";
import type { GroupSettings } from "./group.ts";
import { GroupMemory } from "./memory.ts";
import { Shard } from "./shard.ts";

export type ShardFound =
  | { readonly ok: true; readonly shard: Shard }
  | { readonly ok: false; readonly error: ErrorName };

/** To be asked after each await: a closed shard has forgotten its groups, which must not read as "none". */
export function stillOpen(found: ShardFound): ShardFound {
  return found.ok && found.shard.closed ? { ok: false, error: "NOT_COORDINATOR" } : found;
}

type Services = Pick<BrokerServices, "env" | "nodeId" | "metadata" | "partitions" | "config">;

function dashed(uuid: string): string {
  return uuid.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

function settingsOf(config: Services["config"]): GroupSettings {
  return {
    sessionTimeoutMsMin: config.integer("group.min.session.timeout.ms"),
    sessionTimeoutMsMax: config.integer("group.max.session.timeout.ms"),
    initialRebalanceDelayMs: config.integer("group.initial.rebalance.delay.ms"),
    membersMax: config.integer("group.max.size"),
  };
}

function consumerSettingsOf(config: Services["config"]): ConsumerHost["settings"] {
  const migration = config.text("group.consumer.migration.policy");
  return {
    sessionTimeoutMs: config.integer("group.consumer.session.timeout.ms"),
    heartbeatIntervalMs: config.integer("group.consumer.heartbeat.interval.ms"),
    membersMax: config.integer("group.consumer.max.size"),
    assignors: listOf(config.text("group.consumer.assignors")),
    canUpgrade: ["bidirectional", "upgrade"].includes(migration),
    canDowngrade: ["bidirectional", "downgrade"].includes(migration),
  };
}

/** Bounds that tests and the simulator lower. */
export interface CoordinatorBounds {
  readonly stateBytesMax?: number;
  readonly compactBytesMin?: number;
}

export class Coordinator {
  readonly #services: Services;
  readonly #bounds: CoordinatorBounds;
  readonly #settings: GroupSettings;
  readonly #topics: MetadataTopics;
  /** For groups of the consumer protocol. */
  readonly consumers: ConsumerHost;
  readonly #retentionMs: number;
  readonly #shards = new Map<number, Shard>();
  readonly #loading = new SingleFlight<number, ShardFound>();
  readonly #creating = new SingleFlight<string, TopicRow | ErrorName>();
  /** Partitions whose log opens and cannot be read. */
  readonly #failures: FailurePauses<number, PartitionLog>;
  readonly #memory: GroupMemory;
  readonly #unsubscribe: () => void;
  #cancelMaintenance: () => void = () => {};
  #closed = false;

  constructor(services: Services, bounds: CoordinatorBounds = {}) {
    this.#services = services;
    this.#bounds = bounds;
    this.#memory = new GroupMemory(bounds.stateBytesMax ?? GROUP_STATE_BYTES_MAX);
    this.#failures = new FailurePauses(services.env.clock);
    this.#unsubscribe = services.metadata.onChange(() => this.#follow());
    this.#settings = settingsOf(services.config);
    this.#topics = new MetadataTopics(services.metadata);
    this.consumers = {
      settings: consumerSettingsOf(services.config),
      topics: this.#topics,
      regexes: new RegexTopics(services.env.clock, this.#topics),
    };
    this.#retentionMs = services.config.integer("offsets.retention.minutes") * 60_000;
    this.#schedule();
  }

  /** The shard of a group, loaded; or why it cannot be used here and now. */
  async shardOf(groupId: string): Promise<ShardFound> {
    if (this.#closed) return { ok: false, error: "NOT_COORDINATOR" };
    const topic = await this.#offsetsTopic();
    if (typeof topic === "string") return { ok: false, error: topic };
    return await this.#loaded(topic, javaHash(groupId) % topic.partitions);
  }

  /** The shard of a partition of the offsets topic, for the markers that are to be written there. */
  async shardAt(partition: number): Promise<ShardFound> {
    const topic = this.#topicRow();
    if (this.#closed || topic === undefined) return { ok: false, error: "NOT_COORDINATOR" };
    return await this.#loaded(topic, partition);
  }

  /** Where a group's offsets are stored; creates the offsets topic when it is missing. */
  async partitionOf(groupId: string): Promise<number | ErrorName> {
    const topic = await this.#offsetsTopic();
    return typeof topic === "string" ? topic : javaHash(groupId) % topic.partitions;
  }

  /** Who coordinates a group, by the local replica; creates the offsets topic when it is missing. */
  async locate(
    groupId: string,
  ): Promise<{ readonly leader: number | null } | { readonly error: ErrorName }> {
    const topic = await this.#offsetsTopic();
    if (typeof topic === "string") return { error: topic };
    return { leader: this.#leaderOf(topic, javaHash(groupId) % topic.partitions) };
  }

  /** Shards that this node leads, loaded. */
  async allShards(): Promise<readonly ShardFound[]> {
    const topic = this.#topicRow();
    if (topic === undefined) return [];
    const led = Array.from({ length: topic.partitions }, (_, partition) => partition)
      .filter((partition) => this.#leaderOf(topic, partition) === this.#services.nodeId);
    return await Promise.all(led.map((partition) => this.#loaded(topic, partition)));
  }

  close(): void {
    this.#closed = true;
    this.#unsubscribe();
    this.#topics.close();
    this.#cancelMaintenance();
    for (const shard of this.#shards.values()) shard.close();
    this.#shards.clear();
  }

  #topicRow(): TopicRow | undefined {
    const image = this.#services.metadata.view();
    const topicId = image.topicIds.get(OFFSETS_TOPIC);
    return topicId === undefined ? undefined : image.topics.get(topicId);
  }

  #leaderOf(topic: TopicRow, partition: number): number | null {
    return this.#services.metadata.view().partitions.get(partitionKey(topic.topicId, partition))
      ?.leader ?? null;
  }

  /** By the metadata alone: the partition's log may follow it earlier or later than we do. */
  #isLed(partition: number, log: PartitionLog): boolean {
    const topicId = this.#topicRow()?.topicId;
    if (topicId === undefined) return false;
    const row = this.#services.metadata.view().partitions.get(partitionKey(topicId, partition));
    return row?.leader === this.#services.nodeId && row.leaderEpoch === log.leaderEpoch;
  }

  #follow(): void {
    for (const [partition, shard] of this.#shards) {
      if (this.#isLed(partition, shard.log)) continue;
      this.#shards.delete(partition);
      shard.close();
    }
  }

  async #offsetsTopic(): Promise<TopicRow | ErrorName> {
    const known = this.#topicRow();
    if (known !== undefined) return known;
    try {
      return await this.#creating.run(OFFSETS_TOPIC, () => this.#createTopic());
    } catch (error) {
      return faultToCode(error, "coordinator");
    }
  }

  async #createTopic(): Promise<TopicRow | ErrorName> {
    const { metadata, env, config } = this.#services;
    const decided = await metadata.submit({
      type: "create-topic",
      topicId: uuidOf(randomUuid(env.random)),
      name: OFFSETS_TOPIC,
      partitions: config.integer("offsets.topic.num.partitions"),
      replicationFactor: 1,
      configs: { "cleanup.policy": "compact" },
      internal: true,
    });
    if (!decided.ok && decided.reason !== "exists") return "COORDINATOR_NOT_AVAILABLE";
    return this.#topicRow() ?? "COORDINATOR_NOT_AVAILABLE";
  }

  /** Waits a little for a load, then tells the client to come again. */
  async #loaded(topic: TopicRow, partition: number): Promise<ShardFound> {
    const { env, partitions } = this.#services;
    const current = this.#shards.get(partition);
    const log = partitions.peek(topic.topicId, partition);
    if (current !== undefined && !current.closed && log === current.log) {
      return { ok: true, shard: current };
    }
    const enough = new AbortController();
    const running = this.#loading.run(partition, () => this.#load(topic, partition))
      .catch((error: unknown): ShardFound => ({
        ok: false,
        error: faultToCode(error, "coordinator"),
      }));
    const late = sleep(env.clock, GROUP_LOAD_WAIT_MS, enough.signal)
      .then((): ShardFound => ({ ok: false, error: "COORDINATOR_LOAD_IN_PROGRESS" }));
    try {
      return await Promise.race([running, late]);
    } finally {
      // Only once the race is decided: an earlier abort would let the sleep overtake the load's answer.
      enough.abort();
    }
  }

  async #load(topic: TopicRow, partition: number): Promise<ShardFound> {
    const located = await this.#services.partitions.open(topic.topicId, partition);
    if (!located.ok) {
      const moved = located.error === "NOT_LEADER_OR_FOLLOWER";
      return { ok: false, error: moved ? "NOT_COORDINATOR" : "COORDINATOR_NOT_AVAILABLE" };
    }
    const current = this.#shards.get(partition);
    if (current !== undefined && current.log === located.log) {
      if (!current.closed) return { ok: true, shard: current };
      // It has ended over a write that is not over: a reload would not see all that the log will hold.
      const { highWatermark, logEndOffset } = located.log;
      if (highWatermark < logEndOffset) return { ok: false, error: "COORDINATOR_LOAD_IN_PROGRESS" };
    }
    current?.close();
    this.#shards.delete(partition);
    const shard = await this.#read(partition, located.log);
    if (this.#closed || !this.#isLed(partition, located.log)) {
      shard.close();
      return { ok: false, error: "NOT_COORDINATOR" };
    }
    this.#shards.set(partition, shard);
    this.#services.env.log.log("info", "groups-loaded", { partition, groups: shard.groups.size });
    return { ok: true, shard };
  }

  async #read(partition: number, log: PartitionLog): Promise<Shard> {
    this.#failures.forgetWhere((failed, at) => at === partition && failed !== log);
    this.#failures.check(partition);
    const shard = this.#newShard(log);
    try {
      await shard.load();
    } catch (error) {
      shard.close();
      const pauseMs = this.#failures.failed(partition, error, log);
      const fields = { partition, pauseMs, reason: messageOf(error) };
      this.#services.env.log.log("warn", "groups-load-failed", fields);
      throw error;
    }
    this.#failures.forget(partition);
    return shard;
  }

  #newShard(log: PartitionLog): Shard {
    const { env, metadata } = this.#services;
    return new Shard({
      env,
      log,
      settings: this.#settings,
      retentionMs: this.#retentionMs,
      memory: this.#memory,
      newMemberId: (prefix) =>
        `${prefix === "" ? "member" : prefix}-${dashed(uuidOf(randomUuid(env.random)))}`,
      consumers: this.consumers,
      topicExists: (topicId) => topicId === ZERO_UUID || metadata.view().topics.has(topicId),
      compactBytesMin: this.#bounds.compactBytesMin ?? GROUP_COMPACT_BYTES_MIN,
    });
  }

  async #maintain(): Promise<void> {
    const { env } = this.#services;
    for (const shard of Array.from(this.#shards.values())) {
      try {
        await shard.maintain(env.clock.nowMs());
      } catch (error) {
        env.log.log("warn", "group-maintenance-failed", { reason: messageOf(error) });
      }
    }
    if (!this.#closed) this.#schedule();
  }

  #schedule(): void {
    const { env, config } = this.#services;
    const intervalMs = config.integer("offsets.retention.check.interval.ms");
    this.#cancelMaintenance = env.clock.after(intervalMs, () => void this.#maintain());
  }
}
