/**
 * ListTransactions, key 66, versions 0-2, flexible from 0.
 * 1 filters by how long a transaction is open (KIP-994), 2 by a pattern of ids (KIP-1152).
 */
import { api } from "../api.ts";
import { int16, int32, int64, int64Clamped, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 2, flexibleFrom: 0 };

export const listTransactionsRequest = message("ListTransactionsRequest", VERSIONS, {
  stateFilters: array(string),
  producerIdFilters: array(int64Clamped),
  durationFilter: since(1, int64Clamped, { default: -1 }),
  transactionalIdPattern: since(2, string, { nullableSince: 2, default: null }),
});

const transactionState = struct({
  transactionalId: string,
  producerId: int64,
  transactionState: string,
});

export const listTransactionsResponse = message("ListTransactionsResponse", VERSIONS, {
  throttleTimeMs: int32,
  errorCode: int16,
  unknownStateFilters: array(string),
  transactionStates: array(transactionState),
});

export type ListTransactionsRequest = Infer<typeof listTransactionsRequest>;
export type ListTransactionsResponse = InferInput<typeof listTransactionsResponse>;
export const listTransactionsApi = api(66, listTransactionsRequest, listTransactionsResponse);
