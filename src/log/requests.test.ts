import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  contents,
  createHarness,
  type Harness,
  HOUR_MS,
  unopened,
} from "../../tests/support/partition_harness.ts";
import {
  idOf,
  partOf,
  requestBatch,
  sendRest,
  storedOf,
} from "../../tests/support/request_batches.ts";
import { FaultError } from "../lib/errors.ts";
import { REQUEST_WINDOW_MS, REQUESTS_PER_PARTITION_MAX } from "../lib/limits.ts";
import { type BatchHeader, readBatchHeader } from "../protocol/record_batch.ts";
import { decodeMetaKeyValue } from "./meta_codec.ts";
import { REQUEST_SEQUENCE } from "./request_part.ts";
import { decodeRequests, encodeRequests } from "./request_snapshot.ts";
import { RequestTable } from "./request_table.ts";

function send(h: Harness, n: number, values: readonly string[], over = {}) {
  return h.log.appendRequest(requestBatch(h.env, h.nowMs, partOf(n, over), values));
}

/** Awaits all that was appended. */
async function settle(h: Harness): Promise<void> {
  const last = h.log.append(h.batch(["-"]));
  assert.ok(last.ok);
  await last.durable;
}

function runsOf(h: Harness, n: number) {
  return h.log.rememberedRequest(idOf(n))?.runs ?? null;
}

const GIVEN = { timeMs: 5, isAppendTime: false };

