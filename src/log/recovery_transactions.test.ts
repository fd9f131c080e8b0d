/** The recovery scenarios of transactions and of several brokers, by their numbers in the reference sheet. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { toUtf8, utf8 } from "../lib/bytes.ts";
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
} from "../../tests/support/partition_harness.ts";
import { loseSnapshots, tamperMeta } from "../../tests/support/log_damage.ts";
import { buildMarker } from "../protocol/control_record.ts";
import { assignOffsets } from "../protocol/record_batch.ts";
import { decodeAborted } from "./aborted_transactions.ts";

const X = HOUR_MS;

async function begin(h: Harness, first: number, last: number, over = {}): Promise<string> {
  const result = appendInTransaction(h, first, last, over);
  if (result.ok) await result.durable;
  return outcome(result);
}

async function end(h: Harness, over = {}): Promise<string> {
  const result = appendMarker(h, over);
  if (result.ok) await result.durable;
  return outcome(result);
}

async function abortedFrom(h: Harness, offset: number) {
  return (await readCommitted(h.log, offset)).aborted;
}

/** Everything that was written to the transaction index, which is the newest stream. */
function indexed(h: Harness) {
  const index = h.streams.ids.at(-1)!;
  return h.streams.records(index).flatMap(({ payload }) => decodeAborted(payload));
}

describe("epochs and expiry", () => {
  for (const from of ["log", "snapshot"] as const) {
    test(`26: only a marker is left, from ${from}`, async () => {
      const h = await createHarness();
      await end(h, { producerEpoch: 6 });
      if (from === "log") await h.crash();
      else await h.reopen();
      const appended = (epoch: number, first: number) =>
        outcome(h.log.append(h.sequenced(first, first, { producerEpoch: epoch })));
      assert.equal(appended(6, 3), "OUT_OF_ORDER_SEQUENCE_NUMBER");
      assert.equal(appended(5, 0), "INVALID_PRODUCER_EPOCH");
      assert.equal(appended(6, 0), "new @1");
    });
  }

  test("29: transactions v2 begin with sequence 0 where nothing is known", async () => {
    const h = await createHarness();
    const v2 = { isTransactionsV2: true };
    await begin(h, 0, 3, v2);
    await end(h, { ...v2, producerEpoch: 4 });
    h.nowMs += X;
    await h.log.tick(h.nowMs);
    const next = { ...v2, producerEpoch: 4 };
    assert.equal(await begin(h, 4, 4, next), "OUT_OF_ORDER_SEQUENCE_NUMBER");
    assert.equal(await begin(h, 0, 0, next), "new @5");
    const legacy = await createHarness();
    assert.equal(await begin(legacy, 4, 4), "new @0", "older ones begin anywhere");
  });
});

