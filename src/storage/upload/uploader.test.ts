import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CLUSTER } from "../../../tests/support/engine_world.ts";
import { record } from "../../../tests/support/records.ts";
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

/** Every outside call waits until the test lets it go. */
function setUp() {
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
  let nextId = 16;
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
    splitBytes: 1e9,
    idBlock: 1,
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
    const first = uploader.submit(blockOf(10, 1));
    const second = uploader.submit(blockOf(12, 2));
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
    const done = uploader.submit(blockOf(10, 1));
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
    const blocks = [uploader.submit(blockOf(10, 1)), uploader.submit(blockOf(12, 2))];
    uploader.stop(new FaultError("fenced", "over", { retriable: false }));
    const late = uploader.submit(blockOf(14, 3));
    await assert.rejects(late, (error) => isFault(error, "fenced"));
    assert.equal(blocks.length, 2);
  });
});
