/** Topics: what there is, what is set on them, and how they change. */
import type * as v from "valibot";
import { unknownTopic } from "../api/unknown_topic.ts";
import type { Gateway } from "../port.ts";
import { badRequest, kafkaError, problemOf, problemResponse } from "../problem.ts";
import type { AdminGateway, RecordsDeleted } from "./admin_port.ts";
import type { deletion, newTopic, partitionsQuery, topicChange } from "./schemas.ts";

export interface TopicServices {
  readonly gateway: Gateway;
  readonly admin: AdminGateway;
}

export function listTopics({ gateway }: TopicServices): Response {
  return Response.json({ topics: gateway.listTopics() });
}

export async function createTopic(
  { gateway }: TopicServices,
  topic: v.InferOutput<typeof newTopic>,
): Promise<Response> {
  const created = await gateway.createTopic(topic);
  if (!created.ok) return problemResponse(problemOf(created));
  const { name, topicId, partitions } = created;
  return Response.json({ name, topicId, partitions }, {
    status: 201,
    headers: { location: `/v1/topics/${encodeURIComponent(name)}` },
  });
}

export async function describeTopic(
  { gateway }: TopicServices,
  name: string,
): Promise<Response> {
  const topic = await gateway.describeTopic(name);
  if (topic === null) throw unknownTopic(name);
  const { topicId, partitions, leaders, configs } = topic;
  return Response.json({ name, topicId, partitions, leaders, configs });
}

export async function changeTopic(
  services: TopicServices,
  name: string,
  { partitions, configs }: v.InferOutput<typeof topicChange>,
): Promise<Response> {
  const changed = await services.admin.changeTopic(name, {
    partitions: partitions ?? null,
    configs: Object.fromEntries(configs),
  });
  return changed.ok ? await describeTopic(services, name) : problemResponse(problemOf(changed));
}

export async function deleteTopic({ gateway }: TopicServices, name: string): Promise<Response> {
  const deleted = await gateway.deleteTopic(name);
  return deleted.ok ? new Response(null, { status: 204 }) : problemResponse(problemOf(deleted));
}

export async function describeConfigs(
  { admin }: TopicServices,
  name: string,
): Promise<Response> {
  const configs = await admin.describeConfigs(name);
  if (configs === null) throw unknownTopic(name);
  return Response.json({ configs });
}

export async function changeConfigs(
  services: TopicServices,
  name: string,
  changes: readonly (readonly [name: string, value: string | null])[],
): Promise<Response> {
  const configs = Object.fromEntries(changes);
  const changed = await services.admin.changeTopic(name, { partitions: null, configs });
  return changed.ok ? await describeConfigs(services, name) : problemResponse(problemOf(changed));
}

export async function describePartitions(
  { gateway, admin }: TopicServices,
  name: string,
  { from, limit }: v.InferOutput<typeof partitionsQuery>,
): Promise<Response> {
  const partitions = await admin.describePartitions(name, from, limit);
  const count = gateway.findTopic(name)?.partitions;
  if (partitions === null || count === undefined) throw unknownTopic(name);
  const next = from + partitions.length;
  return Response.json({ partitions, next: next < count && partitions.length > 0 ? next : null });
}

export async function describePartition(
  { admin }: TopicServices,
  name: string,
  partition: number,
): Promise<Response> {
  const found = await admin.describePartitions(name, partition, 1);
  if (found === null) throw unknownTopic(name);
  const [row] = found;
  if (row === undefined) {
    const error = "UNKNOWN_TOPIC_OR_PARTITION" as const;
    const message = `Cannot find partition ${partition} of ${name}`;
    return problemResponse(problemOf({ ok: false, error, message }));
  }
  return Response.json(row);
}

function rowOf(result: RecordsDeleted): Record<string, unknown> {
  const { partition } = result;
  if (result.ok) return { partition, logStart: result.logStart };
  const message = result.message ?? `Cannot delete records of partition ${partition}`;
  return { partition, error: { ...kafkaError(result.error), message } };
}

/** As with records: all 200, some 207, none the first error. */
export async function deleteRecords(
  { gateway, admin }: TopicServices,
  name: string,
  { partitions: wanted }: v.InferOutput<typeof deletion>,
): Promise<Response> {
  if (gateway.findTopic(name) === null) throw unknownTopic(name);
  if (new Set(wanted.map(({ partition }) => partition)).size < wanted.length) {
    throw badRequest("Cannot delete records: a partition is named twice");
  }
  const results = await admin.deleteRecords(name, wanted);
  const failed = results.filter((result) => !result.ok);
  if (failed.length === results.length && failed[0] !== undefined) {
    return problemResponse(problemOf(failed[0], { partitions: results.map(rowOf) }));
  }
  const status = failed.length === 0 ? 200 : 207;
  return Response.json({ partitions: results.map(rowOf) }, { status });
}
