/** What the APIs of consumer groups and of share groups answer alike. */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import { type Assignment, listOf } from "./consumer/assignment.ts";
import type { ConsumerRefused, TopicView } from "./consumer/group.ts";

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
