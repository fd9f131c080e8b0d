/** Recovery scenarios 31-35: clocks that jump, timestamps that lie. */
import assert from "node:assert/strict";
import { scenario } from "./scenario.ts";
import { X } from "./world.ts";

const DAY_MS = 86_400_000;

scenario(
  "31: timestamps ten days ahead keep nobody: idle time counts from the append",
  async (w, end) => {
    await w.topic("t", 1, { "message.timestamp.after.max.ms": String(20 * DAY_MS) });
    const ahead = () => ({ timestamp: w.clock.nowMs() + 10 * DAY_MS });
    assert.equal(await w.send(0, 0, ahead()), "@0");
    await w.restart(end);
    assert.deepEqual(await w.producers(), ["7 e3 s0"]);
    await w.idle();
    assert.deepEqual(await w.producers(), []);
    assert.equal(await w.send(9, 9, ahead()), "@1");
  },
);

scenario("32: the clock goes back two hours between two runs", async (w, end) => {
  await w.topic();
  await w.send(0, 4);
  await w.end(end);
  w.clock.skewMs -= 7_200_000;
  await w.start();
  assert.deepEqual(await w.producers(), ["7 e3 s4"]);
  await w.idle(0);
  assert.deepEqual(await w.producers(), ["7 e3 s4"]);
  assert.equal(await w.send(0, 4), "@0");
  assert.equal(await w.send(5, 5), "@5");
  await w.idle();
  assert.deepEqual(await w.producers(), [], "and it expires X later, not two hours and X");
});

scenario(
  "33: the clock jumps two days ahead, the log is replayed, the clock is put right",
  async (w, end) => {
    await w.topic();
    await w.send(0, 4);
    await w.end(end);
    w.clock.skewMs += 2 * DAY_MS;
    await w.start();
    assert.deepEqual(await w.producers(), ["7 e3 s4"]);
    await w.idle(0);
    w.clock.skewMs -= 2 * DAY_MS;
    await w.idle(0);
    assert.equal(await w.send(0, 4), "@0", "a jump makes nobody idle");
    assert.equal(await w.send(5, 9), "@5");
    await w.restart(end);
    assert.equal(await w.send(5, 9), "@5");
    assert.equal(await w.send(10, 10), "@10");
  },
);

scenario("33: the clock jumps two days ahead and back while the broker runs", async (w, end) => {
  await w.topic();
  await w.send(0, 4);
  w.clock.skewMs += 2 * DAY_MS;
  await w.idle(0);
  assert.equal(await w.send(0, 4), "@0");
  await w.restart(end);
  w.clock.skewMs -= 2 * DAY_MS;
  await w.idle(0);
  assert.equal(await w.send(0, 4), "@0");
  assert.equal(await w.send(5, 5), "@5");
});

scenario("34: a producer that fills in old records keeps its window", async (w, end) => {
  await w.topic();
  const past = { timestamp: w.clock.nowMs() - 3 * DAY_MS };
  assert.equal(await w.send(0, 4, past), "@0");
  await w.idle(X / 2);
  assert.equal(await w.send(0, 4, past), "@0");
  assert.equal(await w.send(5, 5, past), "@5");
  assert.equal(await w.send(0, 0, { producerId: 8 }), "@6", "beside one that lives today");
  await w.restart(end);
  assert.equal(await w.send(0, 4, past), "@0");
  await w.idle(0);
  assert.equal(await w.send(5, 5, past), "@5");
  assert.equal(await w.send(6, 6, past), "@7");
  assert.equal(await w.logEnd(), 8);
});

scenario(
  "35: a topic that stamps on arrival answers a duplicate with its first time",
  async (w, end) => {
    await w.topic("t", 1, { "message.timestamp.type": "LogAppendTime" });
    const stampedMs = w.clock.nowMs();
    const claimed = { timestamp: 5 };
    assert.equal((await w.produce(0, 4, claimed)).logAppendTimeMs, stampedMs);
    await w.clock.advance(5_000);
    await w.restart(end);
    await w.clock.advance(5_000);
    const again = await w.produce(0, 4, claimed);
    assert.deepEqual([again.error, again.baseOffset], ["NONE", 0]);
    assert.equal(again.logAppendTimeMs, stampedMs);
    await w.idle();
    assert.deepEqual(await w.producers(), []);
    assert.equal(await w.send(9, 9, claimed), "@5");
  },
);
