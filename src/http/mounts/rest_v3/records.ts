/** POST of records: one behind the other for as long as they come, each reported in turn; or a few as a batch. */
import * as v from "valibot";
import { uniqueFields } from "../../json_record.ts";
import { elementsOf, type Sourced } from "../../json_source.ts";
import { busy } from "../../permit_wait.ts";
import type { RecordInput } from "../../port.ts";
import { type Problem, ProblemError } from "../../problem.ts";
import { RecordStream, type StreamForm } from "../../produce/record_stream.ts";
import { checked, sourcedBody } from "../json_body.ts";
import type { MountServices } from "../mount_services.ts";
import { withBody } from "../produce_many.ts";
import { JsonObjects } from "./json_objects.ts";
import { failureReport, recordIn, recordOfText, reportOf, type V3Record } from "./record.ts";
import { type Place, v3Fault } from "./shape.ts";

const ENTRIES_MAX = 10;
const ID_CHARS_MAX = 80;
const INVALID_BATCH = 42_208;
const IDLE: Problem = {
  status: 408,
  title: "Request timeout",
  detail: "The stream ends: nothing has come for too long",
};

/** A stream that ends with its body has nothing more to say than the reports, unless there was none. */
function formFor(at: { readonly clusterId: string; readonly topic: string }): StreamForm<V3Record> {
  return {
    splitter: new JsonObjects(),
    begin: "\n",
    parse: recordOfText,
    shown: (written, record) => reportOf(written, record, at),
    refused: failureReport,
    end(end, { records }) {
      if (!("reason" in end)) return failureReport(end);
      if (end.reason === "idle") return failureReport(IDLE);
      return records > 0 ? null : { error_code: 422, message: "Cannot produce: no records" };
    },
  };
}

export function produceRecords(
  services: MountServices,
  request: Request,
  place: Place,
  topic: string,
): Response {
  const encoding = request.headers.get("content-encoding") ?? "identity";
  if (encoding.trim().toLowerCase() !== "identity") {
    throw v3Fault(415, "Cannot read the records: they have a content encoding");
  }
  if (request.body === null || request.headers.get("content-length") === "0") {
    throw v3Fault(422, "Cannot produce: the body is empty");
  }
  const { recordStreams } = services;
  if (!recordStreams.tryAcquire()) throw busy();
  const body = new RecordStream({
    services,
    request,
    target: { topic, partition: null },
    form: formFor({ clusterId: place.clusterId, topic }),
    release: () => recordStreams.release(),
  }).open();
  return new Response(body, {
    headers: {
      "content-type": "application/json",
      "cache-control": "no-store, no-transform",
      "x-accel-buffering": "no",
    },
  });
}

const batchSchema = v.strictObject({ entries: v.array(v.unknown()) });

interface Entry {
  readonly id: string;
  /** A record, or what is wrong with it. */
  readonly record: V3Record | Problem;
}

function isRecord(record: V3Record | Problem): record is V3Record {
  return "headers" in record && "keyType" in record;
}

function entryOf(json: Sourced, i: number): Entry {
  const where = `entry ${i}`;
  const { id } = checked(v.looseObject({ id: v.string() }), json.value, where);
  if (id === "" || id.length > ID_CHARS_MAX) {
    throw v3Fault(
      422,
      `Cannot use the id of ${where}: not 1 to ${ID_CHARS_MAX} characters`,
      INVALID_BATCH,
    );
  }
  try {
    return { id, record: recordIn(json, where, true) };
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    return { id, record: error.problem };
  }
}

function entriesIn(body: Uint8Array): readonly Entry[] {
  const json = sourcedBody(body);
  if (json === null) throw v3Fault(422, "Cannot produce: the body is empty");
  checked(batchSchema, json.value);
  const entries = [...elementsOf(uniqueFields(json, "the body").get("entries")!)];
  if (entries.length === 0 || entries.length > ENTRIES_MAX) {
    throw v3Fault(
      422,
      `Cannot produce a batch of ${entries.length} entries: not 1 to ${ENTRIES_MAX}`,
      INVALID_BATCH,
    );
  }
  const found = entries.map(entryOf);
  if (new Set(found.map(({ id }) => id)).size < found.length) {
    throw v3Fault(422, "Cannot produce the batch: an id stands in it twice", INVALID_BATCH);
  }
  return found;
}

export async function produceBatch(
  services: MountServices,
  request: Request,
  { clusterId }: Place,
  topic: string,
): Promise<Response> {
  return await withBody(services, request, async (body) => {
    const entries = entriesIn(body);
    const records = entries.map(({ record }) => record).filter(isRecord);
    const inputs: readonly RecordInput[] = records;
    const written = inputs.length === 0 ? [] : await services.gateway.produce(topic, inputs);
    const successes = [];
    const failures = [];
    let next = 0;
    for (const { id, record } of entries) {
      if (!isRecord(record)) {
        failures.push({ id, ...failureReport(record) });
        continue;
      }
      const result = written[next++]!;
      const report = reportOf(result, record, { clusterId, topic });
      if (!result.ok) failures.push({ id, ...report });
      else {
        const { error_code: _, ...rest } = report;
        successes.push({ id, ...rest });
      }
    }
    return Response.json({ successes, failures }, { status: 207 });
  });
}
