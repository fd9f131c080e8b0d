import assert from "node:assert/strict";
import { test } from "node:test";
import { REFUSED_SEQUENCE_MS } from "../lib/limits.ts";
import { firstSequence, ProducerState, type StoredBatch } from "./producer_state.ts";

const HOUR_MS = 3_600_000;

/** b(first..last)@offset of the recovery scenarios. */
function b(first: number, last: number, baseOffset = 0, over: Partial<StoredBatch> = {}) {
  return {
    producerId: 7,
    producerEpoch: 3,
    baseSequence: first,
    lastOffsetDelta: (last - first + 2 ** 31) % 2 ** 31,
    isTransactional: false,
    isControl: false,
    marker: null,
    baseOffset,
    maxTimestamp: 1000,
    ...over,
  };
}

function kind(state: ProducerState, batch: StoredBatch, monotonicMs = 0): string {
  const admission = state.admit(batch, monotonicMs);
  return admission.kind === "refuse" ? admission.error : admission.kind;
}

function stateOf(...batches: StoredBatch[]): ProducerState {
  const state = new ProducerState();
  for (const batch of batches) state.apply(batch, 0);
  return state;
}

test("no state accepts any sequence", () => {
  assert.equal(kind(new ProducerState(), b(100, 104)), "accept");
});

test("batches without a producer id pass and leave no trace", () => {
  const state = new ProducerState();
  const batch = b(-1, -1, 0, { producerId: -1, producerEpoch: -1, baseSequence: -1 });
  assert.equal(kind(state, batch), "accept");
  state.apply(batch, 0);
  assert.equal(state.size, 0);
});

