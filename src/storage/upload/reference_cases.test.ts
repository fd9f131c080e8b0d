/** AutoMQ's ProxyWriterTest, with its sizes: ours puts up to 32 MiB at once, and larger ones in equal parts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { record } from "../../../tests/support/records.ts";
import { objectId } from "../../lib/brand.ts";
import { SINGLE_PUT_BYTES_MAX } from "../../lib/limits.ts";
import { createMemoryStore } from "../../object/memory.ts";
import { ObjectWriter } from "../format/object_writer.ts";
import { writeObject } from "./object_upload.ts";
import { UploadMemory } from "./upload_memory.ts";

const MIB = 1024 * 1024;
const PAYLOADS = [0, 1, 2, 3].map(() => new Uint8Array(11 * MIB));

/** Sizes of the requests for an object with so many MiB of payload. */
async function requestsFor(mib: number): Promise<number[]> {
  const sizes: number[] = [];
  const memory = createMemoryStore(createFakeClock());
  const answer = { created: true, storeNowMs: 0 };
  const store = {
    ...memory,
    put: async (_key: string, body: Uint8Array) => (sizes.push(body.length), answer),
    async putParts(_key: string, parts: AsyncIterable<Uint8Array>) {
      for await (const part of parts) sizes.push(part.length);
    },
  };
  const writer = new ObjectWriter();
  for (let left = mib * MIB, at = 0; left > 0; at++) {
    const bytes = Math.min(left, 11 * MIB);
    writer.add(record(1, at, 1, PAYLOADS[at]!.subarray(0, bytes)));
    left -= bytes;
  }
  const layout = writer.finish();
  const target = { store, clusterId: "C", memory: new UploadMemory(), clock: createFakeClock() };
  await writeObject({ ...target, isUrgent: () => true }, objectId(1), layout);
  assert.equal(sizes.reduce((a, b) => a + b, 0), layout.size);
  return sizes;
}

test("1, 16 and 17 MiB are one PUT, 33 MiB three parts of which two are equal", async () => {
  // AutoMQ 3527: what is small never begins a multipart upload.
  assert.equal((await requestsFor(1)).length, 1);
  assert.equal((await requestsFor(16)).length, 1);
  // Theirs is two parts: a single PUT of its writer ends at 16 MiB.
  assert.equal((await requestsFor(17)).length, 1);
  assert.equal(SINGLE_PUT_BYTES_MAX, 32 * MIB);
  const parts = await requestsFor(33);
  assert.deepEqual(parts.slice(0, 2), [16 * MIB, 16 * MIB]);
  assert.equal(parts.length, 3);
});
