import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CLUSTER, EngineWorld, keysOf, NODE } from "../../tests/support/engine_world.ts";
import type { Verdict } from "../../tests/support/faulty.ts";
import { bases, record } from "../../tests/support/records.ts";
import { streamId } from "../lib/brand.ts";
import { type FaultCode, isFault } from "../lib/errors.ts";
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
});
