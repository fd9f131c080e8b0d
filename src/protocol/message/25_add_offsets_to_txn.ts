/**
 * AddOffsetsToTxn, key 25, versions 0-4, flexible from 3. 2 and 4 change errors only (KIP-588, KIP-890).
 */
import { api } from "../api.ts";
import { int16, int32, int64Clamped, string } from "../primitive.ts";
import { type Infer, type InferInput, message } from "../schema.ts";

const VERSIONS = { min: 0, max: 4, flexibleFrom: 3 };

export const addOffsetsToTxnRequest = message("AddOffsetsToTxnRequest", VERSIONS, {
  transactionalId: string,
  producerId: int64Clamped,
  producerEpoch: int16,
  groupId: string,
});

export const addOffsetsToTxnResponse = message("AddOffsetsToTxnResponse", VERSIONS, {
  throttleTimeMs: int32,
  errorCode: int16,
});

export type AddOffsetsToTxnRequest = Infer<typeof addOffsetsToTxnRequest>;
export type AddOffsetsToTxnResponse = InferInput<typeof addOffsetsToTxnResponse>;
export const addOffsetsToTxnApi = api(25, addOffsetsToTxnRequest, addOffsetsToTxnResponse);
