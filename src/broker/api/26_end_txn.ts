/**
 * EndTxn (key 26), versions 0-5.
 * Behaviour: answered once it is durable how the transaction ends; nothing turns that round any more, restarts
 * included. Markers follow in the background, and until every partition has one the producer's next transaction
 * is told CONCURRENT_TRANSACTIONS. A partition that another node leads gets its marker when this node leads it.
 * Version notes: 2 PRODUCER_FENCED (KIP-588) · 5 each end raises the epoch, while `transaction.version` is 2 (KIP-890).
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  endTxnApi,
  type EndTxnRequest,
  type EndTxnResponse,
} from "../../protocol/message/26_end_txn.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";

const FENCED_SINCE = 2;
const V2_SINCE = 5;

function failed(error: ErrorName): EndTxnResponse {
  return { throttleTimeMs: 0, errorCode: errorCode(error), producerId: -1, producerEpoch: -1 };
}

export function endTxnHandler(
  { transactions }: GroupServices,
): Handler<EndTxnRequest, EndTxnResponse> {
  return {
    api: endTxnApi,
    min: 0,
    max: 5,
    async handle({ transactionalId, producerId, producerEpoch, committed }, { version }) {
      if (transactionalId === "") return failed("INVALID_REQUEST");
      const isV2 = version >= V2_SINCE && transactions.isV2;
      const ask = { producerId, producerEpoch, commit: committed, isV2 };
      const outcome = await transactions.end(transactionalId, ask);
      if (!outcome.ok) {
        const isRenamed = outcome.error === "PRODUCER_FENCED" && version < FENCED_SINCE;
        return failed(isRenamed ? "INVALID_PRODUCER_EPOCH" : outcome.error);
      }
      return { throttleTimeMs: 0, errorCode: errorCode("NONE"), ...outcome.who };
    },
  };
}
