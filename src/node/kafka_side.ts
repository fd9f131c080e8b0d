/** The broker above one incarnation: partitions, topics, groups, handlers. Connections outlive it. */
import type { Env } from "../env/env.ts";
import type { NodeId } from "../lib/brand.ts";
import { type Broker, createBroker } from "../broker/broker.ts";
import type { BrokerConfig } from "../broker/broker_config.ts";
import { finalizedFeatures } from "../broker/features.ts";
import { Coordinator, type CoordinatorBounds } from "../broker/group/coordinator.ts";
import type { GroupServices } from "../broker/group/services.ts";
import type { BrokerServices, Permits } from "../broker/handler.ts";
import { LogCleaner, type LogCleanerSettings } from "../broker/log_cleaner.ts";
import { createPartitions, type OpenLog } from "../broker/partitions.ts";
import { routesOf } from "../broker/routes.ts";
import { ShareGroups } from "../broker/share/share_groups.ts";
import { logConfigOf } from "../broker/topic_config.ts";
import { createTopics } from "../broker/topics.ts";
import { type TransactionBounds, Transactions } from "../broker/txn/transactions.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import { assert } from "../lib/assert.ts";
import { openPartitionLog } from "../log/open_partition_log.ts";
import { storedSize } from "../log/stored_size.ts";
import type { Incarnation } from "./incarnation.ts";
import type { Opened } from "./opened.ts";

export interface KafkaSide {
  readonly services: GroupServices;
  readonly broker: Broker;
  /** Answers that groups hold back go out; they are refused from then on. */
  closeGroups(): void;
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
  readonly transactionBounds?: TransactionBounds;
  /** Closes groups first, then every log with its streams. Requests get retriable errors from then on. */
  readonly opened: Opened;
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

function logCleanerSettings(config: BrokerConfig): LogCleanerSettings {
  return {
    isEnabled: config.flag("log.cleaner.enable"),
    mapBytesMax: config.integer("log.cleaner.dedupe.buffer.size"),
    bytesPerSecond: config.integer("log.cleaner.io.max.bytes.per.second"),
  };
}

export function createKafkaSide(options: KafkaSideOptions): KafkaSide {
  const { env, nodeId, clusterId, config, metadata, incarnation, permits, opened } = options;
  const requester = () => incarnation.requester;
  const partitions = createPartitions({
    env,
    nodeId,
    requester,
    metadata,
    streams: incarnation.streams,
    openLog,
    sizeStored: storedSize,
    configOf: (overrides) => logConfigOf(overrides, config),
    onConfigChange: (listener) => config.onChange(listener),
    cleaner: new LogCleaner({ env, settings: () => logCleanerSettings(config) }),
    metricRowsMax: config.integer("skerry.metrics.partitions.max"),
  });
  opened.add(() => partitions.close());
  const services: BrokerServices = {
    env,
    nodeId,
    clusterId,
    requester,
    metadata,
    partitions,
    topics: createTopics({ env, metadata, config }),
    config,
    features: finalizedFeatures(metadata),
    permits,
  };
  const shareGroups = new ShareGroups(services);
  opened.add(() => shareGroups.close());
  const coordinator = new Coordinator({ ...services, shareGroups }, options.groupBounds);
  opened.add(() => coordinator.close());
  const transactions = new Transactions({ ...services, coordinator }, options.transactionBounds);
  opened.add(() => transactions.close());
  const groupServices = { ...services, coordinator, transactions, shareGroups };
  return {
    services: groupServices,
    broker: createBroker(
      env,
      routesOf(groupServices),
      services.features,
    ),
    closeGroups: () => coordinator.close(),
  };
}
