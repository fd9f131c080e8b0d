import assert from "node:assert/strict";
import { test } from "node:test";
import type { ErrorName } from "../protocol/error_code.ts";
import { problemOf, statusOf } from "./problem.ts";

/** The gateway's map of Kafka's errors; what is not named is 503 when it may go away, else 400. */
const STATUS: readonly (readonly [number, readonly ErrorName[]])[] = [
  [400, [
    "INVALID_TOPIC_EXCEPTION",
    "INVALID_PARTITIONS",
    "INVALID_CONFIG",
    "INVALID_REPLICATION_FACTOR",
    "INVALID_REQUEST",
    "INVALID_TIMESTAMP",
    "INVALID_GROUP_ID",
  ]],
  [401, ["SASL_AUTHENTICATION_FAILED"]],
  [403, [
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
    "POLICY_VIOLATION",
  ]],
  [404, ["UNKNOWN_TOPIC_OR_PARTITION", "GROUP_ID_NOT_FOUND"]],
  [409, [
    "TOPIC_ALREADY_EXISTS",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "INVALID_PRODUCER_EPOCH",
    "PRODUCER_FENCED",
    "FENCED_INSTANCE_ID",
    "FENCED_MEMBER_EPOCH",
    "REBALANCE_IN_PROGRESS",
    "ILLEGAL_GENERATION",
    "UNKNOWN_MEMBER_ID",
  ]],
  [413, ["MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"]],
  [416, ["OFFSET_OUT_OF_RANGE"]],
  [422, ["INVALID_RECORD"]],
  [429, ["THROTTLING_QUOTA_EXCEEDED"]],
  [500, ["UNKNOWN_SERVER_ERROR", "CORRUPT_MESSAGE"]],
  [501, ["UNSUPPORTED_VERSION"]],
  [503, [
    "NOT_LEADER_OR_FOLLOWER",
    "LEADER_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "NETWORK_EXCEPTION",
    "NOT_ENOUGH_REPLICAS",
    "KAFKA_STORAGE_ERROR",
    "NOT_CONTROLLER",
  ]],
  [504, ["REQUEST_TIMED_OUT"]],
];

test("every kind of error has its status", () => {
  for (const [status, names] of STATUS) {
    for (const name of names) assert.equal(statusOf(name), status, name);
  }
});

test("whoever is told to come again is told when", () => {
  for (const [status, names] of STATUS) {
    for (const error of names) {
      const { headers = {} } = problemOf({ ok: false, error });
      assert.equal("retry-after" in headers, [429, 503, 504].includes(status), error);
    }
  }
});

test("a problem says what Kafka calls it, and nothing of our insides", () => {
  const problem = problemOf({ ok: false, error: "TOPIC_ALREADY_EXISTS" });
  assert.deepEqual(problem, {
    status: 409,
    title: "Topic already exists",
    detail: "Topic already exists",
    more: { kafka: { code: 36, name: "TOPIC_ALREADY_EXISTS", retriable: false } },
  });
});