describe("requests in a log", () => {
  test("one is remembered where it lies, and its repeat waits for the high watermark", async () => {
    const h = await createHarness();
    h.streams.durability = "manual";
    assert.equal(h.log.rememberedRequest(idOf(1)), null);
    assert.ok(send(h, 1, ["a", "b"]).ok);
    const known = h.log.rememberedRequest(idOf(1))!;
    assert.deepEqual(known.runs, [{ baseOffset: 0, count: 2, ...GIVEN }]);
    assert.deepEqual([known.fingerprint, known.partitions], [idOf(1_001), 1]);
    let isDurable = false;
    const waiting = known.durable.then(() => void (isDurable = true));
    await Promise.resolve();
    assert.equal(isDurable, false);
    h.streams.confirm();
    await waiting;
  });

  test("nobody else may write its sequence", async () => {
    const h = await createHarness();
    const batch = requestBatch(h.env, h.nowMs, partOf(1), ["a"]);
    assert.equal(readBatchHeader(batch).baseSequence, REQUEST_SEQUENCE);
    const refused = h.log.append(batch);
    assert.ok(!refused.ok && refused.error === "INVALID_RECORD");
    assert.equal(h.log.rememberedRequest(idOf(1)), null);
  });

  for (const how of ["crash", "reopen"] as const) {
    test(`parts of a request are one run, and other batches cut it, after a ${how}`, async () => {
      const h = await createHarness();
      send(h, 1, ["a", "b"]);
      send(h, 1, ["c"], { first: 2 });
      h.log.append(h.batch(["x"]));
      send(h, 1, ["d"], { first: 3 });
      send(h, 2, ["e"], { partitions: 7 });
      await settle(h);
      const expected = [{ baseOffset: 0, count: 3, ...GIVEN }, {
        baseOffset: 4,
        count: 1,
        ...GIVEN,
      }];
      assert.deepEqual(runsOf(h, 1), expected);
      await h[how]();
      assert.deepEqual(runsOf(h, 1), expected);
      assert.equal(h.log.rememberedRequest(idOf(2))!.partitions, 7);
      await h[how]();
      assert.deepEqual(runsOf(h, 1), expected);
    });
  }

  test("of what was cut off by a crash only the part that is in is remembered", async () => {
    const h = await createHarness();
    h.streams.durability = "manual";
    send(h, 1, ["a", "b"]);
    h.streams.confirm();
    send(h, 1, ["c"], { first: 2 });
    send(h, 2, ["d"]);
    h.streams.durability = "auto";
    await h.crash();
    assert.deepEqual(runsOf(h, 1), [{ baseOffset: 0, count: 2, ...GIVEN }]);
    assert.equal(runsOf(h, 2), null);
    const again = send(h, 1, ["c"], { first: 2 });
    assert.ok(again.ok);
    await again.durable;
    assert.deepEqual(await contents(h), ["0:a", "1:b", "2:c"]);
  });

  for (const how of ["crash", "reopen"] as const) {
    test(`also where the topic compresses and stamps, after a ${how}`, async () => {
      const h = await createHarness({ compression: "gzip", timestampType: "log-append" });
      send(h, 1, ["a", "b"]);
      const expected = [{ baseOffset: 0, count: 2, timeMs: h.nowMs, isAppendTime: true }];
      assert.deepEqual(runsOf(h, 1), expected);
      await settle(h);
      h.nowMs += 1_000;
      await h[how]();
      assert.deepEqual(runsOf(h, 1), expected);
    });
  }

  test("a part of something that is not remembered says nothing", async () => {
    const h = await createHarness();
    send(h, 1, ["b"], { first: 1 });
    assert.equal(runsOf(h, 1), null);
    send(h, 2, ["a"]);
    send(h, 2, ["b"], { first: 1, fingerprint: idOf(9) });
    send(h, 2, ["c"], { first: 2 });
    assert.equal(storedOf(h.log, idOf(2)), 1);
  });

  test("it is forgotten after its window, counted while the log is open", async () => {
    const h = await createHarness();
    send(h, 1, ["a"]);
    h.nowMs += REQUEST_WINDOW_MS / 2;
    send(h, 2, ["b"]);
    await h.log.tick(h.nowMs);
    h.nowMs += REQUEST_WINDOW_MS / 2;
    await h.log.tick(h.nowMs);
    assert.equal(runsOf(h, 1), null);
    assert.notEqual(runsOf(h, 2), null);
    await h.log.close();
    h.nowMs += 100 * HOUR_MS;
    await h.open();
    await h.log.tick(h.nowMs);
    assert.notEqual(runsOf(h, 2), null, "nobody could ask while it was closed");
    h.nowMs += REQUEST_WINDOW_MS;
    await h.log.tick(h.nowMs);
    assert.equal(runsOf(h, 2), null);
  });

  test("a clock that was set back keeps it no longer", async () => {
    const h = await createHarness();
    send(h, 1, ["a"]);
    h.nowMs -= 2 * REQUEST_WINDOW_MS;
    await h.log.tick(h.nowMs);
    assert.notEqual(runsOf(h, 1), null);
    h.nowMs += REQUEST_WINDOW_MS;
    await h.log.tick(h.nowMs);
    assert.equal(runsOf(h, 1), null);
  });

  test("deleted and compacted records are still remembered", async () => {
    const h = await createHarness({ cleanup: { delete: false, compact: true }, segmentBytes: 400 });
    send(h, 1, ["a"]);
    for (let i = 0; i < 20; i++) h.log.append(h.batch(["a"], { key: "a" }));
    await h.log.tick(h.nowMs);
    h.nowMs += 1_000;
    await h.log.clean({ mapBytesMax: 1 << 20, bytesPerSecond: Infinity });
    assert.ok(!(await contents(h)).includes("0:a"), "the first one was compacted away");
    await h.crash();
    assert.deepEqual(runsOf(h, 1), [{ baseOffset: 0, count: 1, ...GIVEN }]);
    h.config = { ...h.config, cleanup: { delete: true, compact: false } };
    await h.reopen();
    await h.log.deleteRecords(h.log.highWatermark);
    await h.crash();
    assert.deepEqual(runsOf(h, 1), [{ baseOffset: 0, count: 1, ...GIVEN }]);
  });

  test("a partition without any writes no key for them", async () => {
    const h = await createHarness();
    h.log.append(h.batch(["x"]));
    await h.reopen();
    const keys = h.streams.records(h.metaStream!).map(({ payload }) =>
      decodeMetaKeyValue(payload).key
    );
    assert.ok(keys.includes("LOG") && !keys.includes("REQUESTS"));
    send(h, 1, ["a"]);
    await settle(h);
    await h.crash();
    assert.equal(storedOf(h.log, idOf(1)), 1);
  });

  test("a value that was left by a build that knows no requests costs no replay of old batches", async () => {
    const h = await createHarness();
    send(h, 1, ["a"]);
    await h.reopen();
    const old = encodeRequests(0, []);
    h.log.append(h.batch(["x"]));
    await h.log.close();
    h.streams.tamper(h.metaStream!, (record) => {
      const { key } = decodeMetaKeyValue(record.payload);
      return key === "REQUESTS" ? { ...record, payload: replaced(record.payload, old) } : record;
    });
    await h.open();
    assert.equal(runsOf(h, 1), null, "what LOG counts is not looked at again");
  });
});

/** The meta record with another value. */
function replaced(payload: Uint8Array, value: Uint8Array): Uint8Array {
  const { value: old } = decodeMetaKeyValue(payload);
  const head = payload.subarray(0, payload.length - old.length);
  return new Uint8Array([...head, ...value]);
}

