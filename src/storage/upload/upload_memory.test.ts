import assert from "node:assert/strict";
import { test } from "node:test";
import { SINGLE_PUT_BYTES_MAX, UPLOAD_MEMORY_BYTES_MIN } from "../../lib/limits.ts";
import { UploadMemory } from "./upload_memory.ts";

test("one large buffer is kept for the next object, others are freed", () => {
  const memory = new UploadMemory();
  const [first, second] = [memory.take(UPLOAD_MEMORY_BYTES_MIN), memory.take(SINGLE_PUT_BYTES_MAX)];
  assert.equal(first.length, UPLOAD_MEMORY_BYTES_MIN);
  assert.notEqual(first.buffer, second.buffer);
  memory.give(second);
  memory.give(first);
  assert.equal(memory.take(UPLOAD_MEMORY_BYTES_MIN + 1).buffer, second.buffer);
  const small = memory.take(10);
  assert.equal(small.buffer.byteLength, 10);
  memory.give(small);
});
