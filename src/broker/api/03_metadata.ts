/**
 * Metadata (key 3), versions 0-13.
 * Behaviour: null asks for all topics, an empty list for none (in version 0: all). An unknown topic that
 * is named is created at once if request and broker allow it, and answered complete. Replicas and ISR
 * are the leader alone; the controller is this broker.
 * Deviations: no racks.
 * Version notes: 4 may forbid creation · 7 leader epochs · 9 flexible · 10 topic ids, asked from 12 on
 * · 13 top-level error.
 */
import { ZERO_UUID } from "../../lib/uuid.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  metadataApi,
  type MetadataRequest,
  type MetadataResponse,
} from "../../protocol/message/03_metadata.ts";
import type { TopicRow } from "../../controller/image.ts";
import { liveNodes } from "../endpoints.ts";
import {
  CLUSTER_OPERATIONS,
  OPERATIONS_OMITTED,
  TOPIC_OPERATIONS,
} from "../authorized_operations.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { inGroups } from "../many.ts";
import { partitionState } from "../partition_state.ts";

type TopicAnswer = MetadataResponse["topics"][number];
type PartitionAnswer = TopicAnswer["partitions"][number];
type Asked = NonNullable<MetadataRequest["topics"]>[number];

const TOPIC_IDS_SINCE = 12;
const EMPTY_IS_NONE_SINCE = 1;

function failed(error: ErrorName, name: string | null, topicId = ZERO_UUID): TopicAnswer {
  return { errorCode: errorCode(error), name, topicId, partitions: [] };
}

function partitionAnswer(
  services: BrokerServices,
  topic: TopicRow,
  partitionIndex: number,
): PartitionAnswer {
  const state = partitionState(services, topic, partitionIndex);
  return {
    errorCode: errorCode(state.error),
    partitionIndex,
    leaderId: state.leaderId,
    leaderEpoch: state.leaderEpoch,
    replicaNodes: state.replicas,
    isrNodes: state.isAlive ? state.replicas : [],
    offlineReplicas: state.isAlive ? [] : state.replicas,
  };
}

/** What cannot be named cannot be asked about either. */
function withOperations(answer: TopicAnswer): TopicAnswer {
  return answer.name === null ? answer : { ...answer, topicAuthorizedOperations: TOPIC_OPERATIONS };
}

function topicAnswer(services: BrokerServices, topic: TopicRow): TopicAnswer {
  return {
    errorCode: errorCode("NONE"),
    name: topic.name,
    topicId: topic.topicId,
    isInternal: topic.internal,
    partitions: Array.from(
      { length: topic.partitions },
      (_, i) => partitionAnswer(services, topic, i),
    ),
  };
}

async function named(
  services: BrokerServices,
  name: string,
  allowCreate: boolean,
): Promise<TopicAnswer> {
  try {
    const ensured = await services.topics.ensure(name, allowCreate);
    return ensured.ok ? topicAnswer(services, ensured.topic) : failed(ensured.error, name);
  } catch (error) {
    // The topic may come to be; LEADER_NOT_AVAILABLE makes every client ask again.
    const code = faultToCode(error, "admin");
    return failed(code === "INVALID_CONFIG" ? code : "LEADER_NOT_AVAILABLE", name);
  }
}

async function byId(
  services: BrokerServices,
  topicId: Asked["topicId"],
): Promise<TopicAnswer> {
  await services.topics.lookById([topicId]);
  const topic = services.topics.findById(topicId);
  return topic === undefined
    ? failed("UNKNOWN_TOPIC_ID", null, topicId)
    : topicAnswer(services, topic);
}

async function chosen(
  services: BrokerServices,
  asked: readonly Asked[],
  allowCreate: boolean,
  version: number,
): Promise<TopicAnswer[]> {
  const hasIds = asked.some(({ topicId, name }) => topicId !== ZERO_UUID || name === null);
  if (hasIds && version < TOPIC_IDS_SINCE) {
    return asked.map(({ name, topicId }) => failed("INVALID_REQUEST", name ?? "", topicId));
  }
  if (asked.some(({ topicId }) => topicId !== ZERO_UUID)) {
    // Names beside ids are not looked at, as in Kafka.
    const ids = new Set(asked.map(({ topicId }) => topicId).filter((id) => id !== ZERO_UUID));
    return await inGroups(services.env.clock, [...ids], (topicId) => byId(services, topicId));
  }
  const names = new Set(asked.map(({ name }) => name ?? ""));
  return await inGroups(
    services.env.clock,
    [...names],
    (name) => named(services, name, allowCreate),
  );
}

export function metadataHandler(
  services: BrokerServices,
): Handler<MetadataRequest, MetadataResponse> {
  return {
    api: metadataApi,
    min: 0,
    max: 13,
    async handle(request, { version }) {
      const asked = request.topics;
      const all = asked === null || (asked.length === 0 && version < EMPTY_IS_NONE_SINCE);
      const answers = all
        ? [...services.metadata.view().topics.values()].map((one) => topicAnswer(services, one))
        : await chosen(services, asked, request.allowAutoTopicCreation, version);
      return {
        brokers: liveNodes(services),
        clusterId: services.clusterId,
        controllerId: services.nodeId,
        clusterAuthorizedOperations: request.includeClusterAuthorizedOperations
          ? CLUSTER_OPERATIONS
          : OPERATIONS_OMITTED,
        topics: request.includeTopicAuthorizedOperations ? answers.map(withOperations) : answers,
        errorCode: errorCode("NONE"),
      };
    },
  };
}
