/**
 * CreateTopics (key 19), versions 2-7.
 * Behaviour: each topic alone. Any replication factor from 1 is accepted and echoed: the object store is
 * the replica. Keys that Kafka 4 removed are dropped with a log line.
 * -1 takes the broker's defaults in every version: kafkajs sends it in version 3. More than 10,000 topics
 * are POLICY_VIOLATION together, as in Kafka.
 * A topic that is not made within the client's time is REQUEST_TIMED_OUT, and may come to be all the same.
 * Deviations: a manual assignment is checked for shape and sets the number of partitions; where the
 * partitions live is decided here.
 * Version notes: 4 documents -1 (KIP-464) · 5 flexible, answers settings (KIP-525) · 7 topic ids.
 */
import { ZERO_UUID } from "../../lib/uuid.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  createTopicsApi,
  type CreateTopicsRequest,
  type CreateTopicsResponse,
} from "../../protocol/message/19_create_topics.ts";
import type { TopicRow } from "../../controller/image.ts";
import { withDeadline } from "../deadline.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { inGroups, repeatedIn } from "../many.ts";
import { replicasProblem } from "../partition_state.ts";
import { CONFIG_SOURCES, effectiveConfigs } from "../topic_config.ts";
import { type NewTopic, tooManyTopics, type TopicOutcome, type TopicRefused } from "../topics.ts";

type Asked = CreateTopicsRequest["topics"][number];
type Answer = CreateTopicsResponse["topics"][number];

function refuse(error: ErrorName, message: string): TopicRefused {
  return { ok: false, error, message };
}

function failed(name: string, { error, message }: TopicRefused): Answer {
  return {
    name,
    topicId: ZERO_UUID,
    errorCode: errorCode(error),
    errorMessage: message,
    configs: [],
  };
}

/** Shape of a manual assignment: partitions from 0 on, the same number of distinct known brokers each. */
function assignmentProblem(services: BrokerServices, { assignments }: Asked): string | null {
  const indexes = assignments.map((one) => one.partitionIndex).toSorted((a, b) => a - b);
  if (indexes.some((index, at) => index !== at)) return "partitions are not consecutive from 0";
  const size = assignments[0]?.brokerIds.length ?? 0;
  for (const { brokerIds } of assignments) {
    if (brokerIds.length !== size) return "partitions differ in their replicas";
    const problem = replicasProblem(services, brokerIds);
    if (problem !== null) return problem;
  }
  return null;
}

function newTopic(services: BrokerServices, asked: Asked): NewTopic | TopicRefused {
  const { name, numPartitions, replicationFactor, assignments } = asked;
  const configs = asked.configs.map((one) => [one.name, one.value] as const);
  if (assignments.length === 0) {
    return { name, partitions: numPartitions, replicationFactor, configs };
  }
  if (numPartitions !== -1 || replicationFactor !== -1) {
    return refuse("INVALID_REQUEST", "Give an assignment or numbers, not both");
  }
  const problem = assignmentProblem(services, asked);
  if (problem !== null) return refuse("INVALID_REPLICA_ASSIGNMENT", problem);
  const factor = assignments[0]?.brokerIds.length ?? 1;
  return { name, partitions: assignments.length, replicationFactor: factor, configs };
}

function created(services: BrokerServices, topic: TopicRow): Answer {
  const configs = effectiveConfigs(topic.configs, services.config).map((one) => ({
    name: one.property.name,
    value: one.value,
    readOnly: false,
    configSource: CONFIG_SOURCES[one.source],
    isSensitive: false,
  }));
  return {
    name: topic.name,
    topicId: topic.topicId,
    errorCode: errorCode("NONE"),
    errorMessage: null,
    numPartitions: topic.partitions,
    replicationFactor: topic.replicationFactor,
    configs,
  };
}

async function create(
  services: BrokerServices,
  asked: Asked,
  validateOnly: boolean,
): Promise<TopicOutcome<{ readonly topic: TopicRow }>> {
  const topic = newTopic(services, asked);
  if ("ok" in topic) return topic;
  try {
    return await services.topics.create(topic, { validateOnly });
  } catch (error) {
    return refuse(faultToCode(error, "admin"), "The metadata log cannot be written now");
  }
}

const LATE: TopicRefused = refuse("REQUEST_TIMED_OUT", "The topic may be created later");

/** One per name, in the order in which they are first named. */
async function createAll(
  services: BrokerServices,
  { topics, validateOnly, timeoutMs }: CreateTopicsRequest,
): Promise<Answer[]> {
  const { clock } = services.env;
  const byName = new Map(topics.map((asked) => [asked.name, asked]));
  const repeated = repeatedIn(topics.map(({ name }) => name));
  return await withDeadline(
    clock,
    timeoutMs,
    (deadline) =>
      inGroups(clock, [...byName], async ([name, asked]) => {
        const outcome = repeated.has(name)
          ? refuse("INVALID_REQUEST", "The topic is named twice")
          : await deadline.run(() => create(services, asked, validateOnly), LATE);
        if (!outcome.ok) return failed(name, outcome);
        const answer = created(services, outcome.topic);
        return validateOnly ? { ...answer, topicId: ZERO_UUID } : answer;
      }),
  );
}

export function createTopicsHandler(
  services: BrokerServices,
): Handler<CreateTopicsRequest, CreateTopicsResponse> {
  return {
    api: createTopicsApi,
    min: 2,
    max: 7,
    async handle(request) {
      const { topics } = request;
      const tooMany = tooManyTopics(topics.length);
      const answers = tooMany === null
        ? await createAll(services, request)
        : topics.map(({ name }) => failed(name, tooMany));
      return { throttleTimeMs: 0, topics: answers };
    },
  };
}
