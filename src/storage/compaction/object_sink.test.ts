import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { crc32c } from "../../lib/crc32c.ts";
import { FaultError, isFault } from "../../lib/errors.ts";
import { PUT_PART_BYTES, SINGLE_PUT_BYTES_MAX } from "../../lib/limits.ts";
import { createMemoryStore } from "../../object/memory.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import { CompactionBudget } from "./budget.ts";
import { ObjectSink } from "./object_sink.ts";

const KEY = "a/b";
const PIECE = 1_000_003;

function setUp(change: Partial<ObjectStore> = {}) {
  const clock = createFakeClock();
  const memory = createMemoryStore(clock);
  const budget = new CompactionBudget(clock, 1e9);
  const { signal } = new AbortController();
  const open = (size: number) =>
    new ObjectSink({ store: { ...memory, ...change }, budget, signal }, KEY, size);
  return { memory, open };
}

const PATTERN = Uint8Array.from({ length: 251 * 1_000 }, (_, i) => i % 251);

function bytesAt(at: number, count: number): Uint8Array {
  const bytes = new Uint8Array(count);
  for (let done = 0; done < count;) {
    const part = PATTERN.subarray((at + done) % 251).subarray(0, count - done);
    bytes.set(part, done);
    done += part.length;
  }
  return bytes;
}

async function fill(sink: ObjectSink, size: number): Promise<void> {
  for (let at = 0; at < size; at += PIECE) {
    await sink.write(bytesAt(at, Math.min(PIECE, size - at)));
  }
}

describe("object sink", () => {
  for (
    const size of [
      1,
      SINGLE_PUT_BYTES_MAX,
      SINGLE_PUT_BYTES_MAX + 1,
      3 * PUT_PART_BYTES,
      3 * PUT_PART_BYTES - 1,
    ]
  ) {
    test(`${size} bytes in pieces that no part divides`, async () => {
      const { memory, open } = setUp();
      const sink = open(size);
      await fill(sink, size);
      const crc = await sink.finish();
      const got = await memory.get(KEY);
      assert.equal(got!.bytes.length, size);
      assert.equal(crc32c(got!.bytes), crc);
      assert.equal(got!.bytes[size - 1], (size - 1) % 251);
    });
  }

  test("an upload that fails ends the writer, whichever of them comes first", async () => {
    const down = new FaultError("store-unavailable", "down", { retriable: true });
    const size = 4 * PUT_PART_BYTES;
    for (const parts of [0, 1, 3]) {
      const { memory, open } = setUp({
        async putParts(_, source) {
          let taken = 0;
          for await (const _part of source) {
            taken += 1;
            if (taken > parts) throw down;
          }
        },
      });
      const sink = open(size);
      await assert.rejects(
        async () => {
          await fill(sink, size);
          await sink.finish();
        },
        (error) => isFault(error, "store-unavailable"),
      );
      assert.equal(await memory.get(KEY), null);
    }
  });

  test("a cancelled upload never becomes visible", async () => {
    const { memory, open } = setUp();
    const size = 3 * PUT_PART_BYTES;
    const sink = open(size);
    await sink.write(bytesAt(0, PUT_PART_BYTES));
    sink.cancel(new FaultError("closed", "stopped", { retriable: false }));
    await assert.rejects(sink.write(bytesAt(0, PUT_PART_BYTES)), /stopped/);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(await memory.get(KEY), null);
  });
});
