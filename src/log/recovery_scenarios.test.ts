/** The recovery scenarios of producer state, by their numbers in the reference sheet on the Kafka protocol. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { utf8 } from "../lib/bytes.ts";
import {
  accepted,
  contents,
  createHarness,
  type Harness,
  HOUR_MS,
  outcome,
  put,
} from "../../tests/support/partition_harness.ts";
import { loseSnapshots, tamperSnapshots } from "../../tests/support/log_damage.ts";
import { decodeMetaKeyValue } from "./meta_codec.ts";
import { decodeSnapshots } from "./producer_snapshot.ts";

const X = HOUR_MS;

async function append(h: Harness, first: number, last: number, over = {}): Promise<string> {
  return await put(h.log, h.sequenced(first, last, over));
}

/** A clean close writes a snapshot; losing it leaves the log alone. */
async function restart(h: Harness, from: "snapshot" | "log"): Promise<void> {
  await h.log.close();
  if (from === "log") loseSnapshots(h);
  await h.open();
}

describe("expiry and snapshot", () => {
  test("1: an expired producer is not in the snapshot and comes back", async () => {
    const h = await createHarness();
    await append(h, 0, 9);
    h.nowMs += X + 1;
    await h.log.tick(h.nowMs);
    await restart(h, "snapshot");
    assert.equal(h.log.logEndOffset, 10);
    assert.equal(await append(h, 10, 12), "new @10");
  });

  test("2: the snapshot is lost, the log is replayed from its start", async () => {
    const h = await createHarness();
    await append(h, 0, 9);
    h.nowMs += X + 1;
    await h.log.tick(h.nowMs);
    await restart(h, "log");
    assert.equal(await append(h, 0, 9), "duplicate @0");
    assert.equal(await append(h, 11, 11), "OUT_OF_ORDER_SEQUENCE_NUMBER");
    await h.log.tick(h.nowMs);
    assert.equal(await append(h, 0, 9), "duplicate @0", "the time before a start is no idle time");
    h.nowMs += X + 1;
    await h.log.tick(h.nowMs);
    assert.equal(await append(h, 11, 11), "new @10");
  });

  test("3: a first sequence far from 0 is replayed without complaint", async () => {
    const h = await createHarness();
    await h.reopen();
    await append(h, 17871, 17871);
    h.nowMs += X + 1;
    await h.log.tick(h.nowMs);
    await h.crash();
    assert.equal(h.log.logEndOffset, 1);
  });

  test("4: the loader drops producers that were idle while others appended: their window is gone", async () => {
    for (const [first, last] of [[5, 5], [0, 4]] as const) {
      const h = await createHarness();
      await append(h, 0, 4);
      h.nowMs += X + 1;
      await append(h, 0, 0, { producerId: 8 });
      await h.log.close();
      await h.open();
      assert.equal(await append(h, first, last), "new @6");
    }
  });

  for (const from of ["log", "snapshot"] as const) {
    test(`a log that was closed for longer than the expiration forgets nobody, from ${from}`, async () => {
      const h = await createHarness();
      await append(h, 0, 4);
      await h.log.close();
      if (from === "log") loseSnapshots(h);
      h.nowMs += 100 * X;
      await h.open();
      await h.log.tick(h.nowMs);
      assert.equal(await append(h, 0, 4), "duplicate @0");
      h.nowMs += X;
      await h.log.tick(h.nowMs);
      assert.equal(await append(h, 0, 4), "new @5", "idle from the start on");
    });
  }

  for (const from of ["log", "snapshot"] as const) {
    test(`${from === "log" ? 5 : 6}: both generations are applied, from ${from}`, async () => {
      const h = await createHarness();
      await append(h, 0, 4);
      h.nowMs += X + 1;
      await h.log.tick(h.nowMs);
      if (from === "snapshot") await h.reopen();
      assert.equal(await append(h, 5, 9), "new @5");
      await h.crash();
      assert.equal(await append(h, 5, 9), "duplicate @5");
      assert.equal(await append(h, 10, 10), "new @10");
    });
  }

  test("7: an active producer is replayed exactly beside an expired one", async () => {
    const h = await createHarness({ segmentBytes: 3000 });
    await append(h, 0, 0);
    for (let i = 0; i < 100; i++) {
      h.nowMs += 100_000;
      assert.equal(await append(h, i, i, { producerId: 8 }), `new @${i + 1}`);
      await h.log.tick(h.nowMs);
    }
    await h.crash();
    for (let i = 95; i < 100; i++) {
      assert.equal(await append(h, i, i, { producerId: 8 }), `duplicate @${i + 1}`);
    }
    assert.equal(await append(h, 94, 94, { producerId: 8 }), "OUT_OF_ORDER_SEQUENCE_NUMBER");
    assert.equal(await append(h, 100, 100, { producerId: 8 }), "new @101");
    assert.equal(await append(h, 50, 50), "new @102");
  });

  test("8: the expiration is raised between two runs", async () => {
    const h = await createHarness();
    await append(h, 0, 4);
    h.nowMs += X + 1;
    await h.log.tick(h.nowMs);
    await h.log.close();
    h.config = { ...h.config, producerExpirationMs: 24 * X };
    loseSnapshots(h);
    await h.open();
    assert.equal(await append(h, 0, 4), "duplicate @0");
  });
});

