/**
 * The partitions of an internal topic that this node leads, each as a shard: state rebuilt from the partition's
 * log on first use, and let go when another node or another epoch leads it. Ids are spread by Java's hash.
 */
import { sleep } from "../../env/clock.ts";
import { randomUuid } from "../../env/random.ts";
import { messageOf } from "../../lib/errors.ts";
import { GROUP_LOAD_WAIT_MS } from "../../lib/limits.ts";
import { SingleFlight } from "../../lib/single_flight.ts";
import { uuidOf } from "../../lib/uuid.ts";
import { partitionKey, type PartitionRow, type TopicRow } from "../../controller/image.ts";
import type { PartitionLog } from "../../log/partition_log.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import { FailurePauses } from "../failure_pauses.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { BrokerServices } from "../handler.ts";
import { partitionOfId, type Placement } from "../java_hash.ts";

export interface LedShard {
  readonly log: PartitionLog;
  /** Closed by its owner or by a fault; it is then loaded again. */
  readonly closed: boolean;
  /** Replays the log; the shard answers nobody before that. */
  load(): Promise<void>;
  /** Called once it is found; nobody was asked before. */
  start?(): void;
  close(): void;
}

export type LedShardFound<S> =
  | { readonly ok: true; readonly shard: S }
  | { readonly ok: false; readonly error: ErrorName };

export type LedShardsServices = Pick<
  BrokerServices,
  "env" | "nodeId" | "metadata" | "partitions" | "config"
>;

export interface LedShardsOptions<S extends LedShard> {
  readonly services: LedShardsServices;
  readonly topic: string;
  /** The property that says how many partitions the topic gets. */
  readonly partitionsProperty: string;
  /** Of the topic; compacted by key when absent. */
  readonly topicConfigs?: Readonly<Record<string, string>>;
  readonly create: (log: PartitionLog) => S;
}

const KAFKA: Placement = "kafka";

/** How the ids of an internal topic are placed; topics of earlier builds have none. */
function placementKey(topicId: string): string {
  return `kafka/placement/${topicId}`;
}

export class LedShards<S extends LedShard> {
  readonly #options: LedShardsOptions<S>;
  readonly #services: LedShardsServices;
  readonly #shards = new Map<number, S>();
  readonly #loading = new SingleFlight<number, LedShardFound<S>>();
  readonly #creating = new SingleFlight<string, TopicRow | ErrorName>();
  /** Partitions whose log opens and cannot be read. */
  readonly #failures: FailurePauses<number, PartitionLog>;
  readonly #unsubscribe: () => void;
  #closed = false;

  constructor(options: LedShardsOptions<S>) {
    this.#options = options;
    this.#services = options.services;
    this.#failures = new FailurePauses(options.services.env.clock);
    this.#unsubscribe = options.services.metadata.onChange(() => this.#follow());
  }

  /** Whether anything was ever stored; nothing can be found otherwise. */
  get exists(): boolean {
    return this.#topicRow() !== undefined;
  }

