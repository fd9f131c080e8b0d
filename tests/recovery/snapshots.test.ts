/**
 * Recovery scenarios 36-42: producer snapshots that are damaged, odd or not of this log. Each damage has a partition
 * of its own with the same six batches and snapshots at 3 and at 6, so that one start meets them all.
 */
import assert from "node:assert/strict";
import { errorName } from "../../src/protocol/error_code.ts";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import type { ProducerSnapshot } from "../../src/log/producer_snapshot.ts";
import { scenario } from "./scenario.ts";
import { kafkaSnapshot, operate, putSnapshots, sealed, snapshotsOf } from "./surgery.ts";
import { type RecoveryWorld, sequenced } from "./world.ts";

/** Its low byte, of the first producer. */
const EPOCH_AT = 10 + 8 + 1;
/** One producer with five batches, as the six batches leave it. */
const SNAPSHOT_BYTES = 10 + 46 + 12 + 5 * 24;

type Damage = (older: ProducerSnapshot, newest: ProducerSnapshot) => readonly ProducerSnapshot[];

/** The same batch for all partitions; answers as of `send`. */
async function sendAll(w: RecoveryWorld, partitions: number, first: number, last = first) {
  const answer = await w.call(produceApi, 9, {
    acks: -1,
    timeoutMs: 30_000,
    topicData: [{
      name: "t",
      partitionData: Array.from({ length: partitions }, (_, index) => ({
        index,
        records: sequenced(first, last, w.clock.nowMs()),
      })),
    }],
  });
  return answer.responses[0]!.partitionResponses.map(({ errorCode, baseOffset }) =>
    errorCode === 0 ? `@${baseOffset}` : errorName(errorCode)
  );
}

async function expectAll(w: RecoveryWorld, partitions: number, first: number, expected: string) {
  const answers = await sendAll(w, partitions, first);
  assert.deepEqual(
    answers,
    Array.from({ length: partitions }, () => expected),
    `sequence ${first}`,
  );
}

/** Starts with the damages. */
async function damaged(w: RecoveryWorld, damages: readonly Damage[]): Promise<void> {
  const { length } = damages;
  await w.topic("t", length);
  for (let i = 0; i < 3; i++) await expectAll(w, length, i, `@${i}`);
  await w.restart("close");
  for (let i = 3; i < 6; i++) await expectAll(w, length, i, `@${i}`);
  await w.close();
  await operate(w, async (partition) => {
    const [older, newest, ...rest] = snapshotsOf(partition);
    assert.deepEqual([older?.offset, newest?.offset, rest.length], [3, 6, 0]);
    assert.equal(newest!.bytes.length, SNAPSHOT_BYTES);
    await putSnapshots(partition, damages[partition.index]!(older!, newest!));
  });
  await w.start();
}

/** Asks each partition for everything that a sound snapshot would know. */
async function survive(w: RecoveryWorld, damages: readonly Damage[]): Promise<void> {
  const { length } = damages;
  await damaged(w, damages);
  for (let i = 5; i >= 1; i--) await expectAll(w, length, i, `@${i}`);
  await expectAll(w, length, 0, "OUT_OF_ORDER_SEQUENCE_NUMBER");
  for (const partition of [0, length - 1]) {
    assert.deepEqual(await w.producers({ partition }), ["7 e3 s5"]);
    assert.equal(await w.logEnd({ partition }), 6);
  }
  await expectAll(w, length, 6, "@6");
  // What was discarded does not come back once the log has reached its offset.
  await w.restart("close");
  await expectAll(w, length, 6, "@6");
  await expectAll(w, length, 5, "@5");
  await expectAll(w, length, 7, "@7");
}

const newestAs = (change: (bytes: Uint8Array) => Uint8Array): Damage => (older, newest) => [
  older,
  { ...newest, bytes: change(newest.bytes.slice()) },
];

const everyByte = (step: number) =>
  Array.from({ length: Math.ceil(SNAPSHOT_BYTES / step) }, (_, i) => i * step);

const ONCE = { bothEnds: false };

scenario("36: the newest snapshot is cut, at every byte", async (w) => {
  await survive(w, everyByte(1).map((cut) => newestAs((bytes) => bytes.subarray(0, cut))));
}, { ...ONCE, memoryOnly: true });

scenario("37: the newest snapshot has a flipped bit, in every byte", async (w) => {
  await survive(
    w,
    everyByte(1).map((at) => newestAs((bytes) => bytes.with(at, bytes[at]! ^ (1 << at % 8)))),
  );
}, { ...ONCE, memoryOnly: true });

