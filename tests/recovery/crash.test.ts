/** Recovery scenarios 9-18: a crash around the acknowledgement, and batches that are sent again after it. */
import assert from "node:assert/strict";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import { produceRequest } from "../quirks/quirks.ts";
import { scenario } from "./scenario.ts";
import { isWalKey, type RecoveryWorld, sequenced } from "./world.ts";

type Fate = "stored" | "lost";

/** From now on WAL objects meet these fates in turn, and none is answered; the last one is that of all others. */
function silence(w: RecoveryWorld, ...fates: readonly Fate[]): void {
  let seen = 0;
  w.setPlan(({ op, key }) => {
    if (op !== "put" || !isWalKey(key)) return undefined;
    const fate = fates[Math.min(seen++, fates.length - 1)];
    return { kind: "hang", happens: fate === "stored" };
  });
}

/** Sends without waiting for an answer; returns how many came all the same. */
async function post(w: RecoveryWorld, batches: readonly (readonly [number, number])[]) {
  const client = w.connect();
  for (const [first, last] of batches) {
    client.post(produceApi, 9, produceRequest("t", sequenced(first, last, w.clock.nowMs())));
    // Each becomes a WAL object of its own.
    await w.clock.settle();
  }
  return client.unread;
}

scenario(
  "9: durable but not answered: the batch that is sent again is a duplicate",
  async (w, end) => {
    await w.topic();
    assert.equal(await w.logEnd(), 0);
    silence(w, "stored");
    assert.equal(await post(w, [[0, 4]]), 0);
    assert.deepEqual(await w.contents(), [], "nobody read it: the store gave no answer");
    await w.restart("kill");
    // What the first start found must also be there for the second.
    await w.restart(end);
    assert.deepEqual(await w.producers(), ["7 e3 s4"]);
    assert.equal(await w.send(0, 4), "@0");
    assert.equal(await w.logEnd(), 5);
    assert.deepEqual(await w.contents(), ["0:0", "1:1", "2:2", "3:3", "4:4"]);
  },
);

scenario("10: not stored: the batch that is sent again is new, and there once", async (w, end) => {
  await w.topic();
  assert.equal(await w.send(0, 0), "@0");
  silence(w, "lost");
  assert.equal(await post(w, [[1, 2]]), 0);
  await w.restart("kill");
  assert.equal(await w.logEnd(), 1);
  assert.equal(await w.send(1, 2), "@1");
  await w.restart(end);
  assert.deepEqual(await w.contents(), ["0:0", "1:1", "2:2"]);
});

