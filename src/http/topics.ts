/** Topic routes: list, create, describe, delete. */
import * as v from "valibot";
import { HTTP_SMALL_BODY_BYTES } from "../lib/limits.ts";
import { jsonText, parseJson } from "./body.ts";
import type { Gateway } from "./port.ts";
import { badRequest, ProblemError, problemOf, problemResponse } from "./problem.ts";
import { type BodyRooms, readBody } from "./read_body.ts";

/** A larger integer is not the one that was sent any more. */
const number = v.pipe(
  v.number(),
  v.check((value) => !Number.isInteger(value) || Number.isSafeInteger(value), "too large a number"),
);
const scalar = v.pipe(v.union([v.string(), number, v.boolean()]), v.transform(String));
/** Looked at one by one: `v.record` would pass over names like `__proto__` in silence. */
const settings = v.custom<Readonly<Record<string, unknown>>>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "Expected an object of settings",
);
const creation = v.strictObject({
  name: v.string(),
  partitions: v.optional(v.nullable(v.pipe(v.number(), v.safeInteger())), null),
  configs: v.optional(settings, {}),
});

function configsOf(given: Readonly<Record<string, unknown>>): [string, string][] {
  return Object.entries(given).map(([name, value]) => {
    const result = v.safeParse(scalar, value);
    if (result.success) return [name, result.output];
    throw badRequest(
      `Cannot create the topic: configs.${
        name.slice(0, 100)
      }: not a string, safe number or boolean`,
    );
  });
}

export function listTopics(gateway: Gateway): Response {
  return Response.json({ topics: gateway.listTopics() });
}

async function readJson(request: Request, rooms: BodyRooms): Promise<unknown> {
  const body = await readBody(request, rooms, HTTP_SMALL_BODY_BYTES);
  try {
    return parseJson(jsonText(body.bytes), "the JSON body");
  } finally {
    body.release();
  }
}

export async function createTopic(
  gateway: Gateway,
  request: Request,
  rooms: BodyRooms,
): Promise<Response> {
  const result = v.safeParse(creation, await readJson(request, rooms));
  if (!result.success) {
    const issue = result.issues[0];
    throw badRequest(`Cannot create the topic: ${v.getDotPath(issue) ?? "body"}: ${issue.message}`);
  }
  const created = await gateway.createTopic({
    ...result.output,
    configs: configsOf(result.output.configs),
  });
  if (!created.ok) return problemResponse(problemOf(created));
  const { name, topicId, partitions } = created;
  return Response.json({ name, topicId, partitions }, {
    status: 201,
    headers: { location: `/v1/topics/${encodeURIComponent(name)}` },
  });
}

export async function describeTopic(gateway: Gateway, name: string): Promise<Response> {
  const topic = await gateway.describeTopic(name);
  if (topic === null) throw unknownTopic(name);
  const { topicId, partitions, leaders, configs } = topic;
  return Response.json({ name, topicId, partitions, leaders, configs });
}

export async function deleteTopic(gateway: Gateway, name: string): Promise<Response> {
  const deleted = await gateway.deleteTopic(name);
  return deleted.ok ? new Response(null, { status: 204 }) : problemResponse(problemOf(deleted));
}

function unknownTopic(name: string): ProblemError {
  return new ProblemError(
    problemOf({
      ok: false,
      error: "UNKNOWN_TOPIC_OR_PARTITION",
      message: `Cannot find topic ${name}`,
    }),
  );
}
