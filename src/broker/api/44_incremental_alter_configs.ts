/**
 * IncrementalAlterConfigs (key 44), versions 0-1.
 * Behaviour: set, delete, append and subtract on topics; nothing of a resource is applied when one change
 * is refused; open partitions follow at once. Deviations: broker settings cannot be changed while it
 * runs (INVALID_REQUEST). Version notes: 1 flexible.
 */
import { errorCode } from "../../protocol/error_code.ts";
import {
  incrementalAlterConfigsApi,
  type IncrementalAlterConfigsRequest,
  type IncrementalAlterConfigsResponse,
} from "../../protocol/message/44_incremental_alter_configs.ts";
import type { TopicRow } from "../../controller/image.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { inGroups, repeatedIn } from "../many.ts";
import { listOf } from "../property.ts";
import { effectiveConfig, topicProperty } from "../topic_config.ts";
import { topicNameProblem } from "../topic_name.ts";
import type { TopicOutcome, TopicRefused } from "../topics.ts";

type Asked = IncrementalAlterConfigsRequest["resources"][number];
type Change = Asked["configs"][number];

const TOPIC = 2;
const SET = 0;
const DELETE = 1;
const APPEND = 2;
const SUBTRACT = 3;

function keyOf({ resourceType, resourceName }: Asked): string {
  return `${resourceType}/${resourceName}`;
}

function refuse(error: TopicRefused["error"], message: string): TopicRefused {
  return { ok: false, error, message };
}

/** The new override, null for none, or why not. */
function changed(
  services: BrokerServices,
  topic: TopicRow,
  change: Change,
): string | null | TopicRefused {
  const { name, configOperation: operation, value } = change;
  if (operation < SET || operation > SUBTRACT) {
    return refuse("INVALID_REQUEST", `Unknown operation ${operation}`);
  }
  if (operation === DELETE) return null;
  if (value === null) return refuse("INVALID_REQUEST", `Null value not supported for ${name}`);
  if (operation === SET) return value;
  const property = topicProperty(name);
  if (property?.type !== "list") {
    return refuse("INVALID_CONFIG", `${name} is not a list: it cannot be appended or subtracted`);
  }
  const current = listOf(effectiveConfig(property, topic.configs, services.config).value);
  const items = new Set(listOf(value));
  const result = operation === APPEND
    ? [...new Set([...current, ...items])]
    : current.filter((item) => !items.has(item));
  return result.join(",");
}

async function alter(
  services: BrokerServices,
  asked: Asked,
  validateOnly: boolean,
): Promise<TopicOutcome> {
  const { resourceType, resourceName, configs } = asked;
  if (resourceType !== TOPIC) {
    return refuse("INVALID_REQUEST", "Only topics can be configured while the broker runs");
  }
  const problem = topicNameProblem(resourceName);
  if (problem !== null) return refuse("INVALID_TOPIC_EXCEPTION", problem);
  const topic = services.topics.find(resourceName);
  if (topic === undefined) return refuse("UNKNOWN_TOPIC_OR_PARTITION", "There is no such topic");
  if (new Set(configs.map(({ name }) => name)).size < configs.length) {
    return refuse("INVALID_REQUEST", "A key is given twice");
  }
  const changes: [name: string, value: string | null][] = [];
  for (const change of configs) {
    if (topicProperty(change.name) === undefined && change.configOperation === DELETE) {
      return refuse("INVALID_CONFIG", `Unknown topic config name: ${change.name}`);
    }
    const value = changed(services, topic, change);
    if (typeof value === "object" && value !== null) return value;
    changes.push([change.name, value]);
  }
  try {
    return await services.topics.alterConfigs(topic, Object.fromEntries(changes), { validateOnly });
  } catch (error) {
    return refuse(faultToCode(error, "admin"), "The metadata log cannot be written now");
  }
}

export function incrementalAlterConfigsHandler(
  services: BrokerServices,
): Handler<IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse> {
  return {
    api: incrementalAlterConfigsApi,
    min: 0,
    max: 1,
    async handle({ resources, validateOnly }) {
      const repeated = repeatedIn(resources.map(keyOf));
      const responses = await inGroups(services.env.clock, resources, async (asked) => {
        const outcome = repeated.has(keyOf(asked))
          ? refuse("INVALID_REQUEST", "The resource is given twice")
          : await alter(services, asked, validateOnly);
        const { resourceType, resourceName } = asked;
        return {
          errorCode: errorCode(outcome.ok ? "NONE" : outcome.error),
          errorMessage: outcome.ok ? null : outcome.message,
          resourceType,
          resourceName,
        };
      });
      return { throttleTimeMs: 0, responses };
    },
  };
}