  /** The shard of an id, loaded; or why it cannot be used here and now. Creates the topic when it is missing. */
  async shardOf(id: string): Promise<LedShardFound<S>> {
    if (this.#closed) return { ok: false, error: "NOT_COORDINATOR" };
    const topic = await this.#ensureTopic();
    if (typeof topic === "string") return { ok: false, error: topic };
    return await this.#loaded(topic, this.#partitionOf(topic, id));
  }

  /** The shard of a partition of the topic, if there is a topic. */
  async shardAt(partition: number): Promise<LedShardFound<S>> {
    const topic = this.#topicRow();
    if (this.#closed || topic === undefined) return { ok: false, error: "NOT_COORDINATOR" };
    return await this.#loaded(topic, partition);
  }

  /** Where an id is stored; creates the topic when it is missing. */
  async partitionOf(id: string): Promise<number | ErrorName> {
    const topic = await this.#ensureTopic();
    return typeof topic === "string" ? topic : this.#partitionOf(topic, id);
  }

  /** Who coordinates an id, by the local replica; creates the topic when it is missing. */
  async locate(
    id: string,
  ): Promise<{ readonly leader: number | null } | { readonly error: ErrorName }> {
    const topic = await this.#ensureTopic();
    if (typeof topic === "string") return { error: topic };
    return { leader: this.#rowOf(topic, this.#partitionOf(topic, id))?.leader ?? null };
  }

  /** Shards that this node leads, loaded; but those of partitions in which nothing was ever stored. */
  async all(): Promise<readonly LedShardFound<S>[]> {
    if (this.#closed) return [{ ok: false, error: "NOT_COORDINATOR" }];
    const topic = this.#topicRow();
    if (topic === undefined) return [];
    const led = Array.from({ length: topic.partitions }, (_, partition) => partition)
      .filter((partition) => {
        const row = this.#rowOf(topic, partition);
        return row?.leader === this.#services.nodeId && row.metaStream !== null;
      });
    return await Promise.all(led.map((partition) => this.#loaded(topic, partition)));
  }

  /** Those that are loaded now. */
  inMemory(): readonly S[] {
    return [...this.#shards.values()];
  }

  close(): void {
    this.#closed = true;
    this.#unsubscribe();
    for (const shard of this.#shards.values()) shard.close();
    this.#shards.clear();
  }

  #topicRow(): TopicRow | undefined {
    const image = this.#services.metadata.view();
    const topicId = image.topicIds.get(this.#options.topic);
    return topicId === undefined ? undefined : image.topics.get(topicId);
  }

  #partitionOf({ topicId, partitions }: TopicRow, id: string): number {
    const placement = this.#services.metadata.view().kv.get(placementKey(topicId))?.value;
    return partitionOfId(id, partitions, placement === KAFKA ? KAFKA : "masked");
  }

  #rowOf(topic: TopicRow, partition: number): PartitionRow | undefined {
    return this.#services.metadata.view().partitions.get(partitionKey(topic.topicId, partition));
  }

  /** By the metadata alone: the partition's log may follow it earlier or later than we do. */
  #isLed(partition: number, log: PartitionLog): boolean {
    const topic = this.#topicRow();
    const row = topic === undefined ? undefined : this.#rowOf(topic, partition);
    return row?.leader === this.#services.nodeId && row.leaderEpoch === log.leaderEpoch;
  }

  #follow(): void {
    for (const [partition, shard] of this.#shards) {
      if (this.#isLed(partition, shard.log)) continue;
      this.#shards.delete(partition);
      shard.close();
    }
  }

  async #ensureTopic(): Promise<TopicRow | ErrorName> {
    const known = this.#topicRow();
    if (known !== undefined) return known;
    try {
      return await this.#creating.run(this.#options.topic, () => this.#createTopic());
    } catch (error) {
      return faultToCode(error, "coordinator");
    }
  }

  async #createTopic(): Promise<TopicRow | ErrorName> {
    const { metadata, env, config } = this.#services;
    const topicId = uuidOf(randomUuid(env.random));
    // Before the topic, so that none of its ids was ever placed otherwise.
    await metadata.submit({
      type: "put-kv",
      key: placementKey(topicId),
      value: KAFKA,
      expectedVersion: 0,
    });
    const decided = await metadata.submit({
      type: "create-topic",
      topicId,
      name: this.#options.topic,
      partitions: config.integer(this.#options.partitionsProperty),
      replicationFactor: 1,
      configs: this.#options.topicConfigs ?? { "cleanup.policy": "compact" },
      internal: true,
    });
    if (!decided.ok && decided.reason !== "exists") return "COORDINATOR_NOT_AVAILABLE";
    return this.#topicRow() ?? "COORDINATOR_NOT_AVAILABLE";
  }

  /** Waits a little for a load, then tells the client to come again. */
  async #loaded(topic: TopicRow, partition: number): Promise<LedShardFound<S>> {
    const { env, partitions } = this.#services;
    const current = this.#shards.get(partition);
    if (
      current?.closed === false &&
      partitions.peek(topic.topicId, partition) === current.log
    ) return { ok: true, shard: current };
    const enough = new AbortController();
    const running = this.#loading.run(partition, () => this.#load(topic, partition))
      .catch((error: unknown): LedShardFound<S> => ({
        ok: false,
        error: faultToCode(error, "coordinator"),
      }));
    const late = sleep(env.clock, GROUP_LOAD_WAIT_MS, enough.signal)
      .then((): LedShardFound<S> => ({ ok: false, error: "COORDINATOR_LOAD_IN_PROGRESS" }));
    try {
      return await Promise.race([running, late]);
    } finally {
      // Only once the race is decided: an earlier abort would let the sleep overtake the load's answer.
      enough.abort();
    }
  }

  async #load(topic: TopicRow, partition: number): Promise<LedShardFound<S>> {
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
    shard.start?.();
    this.#services.env.log.log("info", "shard-loaded", { topic: topic.name, partition });
    return { ok: true, shard };
  }

  async #read(partition: number, log: PartitionLog): Promise<S> {
    this.#failures.forgetWhere((failed, at) => at === partition && failed !== log);
    this.#failures.check(partition);
    const shard = this.#options.create(log);
    try {
      await shard.load();
    } catch (error) {
      shard.close();
      const pauseMs = this.#failures.failed(partition, error, log);
      const { topic } = this.#options;
      const fields = { topic, partition, pauseMs, reason: messageOf(error) };
      this.#services.env.log.log("warn", "shard-load-failed", fields);
      throw error;
    }
    this.#failures.forget(partition);
    return shard;
  }
}
