/** For every API one request as a client would send it, in any version: fields a version lacks are dropped. */
import { viewOf } from "../../src/lib/bytes.ts";
import { ZERO_UUID } from "../../src/lib/uuid.ts";
import type { Uuid } from "../../src/lib/uuid.ts";
import type { Api } from "../../src/protocol/api.ts";
import type { Type } from "../../src/protocol/codec.ts";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import { fetchApi } from "../../src/protocol/message/01_fetch.ts";
import { listOffsetsApi } from "../../src/protocol/message/02_list_offsets.ts";
import { metadataApi } from "../../src/protocol/message/03_metadata.ts";
import { offsetCommitApi } from "../../src/protocol/message/08_offset_commit.ts";
import { offsetFetchApi } from "../../src/protocol/message/09_offset_fetch.ts";
import { findCoordinatorApi } from "../../src/protocol/message/10_find_coordinator.ts";
import { joinGroupApi } from "../../src/protocol/message/11_join_group.ts";
import { heartbeatApi } from "../../src/protocol/message/12_heartbeat.ts";
import { leaveGroupApi } from "../../src/protocol/message/13_leave_group.ts";
import { syncGroupApi } from "../../src/protocol/message/14_sync_group.ts";
import { describeGroupsApi } from "../../src/protocol/message/15_describe_groups.ts";
import { listGroupsApi } from "../../src/protocol/message/16_list_groups.ts";
import { apiVersionsApi } from "../../src/protocol/message/18_api_versions.ts";
import { createTopicsApi } from "../../src/protocol/message/19_create_topics.ts";
import { deleteTopicsApi } from "../../src/protocol/message/20_delete_topics.ts";
import { deleteRecordsApi } from "../../src/protocol/message/21_delete_records.ts";
import { initProducerIdApi } from "../../src/protocol/message/22_init_producer_id.ts";
import { offsetForLeaderEpochApi } from "../../src/protocol/message/23_offset_for_leader_epoch.ts";
import { addPartitionsToTxnApi } from "../../src/protocol/message/24_add_partitions_to_txn.ts";
import { addOffsetsToTxnApi } from "../../src/protocol/message/25_add_offsets_to_txn.ts";
import { endTxnApi } from "../../src/protocol/message/26_end_txn.ts";
import { writeTxnMarkersApi } from "../../src/protocol/message/27_write_txn_markers.ts";
import { txnOffsetCommitApi } from "../../src/protocol/message/28_txn_offset_commit.ts";
import { describeConfigsApi } from "../../src/protocol/message/32_describe_configs.ts";
import { alterConfigsApi } from "../../src/protocol/message/33_alter_configs.ts";
import { describeLogDirsApi } from "../../src/protocol/message/35_describe_log_dirs.ts";
import { createPartitionsApi } from "../../src/protocol/message/37_create_partitions.ts";
import { deleteGroupsApi } from "../../src/protocol/message/42_delete_groups.ts";
import { electLeadersApi } from "../../src/protocol/message/43_elect_leaders.ts";
import { incrementalAlterConfigsApi } from "../../src/protocol/message/44_incremental_alter_configs.ts";
import { alterPartitionReassignmentsApi } from "../../src/protocol/message/45_alter_partition_reassignments.ts";
import { listPartitionReassignmentsApi } from "../../src/protocol/message/46_list_partition_reassignments.ts";
import { offsetDeleteApi } from "../../src/protocol/message/47_offset_delete.ts";
import { describeClientQuotasApi } from "../../src/protocol/message/48_describe_client_quotas.ts";
import { alterClientQuotasApi } from "../../src/protocol/message/49_alter_client_quotas.ts";
import { updateFeaturesApi } from "../../src/protocol/message/57_update_features.ts";
import { describeClusterApi } from "../../src/protocol/message/60_describe_cluster.ts";
import { describeProducersApi } from "../../src/protocol/message/61_describe_producers.ts";
import { describeTransactionsApi } from "../../src/protocol/message/65_describe_transactions.ts";
import { listTransactionsApi } from "../../src/protocol/message/66_list_transactions.ts";
import { consumerGroupHeartbeatApi } from "../../src/protocol/message/68_consumer_group_heartbeat.ts";
import { consumerGroupDescribeApi } from "../../src/protocol/message/69_consumer_group_describe.ts";
import { listConfigResourcesApi } from "../../src/protocol/message/74_list_config_resources.ts";
import { describeTopicPartitionsApi } from "../../src/protocol/message/75_describe_topic_partitions.ts";
import { shareGroupHeartbeatApi } from "../../src/protocol/message/76_share_group_heartbeat.ts";
import { shareGroupDescribeApi } from "../../src/protocol/message/77_share_group_describe.ts";
import { shareFetchApi } from "../../src/protocol/message/78_share_fetch.ts";
import { shareAcknowledgeApi } from "../../src/protocol/message/79_share_acknowledge.ts";
import { describeShareGroupOffsetsApi } from "../../src/protocol/message/90_describe_share_group_offsets.ts";
import { alterShareGroupOffsetsApi } from "../../src/protocol/message/91_alter_share_group_offsets.ts";
import { deleteShareGroupOffsetsApi } from "../../src/protocol/message/92_delete_share_group_offsets.ts";
import type { RawClient } from "./quirk_node.ts";
import { batch } from "./quirks.ts";

