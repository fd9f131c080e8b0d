/**
 * AlterConfigs (key 33), versions 0-2.
 * Behaviour: replaces all that is set on a topic, on this broker, on all brokers or on a group: keys that are not named
 * go back to their default. Nothing of a resource is applied when one value is refused; open partitions follow at
 * once. A null value, a key or a resource given twice is INVALID_REQUEST.
 * Deviations: resources other than topics, brokers and groups are INVALID_REQUEST.
 * Version notes: 2 flexible. Kafka prefers IncrementalAlterConfigs; kafkajs and sarama know only this.
 */
import {
  alterConfigsApi,
  type AlterConfigsRequest,
  type AlterConfigsResponse,
} from "../../protocol/message/33_alter_configs.ts";
import { alterResources, type Changes, type ConfigTarget, refuse } from "../config_target.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { repeatedIn } from "../many.ts";
import type { TopicRefused } from "../topics.ts";

type Asked = AlterConfigsRequest["resources"][number];

function changesOf(
  { configs }: Asked,
  { set }: ConfigTarget,
): { readonly changes: Changes } | TopicRefused {
  const nulls = configs.filter(({ value }) => value === null).map(({ name }) => name);
  if (nulls.length > 0) {
    return refuse("INVALID_REQUEST", `Null value not supported for : ${nulls.join(", ")}`);
  }
  if (repeatedIn(configs.map(({ name }) => name)).size > 0) {
    return refuse("INVALID_REQUEST", "A key is given twice");
  }
  const cleared = Object.keys(set).map((name) => [name, null] as const);
  const given = configs.map(({ name, value }) => [name, value] as const);
  return { changes: Object.fromEntries([...cleared, ...given]) };
}

export function alterConfigsHandler(
  services: BrokerServices,
): Handler<AlterConfigsRequest, AlterConfigsResponse> {
  return {
    api: alterConfigsApi,
    min: 0,
    max: 2,
    handle: async ({ resources, validateOnly }) => ({
      throttleTimeMs: 0,
      responses: await alterResources(services, resources, validateOnly, changesOf),
    }),
  };
}
