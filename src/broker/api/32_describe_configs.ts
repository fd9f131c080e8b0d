/**
 * DescribeConfigs (key 32), versions 1-4.
 * Behaviour: topics, this broker and groups; a null or empty key list means all. Values are effective ones, with
 * their source; synonyms and documentation if asked. The empty broker name shows what was set for all brokers
 * while they run. All keys of a resource are answered once, however often they are asked for.
 * Deviations: other resource types are INVALID_REQUEST.
 * Version notes: 1 sources, synonyms (KIP-226) · 3 types, documentation (KIP-569) · 4 flexible.
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  describeConfigsApi,
  type DescribeConfigsRequest,
  type DescribeConfigsResponse,
} from "../../protocol/message/32_describe_configs.ts";
import { BROKER_PROPERTIES } from "../broker_properties.ts";
import { groupValue } from "../group_configs.ts";
import { GROUP_PROPERTIES } from "../group_properties.ts";
import { brokerNameProblem, lookForTopics, RESOURCES } from "../config_target.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { ALL_BROKERS, dynamicSettings } from "../live_config.ts";
import type { Property, PropertyType } from "../property.ts";
import { CONFIG_SOURCES, type ConfigSynonym, effectiveConfig } from "../topic_config.ts";
import { topicNameProblem } from "../topic_name.ts";
import { TOPIC_PROPERTIES, type TopicProperty } from "../topic_properties.ts";

type Asked = DescribeConfigsRequest["resources"][number];
type Result = DescribeConfigsResponse["results"][number];
type Entry = Result["configs"][number];

const TYPES: Readonly<Record<PropertyType, number>> = {
  boolean: 1,
  string: 2,
  int: 3,
  long: 5,
  double: 6,
  list: 7,
};

interface Synonym extends ConfigSynonym {
  /** It counts, and is not shown as one. */
  readonly isUnlisted?: boolean;
}

interface Value {
  readonly property: Property;
  readonly readOnly: boolean;
  /** Most specific first. */
  readonly synonyms: readonly Synonym[];
}

type Described = readonly Value[] | { readonly error: ErrorName; readonly message: string };

/** The keys that are wanted; null for all. */
type Wanted = ReadonlySet<string> | null;

function chosen<T extends Property>(properties: Iterable<T>, wanted: Wanted): T[] {
  return [...properties].filter(({ name }) => wanted === null || wanted.has(name));
}

/** A default is listed with the broker's property of the same meaning, if that one has it: as in Kafka. */
function listable(
  { synonyms: of, noBrokerDefault }: TopicProperty,
  synonyms: readonly ConfigSynonym[],
): readonly Synonym[] {
  const hasDefault = of.length === 1 && noBrokerDefault !== true;
  return synonyms.map((one) =>
    one.source === "default" && !hasDefault ? { ...one, isUnlisted: true } : one
  );
}

function topicValues(services: BrokerServices, name: string, wanted: Wanted): Described {
  const problem = topicNameProblem(name);
  if (problem !== null) return { error: "INVALID_TOPIC_EXCEPTION", message: problem };
  const topic = services.topics.find(name);
  if (topic === undefined) {
    return { error: "UNKNOWN_TOPIC_OR_PARTITION", message: `There is no topic ${name}` };
  }
  return chosen(TOPIC_PROPERTIES, wanted).map((property) => {
    const { synonyms } = effectiveConfig(property, topic.configs, services.config);
    return { property, readOnly: false, synonyms: listable(property, synonyms) };
  });
}

function brokerValue(services: BrokerServices, property: Property): Value {
  const { name, fallback } = property;
  const synonyms: ConfigSynonym[] = [];
  for (const { source, get } of services.config.layers) {
    const value = get(name);
    if (value !== undefined) synonyms.push({ name, value, source });
  }
  synonyms.push({ name, value: fallback, source: "default" });
  return { property, readOnly: property.dynamic !== true, synonyms };
}

/** Only what is set for all of them. */
function valuesOfAll({ metadata }: BrokerServices, wanted: Wanted): Value[] {
  const set = new Map(Object.entries(dynamicSettings(metadata, ALL_BROKERS)));
  return chosen(BROKER_PROPERTIES.values(), wanted).flatMap((property): Value[] => {
    const { name } = property;
    const value = set.get(name);
    if (value === undefined) return [];
    return [{ property, readOnly: false, synonyms: [{ name, value, source: "dynamicDefault" }] }];
  });
}

