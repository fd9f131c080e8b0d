/** What answers are made of. Nothing is checked against it at work; tests hold answers to it. */
import * as v from "valibot";
import { described, integer, named, offset, partition } from "./fields.ts";
import type { Answer } from "./route.ts";

const kafkaFields = {
  code: described(v.pipe(v.number(), v.integer()), "as in Kafka's protocol"),
  name: v.string(),
  retriable: v.boolean(),
};

export const problem = named(
  "Problem",
  v.looseObject({
    type: v.string(),
    title: v.string(),
    status: integer(400, 599),
    detail: v.string(),
    kafka: v.optional(v.strictObject(kafkaFields)),
    errors: v.optional(v.array(v.strictObject({ pointer: v.string(), detail: v.string() }))),
  }),
);

/** An error in place of a result. */
export const failure = named("Failure", v.looseObject({ ...kafkaFields, message: v.string() }));

export const data = named(
  "Data",
  described(
    v.unknown(),
    'text, {"$base64": "..."} for bytes, or null; any JSON with encoding=json',
  ),
);

export const record = named(
  "Record",
  v.strictObject({
    partition,
    offset,
    timestamp: described(v.pipe(v.number(), v.integer()), "milliseconds since 1970"),
    key: data,
    value: data,
    headers: v.array(v.tuple([v.string(), data])),
  }),
);

export const cursor = described(v.string(), "ask for it next");

export const written = named(
  "Written",
  v.union([
    v.strictObject({
      topic: v.optional(v.string()),
      partition,
      offset,
      timestamp: v.pipe(v.number(), v.integer()),
      duplicate: v.optional(described(v.boolean(), "an earlier request has stored it")),
    }),
    v.strictObject({
      topic: v.optional(v.string()),
      line: v.optional(integer(1)),
      error: failure,
    }),
  ]),
);

export function jsonAnswer(description: string, schema: v.GenericSchema): Answer {
  return { description, content: { "application/json": schema } };
}

export const TEXT = { "text/plain": null } as const;
