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
import { deleteRecordsHandler } from "./api/21_delete_records.ts";
import { initProducerIdHandler } from "./api/22_init_producer_id.ts";
import { offsetForLeaderEpochHandler } from "./api/23_offset_for_leader_epoch.ts";
import { addPartitionsToTxnHandler } from "./api/24_add_partitions_to_txn.ts";
import { addOffsetsToTxnHandler } from "./api/25_add_offsets_to_txn.ts";
import { endTxnHandler } from "./api/26_end_txn.ts";
import { writeTxnMarkersHandler } from "./api/27_write_txn_markers.ts";
import { txnOffsetCommitHandler } from "./api/28_txn_offset_commit.ts";
import { describeConfigsHandler } from "./api/32_describe_configs.ts";
import { alterConfigsHandler } from "./api/33_alter_configs.ts";
import { describeLogDirsHandler } from "./api/35_describe_log_dirs.ts";
import { createPartitionsHandler } from "./api/37_create_partitions.ts";
import { deleteGroupsHandler } from "./api/42_delete_groups.ts";
import { electLeadersHandler } from "./api/43_elect_leaders.ts";
import { incrementalAlterConfigsHandler } from "./api/44_incremental_alter_configs.ts";
import { alterPartitionReassignmentsHandler } from "./api/45_alter_partition_reassignments.ts";
import { listPartitionReassignmentsHandler } from "./api/46_list_partition_reassignments.ts";
import { offsetDeleteHandler } from "./api/47_offset_delete.ts";
import { describeClientQuotasHandler } from "./api/48_describe_client_quotas.ts";
import { alterClientQuotasHandler } from "./api/49_alter_client_quotas.ts";
import { updateFeaturesHandler } from "./api/57_update_features.ts";
import { describeClusterHandler } from "./api/60_describe_cluster.ts";
import { describeProducersHandler } from "./api/61_describe_producers.ts";
import { describeTransactionsHandler } from "./api/65_describe_transactions.ts";
import { listTransactionsHandler } from "./api/66_list_transactions.ts";
import { consumerGroupHeartbeatHandler } from "./api/68_consumer_group_heartbeat.ts";
import { consumerGroupDescribeHandler } from "./api/69_consumer_group_describe.ts";
import { listConfigResourcesHandler } from "./api/74_list_config_resources.ts";
import { describeTopicPartitionsHandler } from "./api/75_describe_topic_partitions.ts";
import { shareGroupHeartbeatHandler } from "./api/76_share_group_heartbeat.ts";
import { shareGroupDescribeHandler } from "./api/77_share_group_describe.ts";
import { describeShareGroupOffsetsHandler } from "./api/90_describe_share_group_offsets.ts";
import { alterShareGroupOffsetsHandler } from "./api/91_alter_share_group_offsets.ts";
import { deleteShareGroupOffsetsHandler } from "./api/92_delete_share_group_offsets.ts";
import { shareFetchHandler } from "./api/78_share_fetch.ts";
import { shareAcknowledgeHandler } from "./api/79_share_acknowledge.ts";
import { bind, type Route } from "./broker.ts";
import type { Permits } from "./handler.ts";
import type { ShareServices } from "./share/share_request.ts";

export function createPermits(): Permits {
  return {
    produce: new Semaphore(PRODUCE_PERMIT_BYTES),
    hotFetch: new Semaphore(HOT_FETCH_PERMIT_BYTES),
    coldFetch: new Semaphore(COLD_FETCH_PERMIT_BYTES),
  };
}

export function routesOf(services: ShareServices): readonly Route[] {
  return [
    bind(produceHandler(services, services.transactions)),
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
    bind(deleteRecordsHandler(services)),
    bind(initProducerIdHandler(services, services.transactions)),
    bind(offsetForLeaderEpochHandler(services)),
    bind(addPartitionsToTxnHandler(services)),
    bind(addOffsetsToTxnHandler(services)),
    bind(endTxnHandler(services)),
    bind(writeTxnMarkersHandler(services)),
    bind(txnOffsetCommitHandler(services)),
    bind(describeConfigsHandler(services)),
    bind(alterConfigsHandler(services)),
    bind(describeLogDirsHandler(services)),
    bind(createPartitionsHandler(services)),
    bind(deleteGroupsHandler(services)),
    bind(electLeadersHandler(services)),
    bind(incrementalAlterConfigsHandler(services)),
    bind(alterPartitionReassignmentsHandler(services)),
    bind(listPartitionReassignmentsHandler()),
    bind(offsetDeleteHandler(services)),
    bind(describeClientQuotasHandler(services)),
    bind(alterClientQuotasHandler(services)),
    bind(updateFeaturesHandler(services)),
    bind(describeClusterHandler(services)),
    bind(describeProducersHandler(services)),
    bind(describeTransactionsHandler(services)),
    bind(listTransactionsHandler(services)),
    bind(consumerGroupHeartbeatHandler(services)),
    bind(consumerGroupDescribeHandler(services)),
    bind(listConfigResourcesHandler(services)),
    bind(describeTopicPartitionsHandler(services)),
    bind(shareFetchHandler(services)),
    bind(shareAcknowledgeHandler(services)),
    bind(shareGroupHeartbeatHandler(services)),
    bind(shareGroupDescribeHandler(services)),
    bind(describeShareGroupOffsetsHandler(services)),
    bind(alterShareGroupOffsetsHandler(services)),
    bind(deleteShareGroupOffsetsHandler(services)),
  ];
}
