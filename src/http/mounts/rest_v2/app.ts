/**
 * The second version of the Kafka REST Proxy's API, as Confluent wrote it, with what Strimzi's bridge and Redpanda's
 * proxy add to it. Its instances outlive the node, so that no client has to come back to the same one.
 */
import type { Context, Hono } from "hono";
import { parseCount } from "../../query.ts";
import { RETRY_AFTER_S } from "../../problem.ts";
import { dialectApp } from "../dialect_app.ts";
import { NoInstance } from "../instances/instances.ts";
import type { MountServices } from "../mount_services.ts";
import * as consumers from "./consumers.ts";
import * as positions from "./positions.ts";
import { produceRecords } from "./produce.ts";
import { v2Error, v2Json } from "./shape.ts";
import * as topics from "./topics.ts";

const PARTITION_MAX = 2 ** 31 - 1;
const INSTANCE = "/consumers/:group/instances/:instance";
const UNKNOWN_INSTANCE = 40_403;

function partitionOf(c: Context): number {
  return parseCount(c.req.param("partition") ?? "", "partition", PARTITION_MAX);
}

function pathOf(c: Context): consumers.Path {
  return { group: c.req.param("group") ?? "", instance: c.req.param("instance") ?? "" };
}

function topicRoutes(app: Hono, services: MountServices): void {
  app.get("/topics", () => topics.listTopics(services));
  app.get("/topics/:topic", (c) => topics.describeTopic(services, c.req.param("topic")));
  app.post(
    "/topics/:topic",
    (c) => produceRecords(services, c.req.raw, c.req.param("topic"), null),
  );
  app.get(
    "/topics/:topic/partitions",
    (c) => topics.listPartitions(services, c.req.param("topic")),
  );
  app.get(
    "/topics/:topic/partitions/:partition",
    (c) => topics.describePartition(services, c.req.param("topic"), partitionOf(c)),
  );
  app.post(
    "/topics/:topic/partitions/:partition",
    (c) => produceRecords(services, c.req.raw, c.req.param("topic"), partitionOf(c)),
  );
  app.get(
    "/topics/:topic/partitions/:partition/offsets",
    (c) => topics.partitionOffsets(services, c.req.param("topic"), partitionOf(c)),
  );
  app.get(
    "/topics/:topic/partitions/:partition/records",
    (c) => topics.readPartition(services, c.req.raw, c.req.param("topic"), partitionOf(c)),
  );
  app.get("/brokers", () => topics.listBrokers(services));
  app.post("/admin/topics", (c) => topics.createTopic(services, c.req.raw));
}

function consumerRoutes(app: Hono, services: MountServices): void {
  app.post(
    "/consumers/:group",
    (c) => consumers.createInstance(services, c.req.raw, c.req.param("group")),
  );
  app.delete(INSTANCE, (c) => consumers.deleteInstance(services, c.req.raw, pathOf(c)));
  app.post(
    `${INSTANCE}/subscription`,
    (c) => consumers.setSubscription(services, c.req.raw, pathOf(c)),
  );
  app.get(`${INSTANCE}/subscription`, (c) => consumers.getSubscription(services, pathOf(c)));
  app.delete(
    `${INSTANCE}/subscription`,
    (c) => consumers.deleteSubscription(services, c.req.raw, pathOf(c)),
  );
  app.post(
    `${INSTANCE}/assignments`,
    (c) => consumers.setAssignments(services, c.req.raw, pathOf(c)),
  );
  app.get(`${INSTANCE}/assignments`, (c) => consumers.getAssignments(services, pathOf(c)));
  app.get(`${INSTANCE}/records`, (c) => positions.getRecords(services, c.req.raw, pathOf(c)));
  app.post(`${INSTANCE}/offsets`, (c) => positions.commitOffsets(services, c.req.raw, pathOf(c)));
  app.get(
    `${INSTANCE}/offsets`,
    (c) => positions.committedOffsets(services, c.req.raw, pathOf(c)),
  );
  app.post(
    `${INSTANCE}/offsets:query`,
    (c) => positions.committedOffsets(services, c.req.raw, pathOf(c)),
  );
  app.post(`${INSTANCE}/positions`, (c) => positions.seek(services, c.req.raw, pathOf(c)));
  app.post(
    `${INSTANCE}/positions/beginning`,
    (c) => positions.seekToBound(services, c.req.raw, pathOf(c), "earliest"),
  );
  app.post(
    `${INSTANCE}/positions/end`,
    (c) => positions.seekToBound(services, c.req.raw, pathOf(c), "latest"),
  );
}

function register(app: Hono, services: MountServices): void {
  const { status } = services;
  app.get("/", () => v2Json({ bridge_version: status.version }));
  app.get("/status/ready", () => {
    const problem = status.notReady();
    if (problem === null) return v2Json({});
    const headers = { "retry-after": RETRY_AFTER_S };
    return v2Error({ status: 503, title: "Not ready", detail: problem, headers });
  });
  topicRoutes(app, services);
  consumerRoutes(app, services);
}

export function restV2App(services: MountServices): Hono {
  return dialectApp(
    services.env,
    v2Error,
    (app) => register(app, services),
    (error) =>
      error instanceof NoInstance
        ? {
          status: 404,
          title: "Not found",
          detail: "Cannot find this consumer instance",
          more: { errorCode: UNKNOWN_INSTANCE },
        }
        : null,
  );
}
