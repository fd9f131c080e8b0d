/** The APIs that this protocol layer knows, by key. What a broker serves is its own list. */
import type { Api } from "./api.ts";
import { produceApi } from "./message/00_produce.ts";
import { fetchApi } from "./message/01_fetch.ts";
import { listOffsetsApi } from "./message/02_list_offsets.ts";
import { metadataApi } from "./message/03_metadata.ts";
import { offsetCommitApi } from "./message/08_offset_commit.ts";
import { offsetFetchApi } from "./message/09_offset_fetch.ts";
import { findCoordinatorApi } from "./message/10_find_coordinator.ts";
import { joinGroupApi } from "./message/11_join_group.ts";
import { heartbeatApi } from "./message/12_heartbeat.ts";
import { leaveGroupApi } from "./message/13_leave_group.ts";
import { syncGroupApi } from "./message/14_sync_group.ts";
import { describeGroupsApi } from "./message/15_describe_groups.ts";
import { listGroupsApi } from "./message/16_list_groups.ts";
import { apiVersionsApi } from "./message/18_api_versions.ts";
import { createTopicsApi } from "./message/19_create_topics.ts";
import { deleteTopicsApi } from "./message/20_delete_topics.ts";
import { deleteRecordsApi } from "./message/21_delete_records.ts";
import { initProducerIdApi } from "./message/22_init_producer_id.ts";
import { offsetForLeaderEpochApi } from "./message/23_offset_for_leader_epoch.ts";
import { addPartitionsToTxnApi } from "./message/24_add_partitions_to_txn.ts";
import { addOffsetsToTxnApi } from "./message/25_add_offsets_to_txn.ts";
import { endTxnApi } from "./message/26_end_txn.ts";
import { writeTxnMarkersApi } from "./message/27_write_txn_markers.ts";
import { txnOffsetCommitApi } from "./message/28_txn_offset_commit.ts";
import { describeConfigsApi } from "./message/32_describe_configs.ts";
import { alterConfigsApi } from "./message/33_alter_configs.ts";
import { describeLogDirsApi } from "./message/35_describe_log_dirs.ts";
import { createPartitionsApi } from "./message/37_create_partitions.ts";
import { deleteGroupsApi } from "./message/42_delete_groups.ts";
import { electLeadersApi } from "./message/43_elect_leaders.ts";
import { incrementalAlterConfigsApi } from "./message/44_incremental_alter_configs.ts";
import { alterPartitionReassignmentsApi } from "./message/45_alter_partition_reassignments.ts";
import { listPartitionReassignmentsApi } from "./message/46_list_partition_reassignments.ts";
import { offsetDeleteApi } from "./message/47_offset_delete.ts";
import { describeClientQuotasApi } from "./message/48_describe_client_quotas.ts";
import { alterClientQuotasApi } from "./message/49_alter_client_quotas.ts";
import { updateFeaturesApi } from "./message/57_update_features.ts";
import { describeClusterApi } from "./message/60_describe_cluster.ts";
import { describeProducersApi } from "./message/61_describe_producers.ts";
import { describeTransactionsApi } from "./message/65_describe_transactions.ts";
import { listTransactionsApi } from "./message/66_list_transactions.ts";
import { consumerGroupHeartbeatApi } from "./message/68_consumer_group_heartbeat.ts";
import { consumerGroupDescribeApi } from "./message/69_consumer_group_describe.ts";
import { listConfigResourcesApi } from "./message/74_list_config_resources.ts";
import { describeTopicPartitionsApi } from "./message/75_describe_topic_partitions.ts";
import { shareGroupHeartbeatApi } from "./message/76_share_group_heartbeat.ts";
import { shareGroupDescribeApi } from "./message/77_share_group_describe.ts";
import { describeShareGroupOffsetsApi } from "./message/90_describe_share_group_offsets.ts";
import { alterShareGroupOffsetsApi } from "./message/91_alter_share_group_offsets.ts";
import { deleteShareGroupOffsetsApi } from "./message/92_delete_share_group_offsets.ts";

export const APIS = [
  produceApi,
  fetchApi,
  listOffsetsApi,
  metadataApi,
  offsetCommitApi,
  offsetFetchApi,
  findCoordinatorApi,
  joinGroupApi,
  heartbeatApi,
  leaveGroupApi,
  syncGroupApi,
  describeGroupsApi,
  listGroupsApi,
  apiVersionsApi,
  createTopicsApi,
  deleteTopicsApi,
  deleteRecordsApi,
  initProducerIdApi,
  offsetForLeaderEpochApi,
  addPartitionsToTxnApi,
  addOffsetsToTxnApi,
  endTxnApi,
  writeTxnMarkersApi,
  txnOffsetCommitApi,
  describeConfigsApi,
  alterConfigsApi,
  describeLogDirsApi,
  createPartitionsApi,
  deleteGroupsApi,
  electLeadersApi,
  incrementalAlterConfigsApi,
  alterPartitionReassignmentsApi,
  listPartitionReassignmentsApi,
  offsetDeleteApi,
  describeClientQuotasApi,
  alterClientQuotasApi,
  updateFeaturesApi,
  describeClusterApi,
  describeProducersApi,
  describeTransactionsApi,
  listTransactionsApi,
  consumerGroupHeartbeatApi,
  consumerGroupDescribeApi,
  listConfigResourcesApi,
  describeTopicPartitionsApi,
  shareGroupHeartbeatApi,
  shareGroupDescribeApi,
  describeShareGroupOffsetsApi,
  alterShareGroupOffsetsApi,
  deleteShareGroupOffsetsApi,
] as const;

const BY_KEY: ReadonlyMap<number, Api> = new Map(APIS.map((one): [number, Api] => [one.key, one]));

export function findApi(key: number): Api | undefined {
  return BY_KEY.get(key);
}
