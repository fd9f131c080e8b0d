/**
 * Group coordination as plain calls: finds the shard of a group, loads it on first use, and runs the
 * group functions on it. Every node leads some partitions of `__consumer_offsets`; for the others it
 * answers NOT_COORDINATOR. A shard ends with its partition: whoever waits in it is told at once.
 */
import { randomUuid } from "../../env/random.ts";
import { messageOf } from "../../lib/errors.ts";
import { GROUP_COMPACT_BYTES_MIN, GROUP_STATE_BYTES_MAX } from "../../lib/limits.ts";
import { uuidOf, ZERO_UUID } from "../../lib/uuid.ts";
import type { PartitionLog } from "../../log/partition_log.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import { type LedShardFound, LedShards, type LedShardsServices } from "../shard/led_shards.ts";
import { OFFSETS_TOPIC } from "../topic_name.ts";
import { groupInteger } from "../group_configs.ts";
import { listOf } from "../property.ts";
import type { ShareListener, ShareStates } from "../share/share_states.ts";
import type { ConsumerHost } from "./consumer/live.ts";
import { RegexTopics } from "./consumer/regex_topics.ts";
import { MetadataTopics } from "./consumer/topic_view.ts";
import type { GroupSettings } from "./group.ts";
import { ShardMemory } from "../shard/shard_memory.ts";
import { Shard } from "./shard.ts";
import type { ShareHost } from "./share/live.ts";
import { createShareMembership } from "./share/share_membership.ts";

export type ShardFound = LedShardFound<Shard>;

/** To be asked after each await: a closed shard has forgotten its groups, which must not read as "none". */
export function stillOpen(found: ShardFound): ShardFound {
  return found.ok && found.shard.closed ? { ok: false, error: "NOT_COORDINATOR" } : found;
}

function dashed(uuid: string): string {
  return uuid.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

function settingsOf(config: LedShardsServices["config"]): GroupSettings {
  return {
    sessionTimeoutMsMin: config.integer("group.min.session.timeout.ms"),
    sessionTimeoutMsMax: config.integer("group.max.session.timeout.ms"),
    initialRebalanceDelayMs: config.integer("group.initial.rebalance.delay.ms"),
    membersMax: config.integer("group.max.size"),
  };
}

function consumerSettingsOf(config: LedShardsServices["config"]): ConsumerHost["settings"] {
  const migration = config.text("group.consumer.migration.policy");
  return {
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

export interface CoordinatorServices extends LedShardsServices {
  readonly shareGroups: ShareStates & ShareListener;
}

export class Coordinator {
  readonly #services: CoordinatorServices;
  readonly #bounds: CoordinatorBounds;
  readonly #settings: GroupSettings;
  readonly #topics: MetadataTopics;
  /** For groups of the consumer protocol. */
  readonly consumers: ConsumerHost;
  readonly shares: ShareHost;
  readonly #retentionMs: number;
  readonly #shards: LedShards<Shard>;
  readonly #memory: ShardMemory;
  #cancelMaintenance: () => void = () => {};
  #closed = false;

  constructor(services: CoordinatorServices, bounds: CoordinatorBounds = {}) {
    this.#services = services;
    this.#bounds = bounds;
    this.#memory = new ShardMemory(bounds.stateBytesMax ?? GROUP_STATE_BYTES_MAX);
    this.#shards = new LedShards({
      services,
      topic: OFFSETS_TOPIC,
      partitionsProperty: "offsets.topic.num.partitions",
      create: (log) => this.#newShard(log),
    });
    this.#settings = settingsOf(services.config);
    this.#topics = new MetadataTopics(services.metadata);
    this.consumers = {
      settings: consumerSettingsOf(services.config),
      timesOf: (groupId) => ({
        sessionTimeoutMs: groupInteger(services, groupId, "consumer.session.timeout.ms"),
        heartbeatIntervalMs: groupInteger(services, groupId, "consumer.heartbeat.interval.ms"),
      }),
      topics: this.#topics,
      regexes: new RegexTopics(services.env.clock, this.#topics),
    };
    this.shares = {
      env: services.env,
      topics: this.#topics,
      membership: createShareMembership(services),
      shareGroups: services.shareGroups,
      membersMax: services.config.integer("group.share.max.size"),
    };
    this.#retentionMs = services.config.integer("offsets.retention.minutes") * 60_000;
    this.#schedule();
  }

  /** The shard of a group, loaded; or why it cannot be used here and now. */
  shardOf(groupId: string): Promise<ShardFound> {
    return this.#shards.shardOf(groupId);
  }

  /** The shard of a partition of the offsets topic, for the markers that are to be written there. */
  shardAt(partition: number): Promise<ShardFound> {
    return this.#shards.shardAt(partition);
  }

  /** Where a group's offsets are stored; creates the offsets topic when it is missing. */
  partitionOf(groupId: string): Promise<number | ErrorName> {
    return this.#shards.partitionOf(groupId);
  }

  /** Who coordinates a group, by the local replica; creates the offsets topic when it is missing. */
  locate(
    groupId: string,
  ): Promise<{ readonly leader: number | null } | { readonly error: ErrorName }> {
    return this.#shards.locate(groupId);
  }

  /** Shards that this node leads, loaded. */
  allShards(): Promise<readonly ShardFound[]> {
    return this.#shards.all();
  }

  close(): void {
    this.#closed = true;
    this.#topics.close();
    this.#cancelMaintenance();
    this.#shards.close();
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
      shares: this.shares,
      topicExists: (topicId) => topicId === ZERO_UUID || metadata.view().topics.has(topicId),
      compactBytesMin: this.#bounds.compactBytesMin ?? GROUP_COMPACT_BYTES_MIN,
    });
  }

  async #maintain(): Promise<void> {
    const { env } = this.#services;
    for (const shard of this.#shards.inMemory()) {
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
