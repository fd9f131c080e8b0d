/**
 * IncrementalAlterConfigs (key 44), versions 0-1.
 * Behaviour: set, delete, append and subtract on topics, on this broker, on all brokers (the empty name) and on groups;
 * nothing of a resource is applied when one change is refused; open partitions follow at once. Of the broker
 * settings those can be changed that DescribeConfigs shows as not read-only; others are INVALID_REQUEST, as in
 * Kafka.
 * Deviations: an unknown broker setting is refused; Kafka stores it for plug-ins. Resources other than topics,
 * brokers and groups are INVALID_REQUEST.
 * Version notes: 1 flexible.
 */
import {
  incrementalAlterConfigsApi,
  type IncrementalAlterConfigsRequest,
  type IncrementalAlterConfigsResponse,
} from "../../protocol/message/44_incremental_alter_configs.ts";
import { alterResources, type Changes, type ConfigTarget, refuse } from "../config_target.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { repeatedIn } from "../many.ts";
import { listOf } from "../property.ts";
import type { TopicRefused } from "../topics.ts";

type Asked = IncrementalAlterConfigsRequest["resources"][number];
type Change = Asked["configs"][number];

const SET = 0;
const DELETE = 1;
const APPEND = 2;
const SUBTRACT = 3;

/** The new setting, null for none, or why not. */
function changed(target: ConfigTarget, change: Change): string | null | TopicRefused {
  const { name, configOperation: operation, value } = change;
  const property = target.propertyOf(name);
  if (operation < SET || operation > SUBTRACT) {
    return refuse("INVALID_REQUEST", `Unknown operation ${operation}`);
  }
  if (operation === DELETE) return null;
  if (value === null) return refuse("INVALID_REQUEST", `Null value not supported for ${name}`);
  if (operation === SET) return value;
  if (property?.type !== "list") {
    return refuse("INVALID_CONFIG", `${name} is not a list: it cannot be appended or subtracted`);
  }
  const current = listOf(target.valueOf(property));
  const items = new Set(listOf(value));
  const result = operation === APPEND
    ? [...new Set([...current, ...items])]
    : current.filter((item) => !items.has(item));
  return result.join(",");
}

function changesOf(
  { configs }: Asked,
  target: ConfigTarget,
): { readonly changes: Changes } | TopicRefused {
  if (repeatedIn(configs.map(({ name }) => name)).size > 0) {
    return refuse("INVALID_REQUEST", "A key is given twice");
  }
  const changes: [name: string, value: string | null][] = [];
  for (const change of configs) {
    const value = changed(target, change);
    if (typeof value === "object" && value !== null) return value;
    // What nobody knows is not set either, so that deleting it is done.
    const isVoid = value === null && target.propertyOf(change.name) === undefined;
    if (!isVoid) changes.push([change.name, value]);
  }
  return { changes: Object.fromEntries(changes) };
}

export function incrementalAlterConfigsHandler(
  services: BrokerServices,
): Handler<IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse> {
  return {
    api: incrementalAlterConfigsApi,
    min: 0,
    max: 1,
    handle: async ({ resources, validateOnly }) => ({
      throttleTimeMs: 0,
      responses: await alterResources(services, resources, validateOnly, changesOf),
    }),
  };
}
