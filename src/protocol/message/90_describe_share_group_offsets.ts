/** DescribeShareGroupOffsets, key 90, versions 0-1, flexible (KIP-932). 1 adds the lag (KIP-1226). */
import { api } from "../api.ts";
import { int16, int32, int64, string, uuid } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 1, flexibleFrom: 0 };
const nullString = { nullableSince: 0, default: null };

const askedTopic = struct({ topicName: string, partitions: array(int32) });

export const describeShareGroupOffsetsRequest = message(
  "DescribeShareGroupOffsetsRequest",
  VERSIONS,
  {
    groups: array(struct({
      groupId: string,
      topics: since(0, array(askedTopic), { nullableSince: 0 }),
    })),
  },
);

const partition = struct({
  partitionIndex: int32,
  startOffset: int64,
  leaderEpoch: int32,
  lag: since(1, int64, { default: -1 }),
  errorCode: int16,
  errorMessage: since(0, string, nullString),
});

const describedGroup = struct({
  groupId: string,
  topics: array(struct({ topicName: string, topicId: uuid, partitions: array(partition) })),
  errorCode: int16,
  errorMessage: since(0, string, nullString),
});

export const describeShareGroupOffsetsResponse = message(
  "DescribeShareGroupOffsetsResponse",
  VERSIONS,
  { throttleTimeMs: since(0, int32, { default: 0 }), groups: array(describedGroup) },
);

export type DescribeShareGroupOffsetsRequest = Infer<typeof describeShareGroupOffsetsRequest>;
export type DescribeShareGroupOffsetsResponse = InferInput<
  typeof describeShareGroupOffsetsResponse
>;
export const describeShareGroupOffsetsApi = api(
  90,
  describeShareGroupOffsetsRequest,
  describeShareGroupOffsetsResponse,
);