export interface Place {
  readonly client: RawClient;
  /** A topic that exists. */
  readonly topic: string;
  readonly topicId: Uuid;
  readonly version: number;
}

export interface Plausible {
  readonly key: number;
  readonly name: string;
  readonly request: Type;
  /** Sends it and gives the decoded answer; rejects when the broker hangs up or sends a byte too many. */
  send(place: Place): Promise<unknown>;
  /** The same with every 64-bit integer of the request set; null when its version has none. */
  sendWith(place: Place, int64: bigint): Promise<unknown> | null;
}

function plausible<Q, S, QIn, SOut>(
  api: Api<Q, S, QIn, SOut>,
  request: (place: Place) => QIn,
): Plausible {
  return {
    key: api.key,
    name: api.name,
    request: api.request.body,
    send: (place) => place.client.call(api, place.version, request(place)),
    sendWith(place, int64) {
      const { version, client } = place;
      const marked = withMarks(api.request.body, version, request(place)) as QIn;
      return client.callChanged(api, version, marked, (frame) => setMarks(frame, int64));
    },
  };
}

/** Nothing else in these requests has these eight bytes. */
const MARK = 0x0015_1515_1515_1515;

/** A copy of the request in which every 64-bit integer that the version has is the mark. */
function withMarks(type: Type, version: number, value: unknown): unknown {
  if (type.kind === "int64") return MARK;
  if (value === null || value === undefined) return value;
  if (type.element !== undefined) {
    const element = type.element;
    return (value as readonly unknown[]).map((one) => withMarks(element, version, one));
  }
  if (type.fields === undefined) return value;
  const given = value as Readonly<Record<string, unknown>>;
  const marked: Record<string, unknown> = { ...given };
  for (const [name, field] of Object.entries(type.fields)) {
    if (version < field.since || version > field.until) continue;
    const part = given[name] ?? (field.tag === null ? undefined : field.zero);
    const changed = withMarks(field.type, version, part);
    if (changed !== undefined) marked[name] = changed;
  }
  return marked;
}

/** Puts the value into the place of each mark; false when there is none. */
function setMarks(frame: Uint8Array, value: bigint): boolean {
  const view = viewOf(frame);
  let found = false;
  for (let at = 0; at + 8 <= frame.length; at++) {
    if (view.getBigInt64(at) !== BigInt(MARK)) continue;
    view.setBigInt64(at, value);
    found = true;
  }
  return found;
}

const TRANSACTION = { transactionalId: "tx", producerId: 1, producerEpoch: 0 };
const MEMBER = { groupId: "g", generationId: 1, memberId: "m" };

