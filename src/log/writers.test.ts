import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createHarness, type Harness } from "../../tests/support/partition_harness.ts";
import { stepBatch } from "../../tests/support/step_batches.ts";
import { isFault } from "../lib/errors.ts";
import { WRITERS_PER_PARTITION_MAX } from "../lib/limits.ts";
import type { BatchHeader } from "../protocol/record_batch.ts";
import { decodeMetaKeyValue } from "./meta_codec.ts";
import { decodeWriters, encodeWriters } from "./writer_snapshot.ts";
import type { NamedWriter, WriterStep } from "./writer_step.ts";
import { decodeStep, encodeStep } from "./writer_step.ts";
import { WriterTable } from "./writer_table.ts";

function writer(name: string, sequence: number, epoch = 0): NamedWriter {
  return { name, epoch, sequence };
}

function send(h: Harness, step: Partial<WriterStep>, values: readonly (string | null)[] = ["v"]) {
  return h.log.appendStep(stepBatch(h.env, h.nowMs, step, values));
}

function seen({ log }: Harness, ...names: readonly string[]) {
  const { closing, order } = log.writers;
  return { closing, order, writers: names.map((name) => log.writers.writer(name) ?? null) };
}

describe("named writers of a log", () => {
  for (const how of ["crash", "reopen"] as const) {
    test(`what they left is known after a ${how}, and after another one`, async () => {
      const h = await createHarness();
      send(h, { writer: writer("a", 0) }, ["1", "2"]);
      send(h, { writer: writer("b", 0, 7), order: "01" });
      send(h, { writer: writer("a", 1) });
      h.log.append(h.batch(["x"]));
      const last = send(h, { order: "02" });
      assert.ok(last.ok);
      await last.durable;
      const expected = {
        closing: null,
        order: "02",
        writers: [{ ...writer("a", 1), end: 4 }, { ...writer("b", 0, 7), end: 3 }, null],
      };
      assert.deepEqual(seen(h, "a", "b", "c"), expected);
      await h[how]();
      assert.deepEqual(seen(h, "a", "b", "c"), expected);
      await h[how]();
      assert.deepEqual(seen(h, "a", "b", "c"), expected);
    });

    test(`a closed log takes nothing more, also after a ${how}`, async () => {
      const h = await createHarness();
      h.log.append(h.batch(["x"]));
      const by = writer("a", 0);
      const closed = send(h, { closes: true, writer: by }, [null]);
      assert.ok(closed.ok);
      await closed.durable;
      for (let life = 0; life < 2; life++) {
        assert.deepEqual(h.log.writers.closing, { end: 2, by });
        for (
          const refused of [
            h.log.append(h.batch(["y"])),
            h.log.append(h.sequenced(0, 0)),
            send(h, {}),
          ]
        ) assert.ok(!refused.ok && refused.error === "POLICY_VIOLATION");
        await h[how]();
      }
      assert.equal(h.log.logEndOffset, 2);
    });
  }

  test("a closing that a crash took away did not happen", async () => {
    const h = await createHarness();
    h.log.append(h.batch(["x"]));
    h.streams.durability = "manual";
    assert.ok(send(h, { closes: true, order: "1", writer: writer("a", 0) }).ok);
    h.streams.durability = "auto";
    await h.crash();
    assert.deepEqual(seen(h, "a"), { closing: null, order: null, writers: [null] });
    assert.ok(h.log.append(h.batch(["y"])).ok);
  });

  test("it stays closed when retention has taken all records", async () => {
    const h = await createHarness();
    const closed = send(h, { closes: true });
    assert.ok(closed.ok);
    await closed.durable;
    await h.log.deleteRecords(1);
    await h.crash();
    assert.equal(h.log.logStartOffset, 1);
    assert.deepEqual(h.log.writers.closing, { end: 1, by: null });
  });

  test("a repeat of an idempotent producer is answered after the closing as before it", async () => {
    const h = await createHarness();
    assert.ok(h.log.append(h.sequenced(0, 0)).ok);
    assert.ok(send(h, { closes: true }).ok);
    const repeat = h.log.append(h.sequenced(0, 0));
    assert.ok(repeat.ok && repeat.duplicate);
  });

  test("nobody else may write its sequence", async () => {
    const h = await createHarness();
    const refused = h.log.append(stepBatch(h.env, h.nowMs, { closes: true }, ["v"]));
    assert.ok(!refused.ok && refused.error === "INVALID_RECORD");
    const other = h.log.appendStep(h.batch(["x"]));
    assert.ok(!other.ok && other.error === "INVALID_RECORD");
    assert.equal(h.log.writers.closing, null);
  });

  test("also where the topic compresses", async () => {
    const h = await createHarness({ compression: "gzip" });
    const sent = send(h, { writer: writer("a", 0) }, ["1".repeat(100), "2".repeat(100)]);
    assert.ok(sent.ok);
    await sent.durable;
    await h.crash();
    assert.deepEqual(h.log.writers.writer("a"), { ...writer("a", 0), end: 2 });
  });

  test("a partition without any writes no key for them", async () => {
    const h = await createHarness();
    h.log.append(h.batch(["x"]));
    await h.reopen();
    const keys = () =>
      h.streams.records(h.metaStream!).map(({ payload }) => decodeMetaKeyValue(payload).key);
    assert.ok(keys().includes("LOG") && !keys().includes("WRITERS"));
    send(h, { order: "1" });
    await h.reopen();
    assert.ok(keys().includes("WRITERS"));
  });

  test("with a damaged value it stays shut: it may have been closed", async () => {
    const h = await createHarness();
    send(h, { order: "1" });
    await h.log.close();
    h.streams.tamper(h.metaStream!, (record) => {
      const { key } = decodeMetaKeyValue(record.payload);
      const payload = record.payload.slice();
      payload[payload.length - 1]! ^= 1;
      return key === "WRITERS" ? { ...record, payload } : record;
    });
    await assert.rejects(h.open(), (error) => isFault(error, "corrupt"));
  });
});

