/** The gateway's administration on the broker: the same rules and the same places as Kafka's admin APIs. */
import { isFault } from "../lib/errors.ts";
import { KV_CHANGES_MAX } from "../lib/limits.ts";
import { costOf, readUsage, type Usage } from "../config/cost.ts";
import type { StorePrices } from "../config/prices.ts";
import type { TopicRow } from "../controller/image.ts";
import {
  changeProblem,
  changeQuota,
  type Entity,
  readEntity,
  storedQuotas,
} from "../broker/client_quotas.ts";
import { deleteRecords } from "../broker/delete_records.ts";
import { liveNodes } from "../broker/endpoints.ts";
import { faultToCode } from "../broker/fault_to_code.ts";
import { FEATURES } from "../broker/features.ts";
import type { BrokerServices } from "../broker/handler.ts";
import { inGroups } from "../broker/many.ts";
import { effectiveConfigs } from "../broker/topic_config.ts";
import type { TopicOutcome } from "../broker/topics.ts";
import type {
  AdminGateway,
  ConfigChanges,
  ConfigRow,
  NodeRow,
  PartitionRow,
  QuotaRow,
  RecordsDeleted,
  RecordsToDelete,
  StoreCosts,
} from "../http/admin/admin_port.ts";
import type { Failure } from "../http/port.ts";

type Outcome = { readonly ok: true } | Failure;

function refuse(error: Failure["error"], message: string): Failure {
  return { ok: false, error, message };
}

async function outcomeOf(work: () => Promise<TopicOutcome>): Promise<Outcome> {
  try {
    return await work();
  } catch (error) {
    if (!isFault(error)) throw error;
    return refuse(faultToCode(error, "admin"), "The metadata log cannot be written now");
  }
}

/** Before the store has seen a request. */
const NOTHING: Usage = {
  writes: 0,
  reads: 0,
  deletes: 0,
  bytesIn: 0,
  bytesOut: 0,
  produced: 0,
  byOp: {},
  byClass: {},
};

function isSame(a: Entity, b: Entity): boolean {
  return a.size === b.size && [...a].every(([type, name]) => b.has(type) && b.get(type) === name);
}

function given<T>(fields: Readonly<Record<string, T | undefined>>): [string, T][] {
  return Object.entries(fields).filter((field): field is [string, T] => field[1] !== undefined);
}

export class HttpAdmin implements AdminGateway {
  readonly #services: BrokerServices;
  readonly #prices: readonly StorePrices[];

  constructor(services: BrokerServices, prices: readonly StorePrices[]) {
    this.#services = services;
    this.#prices = prices;
  }

  async describeConfigs(name: string): Promise<readonly ConfigRow[] | null> {
    const { topics, config } = this.#services;
    await topics.look([name]);
    const topic = topics.find(name);
    if (topic === undefined) return null;
    return effectiveConfigs(topic.configs, config).map(({ property, value, source, synonyms }) => ({
      name: property.name,
      value,
      // What holds without the topic's own setting.
      default: synonyms.find((one) => one.source !== "topic")!.value,
      source,
      type: property.type,
      documentation: property.documentation,
    }));
  }

  async changeTopic(
    name: string,
    { partitions, configs }: {
      readonly partitions: number | null;
      readonly configs: ConfigChanges;
    },
  ): Promise<Outcome> {
    const { topics } = this.#services;
    await topics.look([name]);
    const topic = topics.find(name);
    if (topic === undefined) {
      return refuse("UNKNOWN_TOPIC_OR_PARTITION", `Cannot find topic ${name}`);
    }
    const alter = (validateOnly: boolean) =>
      outcomeOf(() => this.#alterConfigs(name, configs, validateOnly));
    const grow = (validateOnly: boolean) =>
      partitions === null || partitions === topic.partitions
        ? { ok: true as const }
        : outcomeOf(() => topics.grow(name, partitions, { validateOnly }));
    for (const validateOnly of [true, false]) {
      for (const change of [alter, grow]) {
        const outcome = await change(validateOnly);
        if (!outcome.ok) return outcome;
      }
    }
    return { ok: true };
  }

  /** As often as others change the same topic meanwhile. */
  async #alterConfigs(
    name: string,
    configs: ConfigChanges,
    validateOnly: boolean,
  ): Promise<TopicOutcome> {
    const { topics } = this.#services;
    for (let tries = 0; tries < KV_CHANGES_MAX; tries++) {
      const topic = topics.find(name);
      if (topic === undefined) break;
      const outcome = await topics.alterConfigs(topic, configs, { validateOnly });
      if (outcome !== "stale") return outcome;
    }
    const message = `Cannot change ${name}: others change it all the time, or have deleted it`;
    return { ok: false, error: "NOT_CONTROLLER", message };
  }

