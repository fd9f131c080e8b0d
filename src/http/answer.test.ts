import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { HTTP_CHUNK_BYTES, WRITE_STALL_MS } from "../lib/limits.ts";
import { answerOf, chunksOf } from "./answer.ts";

function rig(pieces: Iterable<string>, method = "GET") {
  const clock = createFakeClock();
  const gone = new AbortController();
  let released = 0;
  let made = 0;
  function* counted(): Generator<string, void> {
    for (const piece of pieces) {
      made += 1;
      yield piece;
    }
  }
  const response = answerOf(chunksOf(counted()), {
    request: new Request("http://node/", { method, signal: gone.signal }),
    clock,
    headers: { "x-a": "b" },
    release: () => void (released += 1),
  });
  return { clock, gone, response, released: () => released, made: () => made };
}

function* large(count: number): Generator<string, void> {
  for (let i = 0; i < count; i++) yield `${i % 10}`.repeat(HTTP_CHUNK_BYTES);
}

test("what fits one chunk is no stream: released at once, with nobody watching", async () => {
  for (const pieces of [[], ["a", "b"]]) {
    const { clock, response, released } = rig(pieces);
    assert.equal(released(), 1);
    assert.equal(clock.timers, 0);
    assert.equal(await response.text(), pieces.join(""));
  }
});

test("chunks are made as they are taken, and held until the end has been asked for", async () => {
  const { clock, response, released, made } = rig(large(5));
  assert.equal(made(), 2);
  const reader = response.body!.getReader();
  await reader.read();
  await clock.settle();
  assert.equal(made(), 2, "nothing is made ahead");
  for (let i = 1; i < 5; i++) assert.equal((await reader.read()).done, false);
  assert.equal(released(), 0);
  assert.equal((await reader.read()).done, true);
  assert.equal(released(), 1);
  assert.equal(clock.timers, 0);
});

test("a reader that cancels, or a client that is gone, gives everything back at once", async () => {
  const cancelled = rig(large(5));
  await cancelled.response.body!.cancel();
  assert.deepEqual([cancelled.released(), cancelled.clock.timers], [1, 0]);
  const left = rig(large(5));
  const reader = left.response.body!.getReader();
  await reader.read();
  left.gone.abort();
  await assert.rejects(reader.read(), /client is gone/);
  assert.deepEqual([left.released(), left.clock.timers], [1, 0]);
});

test("a client that was gone before the answer is noticed", async () => {
  const clock = createFakeClock();
  let released = 0;
  const answer = answerOf(chunksOf(large(5)), {
    request: new Request("http://node/", { signal: AbortSignal.abort() }),
    clock,
    headers: {},
    release: () => void (released += 1),
  });
  await assert.rejects(answer.text());
  assert.deepEqual([released, clock.timers], [1, 0]);
});

test("an answer that nobody begins to read is ended", async () => {
  const { clock, response, released } = rig(large(5));
  await clock.advance(WRITE_STALL_MS);
  assert.equal(released(), 1);
  await assert.rejects(response.text(), /does not read/);
});

test("a reader that stops is ended after its time, and one that dribbles is too", async () => {
  const stopped = rig(large(5));
  const reader = stopped.response.body!.getReader();
  await reader.read();
  await stopped.clock.advance(WRITE_STALL_MS - 1);
  assert.equal(stopped.released(), 0);
  await stopped.clock.advance(1);
  assert.equal(stopped.released(), 1);
  await assert.rejects(reader.read(), /does not read/);

  const dribbling = rig(large(1000));
  const slow = dribbling.response.body!.getReader();
  let chunks = 0;
  for (; chunks < 1000 && dribbling.released() === 0; chunks++) {
    await slow.read().catch(() => {});
    await dribbling.clock.advance(WRITE_STALL_MS / 2);
  }
  assert.ok(chunks < 5, `${chunks} chunks`);
});

test("HEAD makes nothing; a piece that fails ends the answer and gives back what it held", async () => {
  const head = rig(large(5), "HEAD");
  assert.deepEqual([head.made(), head.released()], [0, 1]);
  assert.equal(head.response.headers.get("x-a"), "b");
  function* broken(after: number): Generator<string, void> {
    yield* large(after);
    throw new Error("broken");
  }
  const late = rig(broken(3));
  await assert.rejects(late.response.text(), /broken/);
  assert.deepEqual([late.released(), late.clock.timers], [1, 0]);
  assert.throws(() => rig(broken(1)), /broken/);
});
