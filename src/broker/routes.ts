/** Every API that the broker answers, in order of its key: the table that ApiVersions shows. */
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
import { offsetCommitHandler } from "./api/08_offset_commit.ts";
import { offsetFetchHandler } from "./api/09_offset_fetch.ts";
import { findCoordinatorHandler } from "./api/10_find_coordinator.ts";
import { joinGroupHandler } from "./api/11_join_group.ts";
import { heartbeatHandler } from "./api/12_heartbeat.ts";
import { leaveGroupHandler } from "./api/13_leave_group.ts";
import { syncGroupHandler } from "./api/14_sync_group.ts";
import { describeGroupsHandler } from "./api/15_describe_groups.ts";
import { listGroupsHandler } from "./api/16_list_groups.ts";
import { createTopicsHandler } from "./api/19_create_topics.ts";
import { deleteTopicsHandler } from "./api/20_delete_topics.ts";
import { initProducerIdHandler } from "./api/22_init_producer_id.ts";
import { offsetForLeaderEpochHandler } from "./api/23_offset_for_leader_epoch.ts";
import { describeConfigsHandler } from "./api/32_describe_configs.ts";
import { createPartitionsHandler } from "./api/37_create_partitions.ts";
import { deleteGroupsHandler } from "./api/42_delete_groups.ts";
import { incrementalAlterConfigsHandler } from "./api/44_incremental_alter_configs.ts";
import { listPartitionReassignmentsHandler } from "./api/46_list_partition_reassignments.ts";
import { describeClusterHandler } from "./api/60_describe_cluster.ts";
import { bind, type Route } from "./broker.ts";
import type { GroupServices } from "./group/services.ts";
import type { Permits } from "./handler.ts";

export function createPermits(): Permits {
  return {
    produce: new Semaphore(PRODUCE_PERMIT_BYTES),
    hotFetch: new Semaphore(HOT_FETCH_PERMIT_BYTES),
    coldFetch: new Semaphore(COLD_FETCH_PERMIT_BYTES),
  };
}

export function routesOf(services: GroupServices): readonly Route[] {
  return [
    bind(produceHandler(services)),
    bind(fetchHandler(services)),
    bind(listOffsetsHandler(services)),
    bind(metadataHandler(services)),
    bind(offsetCommitHandler(services)),
    bind(offsetFetchHandler(services)),
    bind(findCoordinatorHandler(services)),
    bind(joinGroupHandler(services)),
    bind(heartbeatHandler(services)),
    bind(leaveGroupHandler(services)),
    bind(syncGroupHandler(services)),
    bind(describeGroupsHandler(services)),
    bind(listGroupsHandler(services)),
    bind(createTopicsHandler(services)),
    bind(deleteTopicsHandler(services)),
    bind(initProducerIdHandler(services)),
    bind(offsetForLeaderEpochHandler(services)),
    bind(describeConfigsHandler(services)),
    bind(createPartitionsHandler(services)),
    bind(deleteGroupsHandler(services)),
    bind(incrementalAlterConfigsHandler(services)),
    bind(listPartitionReassignmentsHandler()),
    bind(describeClusterHandler(services)),
  ];
}
