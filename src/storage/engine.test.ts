import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CLUSTER, EngineWorld, NODE } from "../../tests/support/engine_world.ts";
import type { Verdict } from "../../tests/support/faulty.ts";
import { bases, record } from "../../tests/support/records.ts";
import { keysOf } from "../../tests/support/keys_of.ts";
import { streamId } from "../lib/brand.ts";
import { type FaultCode, FaultError, isFault } from "../lib/errors.ts";
import { LOG_CACHE_BLOCK_STREAMS_MAX } from "../lib/limits.ts";
import { ReadLease } from "../lib/read_lease.ts";
import { walEpochPrefix } from "../object/object_key.ts";
import type { UploadCommit } from "./ports.ts";
import type { StreamRecord } from "./stream_record.ts";

const NO_LIMIT = { bytesMax: 1e9 };

function withCode(code: FaultCode) {
  return (error: unknown) => isFault(error, code);
}

/** A world with some streams, 0, 1, 2 ..., opened by the engine. */
async function started(streams: number, options: Parameters<EngineWorld["start"]>[0] = {}) {
  const world = new EngineWorld();
  const engine = await world.start(options);
  for (let i = 0; i < streams; i++) await engine.streams.create(world.nextEpoch());
  return { world, ...engine };
}

describe("storage engine", () => {
  test("reads back what is durable, within the byte budget", async () => {
    const { storage } = await started(2);
    await storage.append(record(0, 0, 1, 100)).durable;
    await storage.append(record(0, 1, 2, 100)).durable;
    await storage.append(record(1, 0, 1, 100)).durable;
    assert.deepEqual(bases(await storage.read(streamId(0), 0, 3, { bytesMax: 90 })), [0]);
    assert.deepEqual(bases(await storage.read(streamId(0), 0, 3, { bytesMax: 200 })), [0, 1]);
    assert.deepEqual(await storage.read(streamId(0), 2, 2, NO_LIMIT), []);
  });

  test("what a reader views keeps its bytes, whatever the cache frees meanwhile", async () => {
    const { storage } = await started(1, {
      options: { logCacheBytesMax: 2_000_000, uploadBytes: 600_000 },
    });
    const lease = new ReadLease();
    const views: (readonly StreamRecord[])[] = [];
    for (let i = 0; i < 60; i++) {
      await storage.append(record(0, i, 1, 200_000)).durable;
      const options = i % 2 === 0 ? NO_LIMIT : { ...NO_LIMIT, lease };
      views.push((await storage.read(streamId(0), i, i + 1, options))!);
      if (i % 5 === 4) await storage.forceUpload(streamId(0));
    }
    for (const [i, records] of views.entries()) {
      assert.deepEqual(records, [record(0, i, 1, 200_000)]);
    }
    lease.end();
  });

  test("a forced upload commits all streams of the block and trims the WAL", async () => {
    const { storage, world, ports, wal } = await started(2);
    await storage.append(record(0, 0, 3)).durable;
    await storage.append(record(1, 0, 1)).durable;
    await storage.forceUpload(streamId(0));
    assert.equal(world.metadata.stream(streamId(0))?.end, 3);
    assert.equal(world.metadata.stream(streamId(1))?.end, 1);
    assert.equal(ports.objects.streamSetObjects(NODE).length, 1);
    assert.equal(wal.state().trimmedTo, wal.state().nextSlot);
    assert.equal(world.metadata.walTrim(NODE, ports.epoch), wal.state().nextSlot);
  });

  test("forcing a stream that has nothing new costs nothing", async () => {
    const { storage, store } = await started(2);
    await storage.append(record(0, 0)).durable;
    await storage.forceUpload(streamId(0));
    const before = (await keysOf(store)).length;
    await storage.forceUpload(streamId(0));
    await storage.forceUpload(streamId(1));
    assert.equal((await keysOf(store)).length, before);
  });

  test("joins objects and log cache without a gap", async () => {
    // Room for about one record: committed blocks leave at once.
    const { storage, world } = await started(1, {
      options: { logCacheBytesMax: 2000, uploadBytes: 1e9 },
    });
    for (let i = 0; i < 6; i++) {
      await storage.append(record(0, i, 1, 200)).durable;
      if (i < 4) await storage.forceUpload(streamId(0));
    }
    await world.clock.settle();
    assert.deepEqual(bases(await storage.read(streamId(0), 0, 6, NO_LIMIT)), [0, 1, 2, 3, 4, 5]);
    assert.deepEqual(bases(await storage.read(streamId(0), 1, 6, { bytesMax: 600 })), [1, 2, 3]);
    assert.deepEqual(bases(await storage.read(streamId(0), 2, 6, { bytesMax: 1 })), [2]);
  });

  test("cacheOnly answers null instead of reading objects", async () => {
    const { storage } = await started(1, { options: { logCacheBytesMax: 1000 } });
    for (let i = 0; i < 4; i++) {
      await storage.append(record(0, i, 1, 300)).durable;
      await storage.forceUpload(streamId(0));
    }
    assert.equal(await storage.read(streamId(0), 0, 4, { ...NO_LIMIT, cacheOnly: true }), null);
    const young = await storage.read(streamId(0), 3, 4, { ...NO_LIMIT, cacheOnly: true });
    assert.deepEqual(bases(young), [3]);
  });

  test("an idle engine writes nothing; a dirty one uploads once after the interval", async () => {
    const { storage, store, world } = await started(1, { options: { uploadIntervalMs: 60_000 } });
    const empty = await keysOf(store);
    await world.clock.advance(600_000);
    assert.deepEqual(await keysOf(store), empty);
    await storage.append(record(0, 0)).durable;
    await world.clock.advance(59_000);
    assert.equal(world.metadata.stream(streamId(0))?.end, 0);
    await world.clock.advance(2_000);
    assert.equal(world.metadata.stream(streamId(0))?.end, 1);
    assert.equal(world.clock.timers, 0);
  });

  test("a full block is uploaded by itself", async () => {
    const { storage, world } = await started(1, { options: { uploadBytes: 1000 } });
    for (let i = 0; i < 4; i++) await storage.append(record(0, i, 1, 300)).durable;
    await world.clock.settle();
    assert.equal(world.metadata.stream(streamId(0))?.end, 4 - 4 % 2);
  });

  test("commits follow block order and each frees its slots", async () => {
    const commits: UploadCommit[] = [];
    const { storage, world, ports } = await started(2, { options: { uploadBytes: 600 } });
    const commit = ports.objects.commitUpload.bind(ports.objects);
    ports.objects.commitUpload = (c) => {
      commits.push(c);
      return commit(c);
    };
    for (let i = 0; i < 20; i++) await storage.append(record(i % 2, i >> 1, 1, 300)).durable;
    await world.clock.settle();
    const ends = commits.flatMap((c) => c.streamObjects.map(({ range }) => range.end));
    assert.ok(ends.length + commits.length > 0);
    for (let i = 1; i < commits.length; i++) {
      assert.ok(commits[i]!.walTrim >= commits[i - 1]!.walTrim);
    }
    assert.equal(world.metadata.stream(streamId(1))?.end, 10);
  });

  test("while commits fail it keeps serving, then refuses at the cap, then recovers by itself", async () => {
    let verdict: Verdict = "fail";
    const { storage, world, health } = await started(1, {
      options: { logCacheBytesMax: 3000, uploadBytes: 1000 },
      judge: (method) => method === "commitUpload" ? verdict : "ok",
    });
    let accepted = 0;
    await assert.rejects(async () => {
      for (let i = 0; i < 100; i++) {
        await storage.append(record(0, i, 1, 300)).durable;
        accepted = i + 1;
      }
    }, withCode("overloaded"));
    assert.ok(accepted >= 4 && accepted < 20, `${accepted} accepted`);
    assert.match(health.at(-1) ?? "", /commit fails/);
    assert.equal((await storage.read(streamId(0), 0, accepted, NO_LIMIT))?.length, accepted);
    verdict = "ok";
    await world.clock.advance(20_000);
    assert.equal(health.at(-1), null);
    await storage.append(record(0, accepted, 1, 300)).durable;
  });

  test("refuses appends at the slot cap and uploads what is there", async () => {
    let verdict: Verdict = "fail";
    const { storage, world } = await started(1, {
      options: { slotsMax: 4 },
      judge: (method) => method === "reserveIds" ? verdict : "ok",
    });
    for (let i = 0; i < 4; i++) await storage.append(record(0, i)).durable;
    assert.throws(() => storage.append(record(0, 4)), withCode("overloaded"));
    verdict = "ok";
    await world.clock.advance(5_000);
    await storage.append(record(0, 4)).durable;
    assert.equal(world.metadata.stream(streamId(0))?.end, 4);
  });

  test("a commit whose answer is lost counts once", async () => {
    let lost = 0;
    const { storage, world, ports, fatal } = await started(2, {
      judge: (method) => method === "commitUpload" && lost++ === 0 ? "lost" : "ok",
    });
    await storage.append(record(0, 0)).durable;
    await storage.append(record(1, 0)).durable;
    const forced = storage.forceUpload(streamId(0));
    await world.clock.advance(5_000);
    await forced;
    assert.equal(ports.objects.streamSetObjects(NODE).length, 1);
    assert.deepEqual(fatal, []);
  });

  test("a fenced commit stops everything", async () => {
    const { storage, world, fatal } = await started(1);
    await storage.append(record(0, 0)).durable;
    world.metadata.register(NODE);
    await assert.rejects(storage.forceUpload(streamId(0)), withCode("fenced"));
    assert.throws(() => storage.append(record(0, 1)), withCode("fenced"));
    await assert.rejects(storage.forceUpload(streamId(0)), withCode("fenced"));
    assert.equal(fatal.length, 1);
    await storage.close();
  });

  test("a refused commit is no reason to go on", async () => {
    const { storage, fatal } = await started(1);
    await storage.append(record(0, 5)).durable;
    await assert.rejects(storage.forceUpload(streamId(0)));
    assert.equal(fatal.length, 1);
    assert.throws(() => storage.append(record(0, 6)), withCode("closed"));
  });

  test("closing uploads what is left and refuses appends", async () => {
    const { storage, world, ports } = await started(1);
    const appended = storage.append(record(0, 0));
    const closing = storage.close();
    assert.throws(() => storage.append(record(0, 1)), withCode("closed"));
    await closing;
    await appended.durable;
    assert.equal(world.metadata.stream(streamId(0))?.end, 1);
    const slots = await keysOf(world.store, walEpochPrefix(CLUSTER, NODE, ports.epoch));
    assert.ok(slots.length <= 1, "at most the newest slot stays");
  });

  test("an engine that is given up says what it leaves, and closes without the store", async () => {
    let verdict: Verdict = "ok";
    const { storage, wal, fatal, world } = await started(1, { judge: () => verdict });
    await storage.append(record(0, 0, 1, 500)).durable;
    verdict = "hang";
    const appended = storage.append(record(0, 1, 1, 300));
    await world.clock.settle();
    const forced = storage.forceUpload(streamId(0));
    const closing = storage.close();
    await world.clock.settle();
    const left = storage.abandon(new FaultError("closed", "Given up", { retriable: false }));
    assert.ok(left.durableBytes >= 500 && left.unacknowledgedBytes >= 300, JSON.stringify(left));
    assert.equal(left.slots, 2);
    await assert.rejects(appended.durable, withCode("closed"));
    assert.equal(wal.state().unacknowledgedBytes, 0);
    assert.deepEqual(fatal, []);
    // The upload under way never ends here: its owner bounds the wait.
    void forced.catch(() => {});
    void closing.catch(() => {});
    assert.throws(() => storage.append(record(0, 2)), withCode("closed"));
  });

  test("what no object holds is a loss, what the store lost is missing", async () => {
    const { storage, world } = await started(1, { options: { logCacheBytesMax: 1000 } });
    await assert.rejects(storage.read(streamId(0), 0, 1, NO_LIMIT), withCode("data-loss"));
    for (let i = 0; i < 4; i++) {
      await storage.append(record(0, i, 1, 400)).durable;
      await storage.forceUpload(streamId(0));
    }
    await world.store.delete(await keysOf(world.store));
    await assert.rejects(storage.read(streamId(0), 0, 4, NO_LIMIT), withCode("object-missing"));
  });

  test("S3StorageTest: 233@10, 233@11 and 234@100 of 100 bytes; 90 bytes are one record, 200 are two", async () => {
    const { storage } = await started(0);
    const appends = [record(233, 10, 1, 100), record(233, 11, 2, 100), record(234, 100, 1, 100)]
      .map((one) => storage.append(one).durable);
    await Promise.all(appends);
    for (const [bytesMax, expected] of [[90, [10]], [200, [10, 11]]] as const) {
      assert.deepEqual(bases(await storage.read(streamId(233), 10, 13, { bytesMax })), expected);
    }
  });

  test("S3StorageTest: refused at the third append, uploads commit [10,12) as stream objects, no ranges", async () => {
    const commits: UploadCommit[] = [];
    const { storage, world, ports } = await started(1, {
      options: { slotsMax: 2, uploadBytes: 1e9 },
    });
    await storage.append(record(0, 0, 10)).durable;
    await storage.forceUpload(streamId(0));
    const commit = ports.objects.commitUpload.bind(ports.objects);
    ports.objects.commitUpload = (c) => {
      commits.push(c);
      return commit(c);
    };
    for (const offset of [10, 11]) await storage.append(record(0, offset)).durable;
    assert.throws(() => storage.append(record(0, 12)), withCode("overloaded"));
    await world.clock.advance(1_000);
    assert.ok(commits.every(({ streamSetObject }) => streamSetObject === null));
    // Theirs begins when it refuses, with one object; ours at half of the cap, so the second record comes next.
    const ranges = commits.flatMap((one) => one.streamObjects.map(({ range }) => range));
    assert.deepEqual(ranges, [
      { streamId: 0, start: 10, end: 11 },
      { streamId: 0, start: 11, end: 12 },
    ]);
    await storage.append(record(0, 12)).durable;
  });

  test("records that cannot be uploaded for too long refuse new ones, until they are", async () => {
    let verdict: Verdict = "fail";
    const { storage, world, env } = await withEnv(1, {
      options: { uploadIntervalMs: 60_000, ageMsMax: 300_000 },
      judge: (method) => method === "commitUpload" ? verdict : "ok",
    });
    const sinceMs = env.clock.nowMs();
    await storage.append(record(0, 0)).durable;
    const shown = () =>
      /^skerry_log_cache_uncommitted_since_seconds (.*)$/m.exec(env.metrics.render());
    assert.equal(Number(shown()?.[1]), sinceMs / 1_000);
    await world.clock.advance(299_000);
    await storage.append(record(0, 1)).durable;
    await world.clock.advance(2_000);
    assert.throws(
      () => storage.append(record(0, 2)),
      (error) =>
        isFault(error, "overloaded") && error.retriable && /since 301 s/.test(error.message),
    );
    verdict = "ok";
    await world.clock.advance(10_000);
    await storage.append(record(0, 2)).durable;
    await world.clock.advance(120_000);
    assert.equal(Number(shown()?.[1]), 0);
  });

  test("a block with as many streams as fit a commit is uploaded", async () => {
    let reservations = 0;
    const { storage } = await started(0, {
      judge: (method) => {
        if (method !== "reserveIds") return "ok";
        reservations += 1;
        return "hang";
      },
    });
    const append = (stream: number) => storage.append(record(stream, 0)).durable;
    const streams = [...Array(LOG_CACHE_BLOCK_STREAMS_MAX).keys()];
    await Promise.all(streams.slice(1).map(append));
    assert.equal(reservations, 0);
    await append(0);
    assert.equal(reservations, 1);
  });

  test("above half of a cap uploads do not keep their pace (AutoMQ 3513)", async () => {
    const { storage, world } = await started(4, {
      // A byte per second: without a hurry it would take hours.
      options: { logCacheBytesMax: 20_000, uploadBytes: 4_000, uploadBytesPerSecond: 1 },
    });
    const ends = () => [0, 1, 2].map((id) => world.metadata.stream(streamId(id))?.end);
    for (const stream of [0, 1, 2]) {
      for (let i = 0; i < 4; i++) await storage.append(record(stream, i, 1, 1_000)).durable;
      await world.clock.settle();
    }
    assert.deepEqual(ends(), [4, 0, 0], "only the first need not wait for its turn");
    await storage.append(record(3, 0, 1, 1_000)).durable;
    await world.clock.settle();
    assert.deepEqual(ends(), [4, 4, 4]);
  });

  test("a million records of one byte cost their bytes and a number each", async () => {
    const { storage, world, env } = await withEnv(1);
    const count = 1_000_000;
    for (let i = 0; i < count; i++) {
      void storage.append(record(0, i, 1, ONE_BYTE));
      if (i % 100_000 === 0) await world.clock.settle();
    }
    await world.clock.settle();
    const shown = Number(/^skerry_log_cache_bytes (.*)$/m.exec(env.metrics.render())?.[1]);
    assert.ok(shown / count < 34 + 41, `${shown / count} bytes per record`);
    await world.drive(storage.forceUpload(streamId(0)));
    assert.equal(world.metadata.stream(streamId(0))?.end, count);
    assert.deepEqual(bases(await storage.read(streamId(0), 777_777, count, { bytesMax: 2 })), [
      777_777,
      777_778,
    ]);
  });
});

const ONE_BYTE = new Uint8Array(1);

async function withEnv(streams: number, options: Parameters<EngineWorld["start"]>[0] = {}) {
  const engine = await started(streams, options);
  return { ...engine, env: engine.world.env };
}
