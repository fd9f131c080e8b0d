/** Topics, their partitions and their settings. */
import * as v from "valibot";
import type { Failure, TopicDetail } from "../../port.ts";
import { ProblemError, problemOf } from "../../problem.ts";
import { count, nameText, readChecked } from "../json_body.ts";
import type { MountServices } from "../mount_services.ts";
import { type Place, v3Fault, v3List } from "./shape.ts";

const UNKNOWN_TOPIC_OR_PARTITION = 40_403;
export const CONFIGS_MAX = 1_000;

type Leader = TopicDetail["leaders"][number];

export function unknown(detail: string): ProblemError {
  return v3Fault(404, detail, UNKNOWN_TOPIC_OR_PARTITION);
}

export function expectOk(outcome: { readonly ok: true } | Failure): void {
  if (!outcome.ok) throw new ProblemError(problemOf(outcome));
}

export async function topicOf({ gateway }: MountServices, topic: string): Promise<TopicDetail> {
  const found = await gateway.describeTopic(topic);
  return found ?? Promise.reject(unknown(`Cannot find topic ${topic}`));
}

function shownTopic(place: Place, topic: string, partitions: number) {
  const at = ["topics", topic];
  return {
    kind: "KafkaTopic",
    metadata: place.metadata(`/topic=${topic}`, ...at),
    cluster_id: place.clusterId,
    topic_name: topic,
    is_internal: false,
    // The bucket is what replicates.
    replication_factor: 1,
    partitions_count: partitions,
    partitions: place.related(...at, "partitions"),
    configs: place.related(...at, "configs"),
  };
}

export function listTopics(
  { gateway, env: { clock } }: MountServices,
  request: Request,
  place: Place,
): Response {
  const topics = gateway.listTopics().map((one) => shownTopic(place, one.name, one.partitions));
  return v3List("KafkaTopicList", place.url("topics"), topics, { request, clock });
}

export async function getTopic(
  services: MountServices,
  place: Place,
  topic: string,
): Promise<Response> {
  const { partitions } = await topicOf(services, topic);
  return Response.json(shownTopic(place, topic, partitions));
}

const positive = v.pipe(count, v.minValue(1));
const setting = v.strictObject({ name: nameText, value: v.nullable(v.string()) });
const creation = v.strictObject({
  topic_name: nameText,
  partitions_count: v.optional(v.nullable(positive), null),
  replication_factor: v.optional(v.nullable(positive), null),
  configs: v.optional(v.pipe(v.array(setting), v.maxLength(CONFIGS_MAX)), []),
  validate_only: v.optional(v.literal(false), false),
});

/** Where partitions live is decided here: any replication factor will do, no assignment is taken. */
export async function createTopic(
  services: MountServices,
  request: Request,
  place: Place,
): Promise<Response> {
  const asked = await readChecked(request, services.rooms, creation);
  if (asked === null) throw v3Fault(422, "Cannot create a topic: the body is empty");
  const configs = asked.configs.flatMap((one) =>
    one.value === null ? [] : [[one.name, one.value] as const]
  );
  const created = await services.gateway.createTopic({
    name: asked.topic_name,
    partitions: asked.partitions_count,
    configs,
  });
  if (!created.ok) throw new ProblemError(problemOf(created));
  const shown = shownTopic(place, created.name, created.partitions);
  return Response.json(shown, { status: 201, headers: { location: shown.metadata.self } });
}

const growth = v.strictObject({ partitions_count: positive });

export async function growTopic(
  services: MountServices,
  request: Request,
  place: Place,
  topic: string,
): Promise<Response> {
  await topicOf(services, topic);
  const asked = await readChecked(request, services.rooms, growth);
  if (asked === null) throw v3Fault(422, "Cannot change the topic: the body is empty");
  const change = { partitions: asked.partitions_count, configs: {} };
  expectOk(await services.admin.changeTopic(topic, change));
  return await getTopic(services, place, topic);
}

export async function deleteTopic({ gateway }: MountServices, topic: string): Promise<Response> {
  expectOk(await gateway.deleteTopic(topic));
  return new Response(null, { status: 204 });
}

function shownPartition(place: Place, topic: string, { partition, leader }: Leader) {
  const at = ["topics", topic, "partitions", String(partition)];
  const replica = String(leader ?? -1);
  return {
    kind: "KafkaPartition",
    metadata: place.metadata(`/topic=${topic}/partition=${partition}`, ...at),
    cluster_id: place.clusterId,
    topic_name: topic,
    partition_id: partition,
    ...(leader === null ? {} : { leader: place.related(...at, "replicas", replica) }),
    replicas: place.related(...at, "replicas"),
  };
}

async function leaderOf(
  services: MountServices,
  topic: string,
  partition: number,
): Promise<Leader> {
  const found = (await topicOf(services, topic)).leaders[partition];
  return found ?? Promise.reject(unknown(`Cannot find partition ${partition} of ${topic}`));
}

export async function listPartitions(
  services: MountServices,
  request: Request,
  place: Place,
  topic: string,
): Promise<Response> {
  const { leaders } = await topicOf(services, topic);
  const shown = leaders.map((one) => shownPartition(place, topic, one));
  const { clock } = services.env;
  const self = place.url("topics", topic, "partitions");
  return v3List("KafkaPartitionList", self, shown, { request, clock });
}

export async function getPartition(
  services: MountServices,
  place: Place,
  topic: string,
  partition: number,
): Promise<Response> {
  return Response.json(shownPartition(place, topic, await leaderOf(services, topic, partition)));
}

export async function listReplicas(
  services: MountServices,
  request: Request,
  place: Place,
  topic: string,
  partition: number,
): Promise<Response> {
  const { leader } = await leaderOf(services, topic, partition);
  const at = ["topics", topic, "partitions", String(partition), "replicas"];
  const replicas = leader === null ? [] : [{
    kind: "KafkaReplica",
    metadata: place.metadata(
      `/topic=${topic}/partition=${partition}/replica=${leader}`,
      ...at,
      String(leader),
    ),
    cluster_id: place.clusterId,
    topic_name: topic,
    partition_id: partition,
    broker_id: leader,
    is_leader: true,
    is_in_sync: true,
    broker: place.related("brokers", String(leader)),
  }];
  const { clock } = services.env;
  return v3List("KafkaReplicaList", place.url(...at), replicas, { request, clock });
}