describe("transactions", () => {
  test("43: an open transaction outlives expiry, snapshots and restarts", async () => {
    const h = await createHarness();
    await put(h.log, h.batch(["before"]));
    await begin(h, 0, 1);
    h.nowMs += X + 1;
    await put(h.log, h.batch(["later"]));
    await h.log.tick(h.nowMs);
    assert.equal(h.log.lastStableOffset, 1);
    await h.reopen();
    assert.equal(h.log.lastStableOffset, 1);
    loseSnapshots(h);
    await h.crash();
    assert.equal(h.log.lastStableOffset, 1);
    assert.equal(outcome(h.log.append(h.sequenced(2, 2, { transactional: true }))), "new @4");
  });

  for (const from of ["log", "snapshot"] as const) {
    test(`44: the marker lies behind the snapshot that has the transaction open, from ${from}`, async () => {
      const h = await createHarness();
      await begin(h, 0, 1);
      await h.reopen();
      assert.equal(h.log.lastStableOffset, 0);
      await end(h);
      if (from === "log") loseSnapshots(h);
      await h.crash();
      assert.equal(h.log.lastStableOffset, 3);
      assert.deepEqual(await abortedFrom(h, 0), [{ producerId: 7, firstOffset: 0 }]);
      await h.reopen();
      await h.reopen();
      assert.deepEqual(await abortedFrom(h, 0), [{ producerId: 7, firstOffset: 0 }]);
      assert.deepEqual(indexed(h), [
        { producerId: 7, firstOffset: 0, lastOffset: 2, lastStableOffset: 3 },
      ]);
    });
  }

  for (const isTransactionsV2 of [false, true]) {
    const version = isTransactionsV2 ? "v2" : "v1";
    test(`45: a coordinator that crashed sends its marker again, transactions ${version}`, async () => {
      const h = await createHarness();
      const marker = { isTransactionsV2, producerEpoch: isTransactionsV2 ? 4 : 3 };
      await begin(h, 0, 0, { isTransactionsV2 });
      assert.equal(await end(h, marker), "new @1");
      await h.crash();
      assert.equal(await end(h, marker), isTransactionsV2 ? "duplicate @-1" : "new @2");
      await h.reopen();
      assert.deepEqual(await abortedFrom(h, 0), [{ producerId: 7, firstOffset: 0 }]);
      assert.equal(indexed(h).length, 1);
    });
  }

  test("45: the marker was lost before it was durable and comes again", async () => {
    const h = await createHarness();
    await begin(h, 0, 0);
    h.streams.durability = "manual";
    const lost = accepted(appendMarker(h, { commit: true }));
    h.streams.crash();
    await assert.rejects(lost.durable);
    h.streams.durability = "auto";
    await h.open();
    assert.equal(h.log.lastStableOffset, 0);
    assert.equal(await end(h, { commit: true }), "new @1");
    assert.equal(h.log.lastStableOffset, 2);
  });

  test("46: a marker of an older coordinator in the log is replayed, and refused when it is new", async () => {
    const h = await createHarness();
    await begin(h, 0, 0);
    await end(h, { coordinatorEpoch: 5 });
    await begin(h, 1, 1);
    await end(h, { coordinatorEpoch: 6 });
    const log = h.streams.ids[1]!;
    h.streams.tamper(log, (record) => {
      if (record.baseOffset !== 3) return record;
      const old = { producerId: 7, producerEpoch: 3, coordinatorEpoch: 2, commit: false };
      const payload = buildMarker({ ...old, timestampMs: h.nowMs }, h.env.codecs);
      assignOffsets(payload, 3, 1);
      return { ...record, payload };
    });
    await h.crash();
    assert.equal(h.log.lastStableOffset, 4);
    assert.deepEqual((await abortedFrom(h, 0)).map(({ firstOffset }) => firstOffset), [0, 2]);
    await begin(h, 2, 2);
    assert.equal(await end(h, { coordinatorEpoch: 1 }), "TRANSACTION_COORDINATOR_FENCED");
  });

  for (const from of ["log", "snapshot"] as const) {
    test(`47: a transaction that began below the snapshot is named to readers from before it, from ${from}`, async () => {
      const h = await createHarness({ segmentBytes: 200 });
      await put(h.log, h.batch(["0"]));
      await begin(h, 0, 1);
      await h.reopen();
      await begin(h, 2, 2);
      await put(h.log, h.batch(["4"]));
      await end(h);
      await h.reopen();
      await put(h.log, h.batch(["6"]));
      if (from === "log") loseSnapshots(h);
      await h.crash();
      for (const offset of [0, 1, 3, 4, 5]) {
        const expected = [{ producerId: 7, firstOffset: 1 }];
        assert.deepEqual(await abortedFrom(h, offset), expected, `from ${offset}`);
      }
      assert.deepEqual(await abortedFrom(h, 6), []);
    });
  }

  test("an account that cannot be right is counted again with all transactions in it", async () => {
    const h = await createHarness();
    await begin(h, 0, 0);
    await end(h);
    await h.log.close();
    tamperMeta(
      h,
      ({ key, value }) =>
        key === "LOG" ? toUtf8(utf8(value).replace(/"ro":\d+/, '"ro":99')) : value,
    );
    await h.open();
    assert.deepEqual(await abortedFrom(h, 0), [{ producerId: 7, firstOffset: 0 }]);
    await h.reopen();
    assert.deepEqual(await abortedFrom(h, 0), [{ producerId: 7, firstOffset: 0 }]);
  });

  test("entries of a checkpoint that did not come through name nothing twice", async () => {
    const h = await createHarness();
    await begin(h, 0, 0);
    await end(h);
    await h.reopen();
    await begin(h, 1, 1);
    const index = h.streams.ids.at(-1);
    accepted(appendMarker(h));
    h.streams.durability = "manual";
    const closing = h.log.close();
    closing.catch(() => {});
    // The marker and its entry get through, what the meta stream should say of them does not.
    while (h.streams.records(index!).length < 2) {
      h.streams.confirm(1);
      await new Promise((resolve) => setImmediate(resolve));
    }
    h.streams.durability = "auto";
    await h.crash();
    assert.equal(indexed(h).length, 2);
    const both = [{ producerId: 7, firstOffset: 0 }, { producerId: 7, firstOffset: 2 }];
    // Else the search ends with the last marker and sees nothing behind it.
    await put(h.log, h.batch(["behind"]));
    assert.deepEqual(await abortedFrom(h, 0), both);
    await h.reopen();
    assert.deepEqual(await abortedFrom(h, 0), both);
    assert.deepEqual(await abortedFrom(h, 2), both.slice(1));
  });
});