describe("the table of writers", () => {
  const header = (baseOffset: number, lastOffsetDelta = 0) =>
    ({ baseOffset, lastOffsetDelta }) as BatchHeader;
  const step = (over: Partial<WriterStep>) => ({
    closes: false,
    order: null,
    writer: null,
    ...over,
  });

  test("beyond its bound the one that wrote longest ago goes", () => {
    const table = new WriterTable();
    for (let n = 0; n < WRITERS_PER_PARTITION_MAX; n++) {
      table.apply(step({ writer: writer(`w${n}`, 0) }), header(n));
    }
    table.apply(step({ writer: writer("w0", 1) }), header(5_000));
    table.apply(step({ writer: writer("new", 0) }), header(5_001));
    assert.equal(table.writer("w1"), undefined);
    assert.equal(table.writer("w0")?.sequence, 1);
    assert.equal([...table.entries()].length, WRITERS_PER_PARTITION_MAX);
    const stored = decodeWriters(encodeWriters(5_002, table))!;
    assert.deepEqual(stored.entries, [...table.entries()]);
  });

  test("of a log that lost its tail what is left is loaded", () => {
    const table = new WriterTable();
    table.apply(step({ writer: writer("a", 0) }), header(0, 1));
    table.apply(step({ closes: true, writer: writer("b", 0) }), header(2));
    const stored = { closing: table.closing, order: null, entries: [...table.entries()] };
    for (
      const [end, names, isClosed] of [[3, "ab", true], [2, "a", false], [1, "", false]] as const
    ) {
      const loaded = new WriterTable();
      loaded.load(stored, end);
      assert.equal([...loaded.entries()].map(({ name }) => name).join(""), names);
      assert.equal(loaded.closing !== null, isClosed);
    }
  });

  test("a value with any bit changed is none, and so is one that is cut", () => {
    const table = new WriterTable();
    table.apply(step({ closes: true, order: "ö", writer: writer("a", 3, 2) }), header(4));
    const bytes = encodeWriters(5, table);
    const whole = { offset: 5, closing: table.closing, order: "ö", entries: [...table.entries()] };
    assert.deepEqual(decodeWriters(bytes), whole);
    for (let at = 0; at < bytes.length; at++) {
      const changed = bytes.slice();
      changed[at]! ^= 0x10;
      assert.equal(decodeWriters(changed), null, `byte ${at}`);
      assert.equal(decodeWriters(bytes.subarray(0, at)), null, `cut at ${at}`);
    }
  });

  test("a step of a later version, or with more behind it, is none", () => {
    const bytes = encodeStep(step({ order: "7", writer: writer("w", 1) }));
    assert.equal(decodeStep(bytes)?.order, "7");
    assert.equal(decodeStep(Uint8Array.of(...bytes, 0)), null);
    assert.equal(decodeStep(Uint8Array.of(2, ...bytes.subarray(1))), null);
    assert.equal(decodeStep(Uint8Array.of(1, 8)), null);
    assert.equal(decodeStep(new Uint8Array(0)), null);
  });
});
