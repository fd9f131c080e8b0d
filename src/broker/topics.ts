/**
 * Topics as clients change them: create, delete, grow, configure, create on first use. Shared by the
 * Kafka APIs and the gateway; names, numbers and configs are checked here, once.
 */
import type { Env } from "../env/env.ts";
import { randomUuid } from "../env/random.ts";
import {
  REPLICATION_FACTOR_MAX,
  TOPIC_PARTITIONS_MAX,
  TOPICS_PER_REQUEST_MAX,
} from "../lib/limits.ts";
import { SingleFlight } from "../lib/single_flight.ts";
import { type Uuid, uuidOf, ZERO_UUID } from "../lib/uuid.ts";
import type { ErrorName } from "../protocol/error_code.ts";
import type { RefusalReason, Refused } from "../controller/command.ts";
import type { TopicRow } from "../controller/image.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import type { BrokerConfig } from "./broker_config.ts";
import {
  brokersOwn,
  checkTopicConfigs,
  configConflict,
  isBrokersKey,
  isRemovedKey,
  type TopicConfigs,
} from "./topic_config.ts";
import { CollisionIndex } from "./collision_index.ts";
import { SecondLook } from "./second_look.ts";
import {
  collisionKey,
  OFFSETS_TOPIC,
  SHARE_STATE_TOPIC,
  topicNameProblem,
  TRANSACTIONS_TOPIC,
} from "./topic_name.ts";

export interface NewTopic {
  readonly name: string;
  /** -1 for the broker's default. */
  readonly partitions: number;
  /** -1 for the broker's default; any factor from 1 is accepted and echoed. */
  readonly replicationFactor: number;
  readonly configs: Iterable<readonly [string, string | null]>;
}

export interface TopicRefused {
  readonly ok: false;
  readonly error: ErrorName;
  readonly message: string;
}
export type TopicOutcome<T = unknown> = ({ readonly ok: true } & T) | TopicRefused;

export interface ChangeOptions {
  readonly validateOnly?: boolean;
  /** It is the broker itself, which may set what clients may not. */
  readonly byBroker?: boolean;
}

export interface Topics {
  find(name: string): TopicRow | undefined;
  findById(topicId: Uuid): TopicRow | undefined;
  /**
   * To be awaited before topics are called unknown: another node may just have made them. Null when there is nothing
   * to wait for. Never rejects.
   */
  look(names: Iterable<string>): Promise<void> | null;
  /** The same for ids. */
  lookById(topicIds: Iterable<Uuid>): Promise<void> | null;
  create(
    topic: NewTopic,
    options?: ChangeOptions,
  ): Promise<TopicOutcome<{ readonly topic: TopicRow }>>;
  /** The topic, created with the broker's defaults if that is enabled and asked for. */
  ensure(name: string, allowCreate: boolean): Promise<TopicOutcome<{ readonly topic: TopicRow }>>;
  delete(topicId: Uuid): Promise<TopicOutcome>;
  /** Grows a topic to `partitions` in all. */
  grow(
    name: string,
    partitions: number,
    options?: { readonly validateOnly?: boolean },
  ): Promise<TopicOutcome>;
  /**
   * Sets overrides; null removes one. Values are checked as for a new topic, and together with the overrides that
   * the caller has seen: "stale" when those are others by now, and nothing was done. What is the broker's own stays.
   */
  alterConfigs(
    topic: TopicRow,
    changes: Readonly<Record<string, string | null>>,
    options?: ChangeOptions,
  ): Promise<TopicOutcome | "stale">;
}

export interface TopicsOptions {
  readonly env: Env;
  readonly metadata: MetadataStore;
  readonly config: BrokerConfig;
}

const REFUSALS: Readonly<Record<RefusalReason, ErrorName>> = {
  "fenced": "NOT_CONTROLLER",
  "not-found": "UNKNOWN_TOPIC_OR_PARTITION",
  "exists": "TOPIC_ALREADY_EXISTS",
  "not-open": "INVALID_REQUEST",
  "not-closed": "INVALID_REQUEST",
  "not-continuous": "INVALID_REQUEST",
  "invalid": "INVALID_REQUEST",
  "conflict": "NOT_CONTROLLER",
};

