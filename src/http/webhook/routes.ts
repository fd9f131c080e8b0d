/** The routes of webhooks that come in. */
import * as v from "valibot";
import { jsonAnswer, written } from "../api/answers.ts";
import { route } from "../api/route.ts";
import { ProblemError } from "../problem.ts";
import type { HttpRoute, HttpServices } from "../services.ts";
import { capture, captureQuery } from "./capture.ts";
import { type WebhookSettings, webhookSettings, webhookShown } from "./settings.ts";

const CHANGE = [404, 409, 413, 504];
const NAME = /^[A-Za-z0-9._-]{1,249}$/;

function unset(topic: string): ProblemError {
  return new ProblemError({
    status: 404,
    title: "Not set",
    detail: `Cannot find settings of webhooks for ${topic.slice(0, 249)}`,
  });
}

function answerOf({ provider, secrets, toleranceS }: WebhookSettings): Response {
  return Response.json({ provider, secrets: secrets.length, toleranceS });
}

async function put({ webhooks }: HttpServices, topic: string, settings: WebhookSettings) {
  if (!NAME.test(topic)) throw unset(topic);
  await webhooks.put(topic, settings);
  return answerOf(settings);
}

export const webhookRoutes: readonly HttpRoute[] = [
  route("POST", "/webhook/{topic}", {
    id: "captureWebhook",
    tag: "produce",
    summary: "Take a webhook as a record",
    description:
      "The body is the value, headers of its sender are those of the record. Where the " +
      "topic has settings of webhooks, its signature is checked.",
    query: captureQuery,
    content: { "*/*": null },
    answers: {
      200: jsonAnswer("it is stored", v.strictObject({ results: v.array(written) })),
    },
    problems: [401, 403, 404, 408, 413, 415, 422, 504],
    handler: (services) => ({ request, path, query }) =>
      capture(services, request, path.topic, query),
  }),
  route("GET", "/v1/topics/{topic}/webhook", {
    id: "describeWebhook",
    tag: "topics",
    summary: "What webhooks of a topic must be signed with",
    query: null,
    answers: { 200: jsonAnswer("without the secrets", webhookShown) },
    problems: [404],
    handler: ({ webhooks }) => ({ path }) => {
      const settings = webhooks.get(path.topic);
      if (settings === null) throw unset(path.topic);
      return answerOf(settings);
    },
  }),
  route("PUT", "/v1/topics/{topic}/webhook", {
    id: "putWebhook",
    tag: "topics",
    summary: "Check signatures of a topic's webhooks",
    description: "The topic need not be there yet.",
    query: null,
    json: webhookSettings,
    answers: { 200: jsonAnswer("without the secrets", webhookShown) },
    problems: CHANGE,
    handler: (services) => ({ path, json }) => put(services, path.topic, json),
  }),
  route("DELETE", "/v1/topics/{topic}/webhook", {
    id: "deleteWebhook",
    tag: "topics",
    summary: "Take webhooks of a topic unchecked",
    query: null,
    answers: { 204: { description: "signatures are not looked at any more" } },
    problems: CHANGE,
    handler: ({ webhooks }) => async ({ path }) => {
      if (webhooks.get(path.topic) === null) throw unset(path.topic);
      await webhooks.put(path.topic, null);
      return new Response(null, { status: 204 });
    },
  }),
];
