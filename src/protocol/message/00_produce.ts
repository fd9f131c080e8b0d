/**
 * Produce, key 0, versions 3-13, flexible from 9.
 * 5 adds the log start offset, 7 allows zstd (KIP-110), 8 explains refused records (KIP-467), 10
 * names the new leader (KIP-951), 11 and 12 serve transactions (KIP-890), 13 has topic ids
 * (KIP-516). 0-2 are advertised and refused: librdkafka below 2.11.1 looks for them before it
 * compresses.
 */
import { api } from "../api.ts";
import { int16, int32, int64, records, string, uuid } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 3, max: 13, flexibleFrom: 9 };

const partitionProduceData = struct({
  index: int32,
  records: since(0, records, { nullableSince: 0 }),
});

const topicProduceData = struct({
  name: since(0, string, { until: 12 }),
  topicId: since(13, uuid),
  partitionData: array(partitionProduceData),
});

export const produceRequest = message("ProduceRequest", VERSIONS, {
  transactionalId: since(0, string, { nullableSince: 0, default: null }),
  acks: int16,
  timeoutMs: int32,
  topicData: array(topicProduceData),
});

const batchIndexAndErrorMessage = struct({
  batchIndex: int32,
  batchIndexErrorMessage: since(0, string, { nullableSince: 0, default: null }),
});

const leaderIdAndEpoch = struct({
  leaderId: since(0, int32, { default: -1 }),
  leaderEpoch: since(0, int32, { default: -1 }),
});

const partitionProduceResponse = struct({
  index: int32,
  errorCode: int16,
  baseOffset: int64,
  logAppendTimeMs: since(0, int64, { default: -1 }),
  logStartOffset: since(5, int64, { default: -1 }),
  recordErrors: since(8, array(batchIndexAndErrorMessage)),
  errorMessage: since(8, string, { nullableSince: 8, default: null }),
  currentLeader: since(10, leaderIdAndEpoch, { tag: 0 }),
});

const topicProduceResponse = struct({
  name: since(0, string, { until: 12 }),
  topicId: since(13, uuid),
  partitionResponses: array(partitionProduceResponse),
});

const nodeEndpoint = struct({
  nodeId: int32,
  host: string,
  port: int32,
  rack: since(0, string, { nullableSince: 0, default: null }),
});

export const produceResponse = message("ProduceResponse", VERSIONS, {
  responses: array(topicProduceResponse),
  throttleTimeMs: since(0, int32, { default: 0 }),
  nodeEndpoints: since(10, array(nodeEndpoint), { tag: 0 }),
});

export type ProduceRequest = Infer<typeof produceRequest>;
export type ProduceResponse = InferInput<typeof produceResponse>;
export const produceApi = api(0, produceRequest, produceResponse, { advertisedMin: 0 });
