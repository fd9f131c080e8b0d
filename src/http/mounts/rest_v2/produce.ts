/** POST of records: keys and values in the format of the body's type, with what Strimzi's bridge adds. */
import * as v from "valibot";
import { answerOf, chunksOf } from "../../answer.ts";
import { uniqueFields } from "../../json_record.ts";
import { elementsOf, type Sourced } from "../../json_source.ts";
import type { RecordInput, Written } from "../../port.ts";
import { problemOf } from "../../problem.ts";
import { ProblemError } from "../../problem.ts";
import { inBackground } from "../../produce/produce.ts";
import { parseFlag, queryOf } from "../../query.ts";
import { base64In, bytesIn } from "../shown.ts";
import type { Format } from "../instances/record.ts";
import { checked, count, nameText, partition, sourcedBody } from "../json_body.ts";
import type { MountServices } from "../mount_services.ts";
import { withBody, writeAll } from "../produce_many.ts";
import { dialectOf } from "./dialect.ts";
import { formatOfBody } from "./formats.ts";
import { codeOf, noContent, restError } from "./shape.ts";

const noSchema = v.optional(v.null("there is no schema registry behind this node"), null);
const bodySchema = v.strictObject({
  records: v.array(v.unknown()),
  key_schema: noSchema,
  key_schema_id: noSchema,
  value_schema: noSchema,
  value_schema_id: noSchema,
});
const recordSchema = v.strictObject({
  key: v.optional(v.unknown()),
  value: v.optional(v.unknown()),
  partition: v.optional(v.nullable(partition), null),
  timestamp: v.optional(v.nullable(count), null),
  headers: v.optional(
    v.nullable(v.array(v.strictObject({ key: nameText, value: v.nullable(v.string()) }))),
    null,
  ),
});

const INVALID_PAYLOAD = 42_206;

function recordOf(json: Sourced, format: Format, at: number | null, where: string): RecordInput {
  const { partition: own, timestamp, headers } = checked(recordSchema, json.value, where);
  if (at !== null && own !== null && own !== at) {
    throw restError(INVALID_PAYLOAD, `Cannot produce ${where}: it names another partition`);
  }
  const fields = uniqueFields(json, where);
  return {
    key: bytesIn(fields.get("key"), format, `the key of ${where}`),
    value: bytesIn(fields.get("value"), format, `the value of ${where}`),
    headers: (headers ?? []).map((one) => ({
      name: one.key,
      value: one.value === null
        ? null
        : base64In({ value: one.value, text: "", at: 0 }, `a header of ${where}`),
    })),
    timestampMs: timestamp,
    partition: at ?? own,
  };
}

function recordsIn(body: Uint8Array, format: Format, at: number | null): readonly RecordInput[] {
  const json = sourcedBody(body);
  if (json === null) throw restError(INVALID_PAYLOAD, "Cannot produce: the body is empty");
  checked(bodySchema, json.value);
  const records = uniqueFields(json, "the body").get("records")!;
  const inputs = [...elementsOf(records)].map((one, i) => recordOf(one, format, at, `record ${i}`));
  if (inputs.length === 0) throw restError(INVALID_PAYLOAD, "Cannot produce: no records");
  return inputs;
}

function confluentResult(written: Written): unknown {
  if (written.ok) {
    const { partition: at, offset } = written;
    return { partition: at, offset, error_code: null, error: null };
  }
  const { status, detail, more } = problemOf(written);
  const code = codeOf({ status, title: "", detail, ...(more === undefined ? {} : { more }) });
  return { partition: null, offset: null, error_code: code, error: detail };
}

function strimziResult(written: Written): unknown {
  if (written.ok) return { partition: written.partition, offset: written.offset };
  const problem = problemOf(written);
  return { error_code: codeOf(problem), message: problem.detail };
}

function* resultsJson(
  results: readonly Written[],
  shown: (written: Written) => unknown,
  end: string,
): Generator<string, void> {
  yield '{"offsets":[';
  for (const [i, result] of results.entries()) {
    yield `${i === 0 ? "" : ","}${JSON.stringify(shown(result))}`;
  }
  yield end;
}

/** Where none is written for want of the topic, or of the right to it, that is the answer. */
function refuseAll(results: readonly Written[]): void {
  const [first] = results;
  if (first === undefined || first.ok || results.some(({ ok }) => ok)) return;
  const problem = problemOf(first);
  if ([401, 403, 404].includes(problem.status)) throw new ProblemError(problem);
}

function expectPartition({ gateway }: MountServices, topic: string, at: number | null): void {
  const found = gateway.findTopic(topic);
  if (at === null || found === null || at < found.partitions) return;
  throw restError(40_402, `Cannot find partition ${at} of ${topic}`);
}

export async function produceRecords(
  services: MountServices,
  request: Request,
  topic: string,
  at: number | null,
): Promise<Response> {
  const format = formatOfBody(request);
  const dialect = dialectOf(request, format === "text" ? "strimzi" : "confluent");
  const isUnheard = parseFlag(queryOf(request), "async");
  expectPartition(services, topic, at);
  const { clock } = services.env;
  let accept = (): void => {};
  const accepted = new Promise<null>((resolve) => (accept = () => resolve(null)));
  const work = withBody(services, request, async (body) => {
    const records = recordsIn(body, format, at).map((record) => ({ topic, record }));
    if (isUnheard) accept();
    return await writeAll(services.gateway, records);
  });
  if (isUnheard) inBackground(services.env, work);
  const results = await (isUnheard ? Promise.race([work, accepted]) : work);
  if (isUnheard || results === null) return noContent();
  refuseAll(results);
  const text = dialect === "confluent"
    ? resultsJson(results, confluentResult, '],"key_schema_id":null,"value_schema_id":null}')
    : resultsJson(results, strimziResult, "]}");
  const headers = { "content-type": "application/vnd.kafka.v2+json" };
  return answerOf(chunksOf(text), { request, clock, headers, release: () => {} });
}
