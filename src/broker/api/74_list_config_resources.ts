/**
 * ListConfigResources (key 74), versions 0-1.
 * Behaviour: names everything that has settings: topics, live brokers, and groups that something is set for.
 * Subscriptions to client metrics have none here, and are a known type without resources. A number that is no
 * type is UNSUPPORTED_VERSION, as in Kafka.
 * Version notes: 0 lists subscriptions to client metrics only · 1 chooses types, none meaning all (KIP-1142).
 */
import { errorCode } from "../../protocol/error_code.ts";
import {
  listConfigResourcesApi,
  type ListConfigResourcesRequest,
  type ListConfigResourcesResponse,
} from "../../protocol/message/74_list_config_resources.ts";
import { RESOURCES } from "../config_target.ts";
import { liveNodes } from "../endpoints.ts";
import { configuredGroups } from "../group_configs.ts";
import type { BrokerServices, Handler } from "../handler.ts";

type Resource = ListConfigResourcesResponse["configResources"][number];

const TYPES: ReadonlySet<number> = new Set(Object.values(RESOURCES));
const ONLY_METRICS = [RESOURCES.clientMetrics];
const CHOICE_SINCE = 1;

function resourcesOf(services: BrokerServices, resourceType: number): Resource[] {
  if (resourceType === RESOURCES.topic) {
    const names = [...services.metadata.view().topicIds.entries()].map(([name]) => name);
    return names.map((resourceName) => ({ resourceName, resourceType }));
  }
  if (resourceType === RESOURCES.group) {
    return configuredGroups(services.metadata).map((resourceName) => ({
      resourceName,
      resourceType,
    }));
  }
  if (resourceType !== RESOURCES.broker) return [];
  return liveNodes(services).map(({ nodeId }) => ({ resourceName: String(nodeId), resourceType }));
}

export function listConfigResourcesHandler(
  services: BrokerServices,
): Handler<ListConfigResourcesRequest, ListConfigResourcesResponse> {
  return {
    api: listConfigResourcesApi,
    min: 0,
    max: 1,
    handle({ resourceTypes }, { version }) {
      const asked = version < CHOICE_SINCE ? ONLY_METRICS : resourceTypes;
      const types = new Set(asked.length === 0 ? TYPES : asked);
      const isKnown = [...types].every((type) => TYPES.has(type));
      return Promise.resolve({
        throttleTimeMs: 0,
        errorCode: errorCode(isKnown ? "NONE" : "UNSUPPORTED_VERSION"),
        configResources: isKnown ? [...types].flatMap((type) => resourcesOf(services, type)) : [],
      });
    },
  };
}
