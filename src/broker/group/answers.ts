/** What the APIs of consumer groups and of share groups answer alike. */
import type { Clock } from "../../env/clock.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import { GROUP_OPERATIONS } from "../authorized_operations.ts";
import { inGroups } from "../many.ts";
import { type Assignment, listOf } from "./consumer/assignment.ts";
import type { ConsumerRefused, TopicView } from "./consumer/group.ts";

/** Describes each group of a request once; with what may be done to it, where that is asked for. */
export async function describeEach<T extends { readonly errorCode: number }>(
  clock: Clock,
  { groupIds, includeAuthorizedOperations: isAsked }: {
    readonly groupIds: readonly string[];
    readonly includeAuthorizedOperations: boolean;
  },
  describe: (groupId: string) => Promise<T>,
): Promise<(T & { readonly authorizedOperations?: number })[]> {
  const groups = await inGroups(clock, [...new Set(groupIds)], describe);
  return groups.map((one) =>
    isAsked && one.errorCode === 0 ? { ...one, authorizedOperations: GROUP_OPERATIONS } : one
  );
}

/** Topics that are gone meanwhile have no name and are left out. */
export function namedPartitions(topics: TopicView, assignment: Assignment) {
  const topicPartitions = listOf(assignment).flatMap(({ topicId, partitions }) => {
    const topic = topics.findById(topicId);
    return topic === undefined ? [] : [{ topicId, topicName: topic.name, partitions }];
  });
  return { topicPartitions };
}

export function notDescribed(groupId: string, error: ErrorName, errorMessage: string | null) {
  return {
    errorCode: errorCode(error),
    errorMessage,
    groupId,
    groupState: "",
    groupEpoch: 0,
    assignmentEpoch: 0,
    assignorName: "",
    members: [],
  };
}

export function beatRefused({ error, message }: ConsumerRefused) {
  return {
    errorCode: errorCode(error),
    errorMessage: message,
    memberEpoch: 0,
    heartbeatIntervalMs: 0,
  };
}

/** Of a member that has left there is only its id; null is an assignment that did not change. */
type Decided =
  | ConsumerRefused
  | { readonly ok: true; readonly memberId: string }
  | {
    readonly ok: true;
    readonly member: { readonly memberId: string; readonly place: { readonly epoch: number } };
    readonly assignment: Assignment | null;
  };

export function beatAnswer(decided: Decided, memberEpoch: number, heartbeatIntervalMs: number) {
  if (!decided.ok) return beatRefused(decided);
  if (!("member" in decided)) {
    return { errorCode: 0, memberId: decided.memberId, memberEpoch, heartbeatIntervalMs: 0 };
  }
  const { member: { memberId, place }, assignment } = decided;
  return {
    errorCode: 0,
    memberId,
    memberEpoch: place.epoch,
    heartbeatIntervalMs,
    assignment: assignment === null ? null : { topicPartitions: listOf(assignment) },
  };
}
