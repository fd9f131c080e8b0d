/**
 * AutoMQ's S3StorageTest of recovery, with its numbers. Where ours differs it is stricter: a WAL of ours keeps
 * the order within a stream and has no holes, so a hole is a loss, which theirs passes over.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EngineWorld } from "../../tests/support/engine_world.ts";
import { record } from "../../tests/support/records.ts";
import { streamEpoch, streamId } from "../lib/brand.ts";
import { isFault } from "../lib/errors.ts";
import { Replay } from "./recover_replay.ts";

type Given = readonly (readonly [stream: number, base: number])[];

function replay(end: number, given: Given): Replay {
  const view = { streamId: streamId(233), epoch: streamEpoch(0), open: true, start: 0, end };
  const made = new Replay("wal", [view]);
  for (const [stream, base] of given) made.add(record(stream, base));
  return made;
}

function offsets(made: Replay): number[] {
  const run = made.takeBlock().run(streamId(233));
  return Array.from({ length: run?.length ?? 0 }, (_, i) => run!.startAt(i));
}

const of233 = (...bases: readonly number[]): Given => bases.map((base) => [233, base]);

function isLoss(at: number, expected: number) {
  return (error: unknown) =>
    isFault(error, "data-loss") &&
    new RegExp(`stream 233 goes on at offset ${at}, not ${expected}`).test(error.message);
}

describe("S3StorageTest: recovery", () => {
  test("233 ends at 11; records 10, 11, 12 and 234@20: 11 and 12 are recovered", () => {
    assert.deepEqual(offsets(replay(11, [...of233(10, 11, 12), [234, 20]])), [11, 12]);
  });

  test("with a record at 15 behind them it is a loss: theirs drops the 15", () => {
    assert.throws(() => replay(11, of233(10, 11, 12, 15)), isLoss(15, 13));
  });

  test("data loss: the end is 5, the records are 10..12", () => {
    assert.throws(() => replay(5, of233(10, 11, 12)), isLoss(10, 5));
  });

  test("the end is 10; 9, 10, 11, 12, 13, 14: 10..14", () => {
    assert.deepEqual(offsets(replay(10, of233(9, 10, 11, 12, 13, 14))), [10, 11, 12, 13, 14]);
  });

  test("out of order, 13 before 11, is a loss: theirs sorts, for its bulks did", () => {
    assert.throws(() => replay(10, of233(9, 10, 13, 11, 12, 14, 20)), isLoss(13, 11));
  });
});

describe("what is left behind", () => {
  test("AutoMQ 3504: a recovery and a closed engine leave no timer and no read", async () => {
    const world = new EngineWorld();
    const dead = await world.start();
    await dead.streams.create(world.nextEpoch());
    await dead.storage.append(record(0, 0)).durable;
    dead.kill();
    await world.clock.settle();
    const ofTheDead = world.clock.timers;
    const open = new Set<string>();
    const engine = await world.drive(world.start({
      judge: (method) => {
        if (method === "get") open.add("get");
        return "ok";
      },
    }));
    assert.ok(open.has("get"), "the WAL was read");
    assert.equal(world.metadata.stream(streamId(0))?.end, 1);
    await world.drive(engine.storage.close());
    await world.clock.settle();
    assert.ok(world.clock.timers <= ofTheDead, `${world.clock.timers} timers`);
  });

  test("AutoMQ 3442, 2427: neither metrics nor memory grow with the streams that there were", async () => {
    const world = new EngineWorld();
    const { storage, streams } = await world.start();
    const lines = () => world.env.metrics.render().split("\n").length;
    const heldBytes = () =>
      Number(/^skerry_log_cache_bytes (.*)$/m.exec(world.env.metrics.render())?.[1]);
    const seen: number[][] = [];
    for (let round = 0; round < 4; round++) {
      for (let i = 0; i < 10; i++) {
        const stream = await streams.create(world.nextEpoch());
        await stream.append(1, new Uint8Array(10)).durable;
        await stream.fetch(0, 1, { bytesMax: 1 });
        await world.drive(stream.close());
        await streams.delete(stream.streamId);
      }
      await world.drive(storage.forceUpload(streamId(0)));
      seen.push([lines(), heldBytes()]);
    }
    const [, second, , last] = seen;
    assert.deepEqual(last![0], second![0], "lines of metrics");
    // Blocks of the log cache merge and are freed by their own limits, not by the number of streams.
    assert.ok(last![1]! < 1e6, `${last![1]} bytes`);
  });
});
