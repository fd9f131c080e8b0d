/** Settings of topics. */
import * as v from "valibot";
import type { ConfigChanges, ConfigRow } from "../../admin/admin_port.ts";
import { nameText, readChecked } from "../json_body.ts";
import type { MountServices } from "../mount_services.ts";
import { type Place, v3Fault, v3List } from "./shape.ts";
import { CONFIGS_MAX, expectOk, topicOf, unknown } from "./topics.ts";

/** Each has some sixty settings. */
const TOPICS_AT_ONCE_MAX = 500;

const SOURCES: Readonly<Record<ConfigRow["source"], string>> = {
  topic: "DYNAMIC_TOPIC_CONFIG",
  dynamicBroker: "DYNAMIC_BROKER_CONFIG",
  dynamicDefault: "DYNAMIC_DEFAULT_BROKER_CONFIG",
  staticBroker: "STATIC_BROKER_CONFIG",
  default: "DEFAULT_CONFIG",
};

function shownConfig(place: Place, topic: string, row: ConfigRow) {
  return {
    kind: "KafkaTopicConfig",
    metadata: place.metadata(
      `/topic=${topic}/config=${row.name}`,
      "topics",
      topic,
      "configs",
      row.name,
    ),
    cluster_id: place.clusterId,
    topic_name: topic,
    name: row.name,
    value: row.value,
    is_default: row.source === "default",
    is_read_only: false,
    is_sensitive: false,
    source: SOURCES[row.source],
    synonyms: [],
  };
}

async function configsOf({ admin }: MountServices, topic: string): Promise<readonly ConfigRow[]> {
  const rows = await admin.describeConfigs(topic);
  return rows ?? Promise.reject(unknown(`Cannot find topic ${topic}`));
}

/** `-` is all topics. */
export async function listConfigs(
  services: MountServices,
  request: Request,
  place: Place,
  topic: string,
): Promise<Response> {
  const isAll = topic === "-";
  if (isAll && services.gateway.listTopics().length > TOPICS_AT_ONCE_MAX) {
    throw v3Fault(
      400,
      `Cannot list the settings of more than ${TOPICS_AT_ONCE_MAX} topics at once`,
    );
  }
  const topics = isAll ? services.gateway.listTopics().map((one) => one.name) : [topic];
  const shown = [];
  for (const one of topics) {
    for (const row of await configsOf(services, one)) shown.push(shownConfig(place, one, row));
  }
  const { clock } = services.env;
  const self = place.url("topics", topic, "configs");
  return v3List("KafkaTopicConfigList", self, shown, { request, clock });
}

async function configOf(
  services: MountServices,
  topic: string,
  setting: string,
): Promise<ConfigRow> {
  const row = (await configsOf(services, topic)).find((one) => one.name === setting);
  const shown = setting.slice(0, 100);
  return row ?? Promise.reject(v3Fault(404, `Cannot find the setting ${shown} of ${topic}`));
}

export async function getConfig(
  services: MountServices,
  place: Place,
  topic: string,
  setting: string,
): Promise<Response> {
  return Response.json(shownConfig(place, topic, await configOf(services, topic, setting)));
}

async function alter(
  services: MountServices,
  topic: string,
  changes: ConfigChanges,
): Promise<Response> {
  await topicOf(services, topic);
  expectOk(await services.admin.changeTopic(topic, { partitions: null, configs: changes }));
  return new Response(null, { status: 204 });
}

const newValue = v.strictObject({ value: v.nullable(v.string()) });

export async function putConfig(
  services: MountServices,
  request: Request,
  topic: string,
  setting: string,
): Promise<Response> {
  const asked = await readChecked(request, services.rooms, newValue);
  if (asked === null) throw v3Fault(422, "Cannot change the setting: the body is empty");
  await configOf(services, topic, setting);
  return await alter(services, topic, { [setting]: asked.value });
}

export async function resetConfig(
  services: MountServices,
  topic: string,
  setting: string,
): Promise<Response> {
  await configOf(services, topic, setting);
  return await alter(services, topic, { [setting]: null });
}

const alteration = v.strictObject({
  data: v.pipe(
    v.array(v.strictObject({
      name: nameText,
      value: v.optional(v.nullable(v.string()), null),
      operation: v.optional(v.picklist(["SET", "DELETE"]), "SET"),
    })),
    v.minLength(1),
    v.maxLength(CONFIGS_MAX),
  ),
  validate_only: v.optional(v.literal(false), false),
});

export async function alterConfigs(
  services: MountServices,
  request: Request,
  topic: string,
): Promise<Response> {
  const asked = await readChecked(request, services.rooms, alteration);
  if (asked === null) throw v3Fault(422, "Cannot change settings: the body is empty");
  const known = new Set((await configsOf(services, topic)).map((row) => row.name));
  const changes: Record<string, string | null> = {};
  for (const { name: setting, value, operation } of asked.data) {
    if (!known.has(setting)) {
      throw v3Fault(404, `Cannot find the setting ${setting.slice(0, 100)} of ${topic}`);
    }
    changes[setting] = operation === "DELETE" ? null : value;
  }
  return await alter(services, topic, changes);
}