/** What is not set but is: who and where this broker is. */
function identity(services: BrokerServices): Value[] {
  const { nodeId, metadata } = services;
  const node = metadata.view().nodes.get(nodeId);
  const address = node === undefined ? "" : `PLAINTEXT://${node.host}:${node.port}`;
  const facts = { "broker.id": nodeId, "node.id": nodeId, "advertised.listeners": address };
  return Object.entries(facts).map(([name, value]) => ({
    property: {
      name,
      type: typeof value === "number" ? "int" : "string",
      fallback: "",
      documentation: "Set by the command line.",
    },
    readOnly: true,
    synonyms: [{ name, value: String(value), source: "staticBroker" }],
  }));
}

function brokerValues(services: BrokerServices, name: string, wanted: Wanted): Described {
  const problem = brokerNameProblem(services, name);
  if (problem !== null) return { error: "INVALID_REQUEST", message: problem };
  if (name === ALL_BROKERS) return valuesOfAll(services, wanted);
  const facts = identity(services).filter(({ property }) => wanted?.has(property.name) ?? true);
  const own = chosen(BROKER_PROPERTIES.values(), wanted).map((one) => brokerValue(services, one));
  return [...facts, ...own];
}

/** Whether there is such a group or not: it may be set up before its first member comes. */
function valuesOfGroup(services: BrokerServices, groupId: string, wanted: Wanted): Described {
  if (groupId === "") return { error: "INVALID_REQUEST", message: "Group name must not be empty" };
  return chosen(GROUP_PROPERTIES.values(), wanted).map((property) => ({
    property,
    readOnly: false,
    synonyms: [groupValue(services, groupId, property)],
  }));
}

function asksForAll({ configurationKeys: keys }: Asked): boolean {
  return keys === null || keys.length === 0;
}

function describe(services: BrokerServices, asked: Asked): Described {
  const { resourceType, resourceName } = asked;
  const wanted = asksForAll(asked) ? null : new Set(asked.configurationKeys);
  if (resourceType === RESOURCES.topic) return topicValues(services, resourceName, wanted);
  if (resourceType === RESOURCES.broker) return brokerValues(services, resourceName, wanted);
  if (resourceType === RESOURCES.group) return valuesOfGroup(services, resourceName, wanted);
  return { error: "INVALID_REQUEST", message: `Unsupported resource type ${resourceType}` };
}

/** A number that is not set is null: clients could not parse an empty text. */
function shown({ type }: Property, value: string): string | null {
  return value === "" && type !== "string" && type !== "list" ? null : value;
}

function entryOf(
  { property, readOnly, synonyms }: Value,
  request: DescribeConfigsRequest,
): Entry {
  const first = synonyms[0];
  const listed = request.includeSynonyms
    ? synonyms.filter((one) => one.isUnlisted !== true && shown(property, one.value) !== null)
    : [];
  return {
    name: property.name,
    value: shown(property, first?.value ?? ""),
    readOnly,
    configSource: CONFIG_SOURCES[first?.source ?? "default"],
    isSensitive: false,
    synonyms: listed.map(({ name, value, source }) => ({
      name,
      value: shown(property, value),
      source: CONFIG_SOURCES[source],
    })),
    configType: TYPES[property.type],
    documentation: request.includeDocumentation ? property.documentation : null,
  };
}

function resultOf(services: BrokerServices, asked: Asked, request: DescribeConfigsRequest): Result {
  const { resourceType, resourceName } = asked;
  const described = describe(services, asked);
  if ("error" in described) {
    const { error, message } = described;
    const failure = { errorCode: errorCode(error), errorMessage: message, configs: [] };
    return { ...failure, resourceType, resourceName };
  }
  const configs = described.map((value) => entryOf(value, request));
  const none = { errorCode: errorCode("NONE"), errorMessage: null };
  return { ...none, resourceType, resourceName, configs };
}

/** Without the repeats of those that ask for all keys: an answer is hundreds of times as large as the question. */
function distinct(resources: readonly Asked[]): Asked[] {
  const seen = new Set<string>();
  return resources.filter((asked) => {
    if (!asksForAll(asked)) return true;
    const key = `${asked.resourceType}/${asked.resourceName}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

export function describeConfigsHandler(
  services: BrokerServices,
): Handler<DescribeConfigsRequest, DescribeConfigsResponse> {
  return {
    api: describeConfigsApi,
    min: 1,
    max: 4,
    async handle(request) {
      const resources = distinct(request.resources);
      await lookForTopics(services, resources);
      return {
        throttleTimeMs: 0,
        results: resources.map((asked) => resultOf(services, asked, request)),
      };
    },
  };
}
