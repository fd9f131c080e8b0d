/** Recovery scenarios 48-51: batches of a producer that compaction or DeleteRecords took away. */
import assert from "node:assert/strict";
import { PARTITION_TICK_MS } from "../../src/lib/limits.ts";
import { scenario } from "./scenario.ts";
import { loseSnapshots, operate } from "./surgery.ts";
import type { RecoveryWorld } from "./world.ts";

/** Compacts whatever lies in a closed segment at the next look. */
const COMPACTED = {
  "cleanup.policy": "compact",
  "min.cleanable.dirty.ratio": "0",
  "segment.ms": "1000",
};
/** Somebody else, whose records replace those of others. */
const Q = { producerId: 8, epoch: 0 };

/** Closes the segment with a record of nobody and lets a pass go over what is behind it. */
async function compact(w: RecoveryWorld): Promise<void> {
  await w.clock.advance(2_000);
  await w.send(0, 0, { producerId: -1, epoch: -1, key: "end" });
  await w.clock.advance(2 * PARTITION_TICK_MS);
}

scenario(
  "48: all records of an active producer are compacted away, its last batch is known",
  async (w, end) => {
    await w.topic("t", 1, COMPACTED);
    assert.equal(await w.send(0, 4, { key: "k" }), "@0");
    assert.equal(await w.send(0, 0, { ...Q, key: "k" }), "@5");
    await compact(w);
    assert.deepEqual(await w.contents(), ["5:0", "6:0"]);
    await w.restart(end);
    assert.deepEqual(await w.producers(), ["7 e3 s4", "8 e0 s0"]);
    assert.equal(await w.send(0, 4, { key: "k" }), "@0");
    assert.equal(await w.send(5, 5, { key: "k" }), "@7");
    await w.close();
    await operate(w, loseSnapshots);
    await w.start();
    assert.deepEqual(await w.producers(), ["7 e3 s5", "8 e0 s0"], "the empty batch says it");
    assert.equal(await w.send(0, 4, { key: "k" }), "@0");
    assert.equal(await w.send(6, 6, { key: "k" }), "@8");
  },
);

scenario(
  "49: middle batches are compacted away, the hole in the sequences is replayed",
  async (w, end) => {
    await w.topic("t", 1, COMPACTED);
    const own = (first: number) => Array.from({ length: 5 }, (_, i) => `own ${first + i}`);
    await w.send(0, 4, { keys: own(0) });
    for (let first = 5; first < 50; first += 5) await w.send(first, first + 4, { key: "k" });
    await w.send(50, 54, { keys: own(50) });
    await w.send(0, 0, { ...Q, key: "k" });
    await compact(w);
    const left = [0, 1, 2, 3, 4, 50, 51, 52, 53, 54].map((at) => `${at}:${at}`);
    assert.deepEqual(await w.contents(), [...left, "55:0", "56:0"]);
    await w.end(end);
    await operate(w, loseSnapshots);
    await w.start();
    assert.deepEqual(await w.producers(), ["7 e3 s54", "8 e0 s0"]);
    assert.equal(await w.send(50, 54, { keys: own(50) }), "@50");
    assert.equal(await w.send(0, 4, { keys: own(0) }), "@0", "the last five that are left");
    assert.equal(await w.send(45, 49, { key: "k" }), "OUT_OF_ORDER_SEQUENCE_NUMBER");
    assert.equal(await w.send(55, 55, { key: "k" }), "@57");
  },
);

scenario("50: a producer that expired before compaction leaves nothing", async (w, end) => {
  await w.topic("t", 1, COMPACTED);
  await w.send(0, 4, { key: "k" });
  await w.idle();
  assert.deepEqual(await w.producers(), []);
  await w.send(0, 0, { ...Q, key: "k" });
  await compact(w);
  assert.deepEqual(await w.contents(), ["5:0", "6:0"]);
  await w.end(end);
  await operate(w, loseSnapshots);
  await w.start();
  assert.deepEqual(await w.producers(), ["8 e0 s0"]);
  assert.equal(await w.send(77, 77, { key: "k" }), "@7");
});

scenario("51: all is deleted, the end stays, the producer goes on", async (w, end) => {
  await w.topic();
  await w.send(0, 4);
  assert.equal(await w.deleteRecords(5), 5);
  await w.restart(end);
  assert.deepEqual([await w.logStart(), await w.logEnd()], [5, 5]);
  assert.deepEqual(await w.contents(), []);
  assert.equal(await w.send(5, 6), "@5");
  assert.equal(await w.send(5, 6), "@5");
});

scenario("51: all is deleted, without a snapshot", async (w, end) => {
  await w.topic();
  await w.send(0, 4);
  assert.equal(await w.deleteRecords(5), 5);
  await w.end(end);
  await operate(w, loseSnapshots);
  await w.start();
  assert.deepEqual([await w.logStart(), await w.logEnd()], [5, 5]);
  assert.deepEqual(await w.producers(), []);
  assert.equal(await w.send(5, 6), "@5");
  assert.equal(await w.send(5, 6), "@5");
});

scenario(
  "51: the beginning is deleted, and a producer goes on that begins in the middle",
  async (w, end) => {
    await w.topic();
    for (let i = 0; i < 4; i++) await w.send(i, i);
    assert.equal(await w.deleteRecords(3), 3);
    await w.end(end);
    await operate(w, loseSnapshots);
    await w.start();
    assert.deepEqual(await w.contents(), ["3:3"]);
    assert.deepEqual(await w.producers(), ["7 e3 s3"]);
    assert.equal(await w.send(3, 3), "@3");
    assert.equal(await w.send(4, 4), "@4");
  },
);
