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
import { initProducerIdApi } from "./message/22_init_producer_id.ts";
import { offsetForLeaderEpochApi } from "./message/23_offset_for_leader_epoch.ts";
import { describeConfigsApi } from "./message/32_describe_configs.ts";
import { createPartitionsApi } from "./message/37_create_partitions.ts";
import { deleteGroupsApi } from "./message/42_delete_groups.ts";
import { incrementalAlterConfigsApi } from "./message/44_incremental_alter_configs.ts";
import { listPartitionReassignmentsApi } from "./message/46_list_partition_reassignments.ts";
import { describeClusterApi } from "./message/60_describe_cluster.ts";

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
  initProducerIdApi,
  offsetForLeaderEpochApi,
  describeConfigsApi,
  createPartitionsApi,
  deleteGroupsApi,
  incrementalAlterConfigsApi,
  listPartitionReassignmentsApi,
  describeClusterApi,
] as const;

const BY_KEY: ReadonlyMap<number, Api> = new Map(APIS.map((one): [number, Api] => [one.key, one]));

export function findApi(key: number): Api | undefined {
  return BY_KEY.get(key);
}
