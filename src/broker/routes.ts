/** The handlers of every API that needs no group coordinator, bound and ready for `createBroker`. */
import {
  COLD_FETCH_PERMIT_BYTES,
  HOT_FETCH_PERMIT_BYTES,
  PRODUCE_PERMIT_BYTES,
} from "../lib/limits.ts";
import { Semaphore } from "../lib/semaphore.ts";
import { produceHandler } from "./api/00_produce.ts";
import { fetchHandler } from "./api/01_fetch.ts";
import { listOffsetsHandler } from "./api/02_list_offsets.ts";
import { metadataHandler } from "./api/03_metadata.ts";
import { createTopicsHandler } from "./api/19_create_topics.ts";
import { deleteTopicsHandler } from "./api/20_delete_topics.ts";
import { initProducerIdHandler } from "./api/22_init_producer_id.ts";
import { offsetForLeaderEpochHandler } from "./api/23_offset_for_leader_epoch.ts";
import { describeConfigsHandler } from "./api/32_describe_configs.ts";
import { createPartitionsHandler } from "./api/37_create_partitions.ts";
import { incrementalAlterConfigsHandler } from "./api/44_incremental_alter_configs.ts";
import { listPartitionReassignmentsHandler } from "./api/46_list_partition_reassignments.ts";
import { describeClusterHandler } from "./api/60_describe_cluster.ts";
import { bind, type Route } from "./broker.ts";
import type { BrokerServices, Permits } from "./handler.ts";

export function createPermits(): Permits {
  return {
    produce: new Semaphore(PRODUCE_PERMIT_BYTES),
    hotFetch: new Semaphore(HOT_FETCH_PERMIT_BYTES),
    coldFetch: new Semaphore(COLD_FETCH_PERMIT_BYTES),
  };
}

export function coreRoutes(services: BrokerServices): readonly Route[] {
  return [
    bind(produceHandler(services)),
    bind(fetchHandler(services)),
    bind(listOffsetsHandler(services)),
    bind(metadataHandler(services)),
    bind(createTopicsHandler(services)),
    bind(deleteTopicsHandler(services)),
    bind(initProducerIdHandler(services)),
    bind(offsetForLeaderEpochHandler(services)),
    bind(describeConfigsHandler(services)),
    bind(createPartitionsHandler(services)),
    bind(incrementalAlterConfigsHandler(services)),
    bind(listPartitionReassignmentsHandler()),
    bind(describeClusterHandler(services)),
  ];
}
