/** Codes against well-known values, and the way back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ERROR_CODES, errorCode, type ErrorName, errorName, isRetriable } from "./error_code.ts";

test("codes run from -1 to 133 without a gap, and each has one name", () => {
  const codes = Object.values(ERROR_CODES).toSorted((a, b) => a - b);
  assert.deepEqual(codes, Array.from({ length: 135 }, (_, i) => i - 1));
  for (const name of Object.keys(ERROR_CODES) as ErrorName[]) {
    assert.equal(errorName(errorCode(name)), name);
  }
});

test("well-known codes", () => {
  assert.equal(errorCode("NONE"), 0);
  assert.equal(errorCode("NOT_LEADER_OR_FOLLOWER"), 6);
  assert.equal(errorCode("UNSUPPORTED_VERSION"), 35);
  assert.equal(errorCode("OUT_OF_ORDER_SEQUENCE_NUMBER"), 45);
  assert.equal(errorCode("MEMBER_ID_REQUIRED"), 79);
  assert.equal(errorCode("UNKNOWN_TOPIC_ID"), 100);
  assert.equal(errorName(999), "UNKNOWN_SERVER_ERROR");
});

test("retriable as in the Java client", () => {
  for (const name of ["NOT_ENOUGH_REPLICAS", "COORDINATOR_LOAD_IN_PROGRESS"] as const) {
    assert.equal(isRetriable(name), true);
  }
  for (const name of ["NONE", "UNKNOWN_SERVER_ERROR", "INVALID_RECORD"] as const) {
    assert.equal(isRetriable(name), false);
  }
});
