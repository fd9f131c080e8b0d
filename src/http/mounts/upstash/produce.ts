/** Producing: one record or many, for one topic or for several; text in, and text out. */
import { toUtf8 } from "../../../lib/bytes.ts";
import { elementsOf, type Sourced, sourceOf } from "../../json_source.ts";
import { uniqueFields } from "../../json_record.ts";
import type { RecordHeader, RecordInput, Written } from "../../port.ts";
import { badRequest, ProblemError, problemOf } from "../../problem.ts";
import { parameter, queryOf } from "../../query.ts";
import { senderHeaders } from "../../sender_headers.ts";
import { checked, count, nameText, partition, sourcedBody } from "../json_body.ts";
import type { MountServices } from "../mount_services.ts";
import { type TopicRecord, withBody, writeAll } from "../produce_many.ts";
import * as v from "valibot";

const header = v.strictObject({ key: nameText, value: v.string() });
const record = {
  partition: v.optional(v.nullable(partition), null),
  timestamp: v.optional(v.nullable(count), null),
  key: v.optional(v.nullable(v.string()), null),
  value: v.unknown(),
  headers: v.optional(v.nullable(v.array(header)), null),
};
const forTopic = v.strictObject(record);
const withTopic = v.strictObject({ topic: nameText, ...record });

function utf8Of(text: string, where: string): Uint8Array {
  if (text.isWellFormed()) return toUtf8(text);
  throw badRequest(`Cannot read ${where}: half of a surrogate pair is no text`);
}

/** A string is its text; any other JSON is its own, as it was sent. */
function valueIn(json: Sourced | undefined, where: string): Uint8Array | null {
  if (json === undefined) throw badRequest(`Cannot read ${where}: it has no value`);
  if (json.value === null) return null;
  return typeof json.value === "string" ? utf8Of(json.value, where) : toUtf8(sourceOf(json));
}

function recordIn(json: Sourced, topic: string | null, where: string): TopicRecord {
  const found = topic === null
    ? checked(withTopic, json.value, where)
    : { topic, ...checked(forTopic, json.value, where) };
  const headers = (found.headers ?? []).map((one): RecordHeader => ({
    name: one.key,
    value: utf8Of(one.value, where),
  }));
  return {
    topic: found.topic,
    record: {
      key: found.key === null ? null : utf8Of(found.key, where),
      value: valueIn(uniqueFields(json, where).get("value"), where),
      headers,
      timestampMs: found.timestamp,
      partition: found.partition,
    },
  };
}

function recordsIn(body: Uint8Array, topic: string | null): readonly TopicRecord[] {
  const json = sourcedBody(body);
  if (json === null) throw badRequest("Cannot produce: the body is empty");
  const elements = Array.isArray(json.value) ? [...elementsOf(json)] : [json];
  if (elements.length === 0) throw badRequest("Cannot produce: the body holds no record");
  return elements.map((element, i) => recordIn(element, topic, `record ${i}`));
}

/** Its clients know no mixed answer: the first error is that of the request. */
function shownOf(topic: string, written: Written) {
  if (!written.ok) throw new ProblemError(problemOf(written));
  const { partition: at, offset, timestampMs } = written;
  return { topic, partition: at, offset, timestamp: timestampMs };
}

export async function produceBody(
  services: MountServices,
  request: Request,
  topic: string | null,
): Promise<Response> {
  return await withBody(services, request, async (body) => {
    const records = recordsIn(body, topic);
    const results = await writeAll(services.gateway, records);
    return Response.json(results.map((one, i) => shownOf(records[i]!.topic, one)));
  });
}

export async function produceOne(
  { gateway }: MountServices,
  topic: string,
  input: RecordInput,
): Promise<Response> {
  const [written] = await gateway.produce(topic, [input]);
  return Response.json(shownOf(topic, written!));
}

/** The value stands in the path. */
export async function producePath(
  services: MountServices,
  request: Request,
  topic: string,
  message: string,
): Promise<Response> {
  const key = parameter(queryOf(request), "key");
  return await produceOne(services, topic, {
    key: key === null ? null : utf8Of(key, "key"),
    value: utf8Of(message, "the message"),
    headers: [],
    timestampMs: null,
    partition: null,
  });
}

/** A body as it is, with the headers that its sender gave it. */
export async function webhook(services: MountServices, request: Request): Promise<Response> {
  const topic = parameter(queryOf(request), "topic");
  if (topic === null || topic === "") throw badRequest("Cannot take a webhook without ?topic=");
  return await withBody(services, request, (body) =>
    produceOne(services, topic, {
      key: null,
      value: body,
      headers: senderHeaders(request.headers),
      timestampMs: null,
      partition: null,
    }));
}
