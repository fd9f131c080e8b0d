/** The broker above one incarnation: partitions, topics, groups, handlers, connections. */
import type { Env } from "../env/env.ts";
import type { NodeId } from "../lib/brand.ts";
import { createBroker } from "../broker/broker.ts";
import type { BrokerConfig } from "../broker/broker_config.ts";
import { Coordinator } from "../broker/group/coordinator.ts";
import type { BrokerServices } from "../broker/handler.ts";
import { createPartitions, type OpenLog } from "../broker/partitions.ts";
import { createPermits, routesOf } from "../broker/routes.ts";
import { createServer, type KafkaServer } from "../broker/server.ts";
import { logConfigOf } from "../broker/topic_config.ts";
import { createTopics } from "../broker/topics.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import { assert } from "../lib/assert.ts";
import { openPartitionLog } from "../log/open_partition_log.ts";
import type { Incarnation } from "./incarnation.ts";

export interface KafkaSide {
  readonly services: BrokerServices;
  readonly server: KafkaServer;
  /** Connections first, then groups, then every log with its streams. */
  close(): Promise<void>;
}

export interface KafkaSideOptions {
  readonly env: Env;
  readonly nodeId: NodeId;
  readonly clusterId: string;
  readonly config: BrokerConfig;
  readonly metadata: MetadataStore;
  readonly incarnation: Incarnation;
  readonly listener: { readonly host: string; readonly port: number };
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
  const { env, nodeId, clusterId, config, metadata, incarnation, listener } = options;
  const requester = () => incarnation.requester;
  const partitions = createPartitions({
    env,
    nodeId,
    requester,
    metadata,
    streams: incarnation.streams,
    openLog,
    configOf: (overrides) => logConfigOf(overrides, config),
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
    permits: createPermits(),
  };
  const coordinator = new Coordinator(services);
  const broker = createBroker(env, routesOf({ ...services, coordinator }));
  const server = createServer({ services, broker, listener });
  return {
    services,
    server,
    async close() {
      coordinator.close();
      await server.close();
      await partitions.close();
    },
  };
}
