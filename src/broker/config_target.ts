/**
 * What AlterConfigs and IncrementalAlterConfigs change: the settings of a topic, of this broker, of all
 * brokers, or of a group. Both ask the same questions of each.
 */
import { KV_CHANGES_MAX } from "../lib/limits.ts";
import type { BrokerServices } from "./handler.ts";
import { errorCode, type ErrorName } from "../protocol/error_code.ts";
import { BROKER_PROPERTIES } from "./broker_properties.ts";
import { faultToCode } from "./fault_to_code.ts";
import { changeGroupSettings, groupSettings, groupText } from "./group_configs.ts";
import { GROUP_PROPERTIES } from "./group_properties.ts";
import { ALL_BROKERS, changeDynamicSettings, dynamicSettings } from "./live_config.ts";
import { inGroups, repeatedIn } from "./many.ts";
import { checkProperty, type Property } from "./property.ts";
import { effectiveConfig, topicProperty } from "./topic_config.ts";
import { topicNameProblem } from "./topic_name.ts";
import type { TopicOutcome, TopicRefused } from "./topics.ts";

/** Kafka's numbers of resource types. */
export const RESOURCES = {
  topic: 2,
  broker: 4,
  brokerLogger: 8,
  clientMetrics: 16,
  group: 32,
} as const;

export type Changes = Readonly<Record<string, string | null>>;

export interface ConfigTarget {
  /** What is set on this very resource. */
  readonly set: Readonly<Record<string, string>>;
  propertyOf(name: string): Property | undefined;
  /** The value that holds, whoever set it. */
  valueOf(property: Property): string;
  /** Null removes. All of the changes are made, or none; "stale" when `set` is not what is set by now. */
  apply(changes: Changes, validateOnly: boolean): Promise<TopicOutcome | "stale">;
}

export function refuse(error: ErrorName, message: string): TopicRefused {
  return { ok: false, error, message };
}

/** Why a broker resource is not this broker's to show or to change. */
export function brokerNameProblem(services: BrokerServices, name: string): string | null {
  if (name === ALL_BROKERS || name === String(services.nodeId)) return null;
  return /^\d{1,10}$/.test(name)
    ? `Unexpected broker id, expected ${services.nodeId}, but received ${name}`
    : `Node id must be an integer, but it is: ${name.slice(0, 20)}`;
}

function topicTarget(services: BrokerServices, name: string): ConfigTarget | TopicRefused {
  if (name === "") return refuse("INVALID_REQUEST", "Default topic resources are not allowed.");
  const problem = topicNameProblem(name);
  if (problem !== null) return refuse("INVALID_TOPIC_EXCEPTION", problem);
  const topic = services.topics.find(name);
  if (topic === undefined) {
    return refuse("UNKNOWN_TOPIC_OR_PARTITION", `The topic '${name}' does not exist.`);
  }
  return {
    set: topic.configs,
    propertyOf: topicProperty,
    valueOf(property) {
      const known = topicProperty(property.name);
      return known === undefined
        ? property.fallback
        : effectiveConfig(known, topic.configs, services.config).value;
    },
    apply: (changes, validateOnly) =>
      services.topics.alterConfigs(topic, changes, { validateOnly }),
  };
}

/** Canonical texts, or what Kafka says: it calls a broker setting that cannot be taken an invalid request. */
function checkBrokerChanges(changes: Changes): TopicRefused | { readonly values: Changes } {
  const values: Record<string, string | null> = {};
  const fixed: string[] = [];
  for (const [name, text] of Object.entries(changes)) {
    if (text === null) {
      // Also one that a newer build has set and this one does not know.
      values[name] = null;
      continue;
    }
    const property = BROKER_PROPERTIES.get(name);
    if (property === undefined) {
      return refuse("INVALID_REQUEST", `Unknown broker config name: ${name}`);
    }
    if (property.dynamic !== true) fixed.push(name);
    else {
      const checked = checkProperty(property, text);
      if (!checked.ok) return refuse("INVALID_REQUEST", checked.message);
      values[name] = checked.value;
    }
  }
  return fixed.length === 0 ? { values } : refuse(
    "INVALID_REQUEST",
    `Cannot update these configs dynamically: Set(${fixed.join(", ")})`,
  );
}

