/** The routes of groups. */
import * as v from "valibot";
import { data, jsonAnswer } from "../api/answers.ts";
import { described, integer, named, offset, partition } from "../api/fields.ts";
import { route } from "../api/route.ts";
import { isFault } from "../../lib/errors.ts";
import { ProblemError } from "../problem.ts";
import type { HttpRoute, HttpServices } from "../services.ts";
import { acknowledgeToken, tokenOf } from "./acknowledge.ts";
import { type AckBody, ackBody, offsetsBody, pollBody } from "./bodies.ts";
import { poll } from "./poll.ts";
import { faultOf, openGroup } from "./refused.ts";
import { deleteGroup, describeGroup, getLag, getOffsets, listGroups, putOffsets } from "./tools.ts";

const lost = v.array(v.strictObject({ topic: v.string(), partition, from: offset, to: offset }));
const place = { topic: v.string(), partition };

const leasedRecord = named(
  "LeasedRecord",
  v.strictObject({
    topic: v.string(),
    deliveryCount: v.optional(described(integer(2), "where it was delivered before")),
    partition,
    offset,
    timestamp: v.optional(v.pipe(v.number(), v.integer())),
    key: v.optional(data),
    value: v.optional(data),
    headers: v.optional(v.array(v.tuple([v.string(), data]))),
    omitted: v.optional(described(integer(1), "bytes of a record that JSON is too small for")),
    raw: v.optional(described(v.string(), "where its value can be had")),
  }),
);

const polled = v.strictObject({
  member: v.string(),
  ack: described(v.nullable(v.string()), "acknowledges the records; null where nothing is leased"),
  lost: v.optional(lost),
  records: v.array(leasedRecord),
});

const acked = v.strictObject({
  offsets: v.array(v.strictObject({ ...place, committed: v.nullable(offset) })),
  lost: described(lost, "leased to others meanwhile, or given back"),
});

const groupRow = {
  group: v.string(),
  type: v.string(),
  state: v.string(),
  protocolType: v.string(),
};
const shown = v.strictObject({
  ...groupRow,
  members: v.array(v.strictObject({
    member: v.string(),
    instance: v.nullable(v.string()),
    client: v.string(),
    host: v.string(),
  })),
  leases: v.array(v.strictObject({
    ...place,
    start: offset,
    next: offset,
    leased: integer(0),
    returned: integer(0),
    acknowledged: integer(0),
  })),
});
const offsets = v.array(v.strictObject({
  ...place,
  offset,
  metadata: v.string(),
  committedAt: integer(0),
}));
const lags = v.array(v.strictObject({
  ...place,
  committed: offset,
  end: v.nullable(offset),
  lag: v.nullable(integer(0)),
}));

async function acknowledge(
  services: HttpServices,
  group: string,
  { ack, ...ask }: AckBody,
): Promise<Response> {
  const token = tokenOf(group, ack);
  const leases = await openGroup(services.groups, group);
  try {
    const { durable, isAllLost, ...answer } = acknowledgeToken(services, leases, token, ask);
    await durable;
    if (!isAllLost) return Response.json({ offsets: answer.offsets, lost: answer.lost });
    throw new ProblemError({
      status: 409,
      title: "Lease lost",
      detail: "Cannot acknowledge: the lease has ended, and the records are others' now",
      more: { lost: answer.lost },
    });
  } catch (error) {
    throw isFault(error) ? faultOf(error) : error;
  }
}

export const groupRoutes: readonly HttpRoute[] = [
  route("POST", "/v1/groups/{group}/poll", {
    id: "pollGroup",
    tag: "groups",
    summary: "Lease records to work on",
    query: null,
    json: pollBody,
    answers: { 200: jsonAnswer("records, maybe none", polled) },
    problems: [404, 409, 500],
    handler: (services) => ({ request, path, json }) => poll(services, request, path.group, json),
  }),
  route("POST", "/v1/groups/{group}/ack", {
    id: "acknowledgeRecords",
    tag: "groups",
    summary: "Acknowledge records, give them back, or extend their lease",
    query: null,
    json: ackBody,
    answers: { 200: jsonAnswer("done, and durable", acked) },
    problems: [409],
    handler: (services) => ({ path, json }) => acknowledge(services, path.group, json),
  }),
  route("GET", "/v1/groups", {
    id: "listGroups",
    tag: "groups",
    summary: "List groups of any kind",
    query: null,
    answers: {
      200: jsonAnswer("all groups", v.strictObject({ groups: v.array(v.strictObject(groupRow)) })),
    },
    handler: (services) => ({ request }) => listGroups(services, request),
  }),
  route("GET", "/v1/groups/{group}", {
    id: "describeGroup",
    tag: "groups",
    summary: "Describe a group",
    query: null,
    answers: { 200: jsonAnswer("its members, and what it has leased", shown) },
    problems: [404],
    handler: (services) => ({ path }) => describeGroup(services, path.group),
  }),
  route("DELETE", "/v1/groups/{group}", {
    id: "deleteGroup",
    tag: "groups",
    summary: "Delete a group without members, with its offsets and leases",
    query: null,
    answers: { 204: { description: "it is gone" } },
    problems: [404, 409],
    handler: (services) => ({ path }) => deleteGroup(services, path.group),
  }),
  route("GET", "/v1/groups/{group}/offsets", {
    id: "getGroupOffsets",
    tag: "groups",
    summary: "Committed offsets of a group",
    query: null,
    answers: { 200: jsonAnswer("where it goes on", v.strictObject({ offsets })) },
    problems: [404],
    handler: (services) => ({ path }) => getOffsets(services, path.group),
  }),
  route("PUT", "/v1/groups/{group}/offsets", {
    id: "setGroupOffsets",
    tag: "groups",
    summary: "Set where a group without members goes on",
    query: null,
    json: offsetsBody,
    answers: {
      200: jsonAnswer(
        "committed",
        v.strictObject({ offsets: v.array(v.strictObject({ ...place, offset })) }),
      ),
    },
    problems: [404, 409],
    handler: (services) => ({ path, json }) => putOffsets(services, path.group, json),
  }),
  route("GET", "/v1/groups/{group}/lag", {
    id: "getGroupLag",
    tag: "groups",
    summary: "How far a group is behind",
    query: null,
    answers: {
      200: jsonAnswer(
        "by partition, and in all",
        v.strictObject({ lag: integer(0), partitions: lags }),
      ),
    },
    problems: [404],
    handler: (services) => ({ request, path }) => getLag(services, request, path.group),
  }),
];
