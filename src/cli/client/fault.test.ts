import assert from "node:assert/strict";
import { test } from "node:test";
import { brokerFault, checkCode } from "./fault.ts";

test("one line: what, the broker's word and its message, what to do", () => {
  const fault = brokerFault("create topic t", "TOPIC_ALREADY_EXISTS", {
    message: "Topic 't' already exists.",
  });
  assert.equal(
    fault.message,
    "Cannot create topic t: TOPIC_ALREADY_EXISTS (Topic 't' already exists): " +
      "--if-not-exists accepts one that is there",
  );
  assert.equal(brokerFault("x", "INVALID_RECORD").message, "Cannot x: INVALID_RECORD");
});

test("exit codes tell what is missing from what was refused and what came too late", () => {
  assert.equal(brokerFault("x", "UNKNOWN_TOPIC_OR_PARTITION").exit, 4);
  assert.equal(brokerFault("x", "GROUP_ID_NOT_FOUND").exit, 4);
  assert.equal(brokerFault("x", "REQUEST_TIMED_OUT").exit, 3);
  assert.equal(brokerFault("x", "INVALID_CONFIG").exit, 1);
});

test("what metadata does not know is final; a leader may only not know it yet", () => {
  assert.equal(brokerFault("x", "UNKNOWN_TOPIC_OR_PARTITION").retriable, false);
  assert.equal(brokerFault("x", "UNKNOWN_TOPIC_OR_PARTITION", { atLeader: true }).retriable, true);
  assert.equal(brokerFault("x", "NOT_LEADER_OR_FOLLOWER").retriable, true);
  assert.equal(brokerFault("x", "INVALID_CONFIG", { atLeader: true }).retriable, false);
  assert.doesNotThrow(() => checkCode("x", 0));
  assert.throws(() => checkCode("x", 3), /UNKNOWN_TOPIC_OR_PARTITION/);
});