function refuse(error: ErrorName, message: string): TopicRefused {
  return { ok: false, error, message };
}

function refusal(refused: Refused): TopicRefused {
  return refuse(REFUSALS[refused.reason], refused.detail);
}

/** Either would lose every group's offsets: the groups live in its partitions, by hash. */
function refuseInternal(name: string): TopicRefused {
  return refuse("INVALID_TOPIC_EXCEPTION", `The internal topic ${name} stays as it is`);
}

function unknownTopic(name: string): TopicRefused {
  return refuse("UNKNOWN_TOPIC_OR_PARTITION", `This server does not host the topic ${name}.`);
}

/** What is wrong with the shape of a new topic, before anything is looked up. */
function checkShape(topic: NewTopic): TopicRefused | null {
  const problem = topicNameProblem(topic.name);
  if (problem !== null) {
    return refuse("INVALID_TOPIC_EXCEPTION", `Topic name is invalid: ${problem}`);
  }
  const { partitions, replicationFactor: factor } = topic;
  if (partitions !== -1 && (partitions < 1 || partitions > TOPIC_PARTITIONS_MAX)) {
    return refuse(
      "INVALID_PARTITIONS",
      `Number of partitions must be from 1 to ${TOPIC_PARTITIONS_MAX}, not ${partitions}`,
    );
  }
  return factor !== -1 && (factor < 1 || factor > REPLICATION_FACTOR_MAX)
    ? refuse(
      "INVALID_REPLICATION_FACTOR",
      `Replication factor must be at least 1, not ${factor}`,
    )
    : null;
}

/** The answer to every topic of a request that creates or grows too many. */
export function tooManyTopics(count: number): TopicRefused | null {
  return count > TOPICS_PER_REQUEST_MAX
    ? refuse(
      "POLICY_VIOLATION",
      `${count} topics in one request; ${TOPICS_PER_REQUEST_MAX} are allowed`,
    )
    : null;
}

const CLEANUP = "cleanup.policy";

/** Null removes an override. */
function withChanges(
  configs: TopicConfigs,
  changes: Readonly<Record<string, string | null>>,
): TopicConfigs {
  const next = Object.entries({ ...configs, ...changes });
  return Object.fromEntries(next.filter((one): one is [string, string] => one[1] !== null));
}

interface Validation {
  readonly validateOnly?: boolean;
}

class TopicRegistry implements Topics {
  readonly #env: Env;
  readonly #metadata: MetadataStore;
  readonly #config: BrokerConfig;
  readonly #creating = new SingleFlight<string, TopicOutcome<{ readonly topic: TopicRow }>>();

  readonly #collisions = new CollisionIndex();
  readonly #secondLook: SecondLook;
  /** By collision key. */
  readonly #reserved = new Map<string, string>();

  constructor({ env, metadata, config }: TopicsOptions) {
    this.#env = env;
    this.#metadata = metadata;
    this.#config = config;
    this.#secondLook = new SecondLook({ env, metadata });
  }

