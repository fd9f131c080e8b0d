/** Recovery scenarios 1-8 and 27-30: producers that are idle, forgotten, and come back. */
import assert from "node:assert/strict";
import { TxnClient } from "../support/txn_client.ts";
import { drive } from "../faults/world.ts";
import { scenario } from "./scenario.ts";
import { type RecoveryWorld, sequenced, X } from "./world.ts";

/** A replay may know who had expired; a partition opens, and begins to count, when somebody asks for it. */
async function expireAgain(w: RecoveryWorld): Promise<void> {
  assert.equal((await w.producers()).length, 1);
  await w.idle();
}

scenario("1: an expired producer is not in the snapshot and comes back", async (w) => {
  await w.topic();
  assert.equal(await w.send(0, 9), "@0");
  assert.deepEqual(await w.producers(), ["7 e3 s9"]);
  await w.idle();
  assert.deepEqual(await w.producers(), []);
  await w.restart("close");
  assert.deepEqual(await w.producers(), []);
  assert.equal(await w.logEnd(), 10);
  assert.equal(await w.send(10, 12), "@10");
}, { bothEnds: false });

scenario(
  "2: no snapshot: the log is replayed from its start, and expiry comes later",
  async (w) => {
    await w.topic();
    await w.send(0, 9);
    await w.idle();
    await w.restart("kill");
    assert.deepEqual(await w.producers(), ["7 e3 s9"]);
    assert.equal(await w.send(0, 9), "@0");
    assert.equal(await w.send(11, 11), "OUT_OF_ORDER_SEQUENCE_NUMBER");
    assert.equal(await w.logEnd(), 10);
    await w.idle(0);
    assert.deepEqual(await w.producers(), ["7 e3 s9"], "the time before a start is no idle time");
    await w.idle();
    assert.deepEqual(await w.producers(), []);
    assert.equal(await w.send(11, 11), "@10");
  },
  { bothEnds: false },
);

scenario(
  "3: a first sequence far from 0 is replayed without complaint (Fluss 1386)",
  async (w, end) => {
    await w.topic();
    assert.deepEqual(await w.contents(), []);
    await w.restart("close");
    assert.equal(await w.send(17871, 17871), "@0");
    await w.idle();
    await w.restart(end);
    assert.equal(await w.logEnd(), 1);
    assert.deepEqual(await w.contents(), ["0:17871"]);
    assert.deepEqual(await w.producers(), end === "kill" ? ["7 e3 s17871"] : []);
    assert.equal(await w.send(17872, 17872), "@1");
  },
);

for (const [first, last] of [[5, 5], [0, 4]] as const) {
  scenario(
    `4: the loader drops who was idle while others appended: ${first}..${last} is new`,
    async (w) => {
      await w.topic();
      await w.send(0, 4);
      await w.idle();
      await w.send(0, 0, { producerId: 8 });
      assert.deepEqual(await w.producers(), ["7 e3 s4", "8 e3 s0"]);
      await w.restart("close", { "producer.id.expiration.ms": String(X) });
      assert.deepEqual(await w.producers(), ["8 e3 s0"]);
      assert.equal(await w.send(first, last), "@6", "the documented loss of the window");
    },
    { bothEnds: false, kafka: { "producer.id.expiration.ms": String(10 * X) } },
  );
}

scenario(
  "4: a broker that was down for longer than the expiration forgets nobody",
  async (w, end) => {
    await w.topic();
    await w.send(0, 4);
    await w.end(end);
    await w.clock.advance(3 * X);
    await w.start();
    await w.idle(0);
    assert.deepEqual(await w.producers(), ["7 e3 s4"]);
    assert.equal(await w.send(0, 4), "@0");
    await w.idle();
    assert.equal(await w.send(0, 4), "@5", "idle from the start on");
  },
);

const GENERATIONS = [
  ["5: both generations of a producer are applied, from the log alone", false],
  ["6: both generations of a producer are applied, from a snapshot without it", true],
] as const;

for (const [title, hasSnapshot] of GENERATIONS) {
  scenario(title, async (w) => {
    await w.topic();
    await w.send(0, 4);
    await w.idle();
    if (hasSnapshot) await w.restart("close");
    assert.equal(await w.send(5, 9), "@5");
    await w.restart("kill");
    assert.deepEqual(await w.producers(), ["7 e3 s9"]);
    assert.equal(await w.send(5, 9), "@5");
    assert.equal(await w.logEnd(), 10);
    assert.equal(await w.send(10, 10), "@10");
  }, { bothEnds: false });
}

