/** Recovery scenarios 19-26: sequences that wrap, epochs that rise, and what a restart makes of both. */
import assert from "node:assert/strict";
import { encodeSnapshots } from "../../src/log/producer_snapshot.ts";
import { drive } from "../faults/world.ts";
import { TxnClient } from "../support/txn_client.ts";
import { scenario } from "./scenario.ts";
import { kafkaSnapshot, operate } from "./surgery.ts";
import { type RecoveryWorld, sequenced } from "./world.ts";

scenario("19: sequence 0 follows 2147483647 over a restart", async (w, end) => {
  await w.topic();
  assert.equal(await w.send(2147483640, 2147483647), "@0");
  await w.restart(end);
  assert.equal(await w.send(0, 3), "@8");
  assert.deepEqual(await w.producers(), ["7 e3 s3"]);
  assert.equal(await w.send(2147483640, 2147483647), "@0");
});

async function straddling(w: RecoveryWorld): Promise<void> {
  await w.topic();
  assert.equal(await w.send(2147483646, 1), "@0");
  assert.equal(await w.logEnd(), 4);
}

async function expectStraddled(w: RecoveryWorld): Promise<void> {
  assert.deepEqual(await w.producers(), ["7 e3 s1"]);
  assert.equal(await w.send(2147483646, 1), "@0");
  assert.equal(await w.send(2147483647, 1), "OUT_OF_ORDER_SEQUENCE_NUMBER", "another first");
  assert.equal(await w.send(2, 2), "@4");
}

scenario("20: a batch that straddles the wrap is a duplicate after a restart", async (w, end) => {
  await straddling(w);
  await w.restart(end);
  await expectStraddled(w);
});

scenario(
  "21: a snapshot has the last sequence and the distance: the first one is before the wrap",
  async (w) => {
    await straddling(w);
    await w.close();
    await operate(w, async (partition) => {
      const entry = { producerId: 7, epoch: 3, lastSequence: 1, lastOffset: 3, offsetDelta: 3 };
      const bytes = kafkaSnapshot([{ ...entry, timestampMs: w.clock.nowMs() }]);
      await partition.meta.put("PRODUCER_SNAPSHOTS", encodeSnapshots([{ offset: 4, bytes }]));
    });
    await w.start();
    await expectStraddled(w);
  },
  { bothEnds: false },
);

scenario("22: 1 does not follow 2147483647", async (w, end) => {
  await w.topic();
  await w.send(2147483647, 2147483647);
  await w.restart(end);
  assert.equal(await w.send(1, 1), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal(await w.send(0, 0), "@1");
});

scenario("23: an epoch that is over stays over", async (w, end) => {
  await w.topic();
  await w.send(0, 4);
  assert.equal(await w.send(0, 1, { epoch: 4 }), "@5");
  await w.restart(end);
  assert.equal(await w.send(0, 4), "INVALID_PRODUCER_EPOCH");
  assert.equal(await w.send(5, 5), "INVALID_PRODUCER_EPOCH");
  assert.equal(await w.send(0, 1, { epoch: 4 }), "@5");
  assert.equal(await w.logEnd(), 7);
});

scenario("24: a new epoch begins with sequence 0", async (w, end) => {
  await w.topic();
  await w.send(0, 4);
  const early = () => w.send(5, 5, { epoch: 4 });
  assert.equal(await early(), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  await w.restart(end);
  assert.equal(await early(), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.deepEqual(await w.producers(), ["7 e3 s4"], "a refusal changes nothing");
  assert.equal(await w.send(0, 0, { epoch: 4 }), "@5");
});

scenario(
  "23: an idempotent producer that asks for its next epoch (KIP-360) goes on with it",
  async (w, end) => {
    await w.topic();
    const first = await w.initProducer();
    await w.send(0, 4, first);
    await w.restart(end);
    const { producerId, epoch } = first;
    const next = await w.initProducer({ producerId, producerEpoch: epoch });
    assert.notDeepEqual(next, first);
    assert.equal(await w.send(0, 4, next), "@5", "nothing is taken for a duplicate");
    await w.restart(end);
    assert.equal(await w.send(0, 4, next), "@5");
    assert.equal(await w.send(5, 5, next), "@10");
  },
);

scenario(
  "23: a transactional producer that raised its epoch (KIP-360) stays ahead of itself",
  async (w, end) => {
    await w.topic();
    const caller = { call: w.call.bind(w) };
    const tx = new TxnClient(caller, "tx", { isV2: true });
    await tx.init();
    assert.equal(await tx.produce("t", ["a"]), "NONE");
    const old = { producerId: tx.producerId, epoch: tx.producerEpoch };
    assert.equal(await tx.end(false), "NONE");
    await w.clock.settle();
    assert.equal(await tx.init({ keep: true }), "NONE");
    await w.restart(end);
    assert.equal(tx.producerId, old.producerId);
    assert.ok(tx.producerEpoch > old.epoch);
    const late = sequenced(1, 1, w.clock.nowMs(), { ...old, transactional: true });
    assert.equal((await drive(w.clock, tx.send("t", late))).error, "INVALID_PRODUCER_EPOCH");
    assert.equal(await tx.produce("t", ["b"]), "NONE");
    assert.equal(await tx.end(true), "NONE");
    await w.restart(end);
    assert.deepEqual(await w.committed(), ["b"]);
  },
);

scenario("25: an epoch that goes back in the log is replayed as the log says", async (w, end) => {
  await w.topic();
  await w.send(0, 0, { epoch: 5 });
  await w.idle();
  assert.equal(await w.send(9, 9, { epoch: 4 }), "@1");
  await w.restart(end);
  await w.restart("kill");
  assert.deepEqual(await w.producers(), ["7 e4 s9"]);
  assert.equal(await w.send(9, 9, { epoch: 4 }), "@1");
  assert.equal(await w.send(10, 10, { epoch: 4 }), "@2");
});

scenario("25: also one that no admission would have let in", async (w, end) => {
  await w.topic();
  await w.send(0, 0, { epoch: 5 });
  await w.end(end);
  await operate(w, async (partition) => {
    await partition.append(sequenced(3, 3, w.clock.nowMs(), { epoch: 4 }));
  });
  await w.start();
  assert.deepEqual(await w.contents(), ["0:0", "1:3"]);
  assert.deepEqual(await w.producers(), ["7 e4 s3"]);
  assert.equal(await w.send(4, 4, { epoch: 4 }), "@2");
});

scenario("26: only a marker is known of a producer", async (w, end) => {
  await w.topic();
  assert.equal(await w.mark({ epoch: 6 }), "NONE");
  await w.restart(end);
  assert.deepEqual(await w.producers(), ["7 e6 s-1"]);
  assert.equal(await w.send(3, 3, { epoch: 6 }), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal(await w.send(0, 0, { epoch: 5 }), "INVALID_PRODUCER_EPOCH");
  assert.equal(await w.send(0, 0, { epoch: 6 }), "@1");
});
