/** The routes that write records. */
import * as v from "valibot";
import { jsonAnswer, written } from "../api/answers.ts";
import { described, integer, named, offset, partition } from "../api/fields.ts";
import { type Answer, type Content, route } from "../api/route.ts";
import { HTTP_IDEMPOTENCY_KEY_CHARS_MAX } from "../../lib/limits.ts";
import { envelope, topicEnvelope } from "../json_record.ts";
import type { HttpRoute } from "../services.ts";
import { eventsQuery, produceEvents } from "./event_sink.ts";
import { manyQuery, produceMany } from "./many_topics.ts";
import { produce, produceQuery } from "./produce.ts";
import { createProducer } from "./producers.ts";
import { streamQuery, streamRecords } from "./stream_route.ts";

const recordInput = named("RecordInput", envelope);
const lines = described(v.string(), "an envelope in each line");

function inJson(one: v.GenericSchema): v.GenericSchema {
  return v.union([one, v.array(one), v.strictObject({ records: v.array(one) })]);
}

const event = v.looseObject({
  id: v.string(),
  source: v.string(),
  specversion: v.literal("1.0"),
  type: v.string(),
  partitionkey: v.optional(v.string()),
});
const EVENTS: Content = {
  "application/cloudevents+json": event,
  "application/cloudevents-batch+json": v.array(event),
};
const RECORDS: Content = {
  "application/json": inJson(recordInput),
  "application/x-ndjson": lines,
  ...EVENTS,
  "*/*": null,
};

const results = v.strictObject({ results: v.array(written) });
const stored: Answer = {
  ...jsonAnswer("all records are stored: a result for each", results),
  headers: {
    "Idempotency-Window": "how long an Idempotency-Key holds",
    "Idempotent-Replayed": "true, where an earlier request has stored them",
  },
};
const ANSWERS = {
  200: stored,
  202: jsonAnswer(
    "with acks=0: the request was understood",
    v.strictObject({ accepted: integer(1) }),
  ),
  207: jsonAnswer("some records are refused: a result for each", results),
};
const batchStored = jsonAnswer(
  "all records are stored",
  v.union([
    results,
    v.strictObject({
      partition,
      baseOffset: offset,
      lastOffset: offset,
      timestamp: v.pipe(v.number(), v.integer()),
      duplicate: v.optional(v.literal(true)),
    }),
  ]),
);

const key = v.optional(
  described(
    v.pipe(v.string(), v.maxLength(HTTP_IDEMPOTENCY_KEY_CHARS_MAX + 2)),
    "the same key with the same records is stored once",
  ),
);
const rawHeaders = {
  "Kafka-Key": v.optional(described(v.string(), "the key of a raw record")),
  "Kafka-Timestamp": v.optional(
    described(integer(0), "of a raw record, in milliseconds since 1970"),
  ),
};
const numbered = {
  "Producer-Id": v.optional(described(integer(0), "of a producer that numbers its records")),
  "Producer-Epoch": v.optional(integer(0, 2 ** 15 - 1)),
  "Producer-Seq": v.optional(described(integer(0, 2 ** 31 - 1), "of the first record")),
};
const condition = v.optional(
  described(v.string(), "the next offset of the partition, else nothing is stored; or *"),
);

const STREAM = {
  tag: "produce",
  description: "Lines are read for as long as they come, and answered meanwhile, in order. The " +
    "last line of the answer has end; without it the stream was cut.",
  query: streamQuery,
  content: { "application/x-ndjson": lines },
  answers: {
    200: {
      description: "a result in each line",
      content: { "application/x-ndjson": described(v.string(), "a result in each line") },
    },
  },
  problems: [415],
} as const;

export const produceRoutes: readonly HttpRoute[] = [
  route("POST", "/v1/topics/{topic}/records", {
    id: "produceRecords",
    tag: "produce",
    summary: "Write records",
    description: "The content type says what the body is: JSON, lines, CloudEvents, or, for any " +
      "other type, the value of one record. A record header is sent as Kafka-Header-....",
    query: produceQuery,
    headers: { "Idempotency-Key": key, ...numbered, ...rawHeaders },
    content: RECORDS,
    answers: ANSWERS,
    problems: [403, 404, 408, 409, 413, 415, 422, 504],
    handler: (services) => ({ request, path, query }) =>
      produce(services, request, { topic: path.topic, partition: null }, query),
  }),
  route("POST", "/v1/topics/{topic}/partitions/{partition}/records", {
    id: "produceToPartition",
    tag: "produce",
    summary: "Write records to one partition",
    query: produceQuery,
    headers: { "Idempotency-Key": key, "If-Match": condition, ...numbered, ...rawHeaders },
    content: { ...RECORDS, "application/vnd.kafka.batch": null },
    answers: { ...ANSWERS, 200: batchStored },
    problems: [403, 404, 408, 409, 412, 413, 415, 422, 504],
    handler: (services) => ({ request, path, query }) => produce(services, request, path, query),
  }),
  route("POST", "/v1/topics/{topic}/records:stream", {
    ...STREAM,
    id: "streamRecords",
    summary: "Write records as they come",
    handler: (services) => ({ request, path, query }) =>
      streamRecords(services, request, { topic: path.topic, partition: null }, query),
  }),
  route("POST", "/v1/topics/{topic}/partitions/{partition}/records:stream", {
    ...STREAM,
    id: "streamToPartition",
    summary: "Write records to one partition as they come",
    handler: (services) => ({ request, path, query }) =>
      streamRecords(services, request, path, query),
  }),
  route("POST", "/v1/records", {
    id: "produceToTopics",
    tag: "produce",
    summary: "Write records to many topics",
    description: "Nothing binds the records together: each has a result of its own, in order.",
    query: manyQuery,
    content: {
      "application/json": inJson(named("TopicRecordInput", topicEnvelope)),
      "application/x-ndjson": lines,
    },
    answers: ANSWERS,
    problems: [403, 404, 408, 413, 415, 422, 504],
    handler: (services) => ({ request, query }) => produceMany(services, request, query),
  }),
  route("POST", "/v1/producers", {
    id: "createProducer",
    tag: "produce",
    summary: "An id for a producer that numbers its records",
    query: null,
    answers: {
      201: {
        ...jsonAnswer(
          "a new producer",
          v.strictObject({ producerId: integer(0), producerEpoch: integer(0) }),
        ),
        headers: { "Producer-Id": "the same", "Producer-Epoch": "the same" },
      },
    },
    problems: [504],
    handler: ({ gateway }) => () => createProducer(gateway),
  }),
  route("POST", "/ce/{topic}", {
    id: "produceEvents",
    tag: "produce",
    summary: "A sink for CloudEvents",
    query: eventsQuery,
    headers: {
      "ce-id": v.optional(described(v.string(), "of an event in the binary mode, as all others")),
    },
    content: { ...EVENTS, "*/*": null },
    answers: { 204: { description: "all events are stored" } },
    problems: [403, 404, 408, 409, 413, 415, 422, 504],
    handler: (services) => ({ request, path, query }) =>
      produceEvents(services, request, path.topic, query),
  }),
];