  async describePartitions(
    name: string,
    from: number,
    limit: number,
  ): Promise<readonly PartitionRow[] | null> {
    const { topics, env } = this.#services;
    await topics.look([name]);
    const topic = topics.find(name);
    if (topic === undefined) return null;
    const count = Math.max(0, Math.min(limit, topic.partitions - from));
    const wanted = Array.from({ length: count }, (_, i) => from + i);
    return await inGroups(env.clock, wanted, (partition) => this.#partition(topic, partition));
  }

  async #partition({ topicId }: TopicRow, partition: number): Promise<PartitionRow> {
    const row = this.#services.partitions.leaderOf(topicId, partition);
    const leader = row?.leader ?? null;
    const log = await this.#logOf(topicId, partition);
    return { partition, leader, leaderEpoch: row?.leaderEpoch ?? -1, log };
  }

  async #logOf(topicId: TopicRow["topicId"], partition: number): Promise<PartitionRow["log"]> {
    try {
      const located = await this.#services.partitions.open(topicId, partition);
      if (!located.ok) return null;
      const { logStartOffset, highWatermark, lastStableOffset, sizeBytes } = located.log;
      return {
        earliest: logStartOffset,
        latest: highWatermark,
        lastStable: lastStableOffset,
        bytes: sizeBytes,
      };
    } catch (error) {
      if (!isFault(error)) throw error;
      return null;
    }
  }

  async deleteRecords(
    name: string,
    wanted: readonly RecordsToDelete[],
  ): Promise<readonly RecordsDeleted[]> {
    const { topics, env } = this.#services;
    await topics.look([name]);
    const topic = topics.find(name);
    return await inGroups(env.clock, wanted, async ({ partition, before }) => {
      const deleted = await deleteRecords(this.#services, topic, partition, before);
      return deleted.ok
        ? { ok: true, partition, logStart: deleted.logStartOffset }
        : { ...deleted, partition };
    });
  }

  nodes(): readonly NodeRow[] {
    return liveNodes(this.#services);
  }

  featureLevels(): Readonly<Record<string, number>> {
    const { features } = this.#services;
    return Object.fromEntries(FEATURES.map(({ name }) => [name, features.levelOf(name)]));
  }

  quotas(): readonly QuotaRow[] {
    return storedQuotas(this.#services.metadata).map(({ entity, limits }) => ({
      entity: Object.fromEntries(entity),
      limits: Object.fromEntries(limits),
    }));
  }

  async putQuota({ entity: names, limits }: QuotaRow): Promise<Outcome> {
    const { metadata } = this.#services;
    const parts = given(names).map(([entityType, entityName]) => ({ entityType, entityName }));
    const entity = readEntity(parts);
    if (typeof entity === "string") return refuse("INVALID_REQUEST", entity);
    const set = given(limits).map(([key, value]) => ({ key, value, remove: false }));
    for (const change of set) {
      const problem = changeProblem(entity, change);
      if (problem !== null) return refuse("INVALID_REQUEST", problem);
    }
    const stored = storedQuotas(metadata).find((one) => isSame(one.entity, entity));
    const gone = [...stored?.limits.keys() ?? []].filter((one) => !Object.hasOwn(limits, one))
      .map((one) => ({ key: one, value: 0, remove: true }));
    return await outcomeOf(async () =>
      await changeQuota(metadata, entity, [...gone, ...set]) ?? { ok: true }
    );
  }

  costs(): StoreCosts {
    const usage = readUsage(this.#services.env.metrics.render()) ?? NOTHING;
    const { produced, byClass, writes, reads, deletes, bytesIn, bytesOut } = usage;
    const { costs } = costOf({ before: null, usage, prices: this.#prices });
    return {
      produced,
      requests: { writes, reads, deletes, bytesIn, bytesOut },
      byClass,
      costs: costs.map(({ store, total, perGib }) => ({ store, total, perGib })),
    };
  }
}
