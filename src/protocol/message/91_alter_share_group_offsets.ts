/** AlterShareGroupOffsets, key 91, version 0, flexible (KIP-932). */
import { api } from "../api.ts";
import { int16, int32, int64Clamped, string, uuid } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 0, flexibleFrom: 0 };
const nullString = { nullableSince: 0, default: null };

const askedPartition = struct({ partitionIndex: int32, startOffset: int64Clamped });

export const alterShareGroupOffsetsRequest = message("AlterShareGroupOffsetsRequest", VERSIONS, {
  groupId: string,
  topics: array(struct({ topicName: string, partitions: array(askedPartition) })),
});

const partition = struct({
  partitionIndex: int32,
  errorCode: int16,
  errorMessage: since(0, string, nullString),
});

export const alterShareGroupOffsetsResponse = message("AlterShareGroupOffsetsResponse", VERSIONS, {
  throttleTimeMs: since(0, int32, { default: 0 }),
  errorCode: int16,
  errorMessage: since(0, string, nullString),
  responses: array(struct({ topicName: string, topicId: uuid, partitions: array(partition) })),
});

export type AlterShareGroupOffsetsRequest = Infer<typeof alterShareGroupOffsetsRequest>;
export type AlterShareGroupOffsetsResponse = InferInput<typeof alterShareGroupOffsetsResponse>;
export const alterShareGroupOffsetsApi = api(
  91,
  alterShareGroupOffsetsRequest,
  alterShareGroupOffsetsResponse,
);
