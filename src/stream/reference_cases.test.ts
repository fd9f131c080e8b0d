/** AutoMQ's S3StreamTest and S3StreamClientTest, with their numbers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineWorld } from "../../tests/support/engine_world.ts";
import type { Verdict } from "../../tests/support/faulty.ts";

const BYTE = new Uint8Array(1);

test("fetch with confirm 120: [110, 120) gives the record 110..115, [120, 140) is out of range", async () => {
  const world = new EngineWorld();
  const { streams } = await world.start();
  const stream = await streams.create(world.nextEpoch());
  for (const count of [110, 5, 5]) await stream.append(count, BYTE).durable;
  assert.equal(stream.confirmOffset, 120);
  const [first] = (await stream.fetch(110, 120, { bytesMax: 1 }))!;
  assert.deepEqual([first!.baseOffset, first!.baseOffset + first!.count], [110, 115]);
  await assert.rejects(stream.fetch(120, 140, { bytesMax: 1 }), RangeError);
});

test("shutdown while a stream is opening: it waits, closes it once, and none is left", async () => {
  let isSlow = false;
  let closes = 0;
  const judge = (method: string): Verdict => {
    if (method === "closeStream") closes += 1;
    return isSlow && method === "openStream" ? "fail" : "ok";
  };
  const world = new EngineWorld();
  const { streams } = await world.start({ judge });
  const stream = await streams.create(world.nextEpoch());
  await stream.close();
  closes = 0;
  isSlow = true;
  const opening = streams.open(stream.streamId, world.nextEpoch());
  await world.clock.advance(100);
  isSlow = false;
  const closing = streams.close();
  await world.drive(Promise.allSettled([opening, closing]));
  await closing;
  assert.equal(world.metadata.stream(stream.streamId)?.open, false);
  assert.ok(closes <= 1, `${closes} closes`);
  await streams.close();
  assert.ok(closes <= 1, "nothing is left to close");
});

test("AutoMQ 2750: closing does not wait for a fetch that gets no answer", async () => {
  let verdict: Verdict = "ok";
  const world = new EngineWorld();
  const { streams, storage } = await world.start({
    options: { logCacheBytesMax: 1000 },
    judge: (method) => method === "get" ? verdict : "ok",
  });
  const stream = await streams.create(world.nextEpoch());
  for (let i = 0; i < 4; i++) {
    await stream.append(1, new Uint8Array(400)).durable;
    await storage.forceUpload(stream.streamId);
  }
  verdict = "hang";
  let isRead = false;
  void stream.fetch(0, 4, { bytesMax: 1e9 }).finally(() => void (isRead = true));
  await world.drive(stream.close());
  assert.equal(isRead, false, "the fetch was cold and hangs");
  assert.equal(world.metadata.stream(stream.streamId)?.open, false);
});
