/**
 * AddPartitionsToTxn (key 24), versions 0-5.
 * Behaviour: the partitions are part of the transaction once that is durable; what it holds already is answered
 * without a write. One unknown topic fails all: the others get OPERATION_NOT_ATTEMPTED.
 * Deviations: the batch form of 4 and 5, which Kafka keeps for its brokers, is open to clients, because
 * @platformatic/kafka uses it.
 * Version notes: 2 PRODUCER_FENCED (KIP-588) · 4 many transactions, verifyOnly (KIP-890).
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  addPartitionsToTxnApi,
  type AddPartitionsToTxnRequest,
  type AddPartitionsToTxnResponse,
} from "../../protocol/message/24_add_partitions_to_txn.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";
import { partitionName, type TxnPartition } from "../txn/transaction.ts";

const FENCED_SINCE = 2;
const BATCHES_SINCE = 4;

type Asked = AddPartitionsToTxnRequest["transactions"][number];
type Topics = Asked["topics"];
type ErrorOf = (partition: TxnPartition) => ErrorName;

function answer(topics: Topics, errorOf: ErrorOf) {
  return topics.map(({ name, partitions }) => ({
    name,
    resultsByPartition: partitions.map((partition) => ({
      partitionIndex: partition,
      partitionErrorCode: errorCode(errorOf({ topic: name, partition })),
    })),
  }));
}

function listOf(topics: Topics): TxnPartition[] {
  return topics.flatMap(({ name, partitions }) =>
    partitions.map((partition) => ({ topic: name, partition }))
  );
}

/** Null when all are known. */
function unknownOf(services: GroupServices, asked: readonly TxnPartition[]): ErrorOf | null {
  const isKnown = ({ topic, partition }: TxnPartition) => {
    const row = services.topics.find(topic);
    return row !== undefined && partition >= 0 && partition < row.partitions;
  };
  if (asked.every(isKnown)) return null;
  return (one) => isKnown(one) ? "OPERATION_NOT_ATTEMPTED" : "UNKNOWN_TOPIC_OR_PARTITION";
}

async function decide(services: GroupServices, asked: Asked, version: number): Promise<ErrorOf> {
  const { transactionalId, producerId, producerEpoch, verifyOnly, topics } = asked;
  if (transactionalId === "") return () => "INVALID_REQUEST";
  const partitions = listOf(topics);
  await services.topics.look(topics.map(({ name }) => name));
  const unknown = unknownOf(services, partitions);
  if (unknown !== null) return unknown;
  const producer = { producerId, producerEpoch };
  const { transactions } = services;
  if (verifyOnly) {
    const verdicts = await transactions.verify(transactionalId, producer, partitions);
    return (one) => verdicts.get(partitionName(one)) ?? "NONE";
  }
  const error = await transactions.add(transactionalId, producer, partitions, false);
  const isRenamed = error === "PRODUCER_FENCED" && version < FENCED_SINCE;
  return () => isRenamed ? "INVALID_PRODUCER_EPOCH" : error;
}

export function addPartitionsToTxnHandler(
  services: GroupServices,
): Handler<AddPartitionsToTxnRequest, AddPartitionsToTxnResponse> {
  return {
    api: addPartitionsToTxnApi,
    min: 0,
    max: 5,
    async handle(request, { version }) {
      const throttleTimeMs = 0;
      if (version < BATCHES_SINCE) {
        const topics = request.v3AndBelowTopics;
        const errorOf = await decide(services, {
          transactionalId: request.v3AndBelowTransactionalId,
          producerId: request.v3AndBelowProducerId,
          producerEpoch: request.v3AndBelowProducerEpoch,
          verifyOnly: false,
          topics,
        }, version);
        return { throttleTimeMs, resultsByTopicV3AndBelow: answer(topics, errorOf) };
      }
      const resultsByTransaction = [];
      for (const asked of request.transactions) {
        const errorOf = await decide(services, asked, version);
        const { transactionalId, topics } = asked;
        resultsByTransaction.push({ transactionalId, topicResults: answer(topics, errorOf) });
      }
      return { throttleTimeMs, errorCode: errorCode("NONE"), resultsByTransaction };
    },
  };
}