test("the next sequence is accepted, a gap and an overlap are not", () => {
  const state = stateOf(b(0, 4));
  assert.equal(kind(state, b(5, 9)), "accept");
  assert.equal(kind(state, b(6, 9)), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal(kind(state, b(3, 9)), "OUT_OF_ORDER_SEQUENCE_NUMBER");
});

test("scenario 17: the last five batches are duplicates, the one before is out of order", () => {
  const batches = [0, 1, 2, 3, 4, 5].map((n) => b(n * 2, n * 2 + 1, n * 2));
  const state = stateOf(...batches);
  for (const batch of batches.slice(1)) {
    const admission = state.admit(batch, 0);
    assert.ok(admission.kind === "duplicate" && admission.baseOffset === batch.baseOffset);
  }
  assert.equal(kind(state, batches[0]!), "OUT_OF_ORDER_SEQUENCE_NUMBER");
});

test("scenario 18: the same first but another last sequence is never half a duplicate", () => {
  const state = stateOf(b(0, 4));
  assert.equal(kind(state, b(0, 3)), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal(kind(state, b(0, 5)), "OUT_OF_ORDER_SEQUENCE_NUMBER");
});

test("scenarios 19 to 22: sequences wrap after 2147483647", () => {
  const max = 2 ** 31 - 1;
  const ended = stateOf(b(2147483640, max));
  assert.equal(kind(ended, b(0, 3)), "accept");
  assert.equal(kind(ended, b(1, 1)), "OUT_OF_ORDER_SEQUENCE_NUMBER");

  const straddling = stateOf(b(2147483646, 1));
  assert.equal(kind(straddling, b(2147483646, 1)), "duplicate");
  assert.equal(kind(straddling, b(2, 2)), "accept");
  const [last] = straddling.get(7)!.batches;
  assert.equal(last!.lastSequence, 1);
  assert.equal(firstSequence(last!), 2147483646);
});

test("scenarios 23 and 24: epochs", () => {
  const state = stateOf(b(0, 4), b(0, 1, 5, { producerEpoch: 4 }));
  assert.equal(kind(state, b(0, 4)), "INVALID_PRODUCER_EPOCH");
  assert.equal(kind(state, b(5, 5, 0, { producerEpoch: 5 })), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal(kind(state, b(0, 0, 0, { producerEpoch: 5 })), "accept");
});

test("scenario 25: replay takes an epoch that goes back, and counts it", () => {
  const state = stateOf(b(0, 0, 0, { producerEpoch: 5 }), b(0, 0, 1, { producerEpoch: 4 }));
  assert.equal(state.get(7)!.epoch, 4);
  assert.equal(state.oddities, 1);
});

test("scenario 26: only a marker is known", () => {
  const marker = b(0, 0, 0, {
    producerEpoch: 6,
    baseSequence: -1,
    isControl: true,
    marker: { commit: true, coordinatorEpoch: 0 },
  });
  const state = stateOf(marker);
  assert.deepEqual(state.get(7)!.batches, []);
  assert.equal(kind(state, b(0, 1, 1, { producerEpoch: 6 })), "accept");
  assert.equal(kind(state, b(3, 4, 1, { producerEpoch: 6 })), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal(kind(state, b(0, 1, 1, { producerEpoch: 5 })), "INVALID_PRODUCER_EPOCH");
});

test("a marker ends the transaction and keeps the batches of its epoch", () => {
  const state = stateOf(b(0, 4, 10, { isTransactional: true }));
  assert.equal(state.get(7)!.currentTxnFirstOffset, 10);
  assert.equal(kind(state, b(5, 5, 15)), "INVALID_TXN_STATE");
  state.apply(
    b(0, 0, 15, {
      isControl: true,
      marker: { commit: true, coordinatorEpoch: 0 },
      isTransactional: true,
      baseSequence: -1,
    }),
    0,
  );
  assert.equal(state.get(7)!.currentTxnFirstOffset, null);
  assert.equal(kind(state, b(5, 5, 16)), "accept");
});

test("expiry counts from our append time and spares open transactions", () => {
  const state = new ProducerState();
  state.apply(b(0, 0, 0, { maxTimestamp: 10 * HOUR_MS }), HOUR_MS);
  state.apply(b(0, 0, 1, { producerId: 8, isTransactional: true }), HOUR_MS);
  assert.equal(state.expire(2 * HOUR_MS - 1, HOUR_MS), 0);
  assert.equal(state.expire(0, HOUR_MS), 0);
  assert.equal(state.expire(2 * HOUR_MS, HOUR_MS), 1);
  assert.deepEqual([...state.entries()].map(({ producerId }) => producerId), [8]);
});

test("after a refusal later sequences wait for it, but not for ever", () => {
  const state = new ProducerState();
  state.refuse(b(0, 4), 0);
  state.refuse(b(5, 9), 1);
  assert.equal(kind(state, b(5, 9), 2), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal(kind(state, b(5, 9, 0, { producerId: 8 }), 2), "accept");
  assert.equal(kind(state, b(5, 9, 0, { producerEpoch: 4 }), 2), "accept");
  assert.equal(kind(state, b(0, 4), 2), "accept");
  assert.equal(kind(state, b(5, 9), REFUSED_SEQUENCE_MS), "accept");
});

test("a refusal of an older epoch does not open the way for the newer one's later sequences", () => {
  const state = new ProducerState();
  state.refuse(b(0, 4), 0);
  state.refuse(b(0, 4, 0, { producerEpoch: 2 }), 1);
  assert.equal(kind(state, b(5, 9), 2), "OUT_OF_ORDER_SEQUENCE_NUMBER");
});

test("a refused sequence that came in frees the later ones", () => {
  const state = new ProducerState();
  state.refuse(b(0, 4), 0);
  state.apply(b(0, 4), 0);
  assert.equal(kind(state, b(5, 9), 1), "accept");
});

test("a jump of the wall clock makes nobody idle, and keeps nobody for longer", () => {
  const state = new ProducerState();
  const now = 1_700_000_000_000;
  state.followClock(0, 5_000);
  state.apply(b(0, 0), 0);
  // A machine without a clock of its own learns the date a minute after its start.
  state.followClock(now, 65_000);
  assert.equal(state.expire(now, HOUR_MS), 0);
  state.followClock(now + HOUR_MS, 65_000 + HOUR_MS);
  assert.equal(state.expire(now + HOUR_MS, HOUR_MS), 1);
  // Set back again: what was appended by the wrong clock is not kept until it is right once more.
  state.apply(b(1, 1), now + HOUR_MS);
  state.followClock(1_000_000, 66_000 + HOUR_MS);
  assert.equal(state.expire(1_000_000 + HOUR_MS, HOUR_MS), 1);
});

test("a jump that is no whole number of milliseconds leaves whole append times", () => {
  const state = new ProducerState();
  const now = 1_700_000_000_000;
  state.followClock(now, 10.25);
  state.apply(b(0, 0), now);
  // Monotonic clocks count fractions; the snapshot of the producers holds an int64.
  state.followClock(now + HOUR_MS, 20.5);
  const [entry] = [...state.entries()];
  assert.ok(Number.isSafeInteger(entry!.appendedMs), `${entry!.appendedMs}`);
});
