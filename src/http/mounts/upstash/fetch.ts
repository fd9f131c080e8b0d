/** Reading by offset, and offsets by time. */
import * as v from "valibot";
import { HTTP_INSTANCE_PARTITIONS_MAX, HTTP_READ_RECORDS_MAX } from "../../../lib/limits.ts";
import type { ReadStart } from "../../port.ts";
import { badRequest, ProblemError, problemOf } from "../../problem.ts";
import { parseCount } from "../../query.ts";
import { oversizedProblem, readProblem } from "../../read/page.ts";
import { release, type Results, type Target } from "../../read/many.ts";
import { BYTES_DEFAULT } from "../../read/parameters.ts";
import { fetchNamed } from "../fetch_many.ts";
import { boundedWait } from "../instances/record.ts";
import { checked, count, nameText, partition, readChecked } from "../json_body.ts";
import type { MountServices } from "../mount_services.ts";
import { answerMessages, type Message } from "./messages.ts";

const WAIT_MS_DEFAULT = 1_000;
/** A time below is one in seconds: as milliseconds it would lie in 1973. */
const SECONDS_BELOW = 1e11;

const place = { topic: nameText, partition, offset: count };
const body = v.strictObject({
  topic: v.optional(place.topic),
  partition: v.optional(place.partition),
  offset: v.optional(place.offset),
  timeout: v.optional(count, WAIT_MS_DEFAULT),
  topicPartitionOffsets: v.optional(
    v.pipe(v.array(v.strictObject(place)), v.maxLength(HTTP_INSTANCE_PARTITIONS_MAX)),
    [],
  ),
});
export const topicPartition = v.strictObject({ topic: nameText, partition });
export const topicPartitions = v.pipe(
  v.union([v.pipe(topicPartition, v.transform((one) => [one])), v.array(topicPartition)]),
  v.maxLength(HTTP_INSTANCE_PARTITIONS_MAX),
);

function targetOf(
  { gateway }: MountServices,
  topic: string,
  at: number,
  offset: ReadStart,
): Target {
  const topicId = gateway.findTopic(topic)?.topicId ?? null;
  return { topic, topicId, partition: at, offset, bytesMax: BYTES_DEFAULT };
}

function targetsOf(services: MountServices, asked: v.InferOutput<typeof body>): Target[] {
  const own = asked.topic === undefined
    ? []
    : [checked(v.object(place), { ...asked, partition: asked.partition ?? 0 })];
  const all = [...own, ...asked.topicPartitionOffsets];
  return all.map((one) => targetOf(services, one.topic, one.partition, one.offset));
}

/** The first thing that went wrong is the answer. */
function messagesIn(targets: readonly Target[], results: Results): Message[] {
  return targets.flatMap((target, i) => {
    const result = results[i];
    if (result == null) return [];
    if (!result.ok) throw new ProblemError(readProblem(result));
    if (result.oversized !== null && result.records.length === 0) {
      throw oversizedProblem(result.oversized, target.topic, target.partition);
    }
    return result.records.map((record) => ({ place: target, record }));
  });
}

export async function fetchMessages(services: MountServices, request: Request): Promise<Response> {
  const asked = await readChecked(request, services.rooms, body);
  if (asked === null) throw badRequest("Cannot fetch: the body is empty");
  const targets = targetsOf(services, asked);
  const { gateway, env: { clock } } = services;
  const results = await fetchNamed({ gateway, clock }, targets, {
    recordsMax: HTTP_READ_RECORDS_MAX,
    bytesMax: BYTES_DEFAULT,
    isolation: "uncommitted",
    signal: request.signal,
    shown: { encoding: "text", isInLine: false },
    filter: null,
  }, boundedWait(asked.timeout));
  try {
    const messages = messagesIn(targets, results);
    return answerMessages(messages, { request, clock, release: () => release(results) });
  } catch (error) {
    release(results);
    throw error;
  }
}

function startOf(text: string): ReadStart {
  if (text === "earliest" || text === "latest") return text;
  const time = parseCount(text, "the timestamp");
  return { timestampMs: time < SECONDS_BELOW ? time * 1_000 : time };
}

/** The first offset at or after a time; the end where nothing is that new. */
export async function offsetsAt(
  services: MountServices,
  request: Request,
  timestamp: string,
): Promise<Response> {
  const offset = startOf(timestamp);
  const asked = await readChecked(request, services.rooms, topicPartitions) ?? [];
  const offsets = [];
  for (const { topic, partition: at } of asked) {
    const page = await services.gateway.read(topic, at, {
      offset,
      recordsMax: 1,
      bytesMax: 1,
      recordBytesMax: Infinity,
      waitMs: 0,
      isolation: "uncommitted",
      signal: request.signal,
    });
    if (!page.ok) throw new ProblemError(problemOf(page));
    offsets.push({ topic, partition: at, offset: page.records[0]?.offset ?? page.next });
    page.release();
  }
  return Response.json(offsets);
}
