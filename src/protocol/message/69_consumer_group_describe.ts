/** ConsumerGroupDescribe, key 69, versions 0-1, flexible (KIP-848). 1 adds the type of a member (KIP-1099). */
import { api } from "../api.ts";
import { bool, int16, int32, int8, string, uuid } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 1, flexibleFrom: 0 };
const OPERATIONS_UNKNOWN = -2_147_483_648;

const nullString = { nullableSince: 0, default: null };

export const consumerGroupDescribeRequest = message("ConsumerGroupDescribeRequest", VERSIONS, {
  groupIds: array(string),
  includeAuthorizedOperations: bool,
});

const topicPartitions = struct({ topicId: uuid, topicName: string, partitions: array(int32) });
const assignment = struct({ topicPartitions: array(topicPartitions) });

const member = struct({
  memberId: string,
  instanceId: since(0, string, nullString),
  rackId: since(0, string, nullString),
  memberEpoch: int32,
  clientId: string,
  clientHost: string,
  subscribedTopicNames: array(string),
  subscribedTopicRegex: since(0, string, nullString),
  assignment,
  targetAssignment: assignment,
  memberType: since(1, int8, { default: -1 }),
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

export const consumerGroupDescribeResponse = message("ConsumerGroupDescribeResponse", VERSIONS, {
  throttleTimeMs: since(0, int32, { default: 0 }),
  groups: array(describedGroup),
});

export type ConsumerGroupDescribeRequest = Infer<typeof consumerGroupDescribeRequest>;
export type ConsumerGroupDescribeResponse = InferInput<typeof consumerGroupDescribeResponse>;
export const consumerGroupDescribeApi = api(
  69,
  consumerGroupDescribeRequest,
  consumerGroupDescribeResponse,
);
