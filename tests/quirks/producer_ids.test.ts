/** InitProducerId: sheet sections 2.2, 2.3, 3.3, 3.10 and the producer ids row of 7. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { initProducerIdApi } from "../../src/protocol/message/22_init_producer_id.ts";
import { batch, named, type Quirks, restarted, startQuirks } from "./quirks.ts";

async function init(q: Quirks, version = 4, transactionalId: string | null = null, known = {}) {
  const request = { transactionalId, transactionTimeoutMs: 60_000, ...known };
  return named(await q.call(initProducerIdApi, version, request));
}

test("every version answers a fresh id with epoch 0", async () => {
  const q = await startQuirks();
  const ids = new Set<number>();
  for (let version = 0; version <= 5; version++) {
    const { error, producerId, producerEpoch } = await init(q, version);
    assert.deepEqual([error, producerEpoch], ["NONE", 0]);
    assert.ok(producerId >= 0);
    ids.add(producerId);
  }
  assert.equal(ids.size, 6);
});

test("a producer that lost its epoch gets an id it can go on with (KIP-360)", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const first = await init(q);
  await q.produce("t", batch(["a"], { producer: [first.producerId, 0, 0] }));
  const { producerId, producerEpoch } = first;
  const next = await init(q, 4, null, { producerId, producerEpoch });
  assert.equal(next.error, "NONE");
  const producer = [next.producerId, next.producerEpoch, 0] as const;
  const sent = await q.produce("t", batch(["b"], { producer }));
  assert.deepEqual([sent.error, sent.baseOffset], ["NONE", 1], "nothing taken for a duplicate");
});

test("ids are never given twice, not over blocks, restarts and crashes", async () => {
  let q = await startQuirks();
  const ids = new Set<number>();
  for (const clean of [true, false, true]) {
    for (let i = 0; i < 1200; i++) ids.add((await init(q)).producerId);
    q = await restarted(q, { clean });
  }
  ids.add((await init(q)).producerId);
  assert.equal(ids.size, 3 * 1200 + 1);
});

test("two nodes' worth of requests at once share no id", async () => {
  const q = await startQuirks();
  const clients = Array.from({ length: 20 }, () => q.node.connect());
  const answers = await Promise.all(
    clients.map((client) =>
      client.call(initProducerIdApi, 4, { transactionalId: null, transactionTimeoutMs: 0 })
    ),
  );
  assert.equal(new Set(answers.map(({ producerId }) => producerId)).size, 20);
});

test("a transactional id keeps its producer id and raises the epoch, in every version", async () => {
  const q = await startQuirks();
  const first = await init(q, 0, "tx");
  assert.deepEqual([first.error, first.producerEpoch], ["NONE", 0]);
  for (let version = 1; version <= 5; version++) {
    const { error, producerId, producerEpoch } = await init(q, version, "tx");
    assert.deepEqual([error, producerId, producerEpoch], ["NONE", first.producerId, version]);
  }
});

test("what InitProducerId refuses of a transactional producer", async () => {
  const q = await startQuirks();
  for (const transactionTimeoutMs of [0, -1, 900_001]) {
    const { error } = await init(q, 4, "tx", { transactionTimeoutMs });
    assert.equal(error, "INVALID_TRANSACTION_TIMEOUT");
  }
  assert.equal((await init(q, 4, "tx", { producerId: 5 })).error, "INVALID_REQUEST");
  assert.equal((await init(q, 4, "tx", { producerEpoch: 5 })).error, "INVALID_REQUEST");
});

test("an empty transactional id is INVALID_REQUEST", async () => {
  assert.equal((await init(await startQuirks(), 4, "")).error, "INVALID_REQUEST");
});
