import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CLUSTER } from "../../../tests/support/engine_world.ts";
import { record } from "../../../tests/support/records.ts";
import type { FakeClock } from "../../../tests/support/fake_clock.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { objectId } from "../../lib/brand.ts";
import { FaultError, isFault } from "../../lib/errors.ts";
import { createMemoryStore } from "../../object/memory.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import { LogCacheBlock } from "../cache/log_cache_block.ts";
import type { ObjectManager, UploadCommit } from "../ports.ts";
import { Uploader } from "./uploader.ts";

interface Gate {
  readonly name: string;
  readonly open: () => void;
  readonly fail: (error: unknown) => void;
}

interface SetUp {
  readonly splitBytes: number;
  readonly firstId: number;
  readonly bytesPerSecond: number | null;
}

/** Every outside call waits until the test lets it go. */
function setUp({ splitBytes = 1e9, firstId = 16, bytesPerSecond = null }: Partial<SetUp> = {}) {
  const env = testEnv();
  const gates: Gate[] = [];
  const commits: UploadCommit[] = [];
  const gate = (name: string) =>
    new Promise<void>((open, fail) => void gates.push({ name, open, fail }));
  const memory = createMemoryStore(env.clock);
  const store: ObjectStore = {
    ...memory,
    put: async (key, body) => {
      await gate(`put ${key.split("/").at(-1)}`);
      return await memory.put(key, body);
    },
  };
  let nextId = firstId;
  const objects: Pick<ObjectManager, "reserveIds" | "commitUpload" | "refresh"> = {
    reserveIds: async (count) => {
      await gate("reserve");
      const first = objectId(nextId);
      nextId += count;
      return { ok: true, first };
    },
    commitUpload: async (commit) => {
      commits.push(commit);
      await gate("commit");
      return { ok: true };
    },
    refresh: async () => {},
  };
  const health: (string | null)[] = [];
  const uploader = new Uploader({
    env,
    store,
    clusterId: CLUSTER,
    objects: objects as ObjectManager,
    streams: { viewStream: () => null },
    splitBytes,
    idBlock: 1,
    bytesPerSecond,
    walTrimAfter: (block) => block.lastSlot + 1,
    onCommitted: () => {},
    onHealth: (problem) => void health.push(problem),
  });
  const names = () => gates.map(({ name }) => name);
  const release = async (name: string) => {
    const at = names().indexOf(name);
    assert.ok(at >= 0, `${name} is not among ${names().join(", ")}`);
    gates.splice(at, 1)[0]!.open();
    await tick();
  };
  return { env, uploader, gates, names, release, commits, health };
}

async function tick(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}

function blockOf(base: number, slot: number): LogCacheBlock {
  const block = new LogCacheBlock(slot);
  block.put(record(233, base, 2), slot);
  block.put(record(234, 10 * base), slot);
  return block;
}

