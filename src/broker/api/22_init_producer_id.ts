/**
 * InitProducerId (key 22), versions 0-5.
 * Behaviour: ids come from blocks reserved in the metadata log; what a process has not used is never
 * used, so no id appears twice, restarts included. Every call without a transactional id gives a new id
 * with epoch 0. With one, the producer that calls owns it from then on: an open transaction of its predecessor is
 * aborted, and CONCURRENT_TRANSACTIONS is the answer until that is done.
 * Version notes: 2 flexible · 3 carries the old id and epoch (KIP-360) · 4 PRODUCER_FENCED (KIP-588) · 6, two-phase
 * commit, is not served.
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import { isClamped } from "../../protocol/primitive.ts";
import {
  initProducerIdApi,
  type InitProducerIdRequest,
  type InitProducerIdResponse,
} from "../../protocol/message/22_init_producer_id.ts";
import { faultToCode } from "../fault_to_code.ts";
import { isStorable } from "../group/group.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { ProducerIds } from "../producer_ids.ts";
import type { InitAsk } from "../txn/decide_init.ts";
import type { ProducerIdentity } from "../txn/transaction.ts";
import type { Transactions } from "../txn/transactions.ts";

const FENCED_SINCE = 4;

function failed(error: ErrorName): InitProducerIdResponse {
  return { throttleTimeMs: 0, errorCode: errorCode(error), producerId: -1, producerEpoch: -1 };
}

function answer({ producerId, producerEpoch }: ProducerIdentity): InitProducerIdResponse {
  return { throttleTimeMs: 0, errorCode: errorCode("NONE"), producerId, producerEpoch };
}

async function takeId(ids: ProducerIds): Promise<InitProducerIdResponse> {
  try {
    const id = await ids.take();
    return typeof id === "string" ? failed(id) : answer({ producerId: id, producerEpoch: 0 });
  } catch (error) {
    return failed(faultToCode(error, "coordinator"));
  }
}

function problemOf(
  transactionalId: string,
  { transactionTimeoutMs, producerId }: InitProducerIdRequest,
  timeoutMsMax: number,
): ErrorName | null {
  if (!isStorable(transactionalId)) return "INVALID_REQUEST";
  if (isClamped(producerId)) return "INVALID_REQUEST";
  return transactionTimeoutMs <= 0 || transactionTimeoutMs > timeoutMsMax
    ? "INVALID_TRANSACTION_TIMEOUT"
    : null;
}

async function initTransactional(
  transactions: Transactions,
  ask: InitAsk,
  version: number,
): Promise<InitProducerIdResponse> {
  const outcome = await transactions.initProducerId(ask);
  if (outcome.ok) return answer(outcome.who);
  const isRenamed = outcome.error === "PRODUCER_FENCED" && version < FENCED_SINCE;
  return failed(isRenamed ? "INVALID_PRODUCER_EPOCH" : outcome.error);
}

/** Without a coordinator of transactions only ids without epochs are given out. */
export function initProducerIdHandler(
  services: BrokerServices,
  transactions: Transactions | null = null,
): Handler<InitProducerIdRequest, InitProducerIdResponse> {
  const ids = transactions?.ids ?? new ProducerIds(services);
  const timeoutMsMax = services.config.integer("transaction.max.timeout.ms");
  return {
    api: initProducerIdApi,
    min: 0,
    max: 5,
    async handle(request, { version }) {
      const { transactionalId, producerId, producerEpoch } = request;
      const isHalf = (producerId === -1) !== (producerEpoch === -1);
      if (transactionalId === "" || isHalf) return failed("INVALID_REQUEST");
      if (transactionalId === null) return await takeId(ids);
      if (transactions === null) return failed("COORDINATOR_NOT_AVAILABLE");
      const problem = problemOf(transactionalId, request, timeoutMsMax);
      if (problem !== null) return failed(problem);
      const expected = producerId === -1 ? null : { producerId, producerEpoch };
      const ask = { transactionalId, timeoutMs: request.transactionTimeoutMs, expected };
      return await initTransactional(transactions, ask, version);
    },
  };
}
