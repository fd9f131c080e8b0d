/**
 * ListTransactions (key 66), versions 0-2.
 * Behaviour: the transactional ids that this node coordinates. Unknown states in the filter are named in the answer.
 * A pattern is matched against whole ids, in linear time.
 * Version notes: 1 filters by how long a transaction is open (KIP-994) · 2 by a pattern of ids (KIP-1152).
 */
import { type Clock, sleep } from "../../env/clock.ts";
import { TOPIC_REGEX_SLICE_STEPS } from "../../lib/limits.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  listTransactionsApi,
  type ListTransactionsRequest,
  type ListTransactionsResponse,
} from "../../protocol/message/66_list_transactions.ts";
import { compileRegex } from "../group/consumer/regex.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";
import { type Transaction, TXN_STATUSES } from "../txn/transaction.ts";

/** Of a look at a row, beside those of the pattern. */
const ROW_STEPS = 1_000;

interface Filter {
  readonly isAsked: (row: Transaction) => boolean;
  /** Of the pattern's program, for each character of an id. */
  readonly size: number;
}

function failed(error: ErrorName): ListTransactionsResponse {
  const none = { unknownStateFilters: [], transactionStates: [] };
  return { throttleTimeMs: 0, errorCode: errorCode(error), ...none };
}

/** Null when the pattern is none. */
function filterOf(request: ListTransactionsRequest, nowMs: number): Filter | null {
  const { stateFilters, producerIdFilters, durationFilter, transactionalIdPattern } = request;
  const hasPattern = transactionalIdPattern !== null && transactionalIdPattern !== "";
  const compiled = hasPattern ? compileRegex(transactionalIdPattern) : null;
  if (compiled?.ok === false) return null;
  const states = new Set<string>(stateFilters);
  const producerIds = new Set(producerIdFilters);
  const isAsked = (row: Transaction) =>
    (states.size === 0 || states.has(row.status)) &&
    (producerIds.size === 0 || producerIds.has(row.producerId)) &&
    (durationFilter < 0 || nowMs - row.startedAtMs > durationFilter) &&
    (compiled === null || compiled.regex.matches(row.transactionalId));
  return { isAsked, size: compiled?.regex.size ?? 0 };
}

/** Other requests have their turn in between: ids may be as long as their clients like. */
async function filtered(
  clock: Clock,
  rows: readonly Transaction[],
  { isAsked, size }: Filter,
): Promise<Transaction[]> {
  const shown: Transaction[] = [];
  let steps = 0;
  for (const row of rows) {
    if (isAsked(row)) shown.push(row);
    steps += ROW_STEPS + size * row.transactionalId.length;
    if (steps < TOPIC_REGEX_SLICE_STEPS) continue;
    steps = 0;
    await sleep(clock, 0);
  }
  return shown;
}

export function listTransactionsHandler(
  { env, transactions }: GroupServices,
): Handler<ListTransactionsRequest, ListTransactionsResponse> {
  return {
    api: listTransactionsApi,
    min: 0,
    max: 2,
    async handle(request) {
      const filter = filterOf(request, env.clock.nowMs());
      if (filter === null) return failed("INVALID_REGULAR_EXPRESSION");
      const known = new Set<string>(TXN_STATUSES);
      const unknownStateFilters = request.stateFilters.filter((one) => !known.has(one));
      const rows = await transactions.list();
      if (typeof rows === "string") return failed(rows);
      const shown = await filtered(env.clock, rows, filter);
      const transactionStates = shown.map(({ transactionalId, producerId, status }) => ({
        transactionalId,
        producerId,
        transactionState: status,
      }));
      const none = errorCode("NONE");
      return { throttleTimeMs: 0, errorCode: none, unknownStateFilters, transactionStates };
    },
  };
}