describe("crash around the acknowledgement", () => {
  test("9: durable but not answered: the resent batch is a duplicate", async () => {
    const h = await createHarness();
    h.streams.durability = "manual";
    accepted(h.log.append(h.sequenced(0, 4)));
    h.streams.confirm();
    h.streams.durability = "auto";
    await h.crash();
    assert.equal(await append(h, 0, 4), "duplicate @0");
    assert.equal(h.log.logEndOffset, 5);
  });

  test("10: not durable: the resent batch is new and there once", async () => {
    const h = await createHarness();
    h.streams.durability = "manual";
    const lost = accepted(h.log.append(h.sequenced(0, 1)));
    h.streams.crash();
    await assert.rejects(lost.durable);
    h.streams.durability = "auto";
    await h.open();
    assert.equal(await append(h, 0, 1), "new @0");
    assert.deepEqual(await contents(h), ["0:0+0", "1:0+1"]);
  });

  test("11: batches behind the snapshot are duplicates with their offsets", async () => {
    const h = await createHarness();
    await append(h, 0, 4);
    await h.reopen();
    await append(h, 5, 6);
    await append(h, 7, 7);
    await h.crash();
    assert.equal(await append(h, 5, 6), "duplicate @5");
    assert.equal(await append(h, 7, 7), "duplicate @7");
  });

  test("12: a crash while the snapshot is written leaves the old one in use", async () => {
    const h = await createHarness();
    await append(h, 0, 4);
    await h.reopen();
    await append(h, 5, 6);
    h.streams.durability = "manual";
    const closing = h.log.close();
    await Promise.resolve();
    h.streams.crash();
    await closing.catch(() => {});
    h.streams.durability = "auto";
    await h.open();
    assert.equal(await append(h, 5, 6), "duplicate @5");
    assert.equal(await append(h, 0, 4), "duplicate @0");
  });

  test("13 and 14: five in flight, two stored, all resent", async () => {
    const stored = async () => {
      const h = await createHarness();
      h.streams.durability = "manual";
      for (let i = 0; i < 5; i++) accepted(h.log.append(h.sequenced(i * 2, i * 2 + 1)));
      h.streams.confirm(2);
      h.streams.crash();
      h.streams.durability = "auto";
      await h.open();
      return h;
    };
    const inOrder = await stored();
    const outcomes: string[] = [];
    for (let i = 0; i < 5; i++) outcomes.push(await append(inOrder, i * 2, i * 2 + 1));
    assert.deepEqual(outcomes, ["duplicate @0", "duplicate @2", "new @4", "new @6", "new @8"]);

    const swapped = await stored();
    assert.equal(await append(swapped, 6, 7), "OUT_OF_ORDER_SEQUENCE_NUMBER");
    assert.equal(await append(swapped, 4, 5), "new @4");
    assert.equal(await append(swapped, 6, 7), "new @6");
  });
});

describe("duplicates after recovery", () => {
  for (const from of ["snapshot", "log"] as const) {
    test(`15 to 18: the window of five holds after a restart from ${from}`, async () => {
      const h = await createHarness();
      for (let i = 0; i < 6; i++) await append(h, i, i);
      await restart(h, from);
      for (let i = 5; i >= 1; i--) assert.equal(await append(h, i, i), `duplicate @${i}`);
      assert.equal(await append(h, 0, 0), "OUT_OF_ORDER_SEQUENCE_NUMBER");
      assert.equal(await append(h, 5, 6), "OUT_OF_ORDER_SEQUENCE_NUMBER");
      assert.equal(h.log.logEndOffset, 6);
    });
  }
});

