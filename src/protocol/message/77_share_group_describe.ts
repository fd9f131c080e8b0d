/** ShareGroupDescribe, key 77, version 1, flexible (KIP-932). Version 0 was an early one that Kafka took back. */
import { api } from "../api.ts";
import { bool, int16, int32, string, uuid } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 1, max: 1, flexibleFrom: 0 };
const OPERATIONS_UNKNOWN = -2_147_483_648;
const nullString = { nullableSince: 0, default: null };

export const shareGroupDescribeRequest = message("ShareGroupDescribeRequest", VERSIONS, {
  groupIds: array(string),
  includeAuthorizedOperations: bool,
});

const topicPartitions = struct({ topicId: uuid, topicName: string, partitions: array(int32) });

const member = struct({
  memberId: string,
  rackId: since(0, string, nullString),
  memberEpoch: int32,
  clientId: string,
  clientHost: string,
  subscribedTopicNames: array(string),
  assignment: struct({ topicPartitions: array(topicPartitions) }),
});

const describedGroup = struct({
  errorCode: int16,
  errorMessage: since(0, string, nullString),
  groupId: string,
  groupState: string,
  groupEpoch: int32,
  assignmentEpoch: int32,
  assignorName: string,
  members: array(member),
  authorizedOperations: since(0, int32, { default: OPERATIONS_UNKNOWN }),
});

export const shareGroupDescribeResponse = message("ShareGroupDescribeResponse", VERSIONS, {
  throttleTimeMs: since(0, int32, { default: 0 }),
  groups: array(describedGroup),
});

export type ShareGroupDescribeRequest = Infer<typeof shareGroupDescribeRequest>;
export type ShareGroupDescribeResponse = InferInput<typeof shareGroupDescribeResponse>;
export const shareGroupDescribeApi = api(
  77,
  shareGroupDescribeRequest,
  shareGroupDescribeResponse,
);