scenario("7: an active producer is replayed exactly beside one that expires", async (w, end) => {
  // Each tick finds a segment that is closed, and writes a snapshot.
  await w.topic("t", 1, { "segment.ms": "25000" });
  await w.send(0, 0);
  for (let i = 0; i < 100; i++) {
    assert.equal(await w.send(i, i, { producerId: 8 }), `@${i + 1}`);
    await w.clock.advance(X / 50);
  }
  const known = await w.producers();
  assert.deepEqual(known, ["8 e3 s99"]);
  await w.restart(end);
  assert.deepEqual((await w.producers()).filter((one) => one.startsWith("8")), known);
  for (let i = 95; i < 100; i++) {
    assert.equal(await w.send(i, i, { producerId: 8 }), `@${i + 1}`);
  }
  assert.equal(await w.send(94, 94, { producerId: 8 }), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal(await w.logEnd(), 101);
  assert.equal(await w.send(100, 100, { producerId: 8 }), "@101");
  assert.equal(await w.send(50, 50), "@102", "whatever a replay knows of it");
});

scenario("8: the expiration is raised between two runs", async (w) => {
  await w.topic();
  await w.send(0, 4);
  await w.idle(2 * X);
  assert.deepEqual(await w.producers(), []);
  await w.restart("kill", { "producer.id.expiration.ms": String(24 * X) });
  assert.deepEqual(await w.producers(), ["7 e3 s4"]);
  assert.equal(await w.send(0, 4), "@0");
  assert.equal(await w.send(5, 5), "@5");
}, { bothEnds: false });

scenario(
  "27: an idempotent producer goes on after it expired, with the sequence it is at",
  async (w, end) => {
    await w.topic();
    await w.send(0, 99);
    await w.idle();
    await w.restart(end);
    if (end === "kill") await expireAgain(w);
    assert.deepEqual(await w.producers(), []);
    assert.equal(await w.send(100, 104), "@100");
    assert.equal(await w.send(100, 104), "@100");
    assert.equal(await w.send(106, 106), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  },
);

scenario(
  "28: nothing is known, so a lower epoch is taken, and holds from then on",
  async (w, end) => {
    await w.topic();
    await w.send(0, 99);
    await w.idle();
    assert.equal(await w.send(7, 7, { epoch: 2 }), "@100");
    await w.restart(end);
    assert.deepEqual(await w.producers(), ["7 e2 s7"]);
    assert.equal(await w.send(7, 7, { epoch: 2 }), "@100");
    assert.equal(await w.send(8, 8, { epoch: 2 }), "@101");
  },
);

scenario("29: transactions v2 begin with sequence 0 where nothing is known", async (w, end) => {
  await w.topic();
  const tx = new TxnClient({ call: (...one) => w.call(...one) }, "tx", { isV2: true });
  assert.equal(await tx.init(), "NONE");
  assert.equal(await tx.produce("t", ["0", "1", "2", "3"]), "NONE");
  assert.equal(await tx.end(true), "NONE");
  await w.clock.settle();
  const { producerId, producerEpoch: epoch } = tx;
  assert.deepEqual(await w.producers(), [`${producerId} e${epoch} s-1`], "the end raised it");
  await w.idle();
  assert.deepEqual(await w.producers(), []);
  await w.restart(end);
  if (end === "kill") await expireAgain(w);
  assert.deepEqual(await w.producers(), []);
  const begin = async (first: number) => {
    const over = { producerId, epoch, transactional: true };
    const records = sequenced(first, first, w.clock.nowMs(), over);
    return (await drive(w.clock, tx.send("t", records))).error;
  };
  assert.equal(await begin(4), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal(await begin(0), "NONE");
  assert.deepEqual(await w.producers(), [`${producerId} e${epoch} s0 txn@5`]);
});

scenario("30: a replay over a producer's both lives, with a gap between them", async (w, end) => {
  await w.topic();
  await w.send(0, 99);
  await w.idle();
  assert.equal(await w.send(200, 204), "@100");
  await w.restart(end);
  await w.restart("kill");
  assert.deepEqual(await w.producers(), ["7 e3 s204"]);
  assert.equal(await w.send(200, 204), "@100");
  assert.equal(await w.send(205, 205), "@105");
  assert.equal((await w.contents()).length, 106);
});
