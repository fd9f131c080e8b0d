/** Topic routes: list, create, describe, delete. */
import * as v from "valibot";
import { parseJson, readBody, textOf } from "./body.ts";
import type { Gateway } from "./port.ts";
import { badRequest, ProblemError, problemOf, problemResponse } from "./problem.ts";

const scalar = v.pipe(
  v.union([v.string(), v.number(), v.boolean()]),
  v.transform(String),
);
const creation = v.strictObject({
  name: v.string(),
  partitions: v.optional(v.nullable(v.pipe(v.number(), v.safeInteger())), null),
  configs: v.optional(v.record(v.string(), scalar), {}),
});

export function listTopics(gateway: Gateway): Response {
  return Response.json({ topics: gateway.listTopics() });
}

export async function createTopic(gateway: Gateway, request: Request): Promise<Response> {
  const json = parseJson(textOf(await readBody(request), "the body"), "the JSON body");
  const result = v.safeParse(creation, json);
  if (!result.success) {
    const issue = result.issues[0];
    throw badRequest(`Cannot create the topic: ${v.getDotPath(issue) ?? "body"}: ${issue.message}`);
  }
  const created = await gateway.createTopic(result.output);
  if (!created.ok) return problemResponse(problemOf(created));
  const { name, topicId, partitions } = created;
  return Response.json({ name, topicId, partitions }, {
    status: 201,
    headers: { location: `/v1/topics/${encodeURIComponent(name)}` },
  });
}

export function describeTopic(gateway: Gateway, name: string): Response {
  const topic = gateway.describeTopic(name);
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
