/**
 * DescribeConfigs (key 32), versions 1-4.
 * Behaviour: topics and this broker; a null or empty key list means all. Values are effective ones, with
 * their source; synonyms and documentation if asked. The empty broker name is the cluster default, where
 * nothing is set. All keys of a resource are answered once, however often they are asked for. Deviations: other resource types are INVALID_REQUEST; broker settings are read-only.
 * Version notes: 1 sources, synonyms (KIP-226) · 3 types, documentation (KIP-569) · 4 flexible.
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  describeConfigsApi,
  type DescribeConfigsRequest,
  type DescribeConfigsResponse,
} from "../../protocol/message/32_describe_configs.ts";
import { BROKER_PROPERTIES } from "../broker_properties.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import type { Property, PropertyType } from "../property.ts";
import { CONFIG_SOURCES, type ConfigSynonym, effectiveConfig } from "../topic_config.ts";
import { topicNameProblem } from "../topic_name.ts";
import { TOPIC_PROPERTIES } from "../topic_properties.ts";

type Asked = DescribeConfigsRequest["resources"][number];
type Result = DescribeConfigsResponse["results"][number];
type Entry = Result["configs"][number];

const TOPIC = 2;
const BROKER = 4;
const TYPES: Readonly<Record<PropertyType, number>> = {
  boolean: 1,
  string: 2,
  int: 3,
  long: 5,
  double: 6,
  list: 7,
};

interface Value {
  readonly property: Property;
  readonly readOnly: boolean;
  /** Most specific first. */
  readonly synonyms: readonly ConfigSynonym[];
}

type Described = readonly Value[] | { readonly error: ErrorName; readonly message: string };

/** The keys that are wanted; null for all. */
type Wanted = ReadonlySet<string> | null;

function chosen<T extends Property>(properties: Iterable<T>, wanted: Wanted): T[] {
  return [...properties].filter(({ name }) => wanted === null || wanted.has(name));
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
    return { property, readOnly: false, synonyms };
  });
}

function brokerValue(services: BrokerServices, property: Property): Value {
  const { name, fallback } = property;
  const synonyms: ConfigSynonym[] = [{ name, value: fallback, source: "default" }];
  const set = services.config.explicit.get(name);
  if (set !== undefined) synonyms.unshift({ name, value: set, source: "staticBroker" });
  return { property, readOnly: true, synonyms };
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
  if (name === "") return [];
  if (name !== String(services.nodeId)) {
    return {
      error: "INVALID_REQUEST",
      message: `This is broker ${services.nodeId}, not ${name.slice(0, 20)}`,
    };
  }
  const facts = identity(services).filter(({ property }) => wanted?.has(property.name) ?? true);
  const own = chosen(BROKER_PROPERTIES.values(), wanted).map((one) => brokerValue(services, one));
  return [...facts, ...own];
}

function asksForAll({ configurationKeys: keys }: Asked): boolean {
  return keys === null || keys.length === 0;
}

function describe(services: BrokerServices, asked: Asked): Described {
  const { resourceType, resourceName } = asked;
  const wanted = asksForAll(asked) ? null : new Set(asked.configurationKeys);
  if (resourceType === TOPIC) return topicValues(services, resourceName, wanted);
  if (resourceType === BROKER) return brokerValues(services, resourceName, wanted);
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
  const listed = request.includeSynonyms ? synonyms : [];
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
    handle: (request) =>
      Promise.resolve({
        throttleTimeMs: 0,
        results: distinct(request.resources).map((asked) => resultOf(services, asked, request)),
      }),
  };
}
