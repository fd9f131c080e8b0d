/** The routes of subscriptions that push. */
import * as v from "valibot";
import { jsonAnswer } from "../api/answers.ts";
import { described, integer, named } from "../api/fields.ts";
import { route } from "../api/route.ts";
import { badRequest, ProblemError, problemResponse } from "../problem.ts";
import type { HttpRoute, HttpServices } from "../services.ts";
import type { Push } from "./push.ts";
import {
  isSubscriptionId,
  type Subscription,
  subscription,
  type SubscriptionInput,
} from "./subscription.ts";

const nothing = v.nullable(v.string());
const shown = named(
  "Subscription",
  v.looseObject({
    id: v.string(),
    group: v.string(),
    topics: v.array(v.string()),
    url: v.string(),
    state: described(
      v.picklist(["delivering", "paused", "elsewhere"]),
      "elsewhere: another node has the group, or none",
    ),
    status: v.nullable(v.strictObject({
      inFlight: integer(0),
      heldBytes: integer(0),
      delivered: described(integer(0), "records since this node delivers"),
      failed: described(integer(0), "deliveries that were not taken"),
      deadLetters: integer(0),
      problem: described(nothing, "why it does not go on, or did not go well last"),
    })),
  }),
);
const jwks = v.strictObject({
  keys: v.array(v.strictObject({
    kty: v.literal("OKP"),
    crv: v.literal("Ed25519"),
    alg: v.literal("EdDSA"),
    use: v.literal("sig"),
    kid: v.string(),
    x: v.string(),
  })),
});
const tested = v.strictObject({
  ok: v.boolean(),
  status: v.nullable(integer(100, 999)),
  reason: nothing,
});
const CHANGE = [404, 409, 413, 504];

function unknown(id: string): ProblemError {
  return new ProblemError({
    status: 404,
    title: "Unknown subscription",
    detail: `Cannot find subscription ${id.slice(0, 100)}`,
  });
}

function found({ subscriptions }: Push, id: string): Subscription {
  const one = isSubscriptionId(id) ? subscriptions.get(id) : null;
  if (one === null) throw unknown(id);
  return one;
}

function answerOf(push: Push, one: Subscription, status = 200): Response {
  return Response.json({ ...one, ...push.shown(one) }, { status });
}

async function put({ push }: HttpServices, id: string, input: SubscriptionInput) {
  if (!isSubscriptionId(id)) {
    throw badRequest("Cannot use the id: not 1 to 100 letters, digits, dots, hyphens, underscores");
  }
  if (!push.canDeliver) {
    return problemResponse({
      status: 501,
      title: "Not implemented",
      detail: "Cannot push: this broker is embedded without outbound HTTP",
    });
  }
  const target = push.targetOf(input.url);
  if (!target.ok) throw badRequest(`Cannot push to url: ${target.detail}`);
  // Public before anything is signed with it.
  await push.keys.current();
  const isNew = await push.subscriptions.put(id, input);
  return answerOf(push, found(push, id), isNew ? 201 : 200);
}

async function setPaused({ push }: HttpServices, id: string, paused: boolean) {
  found(push, id);
  const changed = await push.subscriptions.setPaused(id, paused);
  if (changed === null) throw unknown(id);
  return answerOf(push, changed);
}

async function test({ push }: HttpServices, id: string, { signal }: Request) {
  const answer = await push.test(found(push, id), signal);
  if (!answer.ok) return Response.json({ ok: false, status: null, reason: answer.reason });
  const { status } = answer;
  const ok = status >= 200 && status < 300;
  return Response.json({ ok, status, reason: ok ? null : `answered ${status}` });
}

export const pushRoutes: readonly HttpRoute[] = [
  route("GET", "/v1/subscriptions", {
    id: "listSubscriptions",
    tag: "push",
    summary: "All subscriptions",
    query: null,
    answers: {
      200: jsonAnswer(
        "in order of their ids",
        v.strictObject({ subscriptions: v.array(shown) }),
      ),
    },
    handler: ({ push }) => () =>
      Response.json({
        subscriptions: push.subscriptions.all().map((one) => ({ ...one, ...push.shown(one) })),
      }),
  }),
  route("PUT", "/v1/subscriptions/{subscription}", {
    id: "putSubscription",
    tag: "push",
    summary: "Deliver records to an HTTPS handler",
    description:
      "In place of the one of that id. What was delivered stands in the group's offsets.",
    query: null,
    json: subscription,
    answers: {
      200: jsonAnswer("it is changed", shown),
      201: jsonAnswer("it is new", shown),
    },
    problems: [409, 413, 501, 504],
    handler: (services) => ({ path, json }) => put(services, path.subscription, json),
  }),
  route("GET", "/v1/subscriptions/{subscription}", {
    id: "describeSubscription",
    tag: "push",
    summary: "One subscription",
    query: null,
    answers: { 200: jsonAnswer("and how it fares on this node", shown) },
    problems: [404],
    handler: ({ push }) => ({ path }) => answerOf(push, found(push, path.subscription)),
  }),
  route("DELETE", "/v1/subscriptions/{subscription}", {
    id: "deleteSubscription",
    tag: "push",
    summary: "End a subscription",
    description: "The offsets of its group stay.",
    query: null,
    answers: { 204: { description: "nothing more is delivered" } },
    problems: CHANGE,
    handler: ({ push }) => async ({ path }) => {
      found(push, path.subscription);
      await push.subscriptions.delete(path.subscription);
      return new Response(null, { status: 204 });
    },
  }),
  route("POST", "/v1/subscriptions/{subscription}/pause", {
    id: "pauseSubscription",
    tag: "push",
    summary: "Deliver nothing for now",
    query: null,
    answers: { 200: jsonAnswer("it is paused", shown) },
    problems: CHANGE,
    handler: (services) => ({ path }) => setPaused(services, path.subscription, true),
  }),
  route("POST", "/v1/subscriptions/{subscription}/resume", {
    id: "resumeSubscription",
    tag: "push",
    summary: "Go on at the group's offsets",
    query: null,
    answers: { 200: jsonAnswer("it goes on", shown) },
    problems: CHANGE,
    handler: (services) => ({ path }) => setPaused(services, path.subscription, false),
  }),
  route("POST", "/v1/subscriptions/{subscription}/test", {
    id: "testSubscription",
    tag: "push",
    summary: "Send the handler a delivery without records",
    description: "Signed as any other, once, also while it is paused.",
    query: null,
    answers: { 200: jsonAnswer("what became of it", tested) },
    problems: [404],
    handler: (services) => ({ path, request }) => test(services, path.subscription, request),
  }),
  route("GET", "/v1/jwks.json", {
    id: "getPushKeys",
    tag: "push",
    summary: "Keys that deliveries are signed with",
    description: "The one that signs, and the next one. None before there is a subscription.",
    query: null,
    answers: { 200: jsonAnswer("as a set of JSON Web Keys", jwks) },
    handler: ({ push }) => () =>
      Response.json(push.keys.jwks(), { headers: { "cache-control": "public, max-age=3600" } }),
  }),
];
