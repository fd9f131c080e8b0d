/** The broker above one incarnation: partitions, topics, groups, handlers. Connections outlive it. */
import type { Env } from "../env/env.ts";
import type { NodeId } from "../lib/brand.ts";
import { type Broker, createBroker } from "../broker/broker.ts";
import type { BrokerConfig } from "../broker/broker_config.ts";
import { Coordinator, type CoordinatorBounds } from "../broker/group/coordinator.ts";
import type { BrokerServices, Permits } from "../broker/handler.ts";
import { createPartitions, type OpenLog } from "../broker/partitions.ts";
import { routesOf } from "../broker/routes.ts";
import { logConfigOf } from "../broker/topic_config.ts";
import { createTopics } from "../broker/topics.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import { assert } from "../lib/assert.ts";
import { openPartitionLog } from "../log/open_partition_log.ts";
import type { Incarnation } from "./incarnation.ts";

export interface KafkaSide {
  readonly services: BrokerServices;
  readonly broker: Broker;
  /** Answers that groups hold back go out; they are refused from then on. */
  closeGroups(): void;
  /** Groups first, then every log with its streams. Requests get retriable errors from then on. */
  close(): Promise<void>;
}

export interface KafkaSideOptions {
  readonly env: Env;
  readonly nodeId: NodeId;
  readonly clusterId: string;
  readonly config: BrokerConfig;
  readonly metadata: MetadataStore;
  readonly incarnation: Incarnation;
  /** Of the whole node: they outlive the incarnation. */
  readonly permits: Permits;
  readonly groupBounds?: CoordinatorBounds;
}

const openLog: OpenLog = async ({ metaStreamId, ...options }) => {
  let metaStream = metaStreamId;
  const log = await openPartitionLog({
    ...options,
    metaStream,
    onMetaStreamCreated: (id) => {
      metaStream = id;
      return Promise.resolve();
    },
  });
  assert(metaStream !== null, "an open log has a meta stream");
  return { log, metaStreamId: metaStream };
};

export function createKafkaSide(options: KafkaSideOptions): KafkaSide {
  const { env, nodeId, clusterId, config, metadata, incarnation, permits } = options;
  const requester = () => incarnation.requester;
  const partitions = createPartitions({
    env,
    nodeId,
    requester,
    metadata,
    streams: incarnation.streams,
    openLog,
    configOf: (overrides) => logConfigOf(overrides, config),
    metricRowsMax: config.integer("skerry.metrics.partitions.max"),
  });
  const services: BrokerServices = {
    env,
    nodeId,
    clusterId,
    requester,
    metadata,
    partitions,
    topics: createTopics({ env, metadata, config }),
    config,
    permits,
  };
  const coordinator = new Coordinator(services, options.groupBounds);
  return {
    services,
    broker: createBroker(env, routesOf({ ...services, coordinator })),
    closeGroups: () => coordinator.close(),
    async close() {
      coordinator.close();
      await partitions.close();
    },
  };
}
