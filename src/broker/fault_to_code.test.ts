import assert from "node:assert/strict";
import { test } from "node:test";
import { type FaultCode, FaultError } from "../lib/errors.ts";
import { isRetriable } from "../protocol/error_code.ts";
import { faultToCode, type Surface } from "./fault_to_code.ts";

const SURFACES: readonly Surface[] = ["produce", "fetch", "coordinator", "admin"];
const CODES: readonly FaultCode[] = [
  "store-unavailable",
  "store-denied",
  "store-full",
  "object-missing",
  "corrupt",
  "data-loss",
  "fenced",
  "closed",
  "timeout",
  "overloaded",
  "aborted",
];

test("every fault but a wrong configuration and what is too large reads as retriable, on every surface", () => {
  for (const code of CODES) {
    const fault = new FaultError(code, "text", { retriable: true });
    for (const surface of SURFACES) {
      assert.ok(isRetriable(faultToCode(fault, surface)), `${code} ${surface}`);
    }
  }
});

test("store trouble is NOT_ENOUGH_REPLICAS for producers, who may not know newer codes", () => {
  const fault = new FaultError("store-unavailable", "text", { retriable: true });
  assert.deepEqual(SURFACES.map((surface) => faultToCode(fault, surface)), [
    "NOT_ENOUGH_REPLICAS",
    "KAFKA_STORAGE_ERROR",
    "COORDINATOR_NOT_AVAILABLE",
    "REQUEST_TIMED_OUT",
  ]);
});

test("what can never be stored is an error on which clients give up", () => {
  const fault = new FaultError("too-large", "text", { retriable: false });
  for (const surface of SURFACES) assert.ok(!isRetriable(faultToCode(fault, surface)), surface);
  assert.equal(faultToCode(fault, "coordinator"), "UNKNOWN_SERVER_ERROR");
});

test("a bug is not a fault", () => {
  assert.throws(() => faultToCode(new TypeError("oops"), "produce"), TypeError);
});
