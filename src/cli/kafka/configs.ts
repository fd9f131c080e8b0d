/** Settings of topics, brokers and groups: read and changed through the broker that has them. */
import { describeConfigsApi } from "../../protocol/message/32_describe_configs.ts";
import { incrementalAlterConfigsApi } from "../../protocol/message/44_incremental_alter_configs.ts";
import type { Infer } from "../../protocol/schema.ts";
import type { Cluster } from "../client/cluster.ts";
import type { BrokerConnection } from "../client/connection.ts";
import { brokerFault, checkCode, notFoundFault } from "../client/fault.ts";

const RESOURCE_TYPES = { topic: 2, broker: 4, group: 32 } as const;
/** For all brokers of the cluster that have no value of their own. */
export const ALL_BROKERS = "default";
const DELETE = 1;
const SET = 0;
const SOURCES: Readonly<Record<number, string>> = {
  1: "topic",
  2: "broker, while it runs",
  3: "all brokers, while they run",
  4: "broker, at its start",
  5: "default",
  8: "group",
};
const DEFAULT_SOURCE = 5;

export interface Resource {
  readonly type: keyof typeof RESOURCE_TYPES;
  readonly name: string;
}

type Entry = Infer<typeof describeConfigsApi.response>["results"][number]["configs"][number];

export interface Setting {
  readonly name: string;
  readonly value: string | null;
  readonly source: string;
  readonly isDefault: boolean;
  readonly readOnly: boolean;
}

export function resourceText({ type, name }: Resource): string {
  return type === "broker" && name === ALL_BROKERS ? "all brokers" : `${type} ${name}`;
}

function wireName({ type, name }: Resource): string {
  return type === "broker" && name === ALL_BROKERS ? "" : name;
}

/** A broker speaks for itself only. */
async function ownerOf(
  cluster: Cluster,
  resource: Resource,
  leftMs: number,
): Promise<BrokerConnection> {
  const name = wireName(resource);
  if (resource.type !== "broker" || name === "") return await cluster.any();
  await cluster.topics([], { leftMs });
  const id = Number(name);
  if (cluster.nodeIds.includes(id)) return await cluster.node(id);
  const known = cluster.nodeIds.toSorted((a, b) => a - b).join(", ");
  throw notFoundFault(`Cannot find broker ${name}: brokers are ${known}`);
}

function settingOf({ name, value, configSource, readOnly }: Entry): Setting {
  return {
    name,
    value,
    source: SOURCES[configSource] ?? `source ${configSource}`,
    isDefault: configSource === DEFAULT_SOURCE,
    readOnly,
  };
}

/** The settings that are asked for by name, or all. */
export async function settingsOf(
  cluster: Cluster,
  resource: Resource,
  keys: readonly string[],
): Promise<Setting[]> {
  const what = `read the settings of ${resourceText(resource)}`;
  const result = await cluster.retrying(async (leftMs) => {
    const connection = await ownerOf(cluster, resource, leftMs);
    const { results } = await connection.call(describeConfigsApi, {
      resources: [{
        resourceType: RESOURCE_TYPES[resource.type],
        resourceName: wireName(resource),
        configurationKeys: keys.length === 0 ? null : keys,
      }],
    }, { timeoutMs: leftMs });
    const [found] = results;
    if (found === undefined) throw brokerFault(what, "UNKNOWN_SERVER_ERROR");
    checkCode(what, found.errorCode, { message: found.errorMessage });
    return found;
  });
  const settings = result.configs.map(settingOf).toSorted((a, b) => a.name < b.name ? -1 : 1);
  const missing = keys.find((key) => !settings.some(({ name }) => name === key));
  if (missing === undefined) return settings;
  throw notFoundFault(
    `Cannot find ${missing} of ${resourceText(resource)}: ` +
      `skerry config get ${resource.type} ${resource.name} --all lists all keys`,
  );
}

export interface Change {
  readonly name: string;
  /** Null brings the default back. */
  readonly value: string | null;
}

export async function changeSettings(
  cluster: Cluster,
  resource: Resource,
  changes: readonly Change[],
  validateOnly: boolean,
): Promise<void> {
  await cluster.retrying(async (leftMs) => {
    const connection = await ownerOf(cluster, resource, leftMs);
    const { responses } = await connection.call(incrementalAlterConfigsApi, {
      resources: [{
        resourceType: RESOURCE_TYPES[resource.type],
        resourceName: wireName(resource),
        configs: changes.map(({ name, value }) => ({
          name,
          value,
          configOperation: value === null ? DELETE : SET,
        })),
      }],
      validateOnly,
    }, { timeoutMs: leftMs });
    for (const { errorCode: code, errorMessage: message } of responses) {
      checkCode(`change ${resourceText(resource)}`, code, { message });
    }
  });
}
