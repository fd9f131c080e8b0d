/** The third version of the Kafka REST Proxy's API, as far as it is about this broker; what is not is 404. */
import type { Context, Hono } from "hono";
import { parseCount } from "../../query.ts";
import { dialectApp } from "../dialect_app.ts";
import type { MountServices } from "../mount_services.ts";
import * as cluster from "./cluster.ts";
import * as configs from "./configs.ts";
import * as groups from "./groups.ts";
import { produceBatch, produceRecords } from "./records.ts";
import { Place, v3Error, v3Fault } from "./shape.ts";
import * as topics from "./topics.ts";

const CLUSTER = "/clusters/:cluster";
const TOPIC = `${CLUSTER}/topics/:topic`;
const GROUP = `${CLUSTER}/consumer-groups/:group`;
const PARTITION_MAX = 2 ** 31 - 1;

function of(c: Context, name: string): string {
  return c.req.param(name) ?? "";
}

function partitionOf(c: Context): number {
  return parseCount(of(c, "partition"), "partition", PARTITION_MAX);
}

class Routes {
  readonly services: MountServices;

  constructor(services: MountServices) {
    this.services = services;
  }

  /** Of the one cluster that there is. */
  placeOf(c: Context): Place {
    const { clusterId } = this.services.status;
    const asked = c.req.param("cluster");
    if (asked !== undefined && asked !== clusterId) {
      throw v3Fault(404, `Cannot find cluster ${asked.slice(0, 100)}`);
    }
    return new Place(c.req.raw, clusterId);
  }

  cluster(app: Hono): void {
    const { services } = this;
    app.get("/clusters", (c) => cluster.listClusters(services, c.req.raw, this.placeOf(c)));
    app.get(CLUSTER, (c) => Response.json(cluster.clusterOf(this.placeOf(c))));
    app.get(`${CLUSTER}/brokers`, (c) => cluster.listBrokers(services, c.req.raw, this.placeOf(c)));
    app.get(
      `${CLUSTER}/brokers/:broker`,
      (c) => cluster.getBroker(services, this.placeOf(c), of(c, "broker")),
    );
  }

  topics(app: Hono): void {
    const { services } = this;
    app.get(`${CLUSTER}/topics`, (c) => topics.listTopics(services, c.req.raw, this.placeOf(c)));
    app.post(`${CLUSTER}/topics`, (c) => topics.createTopic(services, c.req.raw, this.placeOf(c)));
    app.get(TOPIC, (c) => topics.getTopic(services, this.placeOf(c), of(c, "topic")));
    app.patch(
      TOPIC,
      (c) => topics.growTopic(services, c.req.raw, this.placeOf(c), of(c, "topic")),
    );
    app.delete(TOPIC, (c) => {
      this.placeOf(c);
      return topics.deleteTopic(services, of(c, "topic"));
    });
    app.get(
      `${TOPIC}/partitions`,
      (c) => topics.listPartitions(services, c.req.raw, this.placeOf(c), of(c, "topic")),
    );
    app.get(
      `${TOPIC}/partitions/:partition`,
      (c) => topics.getPartition(services, this.placeOf(c), of(c, "topic"), partitionOf(c)),
    );
    app.get(`${TOPIC}/partitions/:partition/replicas`, (c) => {
      const place = this.placeOf(c);
      return topics.listReplicas(services, c.req.raw, place, of(c, "topic"), partitionOf(c));
    });
  }

  configs(app: Hono): void {
    const { services } = this;
    app.get(
      `${TOPIC}/configs`,
      (c) => configs.listConfigs(services, c.req.raw, this.placeOf(c), of(c, "topic")),
    );
    app.post(`${TOPIC}/configs:alter`, (c) => {
      this.placeOf(c);
      return configs.alterConfigs(services, c.req.raw, of(c, "topic"));
    });
    app.get(
      `${TOPIC}/configs/:name`,
      (c) => configs.getConfig(services, this.placeOf(c), of(c, "topic"), of(c, "name")),
    );
    app.put(`${TOPIC}/configs/:name`, (c) => {
      this.placeOf(c);
      return configs.putConfig(services, c.req.raw, of(c, "topic"), of(c, "name"));
    });
    app.delete(`${TOPIC}/configs/:name`, (c) => {
      this.placeOf(c);
      return configs.resetConfig(services, of(c, "topic"), of(c, "name"));
    });
  }

  records(app: Hono): void {
    const { services } = this;
    app.post(
      `${TOPIC}/records`,
      (c) => produceRecords(services, c.req.raw, this.placeOf(c), of(c, "topic")),
    );
    app.post(
      `${TOPIC}/records:batch`,
      (c) => produceBatch(services, c.req.raw, this.placeOf(c), of(c, "topic")),
    );
  }

  groups(app: Hono): void {
    const { services } = this;
    app.get(
      `${CLUSTER}/consumer-groups`,
      (c) => groups.listGroups(services, c.req.raw, this.placeOf(c)),
    );
    app.get(GROUP, (c) => groups.getGroup(services, this.placeOf(c), of(c, "group")));
    app.get(
      `${GROUP}/consumers`,
      (c) => groups.listConsumers(services, c.req.raw, this.placeOf(c), of(c, "group")),
    );
    app.get(
      `${GROUP}/consumers/:consumer`,
      (c) => groups.getConsumer(services, this.placeOf(c), of(c, "group"), of(c, "consumer")),
    );
    app.get(`${GROUP}/consumers/:consumer/assignments`, (c) => {
      const place = this.placeOf(c);
      return groups.listAssignments(services, c.req.raw, place, of(c, "group"), of(c, "consumer"));
    });
    app.get(
      `${GROUP}/lag-summary`,
      (c) => groups.lagSummary(services, this.placeOf(c), of(c, "group")),
    );
    app.get(
      `${GROUP}/lags`,
      (c) => groups.listLags(services, c.req.raw, this.placeOf(c), of(c, "group")),
    );
    app.get(`${GROUP}/lags/:topic/partitions/:partition`, (c) => {
      const place = this.placeOf(c);
      return groups.getLag(services, place, of(c, "group"), of(c, "topic"), partitionOf(c));
    });
  }
}

export function restV3App(services: MountServices): Hono {
  const routes = new Routes(services);
  return dialectApp(services.env, v3Error, (app) => {
    routes.cluster(app);
    routes.topics(app);
    routes.configs(app);
    routes.records(app);
    routes.groups(app);
  });
}