export const PLAUSIBLE: readonly Plausible[] = [
  plausible(produceApi, ({ topic, topicId }) => ({
    acks: -1,
    timeoutMs: 1000,
    topicData: [{
      name: topic,
      topicId,
      partitionData: [{ index: 0, records: batch(["a"]) }, { index: 5, records: batch(["a"]) }],
    }],
  })),
  plausible(fetchApi, ({ topic, topicId }) => ({
    maxWaitMs: 0,
    minBytes: 1,
    topics: [{
      topic,
      topicId,
      partitions: [
        { partition: 0, fetchOffset: 0, partitionMaxBytes: 1 << 20 },
        { partition: 5, fetchOffset: 0, partitionMaxBytes: 1 << 20 },
      ],
    }],
  })),
  plausible(listOffsetsApi, ({ topic }) => ({
    replicaId: -1,
    isolationLevel: 1,
    topics: [{ name: topic, partitions: [{ partitionIndex: 0, timestamp: -1 }] }],
  })),
  plausible(metadataApi, ({ topic, version }) => ({
    topics: [{ name: topic }, { name: "not there" }],
    allowAutoTopicCreation: version < 4,
  })),
  plausible(offsetCommitApi, ({ topic, topicId }) => ({
    groupId: "simple",
    memberId: "",
    topics: [{
      name: topic,
      topicId,
      partitions: [{ partitionIndex: 0, committedOffset: 1, committedMetadata: null }],
    }],
  })),
  plausible(offsetFetchApi, ({ topic, topicId }) => ({
    groupId: "simple",
    topics: [{ name: topic, partitionIndexes: [0, 1] }],
    groups: [{ groupId: "simple", topics: [{ name: topic, topicId, partitionIndexes: [0, 1] }] }],
  })),
  plausible(findCoordinatorApi, () => ({ key: "g", keyType: 0, coordinatorKeys: ["g", "h"] })),
  plausible(joinGroupApi, ({ version }) => ({
    groupId: `joined-${version}`,
    sessionTimeoutMs: 10_000,
    rebalanceTimeoutMs: 10_000,
    memberId: "",
    protocolType: "consumer",
    protocols: [{ name: "range", metadata: new Uint8Array(4) }],
  })),
  plausible(heartbeatApi, () => MEMBER),
  plausible(leaveGroupApi, () => ({ groupId: "g", memberId: "m", members: [{ memberId: "m" }] })),
  plausible(syncGroupApi, () => ({
    ...MEMBER,
    protocolType: "consumer",
    protocolName: "range",
    assignments: [{ memberId: "m", assignment: new Uint8Array(4) }],
  })),
  plausible(describeGroupsApi, () => ({ groups: ["g", "simple"] })),
  plausible(listGroupsApi, () => ({ statesFilter: ["Stable", "Empty"], typesFilter: ["classic"] })),
  plausible(apiVersionsApi, () => ({
    clientSoftwareName: "quirk",
    clientSoftwareVersion: "1",
  })),
  plausible(createTopicsApi, ({ version }) => ({
    topics: [{
      name: `made-${version}`,
      numPartitions: 1,
      replicationFactor: 1,
      assignments: [],
      configs: [{ name: "retention.ms", value: "1000" }],
    }],
  })),
  plausible(deleteTopicsApi, ({ version }) => ({
    topics: [{ name: `made-${version}`, topicId: ZERO_UUID }],
    topicNames: [`made-${version}`],
    timeoutMs: 1000,
  })),
  plausible(deleteRecordsApi, ({ topic }) => ({
    topics: [{ name: topic, partitions: [{ partitionIndex: 0, offset: 0 }] }],
    timeoutMs: 1000,
  })),
  plausible(initProducerIdApi, () => ({ transactionalId: null, transactionTimeoutMs: 0 })),
  plausible(offsetForLeaderEpochApi, ({ topic }) => ({
    topics: [{ topic, partitions: [{ partition: 0, leaderEpoch: 0 }] }],
  })),
  plausible(addPartitionsToTxnApi, ({ topic }) => ({
    transactions: [{ ...TRANSACTION, topics: [{ name: topic, partitions: [0] }] }],
    v3AndBelowTransactionalId: "tx",
    v3AndBelowProducerId: 1,
    v3AndBelowProducerEpoch: 0,
    v3AndBelowTopics: [{ name: topic, partitions: [0] }],
  })),
  plausible(addOffsetsToTxnApi, () => ({ ...TRANSACTION, groupId: "g" })),
  plausible(endTxnApi, () => ({ ...TRANSACTION, committed: true })),
  plausible(writeTxnMarkersApi, ({ topic }) => ({
    markers: [{
      producerId: 1,
      producerEpoch: 0,
      transactionResult: false,
      coordinatorEpoch: 0,
      topics: [{ name: topic, partitionIndexes: [0] }],
    }],
  })),
  plausible(txnOffsetCommitApi, ({ topic }) => ({
    ...TRANSACTION,
    groupId: "g",
    topics: [{
      name: topic,
      partitions: [{ partitionIndex: 0, committedOffset: 1, committedMetadata: null }],
    }],
  })),
  plausible(describeConfigsApi, ({ topic }) => ({
    resources: [
      { resourceType: 2, resourceName: topic, configurationKeys: null },
      { resourceType: 4, resourceName: "1", configurationKeys: null },
    ],
    includeSynonyms: true,
    includeDocumentation: true,
  })),
  plausible(alterConfigsApi, ({ topic }) => ({
    resources: [{
      resourceType: 2,
      resourceName: topic,
      configs: [{ name: "retention.ms", value: "5000" }],
    }],
    validateOnly: false,
  })),
  plausible(describeLogDirsApi, () => ({ topics: null })),
  plausible(createPartitionsApi, ({ topic }) => ({
    topics: [{ name: topic, count: 2, assignments: null }],
    timeoutMs: 1000,
    validateOnly: true,
  })),
  plausible(deleteGroupsApi, () => ({ groupsNames: ["g"] })),
  plausible(electLeadersApi, ({ topic }) => ({
    electionType: 0,
    topicPartitions: [{ topic, partitions: [0] }],
  })),
  plausible(incrementalAlterConfigsApi, ({ topic }) => ({
    resources: [{
      resourceType: 2,
      resourceName: topic,
      configs: [{ name: "retention.ms", configOperation: 0, value: "5000" }],
    }],
    validateOnly: false,
  })),
  plausible(alterPartitionReassignmentsApi, ({ topic }) => ({
    topics: [{ name: topic, partitions: [{ partitionIndex: 0, replicas: [1] }] }],
  })),
  plausible(listPartitionReassignmentsApi, () => ({ topics: null })),
  plausible(offsetDeleteApi, ({ topic }) => ({
    groupId: "simple",
    topics: [{ name: topic, partitions: [{ partitionIndex: 0 }] }],
  })),
  plausible(describeClientQuotasApi, () => ({ components: [], strict: false })),
  plausible(alterClientQuotasApi, () => ({
    entries: [{
      entity: [{ entityType: "user", entityName: "a" }],
      ops: [{ key: "producer_byte_rate", value: 1000, remove: false }],
    }],
    validateOnly: false,
  })),
  plausible(updateFeaturesApi, () => ({
    featureUpdates: [{ feature: "transaction.version", maxVersionLevel: 2 }],
    validateOnly: true,
  })),
  plausible(describeClusterApi, () => ({ includeClusterAuthorizedOperations: true })),
  plausible(describeProducersApi, ({ topic }) => ({
    topics: [{ name: topic, partitionIndexes: [0] }],
  })),
  plausible(describeTransactionsApi, () => ({ transactionalIds: ["tx"] })),
  plausible(listTransactionsApi, () => ({ stateFilters: ["Ongoing"], producerIdFilters: [1] })),
  plausible(consumerGroupHeartbeatApi, ({ topic }) => ({
    groupId: "consumers",
    memberId: "member",
    memberEpoch: 0,
    rebalanceTimeoutMs: 10_000,
    subscribedTopicNames: [topic],
    topicPartitions: [],
  })),
  plausible(consumerGroupDescribeApi, () => ({
    groupIds: ["consumers"],
    includeAuthorizedOperations: true,
  })),
  plausible(listConfigResourcesApi, () => ({ resourceTypes: [] })),
  plausible(describeTopicPartitionsApi, ({ topic }) => ({ topics: [{ name: topic }] })),
  plausible(shareGroupHeartbeatApi, ({ topic }) => ({
    groupId: "sharers",
    memberId: "member",
    memberEpoch: 0,
    subscribedTopicNames: [topic],
  })),
  plausible(shareGroupDescribeApi, () => ({
    groupIds: ["sharers"],
    includeAuthorizedOperations: true,
  })),
  plausible(shareFetchApi, ({ topicId }) => ({
    groupId: "sharers",
    memberId: "member",
    shareSessionEpoch: 0,
    maxWaitMs: 0,
    minBytes: 1,
    maxRecords: 500,
    batchSize: 500,
    topics: [{ topicId, partitions: [{ partitionIndex: 0, acknowledgementBatches: [] }] }],
    forgottenTopicsData: [],
  })),
  plausible(shareAcknowledgeApi, ({ topicId }) => ({
    groupId: "sharers",
    memberId: "member",
    shareSessionEpoch: 1,
    topics: [{
      topicId,
      partitions: [{
        partitionIndex: 0,
        acknowledgementBatches: [{ firstOffset: 0, lastOffset: 0, acknowledgeTypes: [1] }],
      }],
    }],
  })),
  plausible(describeShareGroupOffsetsApi, ({ topic }) => ({
    groups: [{ groupId: "sharers", topics: [{ topicName: topic, partitions: [0] }] }],
  })),
  plausible(alterShareGroupOffsetsApi, ({ topic }) => ({
    groupId: "offsets",
    topics: [{ topicName: topic, partitions: [{ partitionIndex: 0, startOffset: 0 }] }],
  })),
  plausible(deleteShareGroupOffsetsApi, ({ topic }) => ({
    groupId: "offsets",
    topics: [{ topicName: topic }],
  })),
];