function brokerTarget(services: BrokerServices, name: string): ConfigTarget | TopicRefused {
  const problem = brokerNameProblem(services, name);
  if (problem !== null) return refuse("INVALID_REQUEST", problem);
  const { metadata, config } = services;
  const set = dynamicSettings(metadata, name);
  return {
    set,
    propertyOf: (key) => BROKER_PROPERTIES.get(key),
    valueOf: (property) => config.text(property.name),
    async apply(changes, validateOnly) {
      const checked = checkBrokerChanges(changes);
      if (!("values" in checked)) return checked;
      if (validateOnly) return { ok: true };
      const refused = await changeDynamicSettings(metadata, name, checked.values, set);
      if (refused !== null) return refused;
      const keys = Object.keys(changes).join(",");
      services.env.log.log("info", "broker-config-changed", { broker: name, keys });
      return { ok: true };
    },
  };
}

function groupTarget(services: BrokerServices, groupId: string): ConfigTarget | TopicRefused {
  if (groupId === "") return refuse("INVALID_REQUEST", "Default group resources are not allowed.");
  const set = groupSettings(services.metadata, groupId);
  return {
    set,
    propertyOf: (key) => GROUP_PROPERTIES.get(key),
    valueOf: (property) => groupText(services, groupId, property.name),
    async apply(changes, validateOnly) {
      const seen = { seen: set, validateOnly };
      const refused = await changeGroupSettings(services, groupId, changes, seen);
      if (refused !== null) return refused;
      if (!validateOnly) {
        const keys = Object.keys(changes).join(",");
        services.env.log.log("info", "group-config-changed", { group: groupId, keys });
      }
      return { ok: true };
    },
  };
}

function targetOf(
  services: BrokerServices,
  resourceType: number,
  resourceName: string,
): ConfigTarget | TopicRefused {
  if (resourceType === RESOURCES.topic) return topicTarget(services, resourceName);
  if (resourceType === RESOURCES.broker) return brokerTarget(services, resourceName);
  if (resourceType === RESOURCES.group) return groupTarget(services, resourceName);
  return refuse("INVALID_REQUEST", `Resources of type ${resourceType} have no settings here`);
}

interface Resource {
  readonly resourceType: number;
  readonly resourceName: string;
}

/** Before any of them is called unknown. */
export async function lookForTopics(
  { topics }: BrokerServices,
  resources: readonly Resource[],
): Promise<void> {
  const named = resources.filter(({ resourceType }) => resourceType === RESOURCES.topic);
  await topics.look(named.map(({ resourceName }) => resourceName));
}

type ChangesOf<A> = (
  asked: A,
  target: ConfigTarget,
) => { readonly changes: Changes } | TopicRefused;

async function tryChange<A extends Resource>(
  services: BrokerServices,
  asked: A,
  validateOnly: boolean,
  changesOf: ChangesOf<A>,
): Promise<TopicOutcome | "stale"> {
  const target = targetOf(services, asked.resourceType, asked.resourceName);
  if ("ok" in target) return target;
  const wanted = changesOf(asked, target);
  if ("ok" in wanted) return wanted;
  try {
    return await target.apply(wanted.changes, validateOnly);
  } catch (error) {
    return refuse(faultToCode(error, "admin"), "The metadata log cannot be written now");
  }
}

/**
 * What is appended, subtracted or cleared depends on what is there, and whether two settings go together as well:
 * all of it is made up anew when somebody else was faster, so that no change is lost.
 */
async function change<A extends Resource>(
  services: BrokerServices,
  asked: A,
  validateOnly: boolean,
  changesOf: ChangesOf<A>,
): Promise<TopicOutcome> {
  for (let tries = 0; tries < KV_CHANGES_MAX; tries++) {
    const outcome = await tryChange(services, asked, validateOnly, changesOf);
    if (outcome !== "stale") return outcome;
  }
  return refuse("NOT_CONTROLLER", "Others change the same all the time");
}

function keyOf({ resourceType, resourceName }: Resource): string {
  return `${resourceType}/${resourceName}`;
}

/** Each resource alone: `changesOf` says what becomes of it, and so it will be. The answers of both APIs. */
export async function alterResources<A extends Resource>(
  services: BrokerServices,
  resources: readonly A[],
  validateOnly: boolean,
  changesOf: ChangesOf<A>,
) {
  await lookForTopics(services, resources);
  const repeated = repeatedIn(resources.map(keyOf));
  return await inGroups(services.env.clock, resources, async (asked) => {
    const outcome = repeated.has(keyOf(asked))
      ? refuse("INVALID_REQUEST", "The resource is given twice")
      : await change(services, asked, validateOnly, changesOf);
    return {
      errorCode: errorCode(outcome.ok ? "NONE" : outcome.error),
      errorMessage: outcome.ok ? null : outcome.message,
      resourceType: asked.resourceType,
      resourceName: asked.resourceName,
    };
  });
}