describe("wrap and epochs after recovery", () => {
  for (const from of ["snapshot", "log"] as const) {
    test(`19 to 22: sequences wrap, from ${from}`, async () => {
      const h = await createHarness();
      await append(h, 2147483640, 2147483647);
      await restart(h, from);
      assert.equal(await append(h, 1, 1), "OUT_OF_ORDER_SEQUENCE_NUMBER");
      assert.equal(await append(h, 0, 3), "new @8");

      const straddling = await createHarness();
      await append(straddling, 2147483646, 1);
      await restart(straddling, from);
      assert.equal(await append(straddling, 2147483646, 1), "duplicate @0");
      assert.equal(await append(straddling, 2, 2), "new @4");
    });

    test(`23 and 24: epochs, from ${from}`, async () => {
      const h = await createHarness();
      await append(h, 0, 4);
      await append(h, 0, 1, { producerEpoch: 4 });
      await restart(h, from);
      assert.equal(await append(h, 0, 4), "INVALID_PRODUCER_EPOCH");
      assert.equal(await append(h, 5, 5, { producerEpoch: 5 }), "OUT_OF_ORDER_SEQUENCE_NUMBER");
      assert.equal(await append(h, 0, 0, { producerEpoch: 5 }), "new @7");
    });
  }

  test("25: an epoch that goes back in the log is replayed as the log says", async () => {
    const h = await createHarness();
    await append(h, 0, 0, { producerEpoch: 5 });
    h.nowMs += X + 1;
    await h.log.tick(h.nowMs);
    assert.equal(await append(h, 9, 9, { producerEpoch: 4 }), "new @1");
    await h.crash();
    assert.equal(await append(h, 10, 10, { producerEpoch: 4 }), "new @2");
  });
});

describe("return after expiry", () => {
  test("27, 28 and 30: any sequence, a lower epoch, then a replay over all of it", async () => {
    const h = await createHarness();
    await append(h, 0, 99);
    h.nowMs += X + 1;
    await h.log.tick(h.nowMs);
    assert.equal(await append(h, 200, 204), "new @100");
    h.nowMs += X + 1;
    await h.log.tick(h.nowMs);
    assert.equal(await append(h, 7, 7, { producerEpoch: 2 }), "new @105");
    await h.crash();
    assert.equal(await append(h, 7, 7, { producerEpoch: 2 }), "duplicate @105");
    assert.equal(await append(h, 8, 8, { producerEpoch: 2 }), "new @106");
  });
});

describe("clock", () => {
  test("31: timestamps in the future do not keep an entry", async () => {
    const h = await createHarness({ timestampAfterMsMax: 1000 * X });
    await append(h, 0, 0, { timestampMs: h.nowMs + 240 * X });
    h.nowMs += X;
    await h.log.tick(h.nowMs);
    assert.equal(await append(h, 9, 9), "new @1");
  });

  test("32: the clock goes back two hours after a restart", async () => {
    const h = await createHarness();
    await append(h, 0, 4);
    await h.log.close();
    h.nowMs -= 2 * X;
    await h.open();
    await h.log.tick(h.nowMs);
    assert.equal(await append(h, 0, 4), "duplicate @0");
    assert.equal(await append(h, 5, 5), "new @5");
  });

  test("33: the clock jumps ahead, is replayed, and is put right again", async () => {
    const h = await createHarness();
    await append(h, 0, 4);
    h.nowMs += 48 * X;
    await h.crash();
    await h.log.tick(h.nowMs);
    h.nowMs -= 48 * X;
    await h.log.tick(h.nowMs);
    assert.equal(await append(h, 0, 4), "duplicate @0");
    assert.equal(await append(h, 5, 9), "new @5");
    await h.crash();
    assert.equal(await append(h, 10, 10), "new @10");
  });

  test("34: a back-filling producer keeps its window, also over a replay", async () => {
    const h = await createHarness();
    const past = { timestampMs: h.nowMs - 72 * X };
    await append(h, 0, 4, past);
    await h.log.tick(h.nowMs);
    assert.equal(await append(h, 0, 4, past), "duplicate @0");
    await h.crash();
    await h.log.tick(h.nowMs);
    assert.equal(await append(h, 0, 4, past), "duplicate @0");
  });

  test("35: topics that stamp on arrival behave the same", async () => {
    const h = await createHarness({ timestampType: "log-append" });
    const stampedMs = h.nowMs;
    await append(h, 0, 4, { timestampMs: 5 });
    h.nowMs += 10;
    const again = accepted(h.log.append(h.sequenced(0, 4, { timestampMs: 5 })));
    assert.equal(outcome(again), "duplicate @0");
    assert.equal(again.logAppendTimeMs, stampedMs);
    await h.crash();
    h.nowMs += X;
    await h.log.tick(h.nowMs);
    assert.equal(await append(h, 9, 9), "new @5");
  });
});