scenario("36 and 37: both snapshots are cut or flipped", async (w) => {
  const both = (change: (bytes: Uint8Array) => Uint8Array): Damage => (...all) =>
    all.map((one) => ({ ...one, bytes: change(one.bytes.slice()) }));
  await survive(w, [
    both((bytes) => bytes.subarray(0, 0)),
    both((bytes) => bytes.subarray(0, 9)),
    both((bytes) => bytes.subarray(0, -1)),
    both((bytes) => bytes.with(20, bytes[20]! ^ 4)),
  ]);
}, ONCE);

const STRANGER = { producerId: 7, epoch: 9, lastSequence: 70, lastOffset: 6, offsetDelta: 0 };

scenario("38: a snapshot from past the log's end is discarded", async (w) => {
  const bytes = kafkaSnapshot([{ ...STRANGER, timestampMs: w.clock.nowMs() }]);
  await survive(w, [
    (...sound) => [...sound, { offset: 7, bytes }],
    () => [{ offset: 7, bytes }],
    (older) => [older, { offset: 1000, bytes }],
  ]);
}, ONCE);

scenario("40: a snapshot of an unknown version counts as missing", async (w) => {
  const entry = { ...STRANGER, timestampMs: w.clock.nowMs() };
  await survive(w, [
    newestAs(() => kafkaSnapshot([entry], { version: 2 })),
    newestAs(() => kafkaSnapshot([entry], { version: 0 })),
    // Sound but for its version, and not true.
    newestAs((bytes) => sealed(bytes.with(1, 101).with(EPOCH_AT, 9))),
    newestAs((bytes) => bytes.with(0, 127)),
  ]);
}, ONCE);

scenario(
  "41: more entries than bytes, fewer, and a producer twice, under a checksum that is right",
  async (w) => {
    const entry = { ...STRANGER, timestampMs: w.clock.nowMs() };
    await survive(w, [
      newestAs(() => kafkaSnapshot([entry], { count: 2 })),
      newestAs(() => kafkaSnapshot([entry], { count: 0 })),
      newestAs(() => kafkaSnapshot([entry], { count: -1 })),
      newestAs(() => kafkaSnapshot([entry], { count: 2 ** 31 - 1 })),
      newestAs(() => kafkaSnapshot([entry, { ...entry, epoch: 10 }])),
      newestAs((bytes) => sealed(bytes.with(9, 2))),
    ]);
  },
  ONCE,
);

scenario("39: a snapshot from below the log's start is no base", async (w) => {
  await w.topic("t", 1, { "segment.ms": "1000" });
  for (let i = 0; i < 4; i++) {
    assert.equal(await w.send(10 + i, 10 + i), `@${i}`);
    await w.clock.advance(2_000);
  }
  assert.equal(await w.deleteRecords(2), 2);
  await w.close();
  const stranger = { ...STRANGER, timestampMs: w.clock.nowMs() };
  const bytes = kafkaSnapshot([stranger, { ...stranger, producerId: 8 }]);
  await operate(w, (partition) => putSnapshots(partition, [{ offset: 1, bytes }]));
  await w.start();
  assert.equal(await w.logStart(), 2);
  assert.deepEqual(await w.contents(), ["2:12", "3:13"]);
  assert.deepEqual(await w.producers(), ["7 e3 s13"]);
  assert.equal(await w.send(12, 12), "@2");
  assert.equal(await w.send(14, 14), "@4");
}, ONCE);

scenario("42: the newest is corrupt: the older one serves, and the corrupt one goes", async (w) => {
  await damaged(w, [newestAs((bytes) => bytes.with(9, bytes[9]! ^ 1))]);
  assert.equal(await w.send(5, 5), "@5");
  assert.equal(await w.send(6, 6), "@6");
  await w.close();
  await operate(w, async (partition) => {
    assert.deepEqual(snapshotsOf(partition).map(({ offset }) => offset), [3, 7]);
  });
}, ONCE);

scenario("42: the older one really serves: what only it knows is known", async (w) => {
  await w.topic();
  await w.send(0, 0);
  await w.restart("close");
  await w.send(1, 1);
  await w.close();
  await operate(w, async (partition) => {
    const [older, newest] = snapshotsOf(partition);
    const entry = { producerId: 8, epoch: 1, lastSequence: 5, lastOffset: 0, offsetDelta: 0 };
    const known = [
      { ...entry, producerId: 7, epoch: 3, lastSequence: 0, timestampMs: w.clock.nowMs() },
      { ...entry, timestampMs: w.clock.nowMs() },
    ];
    const bytes = newest!.bytes.subarray(1);
    await putSnapshots(partition, [
      { offset: older!.offset, bytes: kafkaSnapshot(known) },
      { offset: newest!.offset, bytes },
    ]);
  });
  await w.start();
  assert.deepEqual(await w.producers(), ["7 e3 s1", "8 e1 s5"]);
  assert.equal(await w.send(6, 6, { producerId: 8, epoch: 1 }), "@2");
}, ONCE);
