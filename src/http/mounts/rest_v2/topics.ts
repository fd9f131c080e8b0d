/** Topics, partitions and brokers, and a read of a partition that needs no instance. */
import * as v from "valibot";
import { HTTP_READ_BYTES_MAX, HTTP_READ_RECORDS_MAX } from "../../../lib/limits.ts";
import type { TopicDetail } from "../../port.ts";
import { ProblemError, problemOf } from "../../problem.ts";
import { parameter, parseCount, queryOf } from "../../query.ts";
import { release } from "../../read/many.ts";
import { readProblem } from "../../read/page.ts";
import { fetchNamed } from "../fetch_many.ts";
import { boundedWait } from "../instances/record.ts";
import { nameText, readChecked } from "../json_body.ts";
import type { MountServices } from "../mount_services.ts";
import { formatAccepted } from "./formats.ts";
import { answerRecords, canShowRecord } from "./records.ts";
import { restError, v2Json } from "./shape.ts";

type Leader = TopicDetail["leaders"][number];

async function topicOf({ gateway }: MountServices, topic: string): Promise<TopicDetail> {
  const found = await gateway.describeTopic(topic);
  if (found !== null) return found;
  throw restError(40_401, `Cannot find topic ${topic}`);
}

async function leaderOf(
  services: MountServices,
  topic: string,
  partition: number,
): Promise<Leader> {
  const found = (await topicOf(services, topic)).leaders[partition];
  if (found !== undefined) return found;
  throw restError(40_402, `Cannot find partition ${partition} of ${topic}`);
}

/** Each partition has one copy, in the bucket: its leader stands for it. */
function shownPartition({ partition, leader }: Leader) {
  const broker = leader ?? -1;
  return { partition, leader: broker, replicas: [{ broker, leader: true, in_sync: true }] };
}

export function listTopics({ gateway }: MountServices): Response {
  return v2Json(gateway.listTopics().map((topic) => topic.name));
}

export async function describeTopic(services: MountServices, topic: string): Promise<Response> {
  const { leaders } = await topicOf(services, topic);
  const rows = await services.admin.describeConfigs(topic) ?? [];
  return v2Json({
    name: topic,
    configs: Object.fromEntries(rows.map((row) => [row.name, row.value])),
    partitions: leaders.map(shownPartition),
  });
}

export async function listPartitions(services: MountServices, topic: string): Promise<Response> {
  return v2Json((await topicOf(services, topic)).leaders.map(shownPartition));
}

export async function describePartition(
  services: MountServices,
  topic: string,
  partition: number,
): Promise<Response> {
  return v2Json(shownPartition(await leaderOf(services, topic, partition)));
}

export async function partitionOffsets(
  services: MountServices,
  topic: string,
  partition: number,
): Promise<Response> {
  await leaderOf(services, topic, partition);
  const { topicId } = await topicOf(services, topic);
  const bounds = await services.gateway.bounds(topicId, partition, "uncommitted");
  if (!bounds.ok) throw new ProblemError(problemOf(bounds));
  return v2Json({ beginning_offset: bounds.earliest, end_offset: bounds.latest });
}

export function listBrokers({ admin }: MountServices): Response {
  return v2Json({ brokers: admin.nodes().map(({ nodeId }) => nodeId) });
}

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(1));
const creation = v.strictObject({
  topic_name: nameText,
  partitions_count: v.optional(v.nullable(count), null),
  replication_factor: v.optional(v.nullable(count), null),
});

/** Of Strimzi's bridge. Any replication factor will do: the bucket is what replicates. */
export async function createTopic(services: MountServices, request: Request): Promise<Response> {
  const asked = await readChecked(request, services.rooms, creation);
  if (asked === null) throw restError(400, "Cannot create a topic: the body is empty", 400);
  const created = await services.gateway.createTopic({
    name: asked.topic_name,
    partitions: asked.partitions_count,
    configs: [],
  });
  if (!created.ok) throw new ProblemError(problemOf(created));
  return new Response(null, { status: 201 });
}

function required(query: URLSearchParams, parameterName: string): number {
  const text = parameter(query, parameterName);
  if (text === null) throw restError(400, `Cannot do without ${parameterName}`, 400);
  return parseCount(text, parameterName);
}

/** Of Redpanda's proxy, which asks for all three parameters. */
export async function readPartition(
  { gateway, env: { clock } }: MountServices,
  request: Request,
  topic: string,
  partition: number,
): Promise<Response> {
  const query = queryOf(request);
  const offset = required(query, "offset");
  const waitMs = boundedWait(required(query, "timeout"));
  const bytesMax = Math.max(1, Math.min(required(query, "max_bytes"), HTTP_READ_BYTES_MAX));
  const format = formatAccepted(request, "binary");
  const topicId = gateway.findTopic(topic)?.topicId ?? null;
  const target = { topic, topicId, partition, offset, bytesMax };
  const results = await fetchNamed({ gateway, clock }, [target], {
    recordsMax: HTTP_READ_RECORDS_MAX,
    bytesMax,
    isolation: "uncommitted",
    signal: request.signal,
    shown: { encoding: "auto", isInLine: false },
    filter: null,
  }, waitMs);
  const [page] = results;
  if (page == null) throw restError(50_003, "Cannot read now", 503);
  if (!page.ok) throw new ProblemError(readProblem(page));
  const stuck = page.records.findIndex((record) => !canShowRecord(record, format));
  const shown = stuck < 0 ? page.records : page.records.slice(0, stuck);
  if (shown.length === 0 && (stuck === 0 || page.oversized !== null)) {
    const at = page.oversized?.offset ?? page.records[0]?.offset ?? offset;
    release(results);
    throw cannotShow(topic, partition, at, format);
  }
  const records = shown.map((record) => ({ place: { topic, partition }, record }));
  const how = { format, hasMore: false, request, clock, release: () => release(results) };
  return answerRecords(records, how);
}

export function cannotShow(
  topic: string,
  partition: number,
  offset: number,
  format: string,
): ProblemError {
  return restError(
    40_601,
    `Cannot show offset ${offset} of partition ${partition} of ${topic} as ${format}: ` +
      `read it in another format, or go on at ${offset + 1}`,
  );
}