  look(names: Iterable<string>): Promise<void> | null {
    return this.#secondLook.look(
      names,
      (name) => this.find(name) !== undefined || topicNameProblem(name) !== null,
    );
  }

  lookById(topicIds: Iterable<Uuid>): Promise<void> | null {
    // Names have no slash.
    const keys = Array.from(topicIds, (id) => `/${id}`);
    const isKnown = (id: Uuid) => id === ZERO_UUID || this.findById(id) !== undefined;
    return this.#secondLook.look(keys, (key) => isKnown(key.slice(1)));
  }

  findById(topicId: Uuid): TopicRow | undefined {
    return this.#metadata.view().topics.get(topicId);
  }

  find(name: string): TopicRow | undefined {
    const image = this.#metadata.view();
    const topicId = image.topicIds.get(name);
    return topicId === undefined ? undefined : image.topics.get(topicId);
  }

  #checkExisting(name: string): TopicRefused | null {
    if (this.find(name) !== undefined) {
      return refuse("TOPIC_ALREADY_EXISTS", `Topic '${name}' already exists.`);
    }
    if (!/[._]/.test(name)) return null;
    const key = collisionKey(name);
    const other = this.#collisions.find(this.#metadata.view(), key) ?? this.#reserved.get(key);
    return other === undefined || other === name ? null : refuse(
      "INVALID_TOPIC_EXCEPTION",
      `Topic '${name}' collides with existing topic: ${other}`,
    );
  }

  /** Names that are being created collide as well, and are not in the metadata yet. */
  async #reserving<T>(name: string, work: () => Promise<T>): Promise<T> {
    const key = collisionKey(name);
    if (this.#reserved.has(key)) return await work();
    this.#reserved.set(key, name);
    try {
      return await work();
    } finally {
      this.#reserved.delete(key);
    }
  }

  #rowOf(topic: NewTopic, configs: TopicConfigs): TopicRow {
    return {
      topicId: uuidOf(randomUuid(this.#env.random)),
      name: topic.name,
      partitions: topic.partitions === -1
        ? this.#config.integer("num.partitions")
        : topic.partitions,
      replicationFactor: topic.replicationFactor === -1
        ? this.#config.integer("default.replication.factor")
        : topic.replicationFactor,
      configs,
      internal: false,
    };
  }

  async #commit(row: TopicRow): Promise<TopicOutcome<{ readonly topic: TopicRow }>> {
    const decided = await this.#metadata.submit({ type: "create-topic", ...row });
    if (!decided.ok) return refusal(decided);
    const { name, topicId, partitions } = row;
    this.#env.log.log("info", "topic-created", { name, topicId, partitions });
    return { ok: true, topic: row };
  }

  async create(
    topic: NewTopic,
    { validateOnly = false, byBroker = false }: ChangeOptions = {},
  ): Promise<TopicOutcome<{ readonly topic: TopicRow }>> {
    const refused = checkShape(topic) ?? this.#checkExisting(topic.name);
    if (refused !== null) return refused;
    if (topic.name === OFFSETS_TOPIC) {
      return refuse("INVALID_TOPIC_EXCEPTION", `${OFFSETS_TOPIC} is made with the first group.`);
    }
    if (topic.name === TRANSACTIONS_TOPIC) {
      const message = `${TRANSACTIONS_TOPIC} is made with the first transactional producer.`;
      return refuse("INVALID_TOPIC_EXCEPTION", message);
    }
    if (topic.name === SHARE_STATE_TOPIC) {
      const message = `${SHARE_STATE_TOPIC} is made with the first share group.`;
      return refuse("INVALID_TOPIC_EXCEPTION", message);
    }
    const entries = [...topic.configs];
    const checked = checkTopicConfigs(entries);
    if (!checked.ok) return refuse("INVALID_CONFIG", checked.message);
    const own = byBroker ? null : brokersOwn(entries, {});
    if (own !== null) return refuse("INVALID_CONFIG", own);
    const conflict = configConflict(checked.configs, this.#config);
    if (conflict !== null) return refuse("INVALID_CONFIG", conflict);
    const removed = entries.map(([name]) => name).filter(isRemovedKey);
    if (removed.length > 0) {
      this.#env.log.log("info", "topic-config-ignored", {
        name: topic.name,
        keys: removed.join(","),
      });
    }
    const row = this.#rowOf(topic, checked.configs);
    if (validateOnly) return { ok: true, topic: row };
    return await this.#reserving(topic.name, () => this.#commit(row));
  }

  async ensure(
    name: string,
    allowCreate: boolean,
  ): Promise<TopicOutcome<{ readonly topic: TopicRow }>> {
    const found = this.find(name);
    if (found !== undefined) return { ok: true, topic: found };
    const problem = topicNameProblem(name);
    if (problem !== null) {
      return refuse("INVALID_TOPIC_EXCEPTION", `Topic name is invalid: ${problem}`);
    }
    if (!allowCreate || !this.#config.flag("auto.create.topics.enable")) {
      await this.look([name]);
      const made = this.find(name);
      return made === undefined ? unknownTopic(name) : { ok: true, topic: made };
    }
    const created = await this.#creating.run(
      name,
      () => this.create({ name, partitions: -1, replicationFactor: -1, configs: [] }),
    );
    if (created.ok || created.error !== "TOPIC_ALREADY_EXISTS") return created;
    const raced = this.find(name);
    return raced === undefined ? unknownTopic(name) : { ok: true, topic: raced };
  }

  async delete(topicId: Uuid): Promise<TopicOutcome> {
    const topic = this.#metadata.view().topics.get(topicId);
    if (topic === undefined) {
      return refuse("UNKNOWN_TOPIC_ID", "This server does not host this topic ID.");
    }
    if (topic.internal) return refuseInternal(topic.name);
    if (!this.#config.flag("delete.topic.enable")) {
      return refuse("TOPIC_DELETION_DISABLED", "Topic deletion is disabled.");
    }
    const decided = await this.#metadata.submit({ type: "delete-topic", topicId });
    if (!decided.ok) return refusal(decided);
    this.#env.log.log("info", "topic-deleted", { name: topic.name, topicId });
    return { ok: true };
  }

  async grow(
    name: string,
    partitions: number,
    { validateOnly = false }: Validation = {},
  ): Promise<TopicOutcome> {
    await this.look([name]);
    const topic = this.find(name);
    if (topic === undefined) return unknownTopic(name);
    if (topic.internal) return refuseInternal(name);
    if (partitions <= topic.partitions || partitions > TOPIC_PARTITIONS_MAX) {
      return refuse(
        "INVALID_PARTITIONS",
        `The topic ${name} currently has ${topic.partitions} partition(s); ${partitions} would not be an increase.`,
      );
    }
    if (validateOnly) return { ok: true };
    const { topicId } = topic;
    const decided = await this.#metadata.submit({ type: "create-partitions", topicId, partitions });
    return decided.ok ? { ok: true } : refusal(decided);
  }

  async alterConfigs(
    topic: TopicRow,
    changes: Readonly<Record<string, string | null>>,
    { validateOnly = false, byBroker = false }: ChangeOptions = {},
  ): Promise<TopicOutcome | "stale"> {
    // AlterConfigs removes what it does not name, and a fork without its source would lose what it has from there.
    const kept = Object.entries(changes).filter(([key, value]) =>
      !isRemovedKey(key) && (byBroker || value !== null || !isBrokersKey(key))
    );
    const own = byBroker ? null : brokersOwn(kept, topic.configs);
    if (own !== null) return refuse("INVALID_CONFIG", own);
    const sets = kept.filter(([, value]) => value !== null);
    const checked = checkTopicConfigs(sets);
    if (!checked.ok) return refuse("INVALID_CONFIG", checked.message);
    const next = withChanges(topic.configs, { ...Object.fromEntries(kept), ...checked.configs });
    if (topic.internal && next[CLEANUP] !== topic.configs[CLEANUP]) {
      // AlterConfigs with other keys only would else make groups and transactions expire.
      const message = `The internal topic ${topic.name} keeps its ${CLEANUP}`;
      return refuse("POLICY_VIOLATION", message);
    }
    const conflict = configConflict(next, this.#config);
    if (conflict !== null) return refuse("INVALID_CONFIG", conflict);
    if (validateOnly || kept.length === 0) return { ok: true };
    const decided = await this.#metadata.submit({
      type: "alter-topic-configs",
      topicId: topic.topicId,
      expected: topic.configs,
      changes: { ...Object.fromEntries(kept), ...checked.configs },
    });
    if (decided.ok) return { ok: true };
    return decided.reason === "conflict" ? "stale" : refusal(decided);
  }
}

export function createTopics(options: TopicsOptions): Topics {
  return new TopicRegistry(options);
}
