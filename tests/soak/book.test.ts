/** The soak's own judgement: each promise that is broken on purpose is noticed, and nothing else is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readRecords } from "../../src/protocol/record.ts";
import { OrderCheck, PartitionBook, Violation } from "./book.ts";
import { Soak } from "./cluster.ts";
import { GroupBook } from "./groups.ts";
import { parseSoakOptions } from "./options.ts";
import { batchOf, codecs, payloadOf, readPayload } from "./payload.ts";
import { AGED, KEPT, PARTITIONS, SIZED } from "./settings.ts";
import { quarters } from "./gauges.ts";

const NOW = Date.now();

function told(sequence: number, writer = "once-a") {
  return { writer, sequence };
}

test("an idempotent writer: no gap, nothing twice, from any place on", () => {
  const order = new OrderCheck();
  for (const sequence of [7, 8, 9]) order.take(told(sequence));
  assert.throws(() => order.take(told(9)), Violation);
  assert.throws(() => order.take(told(11)), Violation);
});

test("a plain writer: no gap, repeats are allowed", () => {
  const order = new OrderCheck();
  for (const sequence of [0, 1, 2, 1, 2, 3]) order.take(told(sequence, "plain-a"));
  assert.throws(() => order.take(told(5, "plain-a")), Violation);
});

test("the tail begins with the first record of each writer, and no offset is left out", () => {
  const book = new PartitionBook(KEPT, 0);
  assert.throws(() => book.read(0, told(3), NOW, true), Violation);
  const other = new PartitionBook(KEPT, 0);
  other.read(0, told(0), NOW, true);
  assert.throws(() => other.read(2, told(1), NOW, true), Violation);
});

test("an answer and the tail tell the same of an offset, whichever comes first", () => {
  const book = new PartitionBook(KEPT, 0);
  book.answered(0, told(0), 1);
  book.read(0, told(0), NOW, true);
  book.read(1, told(1), NOW, true);
  assert.throws(() => book.answered(1, told(2), 1), Violation);
  book.answered(2, told(5, "once-b"), 1);
  assert.throws(() => book.read(2, told(2), NOW, true), Violation);
});

test("what was acknowledged and never read is missed", () => {
  const book = new PartitionBook(KEPT, 0);
  book.read(0, told(0), NOW, true);
  book.answered(0, told(0), 1);
  book.checkAcknowledged();
  book.answered(1, told(1), 2);
  assert.throws(() => book.checkAcknowledged(), /acknowledged up to 2, and ends at 0/);
});

test("another record at an offset that was sampled is noticed", () => {
  const book = new PartitionBook(KEPT, 0);
  for (let i = 0; i < 40; i++) book.read(i, told(i), NOW, false);
  book.compare(32, told(32));
  book.compare(33, told(99));
  assert.throws(() => book.compare(32, told(31)), Violation);
});

test("a log starts later only where retention allows it", () => {
  assert.throws(() => new PartitionBook(KEPT, 0).started(1), Violation);
  new PartitionBook(SIZED, 0).started(1);
  const aged = new PartitionBook(AGED, 0);
  for (let i = 0; i < 70; i++) aged.read(i, told(i), NOW - (i < 40 ? 41_000 : 1_000), false);
  aged.started(40);
  assert.throws(() => aged.started(66), /offset 64 is gone after/);
});

test("a group passes over nothing, and may repeat", () => {
  const soak = new Soak("127.0.0.1:1", () => {});
  const group = new GroupBook("g");
  const key = new TextEncoder().encode("once-a");
  const take = (offset: number) => group.take(soak, 0, offset, key, payloadOf("once-a", offset));
  for (const offset of [0, 1, 2, 1, 2, 3]) take(offset);
  assert.deepEqual(soak.violations, []);
  assert.equal(group.repeated, 2);
  take(5);
  assert.match(soak.violations[0]!, /goes from 4 to 5/);
  const book = new PartitionBook(KEPT, 0);
  book.tail = 7;
  assert.deepEqual(group.missing([book]), ["kept-0: 6 of 7"]);
});

test("every byte of a record is known", () => {
  const batch = batchOf({ writer: "once-sized-0", sequence: 11, count: 3, producerId: 5 });
  const rows = [...readRecords(batch, codecs)];
  assert.deepEqual(rows.map(readPayload), [11, 12, 13].map((one) => told(one, "once-sized-0")));
  const value = rows[0]!.value!.slice();
  value[value.length - 1]! ^= 1;
  assert.throws(() => readPayload({ key: rows[0]!.key, value }), /other bytes/);
});

test("200 partitions; options are told by name; quarters are medians", () => {
  assert.equal(PARTITIONS, 200);
  const options = parseSoakOptions(["--minutes", "30", "--store", "s3", "--seed", "4"], "/t");
  assert.deepEqual(options, {
    minutes: 30,
    store: "versitygw",
    seed: 4,
    cache: "/t/skerry-real-s3",
    out: null,
  });
  assert.throws(() => parseSoakOptions(["--store", "tape"], "/t"), /Cannot use --store tape/);
  assert.throws(() => parseSoakOptions(["--minutes", "x"], "/t"), /not a number/);
  const samples = [0, 30, 40, 45, 60, 80, 90].map((atMs) => ({ atMs }));
  const found = quarters(samples, { fromMs: 0, toMs: 100 }, ({ atMs }) => atMs);
  assert.deepEqual(found, { second: 40, last: 90 });
});