describe("damaged or odd snapshots", () => {
  /** Six batches, snapshots at 3 and 6. */
  async function twoSnapshots(): Promise<Harness> {
    const h = await createHarness();
    for (let i = 0; i < 6; i++) {
      await append(h, i, i);
      if (i === 2) await h.reopen();
    }
    await h.log.close();
    return h;
  }

  async function expectWholeState(h: Harness): Promise<void> {
    await h.open();
    for (let i = 5; i >= 1; i--) assert.equal(await append(h, i, i), `duplicate @${i}`);
    assert.equal(await append(h, 0, 0), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  }

  const newestBytes = (h: Harness, change: (bytes: Uint8Array) => Uint8Array) =>
    tamperSnapshots(h, (list) => [
      ...list.slice(0, -1),
      ...list.slice(-1).map(({ offset, bytes }) => ({ offset, bytes: change(bytes) })),
    ]);

  async function newestLength(): Promise<number> {
    let length = 0;
    newestBytes(await twoSnapshots(), (bytes) => {
      length = bytes.length;
      return bytes;
    });
    assert.ok(length > 100);
    return length;
  }

  test("36: the newest snapshot cut at every byte", async () => {
    const length = await newestLength();
    for (let cut = 0; cut < length; cut++) {
      const h = await twoSnapshots();
      newestBytes(h, (bytes) => bytes.subarray(0, cut));
      await expectWholeState(h);
    }
  });

  test("37: a flipped bit", async () => {
    const length = await newestLength();
    for (let byte = 0; byte < length; byte += 5) {
      const h = await twoSnapshots();
      newestBytes(h, (bytes) => bytes.map((value, at) => at === byte ? value ^ 0x10 : value));
      await expectWholeState(h);
    }
  });

  test("38: a snapshot past the log's end is discarded", async () => {
    const h = await twoSnapshots();
    tamperSnapshots(h, (list) => [...list, { offset: 7, bytes: list.at(-1)!.bytes }]);
    await expectWholeState(h);
  });

  test("39: a snapshot below the log start is not a base", async () => {
    const h = await createHarness({ segmentBytes: 100 });
    for (let i = 0; i < 4; i++) await append(h, 10 + i, 10 + i);
    await h.log.deleteRecords(2);
    await h.log.close();
    tamperSnapshots(h, (list) => list.map(({ bytes }) => ({ offset: 1, bytes })));
    await h.open();
    assert.equal(h.log.logStartOffset, 2);
    assert.equal(await append(h, 12, 12), "duplicate @2");
    assert.equal(await append(h, 14, 14), "new @4");
  });

  test("40: an unknown version counts as missing", async () => {
    const h = await twoSnapshots();
    newestBytes(h, (bytes) => bytes.with(1, 200));
    await expectWholeState(h);
  });

  test("42: the newest is corrupt: the older one serves, the corrupt one goes", async () => {
    const h = await twoSnapshots();
    newestBytes(h, (bytes) => bytes.with(9, bytes[9]! ^ 1));
    await expectWholeState(h);
    await h.log.close();
    const stored = h.streams.records(h.metaStream!)
      .map(({ payload }) => decodeMetaKeyValue(payload))
      .findLast(({ key }) => key === "PRODUCER_SNAPSHOTS");
    assert.deepEqual(decodeSnapshots(stored!.value).map(({ offset }) => offset), [3, 6]);
  });
});

describe("deletion", () => {
  for (const from of ["snapshot", "log"] as const) {
    test(`51: everything is deleted, the end stays, the producer goes on; from ${from}`, async () => {
      const h = await createHarness();
      await append(h, 0, 4);
      assert.deepEqual(await h.log.deleteRecords(5), { ok: true, logStartOffset: 5 });
      await restart(h, from);
      assert.equal(h.log.logStartOffset, 5);
      assert.equal(h.log.logEndOffset, 5);
      assert.deepEqual(await contents(h), []);
      assert.equal(await append(h, 5, 6), "new @5");
    });
  }
});

test("the clean flag is set by a close and says where the log ended", async () => {
  const h = await createHarness();
  await append(h, 0, 4);
  await h.log.close();
  const stored = h.streams.records(h.metaStream!)
    .map(({ payload }) => decodeMetaKeyValue(payload))
    .findLast(({ key }) => key === "PARTITION");
  assert.deepEqual(JSON.parse(utf8(stored!.value)), { s: 0, c: 0, r: 5, cs: true });
});