scenario("10: an object behind one that is missing is never applied", async (w, end) => {
  await w.topic();
  assert.equal(await w.send(0, 0), "@0");
  silence(w, "lost", "stored");
  assert.equal(await post(w, [[1, 2], [3, 4]]), 0);
  await w.restart("kill");
  assert.equal(await w.logEnd(), 1);
  assert.deepEqual(await w.producers(), ["7 e3 s0"]);
  assert.equal(await w.send(3, 4), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal(await w.send(1, 2), "@1");
  assert.equal(await w.send(3, 4), "@3");
  await w.restart(end);
  assert.deepEqual(await w.contents(), ["0:0", "1:1", "2:2", "3:3", "4:4"]);
});

scenario("11: batches behind the snapshot are duplicates, with their offsets", async (w, end) => {
  await w.topic();
  await w.send(0, 4);
  await w.restart("close");
  assert.equal(await w.send(5, 6), "@5");
  assert.equal(await w.send(7, 7), "@7");
  await w.restart(end);
  assert.equal(await w.send(5, 6), "@5");
  assert.equal(await w.send(7, 7), "@7");
  assert.equal(await w.logEnd(), 8);
});

for (const happens of [false, true]) {
  const when = happens ? "after" : "before";
  scenario(
    `12: a crash ${when} each step of a snapshot leaves the one before it in use`,
    async (w) => {
      await w.topic();
      await w.send(0, 4);
      await w.restart("close");
      await w.send(5, 6);
      await w.kill();
      // The same bytes are opened and closed again, one store call further each time.
      for (let steps = 0, isClosed = false; !isClosed; steps++) {
        assert.ok(steps < 40, "the close never ends");
        const fork = await w.fork();
        await fork.start();
        assert.deepEqual(await fork.producers(), ["7 e3 s6"]);
        isClosed = await fork.dieInClose(steps, happens);
        await fork.start();
        assert.deepEqual(await fork.producers(), ["7 e3 s6"]);
        assert.equal(await fork.send(5, 6), "@5");
        assert.equal(await fork.send(0, 4), "@0");
        assert.equal(await fork.logEnd(), 7);
        if (isClosed) assert.ok(steps >= 3, `only ${steps} steps`);
        await fork.kill();
      }
    },
    { bothEnds: false, memoryOnly: true },
  );
}

async function fiveInFlight(w: RecoveryWorld): Promise<void> {
  await w.topic();
  assert.equal(await w.logEnd(), 0);
  silence(w, "stored", "stored", "lost");
  assert.equal(await post(w, [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]), 0);
  await w.restart("kill");
  assert.equal(await w.logEnd(), 4);
}

scenario("13: five in flight, two stored: all sent again, in order, no gap", async (w, end) => {
  await fiveInFlight(w);
  const answers: string[] = [];
  for (let first = 0; first < 10; first += 2) answers.push(await w.send(first, first + 1));
  assert.deepEqual(answers, ["@0", "@2", "@4", "@6", "@8"]);
  await w.restart(end);
  assert.deepEqual(await w.contents(), Array.from({ length: 10 }, (_, i) => `${i}:${i}`));
});

scenario("14: five in flight, two stored: the fourth may not pass the third", async (w, end) => {
  await fiveInFlight(w);
  assert.equal(await w.send(6, 7), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal(await w.send(4, 5), "@4");
  assert.equal(await w.send(6, 7), "@6");
  await w.restart(end);
  assert.deepEqual(await w.producers(), ["7 e3 s7"]);
  assert.equal(await w.send(6, 7), "@6");
});

async function sixBatches(w: RecoveryWorld): Promise<void> {
  await w.topic();
  for (let i = 0; i < 6; i++) assert.equal(await w.send(i, i), `@${i}`);
}

scenario("15: the last batch is a duplicate after a restart", async (w, end) => {
  await sixBatches(w);
  await w.restart(end);
  assert.equal(await w.send(5, 5), "@5");
  assert.equal(await w.logEnd(), 6);
});

scenario("16: so is the one before it: our snapshot has the last five", async (w, end) => {
  await sixBatches(w);
  await w.restart(end);
  assert.equal(await w.send(4, 4), "@4");
  assert.equal(await w.logEnd(), 6);
});

scenario("17: the last five are duplicates, the one before them is refused", async (w, end) => {
  await sixBatches(w);
  await w.restart(end);
  for (let i = 5; i >= 1; i--) assert.equal(await w.send(i, i), `@${i}`);
  assert.equal(await w.send(0, 0), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal(await w.logEnd(), 6);
});

scenario(
  "18: the same first sequence with another last one is no half duplicate",
  async (w, end) => {
    await sixBatches(w);
    assert.equal(await w.send(6, 8), "@6");
    await w.restart(end);
    assert.equal(await w.send(5, 6), "OUT_OF_ORDER_SEQUENCE_NUMBER");
    assert.equal(await w.send(6, 7), "OUT_OF_ORDER_SEQUENCE_NUMBER");
    assert.equal(await w.send(7, 8), "OUT_OF_ORDER_SEQUENCE_NUMBER");
    assert.equal(await w.send(6, 8), "@6");
    assert.equal(await w.logEnd(), 9);
  },
);

scenario(
  "9: whoever waits for an answer when the process dies hears nothing, not a refusal",
  async (w) => {
    await w.topic();
    silence(w, "stored");
    const asked = w.produce(0, 0).then(({ error }) => error, () => "hung up");
    await w.kill();
    const outcome = await Promise.race([asked, w.clock.settle().then(() => "nothing")]);
    assert.equal(outcome, "nothing");
    await w.start();
    assert.equal(await w.send(0, 0), "@0");
    assert.equal(await w.logEnd(), 1);
  },
  { bothEnds: false, memoryOnly: true },
);
