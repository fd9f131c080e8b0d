/** Recovery scenarios 52-55: a partition that moves between brokers on one store, and what each of them knows. */
import assert from "node:assert/strict";
import { ROLL_CALL_MS } from "../../src/lib/limits.ts";
import { drive } from "../faults/world.ts";
import { Quirks } from "../quirks/quirks.ts";
import { TxnClient } from "../support/txn_client.ts";
import { scenario } from "./scenario.ts";
import { loseSnapshots, operate } from "./surgery.ts";
import { type End, type RecoveryWorld, sequenced } from "./world.ts";

/** The next broker finds that the last one answers no more, recovers it, and leads. */
async function takeOver(w: RecoveryWorld, nodeId: number): Promise<void> {
  await w.start({}, { nodeId });
  await w.clock.advance(ROLL_CALL_MS + 5_000);
}

async function move(w: RecoveryWorld, end: End, nodeId: number): Promise<void> {
  await w.end(end);
  await takeOver(w, nodeId);
}

scenario(
  "52: only one of two brokers has expired the producer, their clocks are ten minutes apart",
  async (w, end) => {
    await w.topic();
    assert.equal(await w.send(0, 4), "@0");
    await w.idle();
    assert.deepEqual(await w.producers(), [], "expired by the first");
    const late = 600_000;
    w.clock.skewMs -= late;
    await move(w, end, 2);
    assert.equal(await w.send(5, 5), "@5");
    assert.equal(await w.send(5, 5), "@5");
    await w.idle(0);
    w.clock.skewMs += late;
    await move(w, end, 1);
    assert.equal(await w.send(5, 5), "@5");
    assert.equal(await w.send(6, 6), "@6");
    await w.idle();
    w.clock.skewMs -= late;
    await move(w, end, 2);
    assert.equal(await w.send(7, 7), "@7");
    assert.equal(await w.logEnd(), 8);
  },
);

scenario(
  "53: a broker that stalled writes nothing any more, and what it knew dies with it",
  async (w, end) => {
    await w.topic();
    assert.equal(await w.send(0, 0), "@0");
    const stalled = w.life;
    // Its requests to the store arrive when it is long replaced.
    stalled.store.setPlan(() => ({ kind: "delay", delayMs: 4 * ROLL_CALL_MS }));
    const answers: string[] = [];
    for (const first of [1, 2]) {
      const client = new Quirks(stalled.q.node);
      const records = sequenced(first, first, w.clock.nowMs());
      const asked = client.produce("t", records, { timeoutMs: 20 * ROLL_CALL_MS });
      void asked.then(({ error }) => void answers.push(error), () => void answers.push("hung up"));
      await w.clock.settle();
    }
    await takeOver(w, 2);
    assert.equal(await w.logEnd(), 1);
    assert.deepEqual(await w.producers(), ["7 e3 s0"]);
    assert.equal(await w.send(1, 1), "@1");
    assert.deepEqual(answers, []);
    stalled.store.setPlan();
    await w.clock.advance(6 * ROLL_CALL_MS);
    assert.deepEqual(answers, ["NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_OR_FOLLOWER"]);
    const late = new Quirks(stalled.q.node);
    const refused = await drive(w.clock, late.produce("t", sequenced(2, 2, w.clock.nowMs())));
    assert.equal(refused.error, "NOT_LEADER_OR_FOLLOWER");
    assert.deepEqual(await w.producers(), ["7 e3 s1"], "discarded, not merged");
    assert.deepEqual(await w.contents(), ["0:0", "1:1"]);
    await drive(w.clock, stalled.q.node.close());
    await move(w, end, 1);
    assert.deepEqual(await w.contents(), ["0:0", "1:1"]);
    assert.equal(await w.send(1, 1), "@1");
    assert.equal(await w.send(2, 2), "@2");
  },
);

scenario(
  "54: the next broker knows what the last one knew, from its snapshot and what followed",
  async (w, end) => {
    await w.topic();
    assert.equal(await w.send(0, 2), "@0");
    await w.restart("close");
    assert.equal(await w.send(3, 3), "@3");
    const tx = new TxnClient({ call: w.call.bind(w) }, "tx", { isV2: true, timeoutMs: 900_000 });
    assert.equal(await tx.init(), "NONE");
    assert.equal(await tx.produce("t", ["x"]), "NONE");
    const known = await w.producers();
    assert.equal(known.length, 2);
    await move(w, end, 2);
    assert.deepEqual(await w.producers(), known);
    assert.equal(await w.logEnd({ committed: true }), 4);
    assert.equal(await w.send(0, 2), "@0");
    assert.equal(await w.send(3, 3), "@3");
    assert.equal(await w.send(4, 4), "@5");
    assert.equal(await tx.end(true), "NONE");
    await w.clock.settle();
    assert.equal(await w.logEnd({ committed: true }), 7);
    assert.deepEqual(await w.committed(), ["0", "1", "2", "3", "x", "4"]);
  },
);

scenario("55: no snapshot is left: the next broker finds the same in the log", async (w, end) => {
  await w.topic();
  await w.send(0, 2);
  const tx = new TxnClient({ call: w.call.bind(w) }, "tx", { isV2: true, timeoutMs: 900_000 });
  assert.equal(await tx.init(), "NONE");
  assert.equal(await tx.produce("t", ["x"]), "NONE");
  await w.restart("close");
  const known = await w.producers();
  await w.end(end);
  await operate(w, loseSnapshots);
  await takeOver(w, 2);
  assert.deepEqual(await w.producers(), known);
  assert.equal(await w.logEnd({ committed: true }), 3);
  assert.equal(await w.send(0, 2), "@0");
  assert.equal(await w.send(3, 3), "@4");
  assert.equal(await tx.end(false), "NONE");
  await w.clock.settle();
  assert.deepEqual(await w.aborted(0), [{ producerId: tx.producerId, firstOffset: 3 }]);
  assert.deepEqual(await w.committed(), ["0", "1", "2", "3"]);
});
