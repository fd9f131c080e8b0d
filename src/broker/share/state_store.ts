/**
 * The states of share partitions that are stored on this node: in `__share_group_state`, which is cut into
 * partitions by Kafka's hash. Its records are changes of changes, so that it is never compacted by key; each
 * shard writes its log anew instead.
 */
import { messageOf } from "../../lib/errors.ts";
import {
  SHARE_MAINTENANCE_MS,
  SHARE_STATE_BYTES_MAX,
  SHARE_STATE_COMPACT_BYTES_MIN,
} from "../../lib/limits.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import { faultToCode } from "../fault_to_code.ts";
import { LedShards, type LedShardsServices } from "../shard/led_shards.ts";
import { ShardMemory } from "../shard/shard_memory.ts";
import { SHARE_STATE_TOPIC } from "../topic_name.ts";
import type { Stored } from "./share_partition.ts";
import type { ShareState, ShareStateChange } from "./share_state.ts";
import type { SharePartitionKey } from "./share_states.ts";
import { coordinatorKey } from "./state_records.ts";
import { StateShard } from "./state_shard.ts";

export class StateStore {
  readonly #services: LedShardsServices;
  readonly #shards: LedShards<StateShard>;
  readonly #memory = new ShardMemory(SHARE_STATE_BYTES_MAX);
  #cancelMaintenance: () => void = () => {};
  #closed = false;

  constructor(services: LedShardsServices) {
    this.#services = services;
    const { env, config } = services;
    this.#shards = new LedShards({
      services,
      topic: SHARE_STATE_TOPIC,
      partitionsProperty: "share.coordinator.state.topic.num.partitions",
      topicConfigs: { "cleanup.policy": "delete", "retention.ms": "-1" },
      create: (log) =>
        new StateShard({
          env,
          log,
          memory: this.#memory,
          updatesMax: config.integer("share.coordinator.snapshot.update.records.per.snapshot"),
          compactBytesMin: SHARE_STATE_COMPACT_BYTES_MIN,
        }),
    });
    this.#schedule();
  }

  /** Runs on the shard of a key; its faults become codes. */
  async #on<T>(
    key: SharePartitionKey,
    work: (shard: StateShard) => Promise<T | ErrorName>,
  ): Promise<T | ErrorName> {
    try {
      const found = await this.#shards.shardOf(coordinatorKey(key));
      return found.ok ? await work(found.shard) : found.error;
    } catch (error) {
      return faultToCode(error, "coordinator");
    }
  }

  initialize(
    key: SharePartitionKey,
    stateEpoch: number,
    startOffset: number,
  ): Promise<ErrorName | null> {
    return this.#on(key, (shard) => shard.initialize(key, stateEpoch, startOffset));
  }

  /** Null when nobody has begun one. */
  async find(key: SharePartitionKey): Promise<ShareState | ErrorName | null> {
    if (!this.#shards.exists) return null;
    return await this.#on<ShareState | null>(key, (shard) => Promise.resolve(shard.find(key)));
  }

  async remove(key: SharePartitionKey): Promise<ErrorName | null> {
    if (!this.#shards.exists) return null;
    return await this.#on<null>(key, (shard) => shard.remove(key).then(() => null));
  }

  /** Resolves when the change is in the log; what that comes to is known later. Throws FaultError. */
  async store(
    key: SharePartitionKey,
    stateEpoch: number,
    change: ShareStateChange,
  ): Promise<Stored> {
    const found = await this.#shards.shardOf(coordinatorKey(key));
    if (!found.ok) return { outcome: Promise.resolve(found.error) };
    const outcome = found.shard.write(key, stateEpoch, change);
    // Whoever asked may be gone by then.
    outcome.catch(() => {});
    return { outcome };
  }

  close(): void {
    this.#closed = true;
    this.#cancelMaintenance();
    this.#shards.close();
  }

  #schedule(): void {
    if (this.#closed) return;
    const { clock } = this.#services.env;
    this.#cancelMaintenance = clock.after(SHARE_MAINTENANCE_MS, () => void this.#maintain());
  }

  /** Of what is loaded: a shard that nobody asks for stays as it is. */
  async #maintain(): Promise<void> {
    for (const shard of this.#shards.inMemory()) {
      const topicExists = (topicId: string) => this.#services.metadata.view().topics.has(topicId);
      try {
        if (!shard.closed) await shard.maintain(topicExists);
      } catch (error) {
        const reason = messageOf(error);
        this.#services.env.log.log("warn", "share-state-maintenance-failed", { reason });
      }
    }
    this.#schedule();
  }
}
