/**
 * EndTxn, key 26, versions 0-5, flexible from 3.
 * 5 raises the producer's epoch with every end and answers the new one (KIP-890); 2 and 4 change errors only.
 */
import { api } from "../api.ts";
import { bool, int16, int32, int64, int64Clamped, string } from "../primitive.ts";
import { type Infer, type InferInput, message, since } from "../schema.ts";

const VERSIONS = { min: 0, max: 5, flexibleFrom: 3 };

export const endTxnRequest = message("EndTxnRequest", VERSIONS, {
  transactionalId: string,
  producerId: int64Clamped,
  producerEpoch: int16,
  committed: bool,
});

export const endTxnResponse = message("EndTxnResponse", VERSIONS, {
  throttleTimeMs: int32,
  errorCode: int16,
  producerId: since(5, int64, { default: -1 }),
  producerEpoch: since(5, int16, { default: -1 }),
});

export type EndTxnRequest = Infer<typeof endTxnRequest>;
export type EndTxnResponse = InferInput<typeof endTxnResponse>;
export const endTxnApi = api(26, endTxnRequest, endTxnResponse);
