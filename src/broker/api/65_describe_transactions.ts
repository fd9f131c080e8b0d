/**
 * DescribeTransactions (key 65), version 0.
 * Behaviour: of a transaction that ends, the partitions are those that have no marker yet.
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  describeTransactionsApi,
  type DescribeTransactionsRequest,
  type DescribeTransactionsResponse,
} from "../../protocol/message/65_describe_transactions.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";
import { inGroups } from "../many.ts";
import type { TxnPartition } from "../txn/transaction.ts";
import type { DescribedTransaction } from "../txn/transactions.ts";

type State = DescribeTransactionsResponse["transactionStates"][number];

function failed(transactionalId: string, error: ErrorName): State {
  return {
    errorCode: errorCode(error),
    transactionalId,
    transactionState: "",
    transactionTimeoutMs: 0,
    transactionStartTimeMs: 0,
    producerId: 0,
    producerEpoch: 0,
    topics: [],
  };
}

function topicsOf(partitions: readonly TxnPartition[]): State["topics"] {
  const topics = Map.groupBy(partitions, ({ topic }) => topic);
  return [...topics].map(([topic, each]) => ({
    topic,
    partitions: each.map(({ partition }) => partition),
  }));
}

function shown({ row, partitions }: DescribedTransaction): State {
  return {
    errorCode: errorCode("NONE"),
    transactionalId: row.transactionalId,
    transactionState: row.status,
    transactionTimeoutMs: row.timeoutMs,
    transactionStartTimeMs: row.startedAtMs,
    producerId: row.producerId,
    producerEpoch: row.producerEpoch,
    topics: topicsOf(partitions),
  };
}

export function describeTransactionsHandler(
  { env, transactions }: GroupServices,
): Handler<DescribeTransactionsRequest, DescribeTransactionsResponse> {
  async function describe(transactionalId: string): Promise<State> {
    if (transactionalId === "") return failed(transactionalId, "INVALID_REQUEST");
    const found = await transactions.describe(transactionalId);
    return typeof found === "string" ? failed(transactionalId, found) : shown(found);
  }
  return {
    api: describeTransactionsApi,
    min: 0,
    max: 0,
    async handle({ transactionalIds }) {
      const transactionStates = await inGroups(env.clock, transactionalIds, describe);
      return { throttleTimeMs: 0, transactionStates };
    },
  };
}
