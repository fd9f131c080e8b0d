/** What each acks promises, and what a crash then leaves: the claims of docs/durability.md. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryStore } from "../../src/object/memory.ts";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import { createFakeClock } from "../support/fake_clock.ts";
import { faultyStore } from "../support/faulty_store.ts";
import { TxnClient } from "../support/txn_client.ts";
import { batch, produceRequest, type Quirks, restarted, startQuirks, valuesOf } from "./quirks.ts";

/** A node with one durable record, whose store then takes no more writes. */
async function stuck(kafka: Record<string, string> = {}) {
  const clock = createFakeClock();
  const store = faultyStore(createMemoryStore(clock), clock);
  const q = await startQuirks(kafka, { clock, store });
  await q.topic("t");
  await q.produce("t", batch(["first"], { producer: [5, 0, 0] }));
  store.setPlan(({ op }) => op === "put" ? { kind: "delay", delayMs: 10 ** 9 } : undefined);
  const crash = () => {
    store.setPlan();
    return restarted(q, { clean: false }, kafka);
  };
  return { q, clock, crash };
}

const LATE = () => batch(["late"], { producer: [5, 0, 1] });

async function stored(q: Quirks): Promise<unknown> {
  return valuesOf((await q.fetch("t", 0)).records);
}

const PROMISES = [
  { acks: 0, one: "durable", answers: 0 },
  { acks: 1, one: "log-end", answers: 1 },
  { acks: 1, one: "durable", answers: 0 },
  { acks: -1, one: "log-end", answers: 0 },
] as const;

for (const { acks, one, answers } of PROMISES) {
  test(`a crash before the store has it, acks=${acks}, ${one}: gone, and taken as new when it is sent again`, async () => {
    const { q, clock, crash } = await stuck({ "skerry.acks.one": one });
    const client = q.node.connect();
    client.post(produceApi, 9, produceRequest("t", LATE(), { acks }));
    await clock.settle();
    assert.equal(client.unread, answers, "answers that came without the store");
    assert.deepEqual(await stored(q), ["first"], "nobody reads it before it is durable");
    const next = await crash();
    assert.deepEqual(await stored(next), ["first"]);
    const again = await next.produce("t", LATE());
    assert.deepEqual([again.error, again.baseOffset], ["NONE", 1]);
    assert.deepEqual(await stored(next), ["first", "late"]);
    await next.node.close();
  });
}

for (const acks of [1, -1]) {
  test(`a crash right after the answer, acks=${acks}: it is there, and a duplicate when it is sent again`, async () => {
    const q = await startQuirks();
    await q.topic("t");
    const answer = await q.produce("t", LATE(), { acks });
    assert.equal(answer.error, "NONE");
    const next = await restarted(q, { clean: false });
    assert.deepEqual(await stored(next), ["late"]);
    const again = await next.produce("t", LATE(), { acks });
    assert.deepEqual([again.error, again.baseOffset], ["NONE", 0]);
    assert.deepEqual(await stored(next), ["late"]);
    await next.node.close();
  });
}

test("a crash between the data and the end of a transaction: it stays open, and its end is still to come", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const client = new TxnClient(q, "tx", { isV2: true });
  assert.equal(await client.init(), "NONE");
  assert.equal(await client.produce("t", ["a"]), "NONE");
  const next = await restarted(q, { clean: false });
  const open = await next.fetch("t", 0, { isolationLevel: 1 });
  assert.deepEqual([open.lastStableOffset, open.highWatermark], [0, 1]);
  assert.equal(await new TxnClient(next, "tx", { isV2: true }).init(), "CONCURRENT_TRANSACTIONS");
  await next.node.clock.settle();
  const ended = await next.fetch("t", 0, { isolationLevel: 1 });
  assert.deepEqual([ended.lastStableOffset, ended.highWatermark], [2, 2]);
  assert.equal(ended.abortedTransactions?.length, 1);
  await next.node.close();
});
