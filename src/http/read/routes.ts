/** The routes that read records. */
import * as v from "valibot";
import { cursor, failure, jsonAnswer, record } from "../api/answers.ts";
import { described, offset, partition } from "../api/fields.ts";
import { type Answer, route } from "../api/route.ts";
import { streamQuery, streamTopic } from "../live/stream.ts";
import type { HttpRoute, HttpServices } from "../services.ts";
import { fetchMany, fetchWarp, fetchWarpByQuery, warpQuery } from "./fetch.ts";
import { nativeBody, warpBody } from "./fetch_body.ts";
import { consumeMerged, mergedQuery } from "./merged.ts";
import { consumeOne, oneQuery } from "./one.ts";
import { consume, partitionQuery } from "./partition.ts";

function readServices({ gateway, env }: HttpServices) {
  return { gateway, clock: env.clock };
}

const page = v.strictObject({
  records: v.array(record),
  next: described(offset, "ask for it next"),
  highWatermark: v.optional(described(offset, "the end of the log; not under a topicId")),
  logStart: v.optional(described(offset, "not under a topicId")),
});
const POSITIONS = {
  "Kafka-Next-Offset": "offset to ask for next",
  "Kafka-High-Watermark": "the end of the log",
  "Kafka-Log-Start": "the first offset that is there",
  "ETag": "of a page that will not change",
};
const lines = described(v.string(), "a record in each line");
const batches = null;

const recordHeaders = {
  "Kafka-Partition": "where the record is",
  "Kafka-Offset": "its offset",
  "Kafka-Timestamp": "milliseconds since 1970",
  "Kafka-Key": "its key; base64:... for bytes that a header cannot hold",
  "Kafka-Omitted": "what no header could hold",
};
const fetched = v.strictObject({
  topics: v.array(v.strictObject({
    topic: v.string(),
    partitions: v.array(v.union([
      v.strictObject({
        partition,
        records: v.array(record),
        next: described(v.unknown(), "ask for it next"),
        highWatermark: v.optional(offset),
        logStart: v.optional(offset),
      }),
      v.strictObject({ partition, error: failure }),
    ])),
  })),
});
const warpFetched = v.strictObject({
  topics: v.array(v.strictObject({
    topic: v.string(),
    partitions: v.array(v.strictObject({
      partition,
      error_code: v.pipe(v.number(), v.integer()),
      high_watermark: v.pipe(v.number(), v.integer()),
      records: v.array(v.strictObject({
        offset,
        timestamp: v.pipe(v.number(), v.integer()),
        key: v.nullable(v.string()),
        value: v.nullable(v.string()),
        headers: v.array(v.strictObject({ key: v.string(), value: v.nullable(v.string()) })),
      })),
    })),
  })),
});
const NOT_MODIFIED: Answer = { description: "the page of If-None-Match is still the same" };
const warpFacts = {
  tag: "read",
  summary: "Fetch in WarpStream's shape",
  answers: { 200: jsonAnswer("partitions with records or an error code", warpFetched) },
} as const;

export const readRoutes: readonly HttpRoute[] = [
  route("GET", "/v1/topics/{topic}/records", {
    id: "readTopic",
    tag: "read",
    summary: "Read all partitions, page by page",
    query: mergedQuery,
    answers: {
      200: {
        description: "records in order within their partition, and a cursor",
        content: {
          "application/json": v.strictObject({
            records: v.array(record),
            cursor,
            upToDate: described(v.boolean(), "there was nothing more"),
          }),
          "application/x-ndjson": lines,
        },
        headers: {
          "Kafka-Cursor": "ask for it next",
          "Kafka-Up-To-Date": "whether there was nothing more",
        },
      },
    },
    problems: [404, 410, 416, 422, 500],
    handler: (services) => ({ request, path, query }) =>
      consumeMerged(readServices(services), request, path.topic, query),
  }),
  route("GET", "/v1/topics/{topic}/stream", {
    id: "streamTopic",
    tag: "read",
    summary: "Records as they come",
    description:
      "Server-sent events, or a line of JSON for each record. The id of an event is the " +
      "cursor behind it, and comes back as Last-Event-ID, which beats cursor, which beats from.",
    query: streamQuery,
    headers: { "Last-Event-ID": v.optional(described(v.string(), "the cursor to go on at")) },
    answers: {
      200: {
        description: "a stream without end",
        content: { "text/event-stream": v.string(), "application/x-ndjson": v.string() },
      },
    },
    problems: [404, 410, 416],
    handler: ({ gateway, env, streams }) => ({ request, path, query }) =>
      streamTopic({ gateway, env, streams }, request, path.topic, query),
  }),
  route("GET", "/v1/topics/{topic}/partitions/{partition}/records", {
    id: "readPartition",
    tag: "read",
    summary: "Read one partition",
    query: partitionQuery,
    headers: { "If-None-Match": v.optional(described(v.string(), "the ETag of a page")) },
    answers: {
      200: {
        description: "records in order, and where to read on",
        content: {
          "application/json": page,
          "application/x-ndjson": lines,
          "application/vnd.kafka.batch": batches,
        },
        headers: POSITIONS,
      },
      304: NOT_MODIFIED,
    },
    problems: [404, 410, 416, 422, 500],
    handler: (services) => ({ request, path, query }) =>
      consume(readServices(services), request, path, query),
  }),
  route("GET", "/v1/topics/{topic}/partitions/{partition}/records/{offset}", {
    id: "readRecord",
    tag: "read",
    summary: "The value of one record as it is",
    description: "Headers of the record come back as Kafka-Header-..., a CloudEvent as one.",
    query: oneQuery,
    answers: {
      200: { description: "its value", content: { "*/*": null }, headers: recordHeaders },
      204: { description: "it is a tombstone", headers: recordHeaders },
    },
    problems: [404, 410, 416, 500],
    handler: (services) => ({ request, path, query }) =>
      consumeOne(readServices(services), request, path, path.offset, query),
  }),
  route("POST", "/v1/fetch", {
    id: "fetchRecords",
    tag: "read",
    summary: "Read partitions of many topics at once",
    query: null,
    json: nativeBody,
    answers: { 200: jsonAnswer("partitions with records or an error of their own", fetched) },
    problems: [413],
    handler: (services) => ({ request, json }) => fetchMany(readServices(services), request, json),
  }),
  route("POST", "/v1/kafka/fetch", {
    ...warpFacts,
    id: "fetchWarp",
    query: null,
    json: warpBody,
    problems: [413],
    handler: (services) => ({ request, json }) => fetchWarp(readServices(services), request, json),
  }),
  route("GET", "/v1/kafka/fetch", {
    ...warpFacts,
    id: "fetchWarpByQuery",
    description: "For clients that send no bodies with a GET.",
    query: warpQuery,
    handler: (services) => ({ request, query }) =>
      fetchWarpByQuery(readServices(services), request, query),
  }),
];
