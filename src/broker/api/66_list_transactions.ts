/**
 * ListTransactions (key 66), versions 0-2.
 * Behaviour: the transactional ids that this node coordinates. Unknown states in the filter are named in the answer.
 * A pattern is matched against whole ids, in linear time.
 * Version notes: 1 filters by how long a transaction is open (KIP-994) · 2 by a pattern of ids (KIP-1152).
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  listTransactionsApi,
  type ListTransactionsRequest,
  type ListTransactionsResponse,
} from "../../protocol/message/66_list_transactions.ts";
import { compileRegex } from "../group/consumer/regex.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";
import { inGroups } from "../many.ts";
import { type Transaction, TXN_STATUSES } from "../txn/transaction.ts";

type IsAsked = (row: Transaction) => boolean;

function failed(error: ErrorName): ListTransactionsResponse {
  const none = { unknownStateFilters: [], transactionStates: [] };
  return { throttleTimeMs: 0, errorCode: errorCode(error), ...none };
}

/** Null when the pattern is none. */
function filterOf(request: ListTransactionsRequest, nowMs: number): IsAsked | null {
  const { stateFilters, producerIdFilters, durationFilter, transactionalIdPattern } = request;
  const hasPattern = transactionalIdPattern !== null && transactionalIdPattern !== "";
  const compiled = hasPattern ? compileRegex(transactionalIdPattern) : null;
  if (compiled?.ok === false) return null;
  const states = new Set<string>(stateFilters);
  const producerIds = new Set(producerIdFilters);
  return (row) =>
    (states.size === 0 || states.has(row.status)) &&
    (producerIds.size === 0 || producerIds.has(row.producerId)) &&
    (durationFilter < 0 || nowMs - row.startedAtMs > durationFilter) &&
    (compiled === null || compiled.regex.matches(row.transactionalId));
}

export function listTransactionsHandler(
  { env, transactions }: GroupServices,
): Handler<ListTransactionsRequest, ListTransactionsResponse> {
  return {
    api: listTransactionsApi,
    min: 0,
    max: 2,
    async handle(request) {
      const isAsked = filterOf(request, env.clock.nowMs());
      if (isAsked === null) return failed("INVALID_REGULAR_EXPRESSION");
      const known = new Set<string>(TXN_STATUSES);
      const unknownStateFilters = request.stateFilters.filter((one) => !known.has(one));
      const rows = await transactions.list();
      if (typeof rows === "string") return failed(rows);
      // Other requests have their turn in between.
      const shown = await inGroups(env.clock, rows, (row) => isAsked(row) ? [row] : []);
      const transactionStates = shown.flat().map(({ transactionalId, producerId, status }) => ({
        transactionalId,
        producerId,
        transactionState: status,
      }));
      const none = errorCode("NONE");
      return { throttleTimeMs: 0, errorCode: none, unknownStateFilters, transactionStates };
    },
  };
}
