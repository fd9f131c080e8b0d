import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EngineWorld } from "../../tests/support/engine_world.ts";
import type { Judge, Verdict } from "../../tests/support/faulty.ts";
import { bases } from "../../tests/support/records.ts";
import { streamEpoch } from "../lib/brand.ts";
import { type FaultCode, FaultError, isFault } from "../lib/errors.ts";
import type { Append, Storage } from "../storage/storage.ts";
import type { StreamRecord } from "../storage/stream_record.ts";
import { createStreamClient } from "./stream_client.ts";

const NO_LIMIT = { bytesMax: 1e9 };
const PAYLOAD = new Uint8Array(10);

function withCode(code: FaultCode) {
  return (error: unknown) => isFault(error, code);
}

async function opened(judge: Judge = () => "ok") {
  const world = new EngineWorld();
  const engine = await world.start({ judge });
  const stream = await engine.streams.create(world.nextEpoch());
  return { world, stream, ...engine };
}

describe("stream", () => {
  test("hands out offsets at once and confirms them when durable", async () => {
    const { stream } = await opened();
    const first = stream.append(3, PAYLOAD);
    const second = stream.append(2, PAYLOAD);
    assert.deepEqual([first.baseOffset, second.baseOffset, stream.nextOffset], [0, 3, 5]);
    assert.equal(stream.confirmOffset, 0);
    await first.durable;
    assert.ok(stream.confirmOffset >= 3);
    await second.durable;
    assert.equal(stream.confirmOffset, 5);
    assert.deepEqual(bases(await stream.fetch(1, 5, NO_LIMIT)), [0, 3]);
  });

  test("fetches only between start and confirm offset", async () => {
    const { stream } = await opened();
    await stream.append(10, PAYLOAD).durable;
    assert.deepEqual(await stream.fetch(10, 10, NO_LIMIT), []);
    await assert.rejects(stream.fetch(0, 11, NO_LIMIT), RangeError);
    await stream.trim(4);
    assert.equal(stream.startOffset, 4);
    await assert.rejects(stream.fetch(3, 10, NO_LIMIT), RangeError);
    assert.deepEqual(bases(await stream.fetch(4, 10, NO_LIMIT)), [0]);
    await stream.trim(2);
    assert.equal(stream.startOffset, 4);
  });

  test("a trim whose answer is lost and that came through moves the start", async () => {
    let verdict: Verdict = "ok";
    const { stream } = await opened((method) => method === "trimStream" ? verdict : "ok");
    await stream.append(10, PAYLOAD).durable;
    verdict = "lost";
    await assert.rejects(stream.trim(4), withCode("store-unavailable"));
    assert.equal(stream.startOffset, 4);
    await assert.rejects(stream.fetch(3, 10, NO_LIMIT), RangeError);
    assert.deepEqual(bases(await stream.fetch(4, 10, NO_LIMIT)), [0]);
  });

  test("a start that a later owner moved is not that of an earlier one", async () => {
    const { stream, world } = await opened();
    await stream.append(10, PAYLOAD).durable;
    await stream.close();
    const other = await world.start();
    const taken = await other.streams.open(stream.streamId, world.nextEpoch());
    await taken.append(10, PAYLOAD).durable;
    await taken.trim(15);
    assert.deepEqual([stream.startOffset, stream.confirmOffset], [0, 10]);
  });

  test("closes at its confirm offset and opens there again", async () => {
    const { stream, streams, world } = await opened();
    const appended = stream.append(7, PAYLOAD);
    await stream.close();
    await appended.durable;
    assert.throws(() => stream.append(1, PAYLOAD), withCode("closed"));
    assert.deepEqual(world.metadata.stream(stream.streamId)?.open, false);
    const again = await streams.open(stream.streamId, world.nextEpoch());
    assert.deepEqual([again.startOffset, again.confirmOffset, again.nextOffset], [0, 7, 7]);
    assert.deepEqual(bases(await again.fetch(0, 7, NO_LIMIT)), [0]);
  });

  test("a trim past what is committed survives closing", async () => {
    const { stream, streams, world } = await opened();
    await stream.append(7, PAYLOAD).durable;
    await stream.trim(7);
    await stream.close();
    const again = await streams.open(stream.streamId, world.nextEpoch());
    assert.deepEqual([again.startOffset, again.nextOffset], [7, 7]);
  });

  test("an older epoch cannot open it, a newer one takes it away", async () => {
    const { stream, streams, world } = await opened();
    await stream.close();
    await streams.open(stream.streamId, streamEpoch(9));
    const other = await world.start();
    await assert.rejects(other.streams.open(stream.streamId, streamEpoch(8)), withCode("fenced"));
    const taken = await other.streams.open(stream.streamId, streamEpoch(10));
    await taken.append(1, PAYLOAD).durable;
    assert.equal(taken.confirmOffset, 1);
  });

  test("a lost append fences it for good", async () => {
    const { env } = new EngineWorld();
    const { streams } = (await opened()).ports;
    let fail = (_error: unknown) => {};
    const storage = {
      append: (record: StreamRecord): Append => ({
        record,
        durable: new Promise((_, reject) => void (fail = reject)),
      }),
    } as Storage;
    const client = createStreamClient({ storage, streams, env });
    const stream = await client.create(streamEpoch(1));
    const lost = stream.append(1, PAYLOAD).durable;
    fail(new FaultError("fenced", "gone", { retriable: false }));
    await assert.rejects(lost, withCode("fenced"));
    assert.throws(() => stream.append(1, PAYLOAD), withCode("fenced"));
    assert.equal(stream.confirmOffset, 0);
    await stream.close();
  });

  test("a refused append does not move the offsets", async () => {
    const { stream, storage } = await opened();
    await stream.append(1, PAYLOAD).durable;
    const append = storage.append.bind(storage);
    storage.append = () => {
      throw new FaultError("overloaded", "full", { retriable: true });
    };
    assert.throws(() => stream.append(1, PAYLOAD), withCode("overloaded"));
    storage.append = append;
    assert.equal(stream.append(1, PAYLOAD).baseOffset, 1);
  });

  test("closing can be repeated after a failure", async () => {
    let verdict: Verdict = "ok";
    const { stream, world } = await opened(() => verdict);
    await stream.append(1, PAYLOAD).durable;
    await world.clock.settle();
    const before = world.metadata.stream(stream.streamId)!;
    verdict = "fail";
    const closing = stream.close();
    closing.catch(() => {});
    await world.clock.advance(1_000);
    verdict = "ok";
    await world.clock.advance(30_000);
    await closing.catch(() => stream.close());
    assert.equal(before.open, false);
  });
});

describe("stream client", () => {
  test("closing closes every stream, also those that are being opened", async () => {
    const { stream, streams, world } = await opened();
    const opening = streams.create(world.nextEpoch());
    await streams.close();
    const late = await opening;
    for (const id of [stream.streamId, late.streamId]) {
      assert.equal(world.metadata.stream(id)?.open, false);
    }
    await assert.rejects(streams.create(world.nextEpoch()), withCode("closed"));
  });

  test("deletes closed streams; a missing one is no error", async () => {
    const { stream, streams } = await opened();
    await assert.rejects(streams.delete(stream.streamId));
    await stream.close();
    await streams.delete(stream.streamId);
    await streams.delete(stream.streamId);
    await assert.rejects(streams.open(stream.streamId, streamEpoch(99)), withCode("closed"));
  });
});
