/** The routes of administration. */
import * as v from "valibot";
import { jsonAnswer } from "../api/answers.ts";
import { described } from "../api/fields.ts";
import { route } from "../api/route.ts";
import { problemOf, problemResponse } from "../problem.ts";
import type { HttpRoute } from "../services.ts";
import {
  cluster,
  configChanges,
  configRow,
  costs,
  deleted,
  deletion,
  detail,
  growth,
  newTopic,
  partitionRow,
  partitionsQuery,
  quota,
  summary,
  topicChange,
} from "./schemas.ts";
import {
  changeConfigs,
  changeTopic,
  createTopic,
  deleteRecords,
  deleteTopic,
  describeConfigs,
  describePartition,
  describePartitions,
  describeTopic,
  listTopics,
} from "./topics.ts";

const configs = v.strictObject({ configs: v.array(configRow) });
const quotas = v.strictObject({ quotas: v.array(quota) });
/** Of what is stored in the metadata. */
const CHANGE = [403, 404, 409, 413, 504];

export const topicRoutes: readonly HttpRoute[] = [
  route("GET", "/v1/topics", {
    id: "listTopics",
    tag: "topics",
    summary: "All topics",
    query: null,
    answers: {
      200: jsonAnswer("in order of their names", v.strictObject({ topics: v.array(summary) })),
    },
    handler: (services) => () => listTopics(services),
  }),
  route("POST", "/v1/topics", {
    id: "createTopic",
    tag: "topics",
    summary: "Create a topic",
    query: null,
    json: newTopic,
    answers: {
      201: { ...jsonAnswer("the new topic", summary), headers: { Location: "where it is" } },
    },
    problems: CHANGE,
    handler: (services) => ({ json }) => createTopic(services, json),
  }),
  route("GET", "/v1/topics/{topic}", {
    id: "describeTopic",
    tag: "topics",
    summary: "One topic",
    query: null,
    answers: { 200: jsonAnswer("its id, leaders and settings", detail) },
    problems: [404],
    handler: (services) => ({ path }) => describeTopic(services, path.topic),
  }),
  route("PATCH", "/v1/topics/{topic}", {
    id: "changeTopic",
    tag: "topics",
    summary: "Grow a topic, change its settings",
    description: "Both are checked before either is done.",
    query: null,
    json: topicChange,
    answers: { 200: jsonAnswer("as it is now", detail) },
    problems: CHANGE,
    handler: (services) => ({ path, json }) => changeTopic(services, path.topic, json),
  }),
  route("DELETE", "/v1/topics/{topic}", {
    id: "deleteTopic",
    tag: "topics",
    summary: "Delete a topic",
    query: null,
    answers: { 204: { description: "it is gone, with its records" } },
    problems: CHANGE,
    handler: (services) => ({ path }) => deleteTopic(services, path.topic),
  }),
  route("GET", "/v1/topics/{topic}/configs", {
    id: "describeConfigs",
    tag: "topics",
    summary: "All settings of a topic",
    query: null,
    answers: { 200: jsonAnswer("with who set them", configs) },
    problems: [404],
    handler: (services) => ({ path }) => describeConfigs(services, path.topic),
  }),
  route("PATCH", "/v1/topics/{topic}/configs", {
    id: "changeConfigs",
    tag: "topics",
    summary: "Change settings of a topic",
    description:
      "A merge patch: values by name, null takes a setting back. All are changed, or none.",
    query: null,
    json: described(configChanges, "values by name"),
    answers: { 200: jsonAnswer("as they are now", configs) },
    problems: CHANGE,
    handler: (services) => ({ path, json }) => changeConfigs(services, path.topic, json),
  }),
  route("GET", "/v1/topics/{topic}/partitions", {
    id: "describePartitions",
    tag: "topics",
    summary: "Leaders, offsets and sizes of partitions",
    query: partitionsQuery,
    answers: {
      200: jsonAnswer(
        "in order",
        v.strictObject({
          partitions: v.array(partitionRow),
          next: described(v.nullable(v.number()), "where the next ones begin; null at the end"),
        }),
      ),
    },
    problems: [404],
    handler: (services) => ({ path, query }) => describePartitions(services, path.topic, query),
  }),
  route("POST", "/v1/topics/{topic}/partitions", {
    id: "growTopic",
    tag: "topics",
    summary: "Grow a topic",
    query: null,
    json: growth,
    answers: { 200: jsonAnswer("as it is now", detail) },
    problems: CHANGE,
    handler: (services) => ({ path, json }) =>
      changeTopic(services, path.topic, { ...json, configs: [] }),
  }),
  route("GET", "/v1/topics/{topic}/partitions/{partition}", {
    id: "describePartition",
    tag: "topics",
    summary: "Leader, offsets and size of one partition",
    query: null,
    answers: { 200: jsonAnswer("as it is now", partitionRow) },
    problems: [404],
    handler: (services) => ({ path }) => describePartition(services, path.topic, path.partition),
  }),
  route("POST", "/v1/topics/{topic}/delete-records", {
    id: "deleteRecords",
    tag: "topics",
    summary: "Delete records before an offset",
    description: "Durable once it is answered; the bytes follow in the background.",
    query: null,
    json: deletion,
    answers: {
      200: jsonAnswer("the first offset of each partition now", deleted),
      207: jsonAnswer("some are refused: a result for each", deleted),
    },
    problems: [...CHANGE, 416],
    handler: (services) => ({ path, json }) => deleteRecords(services, path.topic, json),
  }),
];

export const clusterRoutes: readonly HttpRoute[] = [
  route("GET", "/v1/cluster", {
    id: "describeCluster",
    tag: "cluster",
    summary: "The cluster and its nodes",
    query: null,
    answers: { 200: jsonAnswer("nodes that are there", cluster) },
    handler: ({ admin, status }) => () => {
      const { clusterId, nodeId, version } = status;
      const features = admin.featureLevels();
      return Response.json({ clusterId, nodeId, version, nodes: admin.nodes(), features });
    },
  }),
  route("GET", "/v1/quotas", {
    id: "listQuotas",
    tag: "cluster",
    summary: "Client quotas",
    description:
      "They are stored and shown as over Kafka's protocol; nothing is slowed down by them.",
    query: null,
    answers: { 200: jsonAnswer("all that are stored", quotas) },
    handler: ({ admin }) => () => Response.json({ quotas: admin.quotas() }),
  }),
  route("PUT", "/v1/quotas", {
    id: "putQuota",
    tag: "cluster",
    summary: "The limits of one user, client id or address",
    description: "In place of those that it had; none removes it.",
    query: null,
    json: quota,
    answers: { 204: { description: "they are stored" } },
    problems: CHANGE,
    handler: ({ admin }) => async ({ json }) => {
      const put = await admin.putQuota(json);
      return put.ok ? new Response(null, { status: 204 }) : problemResponse(problemOf(put));
    },
  }),
  route("GET", "/v1/cost", {
    id: "describeCost",
    tag: "cluster",
    summary: "What the node's requests to the store cost",
    description: "Since its start, without free allowances and without storage.",
    query: null,
    answers: { 200: jsonAnswer("requests, and dollars at several stores", costs) },
    handler: ({ admin }) => () => Response.json(admin.costs()),
  }),
];