describe("several brokers on one store", () => {
  /** Another broker takes over while the one before still runs; returns the one before. */
  async function takeOver(h: Harness) {
    const before = h.log;
    await h.open();
    return before;
  }

  async function append(h: Harness, first: number, last = first): Promise<string> {
    return await put(h.log, h.sequenced(first, last));
  }

  test("52: clocks differ and only one of two brokers has expired the producer", async () => {
    const h = await createHarness();
    await append(h, 0, 4);
    h.nowMs += X;
    await h.log.tick(h.nowMs);
    h.nowMs -= 600_000;
    await h.reopen();
    assert.equal(await append(h, 5), "new @5");
    await h.log.tick(h.nowMs);
    h.nowMs += 600_000;
    await h.reopen();
    await h.log.tick(h.nowMs);
    assert.equal(await append(h, 5), "duplicate @5");
    assert.equal(await append(h, 6), "new @6");
  });

  test("53: a broker that stalled writes nothing any more, and its state dies with it", async () => {
    const h = await createHarness();
    await append(h, 0);
    const stalled = await takeOver(h);
    assert.equal(await append(h, 1), "new @1");
    assert.equal(outcome(stalled.append(h.sequenced(1, 1))), "NOT_LEADER_OR_FOLLOWER");
    const marker = { producerId: 7, producerEpoch: 3, coordinatorEpoch: 0, commit: true };
    const fenced = stalled.appendMarker({ ...marker, isTransactionsV2: false });
    assert.equal(outcome(fenced), "NOT_LEADER_OR_FOLLOWER");
    assert.equal(await append(h, 1), "duplicate @1");
    assert.deepEqual(await contents(h), ["0:0+0", "1:1+0"]);
    await stalled.close().catch(() => {});
    await h.crash();
    assert.equal(await append(h, 2), "new @2");
  });

  test("54: the next broker has the state of the last one, from its snapshot and what followed", async () => {
    const h = await createHarness();
    await append(h, 0, 2);
    await h.reopen();
    await append(h, 3);
    await begin(h, 0, 0, { producerId: 8 });
    await takeOver(h);
    assert.equal(h.log.lastStableOffset, 4);
    assert.equal(await append(h, 0, 2), "duplicate @0");
    assert.equal(await append(h, 3), "duplicate @3");
    assert.equal(await append(h, 4), "new @5");
    assert.equal(await end(h, { producerId: 8, commit: true }), "new @6");
    assert.equal(h.log.lastStableOffset, 7);
  });

  test("55: without any snapshot the log gives the same", async () => {
    const h = await createHarness();
    await append(h, 0, 2);
    await begin(h, 0, 0, { producerId: 8 });
    await h.log.close();
    loseSnapshots(h);
    await h.open();
    assert.equal(h.log.lastStableOffset, 3);
    assert.equal(await append(h, 0, 2), "duplicate @0");
    assert.equal(await append(h, 3), "new @4");
    assert.equal(await end(h, { producerId: 8 }), "new @5");
    assert.deepEqual(await abortedFrom(h, 0), [{ producerId: 8, firstOffset: 3 }]);
  });
});
