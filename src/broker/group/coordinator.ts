/**
 * Group coordination as plain calls: finds the shard of a group, loads it on first use, and runs the
 * group functions on it. Every node leads some partitions of `__consumer_offsets`; for the others it
 * answers NOT_COORDINATOR.
 */
import { sleep } from "../../env/clock.ts";
import { randomUuid } from "../../env/random.ts";
import { isFault, messageOf } from "../../lib/errors.ts";
import { GROUP_LOAD_WAIT_MS } from "../../lib/limits.ts";
import { SingleFlight } from "../../lib/single_flight.ts";
import { uuidOf } from "../../lib/uuid.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import type { BrokerServices } from "../handler.ts";
import { faultToCode } from "../fault_to_code.ts";
import { partitionKey, type TopicRow } from "../../controller/image.ts";
import { Shard } from "./shard.ts";

export const OFFSETS_TOPIC = "__consumer_offsets";

export type ShardFound =
  | { readonly ok: true; readonly shard: Shard }
  | { readonly ok: false; readonly error: ErrorName };

export interface Coordinator {
  /** The shard of a group, loaded; or why it cannot be used here and now. */
  shardOf(groupId: string): Promise<ShardFound>;
  /** Who coordinates a group, by the local replica; creates the offsets topic when it is missing. */
  locate(
    groupId: string,
  ): Promise<{ readonly leader: number | null } | { readonly error: ErrorName }>;
  /** Shards that this node leads, loaded. */
  allShards(): Promise<readonly ShardFound[]>;
  close(): void;
}

type Services = Pick<BrokerServices, "env" | "nodeId" | "metadata" | "partitions" | "config">;

/** Java's String.hashCode over UTF-16 units, made non-negative as Kafka does it. */
export function javaHash(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return hash & 0x7fffffff;
}

export function createCoordinator(services: Services): Coordinator {
  const { env, nodeId, metadata, partitions, config } = services;
  const shards = new Map<number, Shard>();
  const loading = new SingleFlight<number, ShardFound>();
  const creating = new SingleFlight<string, TopicRow | ErrorName>();
  const settings = {
    sessionTimeoutMsMin: config.integer("group.min.session.timeout.ms"),
    sessionTimeoutMsMax: config.integer("group.max.session.timeout.ms"),
    initialRebalanceDelayMs: config.integer("group.initial.rebalance.delay.ms"),
    membersMax: config.integer("group.max.size"),
  };
  const retentionMs = config.integer("offsets.retention.minutes") * 60_000;
  let closed = false;

  function topicRow(): TopicRow | undefined {
    const image = metadata.view();
    const topicId = image.topicIds.get(OFFSETS_TOPIC);
    return topicId === undefined ? undefined : image.topics.get(topicId);
  }

  async function createTopic(): Promise<TopicRow | ErrorName> {
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
    return topicRow() ?? "COORDINATOR_NOT_AVAILABLE";
  }

  async function offsetsTopic(): Promise<TopicRow | ErrorName> {
    const known = topicRow();
    if (known !== undefined) return known;
    try {
      return await creating.run(OFFSETS_TOPIC, createTopic);
    } catch (error) {
      return faultToCode(error, "coordinator");
    }
  }

  async function load(topic: TopicRow, partition: number): Promise<ShardFound> {
    const located = await partitions.open(topic.topicId, partition);
    if (!located.ok) {
      return {
        ok: false,
        error: located.error === "NOT_LEADER_OR_FOLLOWER"
          ? "NOT_COORDINATOR"
          : "COORDINATOR_NOT_AVAILABLE",
      };
    }
    const current = shards.get(partition);
    if (current !== undefined && current.log === located.log) return { ok: true, shard: current };
    current?.close();
    shards.delete(partition);
    const shard = new Shard({
      env,
      log: located.log,
      settings,
      retentionMs,
      newMemberId: (prefix) =>
        `${prefix === "" ? "member" : prefix}-${dashed(uuidOf(randomUuid(env.random)))}`,
      topicExists: (topicId) => /^0+$/.test(topicId) || metadata.view().topics.has(topicId),
    });
    await shard.load();
    if (closed) {
      shard.close();
      return { ok: false, error: "NOT_COORDINATOR" };
    }
    shards.set(partition, shard);
    env.log.log("info", "groups-loaded", { partition, groups: shard.groups.size });
    return { ok: true, shard };
  }

  /** Waits a little for a load, then tells the client to come again. */
  async function loaded(topic: TopicRow, partition: number): Promise<ShardFound> {
    const current = shards.get(partition);
    if (current !== undefined && partitions.peek(topic.topicId, partition) === current.log) {
      return { ok: true, shard: current };
    }
    const enough = new AbortController();
    const running = loading.run(partition, () => load(topic, partition)).catch(
      (error: unknown): ShardFound => {
        env.log.log("warn", "groups-load-failed", { partition, reason: messageOf(error) });
        if (!isFault(error)) throw error;
        return { ok: false, error: faultToCode(error, "coordinator") };
      },
    ).finally(() => enough.abort());
    const late = sleep(env.clock, GROUP_LOAD_WAIT_MS, enough.signal)
      .then((): ShardFound => ({ ok: false, error: "COORDINATOR_LOAD_IN_PROGRESS" }));
    return await Promise.race([running, late]);
  }

  async function maintain(): Promise<void> {
    for (const shard of [...shards.values()]) {
      try {
        await shard.maintain(env.clock.nowMs());
      } catch (error) {
        env.log.log("warn", "group-maintenance-failed", { reason: messageOf(error) });
      }
    }
    if (!closed) schedule();
  }

  let cancelMaintenance = () => {};
  function schedule(): void {
    cancelMaintenance = env.clock.after(
      config.integer("offsets.retention.check.interval.ms"),
      () => void maintain(),
    );
  }
  schedule();

  return {
    async shardOf(groupId) {
      if (closed) return { ok: false, error: "NOT_COORDINATOR" };
      const topic = await offsetsTopic();
      if (typeof topic === "string") return { ok: false, error: topic };
      return await loaded(topic, javaHash(groupId) % topic.partitions);
    },
    async locate(groupId) {
      const topic = await offsetsTopic();
      if (typeof topic === "string") return { error: topic };
      const key = partitionKey(topic.topicId, javaHash(groupId) % topic.partitions);
      return { leader: metadata.view().partitions.get(key)?.leader ?? null };
    },
    async allShards() {
      const topic = topicRow();
      if (topic === undefined) return [];
      const led = Array.from({ length: topic.partitions }, (_, partition) => partition)
        .filter((partition) =>
          metadata.view().partitions.get(partitionKey(topic.topicId, partition))?.leader === nodeId
        );
      return await Promise.all(led.map((partition) => loaded(topic, partition)));
    },
    close() {
      closed = true;
      cancelMaintenance();
      for (const shard of shards.values()) shard.close();
      shards.clear();
    },
  };
}

function dashed(uuid: string): string {
  return uuid.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
