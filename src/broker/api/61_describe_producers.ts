/**
 * DescribeProducers (key 61), version 0.
 * Behaviour: what the partition knows of its idempotent producers, open transactions among it; led partitions only.
 * Deviations: transactional offset commits have sequences here, where Kafka shows -1.
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  describeProducersApi,
  type DescribeProducersRequest,
  type DescribeProducersResponse,
} from "../../protocol/message/61_describe_producers.ts";
import type { ActiveProducer } from "../../log/partition_log.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { inGroups } from "../many.ts";

type PartitionAnswer = NonNullable<
  DescribeProducersResponse["topics"]
>[number]["partitions"][number];

function failed(partitionIndex: number, error: ErrorName): PartitionAnswer {
  const errorMessage = error === "UNKNOWN_TOPIC_OR_PARTITION"
    ? "This server does not host this topic-partition."
    : null;
  return { partitionIndex, errorCode: errorCode(error), errorMessage, activeProducers: [] };
}

function shown(producer: ActiveProducer): PartitionAnswer["activeProducers"][number] {
  return {
    producerId: producer.producerId,
    producerEpoch: producer.producerEpoch,
    lastSequence: producer.lastSequence,
    lastTimestamp: producer.lastTimestampMs,
    coordinatorEpoch: producer.coordinatorEpoch,
    currentTxnStartOffset: producer.currentTxnFirstOffset ?? -1,
  };
}

async function describe(
  { topics, partitions }: BrokerServices,
  name: string,
  index: number,
): Promise<PartitionAnswer> {
  await topics.look([name]);
  const topic = topics.find(name);
  if (topic === undefined) return failed(index, "UNKNOWN_TOPIC_OR_PARTITION");
  try {
    const located = await partitions.open(topic.topicId, index);
    if (!located.ok) return failed(index, located.error);
    const activeProducers = located.log.activeProducers().map(shown);
    return { partitionIndex: index, errorCode: errorCode("NONE"), activeProducers };
  } catch (error) {
    return failed(index, faultToCode(error, "admin"));
  }
}

export function describeProducersHandler(
  services: BrokerServices,
): Handler<DescribeProducersRequest, DescribeProducersResponse> {
  return {
    api: describeProducersApi,
    min: 0,
    max: 0,
    async handle(request) {
      const topics = [];
      for (const { name, partitionIndexes } of request.topics) {
        const partitions = await inGroups(
          services.env.clock,
          partitionIndexes,
          (index) => describe(services, name, index),
        );
        topics.push({ name, partitions });
      }
      return { throttleTimeMs: 0, topics };
    },
  };
}