describe("uploader", () => {
  test("ids one block after the other, commits in order even if a later upload is faster", async () => {
    const { uploader, names, release, commits } = setUp();
    const first = uploader.submit(blockOf(10, 1), 0);
    const second = uploader.submit(blockOf(12, 2), 0);
    await tick();
    assert.deepEqual(names(), ["reserve"]);
    await release("reserve");
    assert.deepEqual(names().toSorted(), ["put 16", "reserve"]);
    await release("reserve");
    await release("put 17");
    assert.deepEqual(names(), ["put 16"]);
    await release("put 16");
    assert.deepEqual(names(), ["commit"], "the second commit waits for the first");
    await release("commit");
    await first;
    await release("commit");
    await second;
    assert.deepEqual(commits.map((c) => [c.streamSetObject?.objectId, c.walTrim]), [[16, 2], [
      17,
      3,
    ]]);
    const ranges = commits[0]!.streamSetObject!.ranges.map((r) => [r.streamId, r.start, r.end]);
    assert.deepEqual(ranges, [[233, 10, 12], [234, 100, 101]]);
    assert.equal(uploader.pending, 0);
  });

  test("a failed reservation or upload is repeated and does not stall the rest", async () => {
    const { env, uploader, gates, release, names, health } = setUp();
    const clock = env.clock as ReturnType<typeof testEnv>["clock"] & {
      advance(ms: number): Promise<void>;
    };
    const done = uploader.submit(blockOf(10, 1), 0);
    await tick();
    gates.shift()!.fail(new FaultError("store-unavailable", "down", { retriable: true }));
    await clock.advance(1_000);
    await release("reserve");
    gates.shift()!.fail(new FaultError("store-full", "full", { retriable: false }));
    await tick();
    assert.match(health.at(-1) ?? "", /upload fails: full/);
    await clock.advance(1_000);
    assert.deepEqual(names(), ["put 16"]);
    await release("put 16");
    await release("commit");
    await done;
    assert.equal(health.at(-1), null);
  });

  test("stopping ends every block with the reason", async () => {
    const { uploader } = setUp();
    const blocks = [uploader.submit(blockOf(10, 1), 0), uploader.submit(blockOf(12, 2), 0)];
    uploader.stop(new FaultError("fenced", "over", { retriable: false }));
    const late = uploader.submit(blockOf(14, 3), 0);
    await assert.rejects(late, (error) => isFault(error, "fenced"));
    assert.equal(blocks.length, 2);
  });

  test("forceUpload(233), prepare returns 16: commit of object 16 with 233[10,13), 234[100,101)", async () => {
    const { uploader, release, commits } = setUp();
    const block = new LogCacheBlock(0);
    for (
      const one of [record(233, 10, 1, 100), record(233, 11, 2, 100), record(234, 100, 1, 100)]
    ) {
      block.put(one, 0);
    }
    const done = uploader.submit(block, 0);
    for (const name of ["reserve", "put 16", "commit"]) {
      await tick();
      await release(name);
    }
    await done;
    const { objectId: id, ranges } = commits[0]!.streamSetObject!;
    assert.equal(id, 16);
    assert.deepEqual(ranges.map((r) => [r.streamId, r.start, r.end]), [[233, 10, 13], [
      234,
      100,
      101,
    ]]);
  });

  test("upload at split 1000 with ids from 10: SSO 10 has 234[20,24), SO 11 has 233[10,16)", async () => {
    const { uploader, release, commits } = setUp({ splitBytes: 1000, firstId: 10 });
    const block = new LogCacheBlock(0);
    const sizes = [[10, 512], [12, 128], [14, 512]] as const;
    for (const [base, bytes] of sizes) block.put(record(233, base, 2, bytes), 0);
    for (const base of [20, 22]) block.put(record(234, base, 2, 128), 0);
    const done = uploader.submit(block, 0);
    for (const name of ["reserve", "put 10", "put 11", "commit"]) {
      await tick();
      await release(name);
    }
    await done;
    const [{ streamSetObject, streamObjects }] = commits as [UploadCommit];
    assert.equal(streamSetObject?.objectId, 10);
    assert.deepEqual(streamSetObject?.ranges, [{ streamId: 234, start: 20, end: 24 }]);
    assert.deepEqual(streamObjects.map(({ objectId: id, range }) => [id, range]), [
      [11, { streamId: 233, start: 10, end: 16 }],
    ]);
  });

  test("an attempt goes on where the one before failed: what is stored is not written again", async () => {
    const { env, uploader, gates, release, names } = setUp({ splitBytes: 1 });
    const clock = env.clock as FakeClock;
    const done = uploader.submit(blockOf(10, 1), 0);
    await tick();
    await release("reserve");
    await release("put 16");
    assert.deepEqual(names(), ["put 17"]);
    gates.shift()!.fail(new FaultError("store-unavailable", "down", { retriable: true }));
    await clock.advance(1_000);
    assert.deepEqual(names(), ["put 17"]);
    await release("put 17");
    await release("commit");
    await done;
  });

  test("paced: the second object waits for its turn, and not when somebody waits for it", async () => {
    for (const hurry of [false, true]) {
      const { env, uploader, release, names } = setUp({ splitBytes: 1, bytesPerSecond: 10 });
      const clock = env.clock as FakeClock;
      const done = uploader.submit(blockOf(10, 1), 5_000);
      await tick();
      await release("reserve");
      await release("put 16");
      await clock.advance(1_000);
      assert.deepEqual(names(), [], "not its turn yet");
      if (hurry) uploader.hurry();
      else await clock.advance(60_000);
      await tick();
      assert.deepEqual(names(), ["put 17"]);
      await release("put 17");
      await release("commit");
      await done;
    }
  });

  test("stopping ends the wait for the pace too", async () => {
    const { env, uploader, release } = setUp({ splitBytes: 1, bytesPerSecond: 1 });
    const done = uploader.submit(blockOf(10, 1), 5_000);
    await tick();
    await release("reserve");
    await release("put 16");
    uploader.stop(new FaultError("fenced", "over", { retriable: false }));
    await tick();
    assert.equal((env.clock as FakeClock).timers, 0);
    void done.catch(() => {});
  });
});
