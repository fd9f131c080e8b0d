import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { createCodecs } from "../adapters/codecs.ts";
import { REFUSED_SEQUENCE_MS } from "../lib/limits.ts";
import { ZERO_UUID } from "../lib/uuid.ts";
import { buildBatch } from "../protocol/record_batch.ts";
import { RefusedSequences } from "./refused_sequences.ts";

const codecs = createCodecs();

function batch(producerEpoch: number, baseSequence: number): Uint8Array {
  const records = [{ key: null, value: null, headers: [], timestampMs: 0 }];
  return buildBatch({ records, codec: null, codecs, producerId: 7, producerEpoch, baseSequence });
}

function world() {
  const clock = createFakeClock();
  const refused = new RefusedSequences(clock);
  return {
    clock,
    note: (epoch: number, sequence: number) => refused.note(ZERO_UUID, 0, batch(epoch, sequence)),
    missing: (epoch: number, sequence: number) =>
      refused.missingBefore(ZERO_UUID, 0, batch(epoch, sequence)),
  };
}

test("a late batch of an older producer epoch does not take the guard of the live producer away", () => {
  const { note, missing } = world();
  note(1, 0);
  note(0, 40);
  assert.equal(missing(1, 5), 0);
  assert.equal(missing(0, 45), null, "the log judges what an older epoch sends");
  assert.equal(missing(1, 5), 0);
  assert.equal(missing(1, 0), null);
  assert.equal(missing(1, 5), null, "it has come");
});

test("a newer producer epoch takes the place of an older one", () => {
  const { note, missing } = world();
  note(0, 40);
  note(1, 0);
  assert.equal(missing(1, 5), 0);
  assert.equal(missing(0, 45), null);
});

test("the lowest refused sequence is waited for, and not for ever", async () => {
  const { clock, note, missing } = world();
  note(0, 5);
  note(0, 0);
  note(0, 10);
  assert.equal(missing(0, 5), 0);
  await clock.advance(REFUSED_SEQUENCE_MS);
  assert.equal(missing(0, 5), null);
  note(1, 0);
  await clock.advance(REFUSED_SEQUENCE_MS);
  note(0, 8);
  assert.equal(missing(0, 9), 8, "what is too old to hold anybody back is no reason either");
});
