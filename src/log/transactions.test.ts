/** Transactions in one log: verification, markers, the last stable offset and what readers are told. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  accepted,
  appendInTransaction,
  appendMarker,
  contents,
  createHarness,
  type Harness,
  HOUR_MS,
  outcome,
  put,
  readCommitted,
  readFrom,
} from "../../tests/support/partition_harness.ts";
import { buildMarker, readMarker } from "../protocol/control_record.ts";
import { isControlBatch, readBatchHeader } from "../protocol/record_batch.ts";
import type { VerificationAsk } from "./partition_log.ts";

const ASK: VerificationAsk = {
  producerId: 7,
  producerEpoch: 3,
  baseSequence: 0,
  isTransactionsV2: false,
};

function transactional(h: Harness, first: number, last: number, over = {}): Uint8Array {
  return h.sequenced(first, last, { ...over, transactional: true });
}

function settled(h: Harness): Promise<void> {
  return accepted(h.log.append(h.batch(["settle"]))).durable;
}

describe("verification", () => {
  test("a transaction opens only with one, and goes on without", async () => {
    const h = await createHarness();
    assert.equal(outcome(h.log.append(transactional(h, 0, 0))), "INVALID_TXN_STATE");
    const verification = h.log.verify(ASK);
    assert.ok(verification !== null);
    assert.equal(outcome(h.log.append(transactional(h, 0, 0), verification)), "new @0");
    assert.equal(h.log.verify({ ...ASK, baseSequence: 1 }), null, "it is open");
    assert.equal(outcome(h.log.append(transactional(h, 1, 1))), "new @1");
  });

  test("a marker in between makes it void, also when the same producer asks again", async () => {
    const h = await createHarness();
    const early = h.log.verify(ASK)!;
    accepted(appendMarker(h));
    assert.equal(outcome(h.log.append(transactional(h, 0, 0), early)), "INVALID_TXN_STATE");
    const late = h.log.verify(ASK)!;
    assert.notEqual(late, early);
    assert.equal(outcome(h.log.append(transactional(h, 0, 0), early)), "INVALID_TXN_STATE");
    assert.equal(outcome(h.log.append(transactional(h, 0, 0), late)), "new @1");
  });

  test("it counts by identity and for its own producer", async () => {
    const h = await createHarness();
    const mine = h.log.verify(ASK)!;
    assert.equal(outcome(h.log.append(transactional(h, 0, 0), { ...mine })), "INVALID_TXN_STATE");
    const other = transactional(h, 0, 0, { producerId: 8 });
    assert.equal(outcome(h.log.append(other, mine)), "INVALID_TXN_STATE");
  });

  test("requests in flight share one; a higher sequence waits for the lowest that asked", async () => {
    const h = await createHarness();
    const first = h.log.verify({ ...ASK, baseSequence: 5 })!;
    assert.equal(h.log.verify({ ...ASK, baseSequence: 3 }), first);
    assert.equal(
      outcome(h.log.append(transactional(h, 5, 5), first)),
      "OUT_OF_ORDER_SEQUENCE_NUMBER",
    );
    assert.equal(outcome(h.log.append(transactional(h, 3, 4), first)), "new @0");
    assert.equal(outcome(h.log.append(transactional(h, 5, 5))), "new @2");
  });

  test("a higher epoch begins anew", async () => {
    const h = await createHarness();
    h.log.verify({ ...ASK, baseSequence: 0 });
    const newer = h.log.verify({ ...ASK, producerEpoch: 4, baseSequence: 9 })!;
    const batch = transactional(h, 9, 9, { producerEpoch: 4 });
    assert.equal(outcome(h.log.append(batch, newer)), "new @0");
  });

  test("none is given out where the batch will be refused anyway", async () => {
    const h = await createHarness();
    await put(h.log, h.sequenced(0, 0));
    assert.equal(h.log.verify({ ...ASK, producerEpoch: 2 }), null);
    const old = transactional(h, 0, 0, { producerEpoch: 2 });
    assert.equal(outcome(h.log.append(old)), "INVALID_PRODUCER_EPOCH");
    await h.log.close();
    assert.equal(h.log.verify(ASK), null);
    assert.equal(outcome(h.log.append(transactional(h, 0, 0))), "NOT_LEADER_OR_FOLLOWER");
  });

  test("one that nobody used is forgotten with idle producers, and not before", async () => {
    const h = await createHarness();
    const verification = h.log.verify(ASK)!;
    h.nowMs += HOUR_MS - 1;
    await h.log.tick(h.nowMs);
    assert.equal(h.log.verify(ASK), verification);
    h.nowMs += 1;
    await h.log.tick(h.nowMs);
    assert.notEqual(h.log.verify(ASK), verification);
  });
});

describe("admission", () => {
  test("a resent batch of a transaction is a duplicate, open or ended", async () => {
    const h = await createHarness();
    accepted(appendInTransaction(h, 0, 4));
    assert.equal(outcome(h.log.append(transactional(h, 0, 4))), "duplicate @0");
    accepted(appendMarker(h, { commit: true }));
    assert.equal(outcome(h.log.append(transactional(h, 0, 4))), "duplicate @0");
    assert.equal(outcome(appendInTransaction(h, 5, 5)), "new @6");
  });

  test("a batch without transaction of a producer that has one open is refused", async () => {
    const h = await createHarness();
    accepted(appendInTransaction(h, 0, 0));
    assert.equal(outcome(h.log.append(h.sequenced(1, 1))), "INVALID_TXN_STATE");
    accepted(appendMarker(h));
    assert.equal(outcome(h.log.append(h.sequenced(1, 1))), "new @2");
  });

  test("clients write no markers, and no transactions without a producer id", async () => {
    const h = await createHarness();
    const marker = { producerId: 7, producerEpoch: 3, coordinatorEpoch: 0, commit: true };
    const batch = buildMarker({ ...marker, timestampMs: h.nowMs }, h.env.codecs);
    assert.equal(outcome(h.log.append(batch)), "INVALID_RECORD");
    const nobody = h.batch(["a"], { transactional: true });
    assert.equal(outcome(h.log.append(nobody)), "INVALID_RECORD");
    assert.equal(h.log.logEndOffset, 0);
  });
});

describe("markers", () => {
  test("one takes an offset, has the log's epoch, and is readable in both isolations", async () => {
    const h = await createHarness();
    accepted(appendInTransaction(h, 0, 1));
    const marker = accepted(appendMarker(h, { commit: true, coordinatorEpoch: 9 }));
    assert.deepEqual([marker.baseOffset, marker.lastOffset, marker.duplicate], [2, 2, false]);
    await marker.durable;
    for (const read of [await readFrom(h.log, 2), await readCommitted(h.log, 2)]) {
      const header = readBatchHeader(read.batches[0]!);
      assert.ok(isControlBatch(header));
      assert.deepEqual([header.baseOffset, header.partitionLeaderEpoch], [2, 1]);
      assert.deepEqual(readMarker(read.batches[0]!), { commit: true, coordinatorEpoch: 9 });
    }
  });

  test("an older producer epoch is INVALID_PRODUCER_EPOCH, the same or a higher one is written", async () => {
    const h = await createHarness();
    accepted(appendInTransaction(h, 0, 0));
    assert.equal(outcome(appendMarker(h, { producerEpoch: 2 })), "INVALID_PRODUCER_EPOCH");
    assert.equal(outcome(appendMarker(h, { producerEpoch: 3 })), "new @1");
    assert.equal(outcome(appendMarker(h, { producerEpoch: 5 })), "new @2");
    assert.equal(
      outcome(appendInTransaction(h, 0, 0, { producerEpoch: 4 })),
      "INVALID_PRODUCER_EPOCH",
    );
  });

  test("transactions v2: the epoch must be higher; the very same marker again is no new one", async () => {
    const h = await createHarness();
    const v2 = { isTransactionsV2: true };
    accepted(appendInTransaction(h, 0, 0, v2));
    assert.equal(outcome(appendMarker(h, { ...v2, producerEpoch: 3 })), "INVALID_PRODUCER_EPOCH");
    assert.equal(outcome(appendMarker(h, { ...v2, producerEpoch: 4 })), "new @1");
    const again = accepted(appendMarker(h, { ...v2, producerEpoch: 4 }));
    assert.ok(again.duplicate);
    assert.equal(h.log.logEndOffset, 2);
    await again.durable;
    assert.equal(h.log.highWatermark, 2);
    accepted(appendInTransaction(h, 0, 0, { ...v2, producerEpoch: 4 }));
    const late = { ...v2, producerEpoch: 4 };
    assert.equal(
      outcome(appendMarker(h, late)),
      "INVALID_PRODUCER_EPOCH",
      "it would end the next one",
    );
    accepted(appendMarker(h, { ...v2, producerEpoch: 5 }));
    assert.equal(outcome(appendMarker(h, late)), "INVALID_PRODUCER_EPOCH");
  });

  test("an older coordinator is TRANSACTION_COORDINATOR_FENCED", async () => {
    const h = await createHarness();
    accepted(appendInTransaction(h, 0, 0));
    accepted(appendMarker(h, { coordinatorEpoch: 5 }));
    accepted(appendInTransaction(h, 1, 1));
    assert.equal(
      outcome(appendMarker(h, { coordinatorEpoch: 4 })),
      "TRANSACTION_COORDINATOR_FENCED",
    );
    assert.equal(outcome(appendMarker(h, { coordinatorEpoch: 5 })), "new @3");
    await settled(h);
    await h.crash();
    assert.equal(
      outcome(appendMarker(h, { coordinatorEpoch: 4 })),
      "TRANSACTION_COORDINATOR_FENCED",
    );
  });

  test("a producer without data here is fenced by its marker, and aborts nothing", async () => {
    const h = await createHarness();
    accepted(appendMarker(h, { producerEpoch: 6 }));
    await settled(h);
    assert.deepEqual((await readCommitted(h.log, 0)).aborted, []);
    assert.equal(
      outcome(appendInTransaction(h, 0, 0, { producerEpoch: 5 })),
      "INVALID_PRODUCER_EPOCH",
    );
    assert.equal(outcome(appendInTransaction(h, 0, 0, { producerEpoch: 6 })), "new @2");
  });

  test("the active producers show the state of each", async () => {
    const h = await createHarness();
    accepted(appendInTransaction(h, 0, 1));
    accepted(appendMarker(h, { producerId: 9, producerEpoch: 1, coordinatorEpoch: 4 }));
    const common = { lastTimestampMs: h.nowMs };
    assert.deepEqual(h.log.activeProducers(), [
      {
        ...common,
        producerId: 7,
        producerEpoch: 3,
        lastSequence: 1,
        coordinatorEpoch: -1,
        currentTxnFirstOffset: 0,
      },
      {
        ...common,
        producerId: 9,
        producerEpoch: 1,
        lastSequence: -1,
        coordinatorEpoch: 4,
        currentTxnFirstOffset: null,
      },
    ]);
  });
});

describe("last stable offset", () => {
  test("it is the first open transaction's start, and readers of committed records stop there", async () => {
    const h = await createHarness();
    await put(h.log, h.batch(["plain"]));
    accepted(appendInTransaction(h, 0, 1));
    await settled(h);
    assert.deepEqual([h.log.lastStableOffset, h.log.highWatermark], [1, 4]);
    const committed = await readCommitted(h.log, 0);
    assert.equal(committed.batches.length, 1);
    assert.deepEqual([committed.lastStableOffset, committed.highWatermark], [1, 4]);
    assert.deepEqual((await readCommitted(h.log, 1)).batches, []);
    assert.deepEqual((await readCommitted(h.log, 3)).batches, []);
    assert.equal((await readFrom(h.log, 0)).batches.length, 3);
    await accepted(appendMarker(h, { commit: true })).durable;
    assert.equal(h.log.lastStableOffset, 5);
    assert.equal((await readCommitted(h.log, 1)).batches.length, 3);
  });

  test("a marker counts once it is durable, and listeners hear of it", async () => {
    const h = await createHarness();
    h.streams.durability = "manual";
    accepted(appendInTransaction(h, 0, 0));
    accepted(h.log.append(h.batch(["behind"])));
    h.streams.confirm();
    const marker = accepted(appendMarker(h));
    assert.deepEqual([h.log.lastStableOffset, h.log.highWatermark], [0, 2]);
    const heard: number[] = [];
    h.log.onAdvance(() => heard.push(h.log.lastStableOffset));
    h.streams.confirm();
    await marker.durable;
    assert.equal(heard.at(-1), 3);
  });

  test("ended transactions settle one by one, in whatever order they began", async () => {
    for (
      const [ends, expected] of [
        [[7, 8], [0, 1, 4]],
        [[8, 7], [0, 0, 4]],
      ] as const
    ) {
      const h = await createHarness();
      h.streams.durability = "manual";
      accepted(appendInTransaction(h, 0, 0, { producerId: 7 }));
      accepted(appendInTransaction(h, 0, 0, { producerId: 8 }));
      for (const producerId of ends) accepted(appendMarker(h, { producerId }));
      h.streams.confirm(2);
      const seen = [h.log.lastStableOffset];
      for (let i = 0; i < 2; i++) {
        h.streams.confirm(1);
        seen.push(h.log.lastStableOffset);
      }
      assert.deepEqual(seen, expected);
    }
  });

  test("nothing of a transaction is stable while only part of it is durable", async () => {
    const h = await createHarness();
    h.streams.durability = "manual";
    accepted(h.log.append(h.batch(["a"])));
    accepted(appendInTransaction(h, 0, 0));
    h.streams.confirm(1);
    assert.deepEqual([h.log.lastStableOffset, h.log.highWatermark], [1, 1]);
  });

  test("a log start that passes an open transaction takes the last stable offset along", async () => {
    const h = await createHarness();
    accepted(appendInTransaction(h, 0, 0));
    await settled(h);
    assert.deepEqual(await h.log.deleteRecords(2), { ok: true, logStartOffset: 2 });
    assert.equal(h.log.lastStableOffset, 2);
    await put(h.log, h.batch(["c"]));
    assert.deepEqual([h.log.lastStableOffset, h.log.highWatermark], [2, 3]);
    await h.reopen();
    assert.deepEqual([h.log.lastStableOffset, h.log.highWatermark], [2, 3]);
    await accepted(appendMarker(h)).durable;
    assert.equal(h.log.lastStableOffset, 4);
  });

  test("an open transaction is never idle for too long", async () => {
    const h = await createHarness();
    accepted(appendInTransaction(h, 0, 0));
    await settled(h);
    h.nowMs += 100 * HOUR_MS;
    await h.log.tick(h.nowMs);
    assert.equal(h.log.lastStableOffset, 0);
    assert.equal(outcome(h.log.append(transactional(h, 1, 1))), "new @2");
  });
});

describe("what was aborted", () => {
  test("a reader is told of all that overlaps what it gets, in the order of their starts", async () => {
    const h = await createHarness();
    accepted(appendInTransaction(h, 0, 0, { producerId: 1 })); // 0
    accepted(appendInTransaction(h, 0, 0, { producerId: 2 })); // 1
    accepted(appendInTransaction(h, 0, 0, { producerId: 3 })); // 2
    accepted(appendMarker(h, { producerId: 2 })); // 3
    accepted(appendMarker(h, { producerId: 3, commit: true })); // 4
    accepted(appendMarker(h, { producerId: 1 })); // 5
    accepted(appendInTransaction(h, 1, 1, { producerId: 2 })); // 6
    accepted(appendMarker(h, { producerId: 2 })); // 7
    await settled(h); // 8
    const one = { producerId: 1, firstOffset: 0 };
    const two = { producerId: 2, firstOffset: 1 };
    const again = { producerId: 2, firstOffset: 6 };
    const cases: readonly (readonly [number, number, readonly unknown[]])[] = [
      [0, 2 ** 30, [one, two, again]],
      [4, 2 ** 30, [one, again]],
      [4, 1, [one]],
      [3, 1, [one, two]],
      [0, 1, [one]],
      [6, 1, [again]],
      [8, 2 ** 30, []],
    ];
    for (const from of ["memory", "index", "log"] as const) {
      if (from === "index") await h.reopen();
      if (from === "log") await h.crash();
      for (const [offset, bytesMax, expected] of cases) {
        const { aborted } = await readCommitted(h.log, offset, bytesMax);
        assert.deepEqual(aborted, expected, `${from}: from ${offset}, ${bytesMax} bytes`);
      }
    }
    assert.deepEqual((await readFrom(h.log, 0)).aborted, []);
    assert.equal((await contents(h)).length, 9);
  });

  /** Aborts one transaction per step, beside one that stays open for each ten steps. */
  async function manyAborted(h: Harness, count: number): Promise<void> {
    const next = new Map<number, number>();
    const begin = (producerId: number) => {
      const sequence = next.get(producerId) ?? 0;
      next.set(producerId, sequence + 1);
      accepted(appendInTransaction(h, sequence, sequence, { producerId }));
    };
    for (let i = 0; i < count; i++) {
      if (i % 10 === 0) begin(2);
      begin(1);
      accepted(appendMarker(h, { producerId: 1 }));
      if (i % 10 === 9) accepted(appendMarker(h, { producerId: 2 }));
      if (i % 100 === 0) await h.log.tick(h.nowMs);
    }
    await settled(h);
    await h.log.tick(h.nowMs);
  }

  test("old ones are found in the index, whose size in memory is bounded", async () => {
    const h = await createHarness({ segmentBytes: 20_000 });
    await manyAborted(h, 2_000);
    for (const restart of [false, true]) {
      if (restart) await h.reopen();
      // Ten steps take 22 offsets: the long one's first, ten pairs, the long one's marker.
      for (const block of [0, 1, 57, 120, 199]) {
        const base = block * 22;
        const { aborted } = await readCommitted(h.log, base + 1, 1);
        assert.deepEqual(aborted, [
          { producerId: 2, firstOffset: base },
          { producerId: 1, firstOffset: base + 1 },
        ]);
        const within = await readCommitted(h.log, base + 20, 1);
        assert.deepEqual(within.aborted[0], { producerId: 2, firstOffset: base });
      }
      const all = await readCommitted(h.log, 0);
      assert.equal(all.aborted.length, 2_200);
      const starts = all.aborted.map(({ firstOffset }) => firstOffset);
      assert.deepEqual(starts, starts.toSorted((a, b) => a - b));
    }
  });

  test("readers near the end read no index, and a cold index is a miss and no empty answer", async () => {
    const h = await createHarness();
    await manyAborted(h, 2_000);
    h.streams.cached = false;
    const cold = { bytesMax: 1, isolation: "committed", cacheOnly: true } as const;
    assert.equal(await h.log.read(1, cold), null);
    h.streams.cached = true;
    const reads: number[] = [];
    h.streams.fail = (op, _, stream) => {
      if (op === "fetch") reads.push(stream ?? -1);
      return null;
    };
    const near = h.log.logEndOffset - 100;
    assert.ok((await readCommitted(h.log, near)).aborted.length > 40);
    assert.equal(reads.length, 1, "the log alone");
    await readCommitted(h.log, 1, 1);
    assert.ok(reads.length > 2, "the index too");
    const index = reads.at(-1);
    h.streams.fail = (op, _, stream) =>
      op === "fetch" && stream === index ? new Error("the store fails") : null;
    await assert.rejects(readCommitted(h.log, 1, 1), /the store fails/);
  });

  test("deleted segments give their part of the index back", async () => {
    const h = await createHarness({ segmentBytes: 20_000 });
    await manyAborted(h, 2_000);
    await h.reopen();
    const index = h.streams.ids.at(-1)!;
    const before = h.streams.records(index).length;
    await h.log.deleteRecords(h.log.highWatermark - 50);
    assert.ok(h.streams.records(index).length < before / 4);
    const { aborted } = await readCommitted(h.log, h.log.logStartOffset);
    assert.ok(aborted.length > 20);
    await h.reopen();
    assert.deepEqual((await readCommitted(h.log, h.log.logStartOffset)).aborted, aborted);
  });

  test("a log without aborted transactions has no index, and an idle one writes nothing", async () => {
    const h = await createHarness();
    accepted(appendInTransaction(h, 0, 0));
    accepted(appendMarker(h, { commit: true }));
    await settled(h);
    await h.reopen();
    assert.equal(h.streams.ids.length, 2, "meta and log");
    accepted(appendInTransaction(h, 1, 1));
    accepted(appendMarker(h));
    await settled(h);
    await h.reopen();
    assert.equal(h.streams.ids.length, 3);
    const { appends } = h.streams;
    await h.log.tick(h.nowMs);
    await h.reopen();
    assert.equal(h.streams.appends, appends);
  });
});