describe("the table", () => {
  const header = (baseOffset: number) =>
    ({ baseOffset, lastOffsetDelta: 0, attributes: 0, maxTimestamp: 1 }) as BatchHeader;

  test("beyond its bound the oldest ones go", () => {
    const table = new RequestTable();
    const count = REQUESTS_PER_PARTITION_MAX + 2;
    for (let n = 0; n < count; n++) table.apply(partOf(n), header(n), n);
    assert.equal(table.size, REQUESTS_PER_PARTITION_MAX);
    assert.equal(table.get(idOf(1)), undefined);
    assert.deepEqual(table.get(idOf(2))!.runs[0]!.baseOffset, 2);
    const bytes = encodeRequests(count, table.entries());
    assert.deepEqual(decodeRequests(bytes)!.entries.length, REQUESTS_PER_PARTITION_MAX);
  });

  test("a clock that jumps makes nothing old", () => {
    const table = new RequestTable();
    table.followClock(0, 0);
    table.apply(partOf(1), header(0), 0);
    table.followClock(2 * REQUEST_WINDOW_MS, 1_000);
    table.expire(2 * REQUEST_WINDOW_MS);
    assert.equal(table.size, 1);
    table.expire(4 * REQUEST_WINDOW_MS);
    assert.equal(table.size, 0);
  });

  test("of a log that lost its tail what is left is loaded", () => {
    const table = new RequestTable();
    table.apply(partOf(1), header(0), 1);
    table.apply(partOf(1, { first: 1 }), header(5), 2);
    table.apply(partOf(2), header(6), 3);
    for (const [end, counts] of [[7, [2, 1]], [6, [2, 0]], [5, [1, 0]], [0, [0, 0]]] as const) {
      const loaded = new RequestTable();
      loaded.load([...table.entries()], end, 9);
      const found = [1, 2].map((n) => loaded.get(idOf(n))?.runs.length ?? 0);
      assert.deepEqual(found, counts, String(end));
    }
  });

  test("a damaged value counts as missing", () => {
    const table = new RequestTable();
    table.apply(partOf(1), header(3), 7);
    const bytes = encodeRequests(4, table.entries());
    assert.deepEqual(decodeRequests(bytes), { offset: 4, entries: [...table.entries()] });
    for (let at = 0; at < bytes.length; at++) {
      const damaged = bytes.slice();
      damaged[at]! ^= 1;
      assert.equal(decodeRequests(damaged), null, String(at));
      assert.equal(decodeRequests(bytes.subarray(0, at)), null, String(at));
    }
  });
});

describe("no retry stores a record twice", () => {
  const REQUESTS = 6;
  const valuesOf = (n: number) => [`${n}.0`, `${n}.1`, `${n}.2`];

  /** A client that sends again until all is in, in batches of two. */
  async function request(h: Harness, n: number): Promise<boolean> {
    for (let round = 0; round < 4; round++) {
      const part = (first: number, values: readonly string[]) =>
        send(h, n, values.slice(0, 2), { first });
      const sent = sendRest(h.log, part, idOf(n), valuesOf(n));
      if (sent === null) return true;
      if (sent.ok) await sent.durable.catch(() => {});
    }
    return false;
  }

  async function life(h: Harness): Promise<void> {
    await h.open();
    for (let n = 0; n < REQUESTS; n++) {
      await request(h, n);
      if (n === 2) await h.log.tick(h.nowMs);
      if (n === 3) await h.log.close();
      if (n === 3) await h.open();
    }
    await h.log.close();
  }

  const expected = Array.from({ length: REQUESTS }, (_, n) => valuesOf(n)).flat();

  async function retryAll(h: Harness): Promise<void> {
    for (let n = 0; n < REQUESTS; n++) assert.ok(await request(h, n));
    const found = (await contents(h)).map((text) => text.split(":")[1]!);
    assert.deepEqual(found.toSorted(), expected);
  }

  test("whichever call to the streams is the last of a process", async () => {
    const whole = unopened({ segmentBytes: 200 });
    await life(whole);
    const { calls } = whole.streams;
    assert.ok(calls > 30, `only ${calls} calls`);
    for (let last = 0; last < calls; last++) {
      const h = unopened({ segmentBytes: 200 });
      h.streams.fail = (_, call) =>
        call >= last ? new FaultError("closed", "gone", { retriable: false }) : null;
      await life(h).catch((error: unknown) => assert.ok(error instanceof FaultError));
      h.streams.fail = null;
      await h.crash();
      await retryAll(h);
      await h.crash();
      await retryAll(h);
      await h.reopen();
      await retryAll(h);
    }
  });
});
