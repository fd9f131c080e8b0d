/**
 * InitProducerId, key 22, versions 0-5, flexible from 2.
 * 3 lets a producer go on after an epoch error (KIP-360), 4 and 5 change errors only (KIP-588,
 * KIP-890). Version 6 (two-phase commit) is unstable in Kafka and neither advertised nor accepted.
 */
import { api } from "../api.ts";
import { int16, int32, int64, int64Clamped, string } from "../primitive.ts";
import { type Infer, type InferInput, message, since } from "../schema.ts";

const VERSIONS = { min: 0, max: 5, flexibleFrom: 2 };

export const initProducerIdRequest = message("InitProducerIdRequest", VERSIONS, {
  transactionalId: since(0, string, { nullableSince: 0 }),
  transactionTimeoutMs: int32,
  producerId: since(3, int64Clamped, { default: -1 }),
  producerEpoch: since(3, int16, { default: -1 }),
});

export const initProducerIdResponse = message("InitProducerIdResponse", VERSIONS, {
  throttleTimeMs: int32,
  errorCode: int16,
  producerId: since(0, int64, { default: -1 }),
  producerEpoch: int16,
});

export type InitProducerIdRequest = Infer<typeof initProducerIdRequest>;
export type InitProducerIdResponse = InferInput<typeof initProducerIdResponse>;
export const initProducerIdApi = api(22, initProducerIdRequest, initProducerIdResponse);
