/**
 * ElectLeaders (key 43), versions 0-2.
 * Behaviour: a partition has one leader, which is the preferred one, so that no election is needed. One without
 * a live leader gets one when its node comes back or is recovered, not by a request. With a null list all topics
 * are named, and of their partitions those without a leader, as in Kafka.
 * Version notes: 1 kinds of election (KIP-460), unknown ones are INVALID_REQUEST · 2 flexible.
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  electLeadersApi,
  type ElectLeadersRequest,
  type ElectLeadersResponse,
} from "../../protocol/message/43_elect_leaders.ts";
import type { TopicRow } from "../../controller/image.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { partitionState } from "../partition_state.ts";

type Answer = ElectLeadersResponse["replicaElectionResults"][number];
type Result = Answer["partitionResult"][number];

const PREFERRED = 0;
const UNCLEAN = 1;

const MESSAGES: Partial<Record<ErrorName, string>> = {
  ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
  UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
  PREFERRED_LEADER_NOT_AVAILABLE: "The leader's node is not there.",
  INVALID_REQUEST: "There is no such kind of election.",
  ELIGIBLE_LEADERS_NOT_AVAILABLE: "The leader's node is not there.",
};

function isKnown(electionType: number): boolean {
  return electionType === PREFERRED || electionType === UNCLEAN;
}

function resultOf(
  services: BrokerServices,
  topic: TopicRow | undefined,
  partitionId: number,
  electionType: number,
): Result {
  const error = problem(services, topic, partitionId, electionType);
  return { partitionId, errorCode: errorCode(error), errorMessage: MESSAGES[error] ?? null };
}

function problem(
  services: BrokerServices,
  topic: TopicRow | undefined,
  partitionId: number,
  electionType: number,
): ErrorName {
  if (!isKnown(electionType)) return "INVALID_REQUEST";
  if (topic === undefined || partitionId < 0 || partitionId >= topic.partitions) {
    return "UNKNOWN_TOPIC_OR_PARTITION";
  }
  if (partitionState(services, topic, partitionId).isAlive) return "ELECTION_NOT_NEEDED";
  return electionType === UNCLEAN
    ? "ELIGIBLE_LEADERS_NOT_AVAILABLE"
    : "PREFERRED_LEADER_NOT_AVAILABLE";
}

const NOT_NEEDED = errorCode("ELECTION_NOT_NEEDED");

function electAll(services: BrokerServices, electionType: number): Answer[] {
  return [...services.metadata.view().topics.values()].map((topic) => {
    const all = Array.from(
      { length: topic.partitions },
      (_, partition) => resultOf(services, topic, partition, electionType),
    );
    const partitionResult = all.filter((one) => one.errorCode !== NOT_NEEDED);
    return { topic: topic.name, partitionResult };
  });
}

export function electLeadersHandler(
  services: BrokerServices,
): Handler<ElectLeadersRequest, ElectLeadersResponse> {
  return {
    api: electLeadersApi,
    min: 0,
    max: 2,
    handle({ electionType, topicPartitions }) {
      const results = topicPartitions?.map(({ topic, partitions }) => ({
        topic,
        partitionResult: partitions.map((partition) =>
          resultOf(services, services.topics.find(topic), partition, electionType)
        ),
      }));
      const error = isKnown(electionType) ? "NONE" : "INVALID_REQUEST";
      const all = () => error === "NONE" ? electAll(services, electionType) : [];
      return Promise.resolve({
        throttleTimeMs: 0,
        errorCode: errorCode(error),
        replicaElectionResults: results ?? all(),
      });
    },
  };
}
