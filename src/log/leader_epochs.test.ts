import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHex } from "../lib/bytes.ts";
import { decodeEpochs, encodeEpochs, LeaderEpochs } from "./leader_epochs.ts";

function history(): LeaderEpochs {
  const epochs = new LeaderEpochs();
  epochs.assign(0, 104);
  epochs.assign(1, 106);
  epochs.assign(1, 107);
  epochs.assign(4, 110);
  return epochs;
}

test("each epoch is kept once, where it began", () => {
  assert.deepEqual(history().entries, [
    { epoch: 0, startOffset: 104 },
    { epoch: 1, startOffset: 106 },
    { epoch: 4, startOffset: 110 },
  ]);
});

test("an epoch that wrote nothing is replaced, an older one is not learnt", () => {
  const epochs = history();
  epochs.assign(5, 110);
  epochs.assign(3, 120);
  assert.deepEqual(epochs.entries.at(-1), { epoch: 5, startOffset: 110 });
});

test("the end of an epoch is the start of the next known one", () => {
  const epochs = history();
  assert.deepEqual(epochs.endOf(0, 120), { leaderEpoch: 0, endOffset: 106 });
  assert.deepEqual(epochs.endOf(3, 120), { leaderEpoch: 1, endOffset: 110 });
  assert.deepEqual(epochs.endOf(4, 120), { leaderEpoch: 4, endOffset: 120 });
  assert.deepEqual(epochs.endOf(5, 120), { leaderEpoch: -1, endOffset: -1 });
  assert.deepEqual(epochs.endOf(-1, 120), { leaderEpoch: -1, endOffset: -1 });
});

test("the epoch at an offset", () => {
  const epochs = history();
  assert.deepEqual([103, 104, 109, 500].map((offset) => epochs.at(offset)), [-1, 0, 1, 4]);
});

test("truncation keeps the epoch that covers the new start", () => {
  const epochs = history();
  epochs.truncateFromStart(108);
  assert.deepEqual(epochs.entries, [{ epoch: 1, startOffset: 108 }, {
    epoch: 4,
    startOffset: 110,
  }]);
  epochs.truncateFromEnd(110);
  assert.deepEqual(epochs.entries, [{ epoch: 1, startOffset: 108 }]);
});

test("the checkpoint's bytes", () => {
  const entries = [{ epoch: 1, startOffset: 106 }];
  const value = encodeEpochs(entries);
  assert.deepEqual(value, fromHex("00000000 00000001 00000001 000000000000006a"));
  assert.deepEqual(decodeEpochs(value), entries);
  assert.throws(() => decodeEpochs(value.subarray(0, 15)), /1 entries/);
});
