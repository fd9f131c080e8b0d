/**
 * Metadata (key 3), versions 0-13.
 * Behaviour: null asks for all topics, an empty list for none (in version 0: all). An unknown topic that
 * is named is created at once if request and broker allow it, and answered complete. Replicas and ISR
 * are the leader alone; the controller is this broker.
 * Deviations: no racks; authorized operations are not computed, which reads as "not asked".
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
import { nodeId } from "../../lib/brand.ts";
import type { TopicRow } from "../../controller/image.ts";
import { liveNodes } from "../endpoints.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { inGroups } from "../many.ts";

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
  const row = services.partitions.leaderOf(topic.topicId, partitionIndex);
  const leader = row?.leader ?? null;
  const node = leader === null ? undefined : services.metadata.view().nodes.get(nodeId(leader));
  const isAlive = node?.state === "live";
  const replicas = leader === null ? [] : [leader];
  return {
    errorCode: errorCode(isAlive ? "NONE" : "LEADER_NOT_AVAILABLE"),
    partitionIndex,
    leaderId: isAlive ? node.nodeId : -1,
    leaderEpoch: row?.leaderEpoch ?? 0,
    replicaNodes: replicas,
    isrNodes: isAlive ? replicas : [],
    offlineReplicas: isAlive ? [] : replicas,
  };
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

function byId(services: BrokerServices, topicId: Asked["topicId"]): TopicAnswer {
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
    const ids = new Set(asked.map(({ topicId }) => topicId));
    return [...ids].map((topicId) => byId(services, topicId));
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
        topics: answers,
        errorCode: errorCode("NONE"),
      };
    },
  };
}
