import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  CLUSTER,
  EngineWorld,
  NODE,
  type RunningEngine,
} from "../../tests/support/engine_world.ts";
import type { Verdict } from "../../tests/support/faulty.ts";
import { bases, record } from "../../tests/support/records.ts";
import { keysOf } from "../../tests/support/keys_of.ts";
import { streamEpoch, streamId } from "../lib/brand.ts";
import { isFault } from "../lib/errors.ts";
import { walEpochPrefix, walKey } from "../object/object_key.ts";
import type { RecoveryCommit, StreamView } from "./ports.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { recoverNode } from "./recover.ts";
import { Replay } from "./recover_replay.ts";
import type { StreamRecord } from "./stream_record.ts";

function view(stream: number, end: number, start = 0): StreamView {
  return { streamId: streamId(stream), epoch: streamEpoch(0), open: true, start, end };
}

function replayed(streams: readonly StreamView[], records: readonly StreamRecord[]) {
  const replay = new Replay("wal", streams);
  for (const one of records) replay.add(one);
  const block = replay.takeBlock();
  const runs = block.runs().map((
    run,
  ) => [run.streamId, Array.from({ length: run.length }, (_, i) => run.startAt(i))]);
  return { runs, ends: replay.ends().map(({ streamId: id, end }) => [id, end]) };
}

describe("replay of a WAL", () => {
  test("skips what is committed and streams that are not owned", () => {
    const records = [record(233, 10), record(233, 11), record(233, 12), record(234, 20)];
    assert.deepEqual(replayed([view(233, 11)], records), {
      runs: [[233, [11, 12]]],
      ends: [[233, 13]],
    });
  });

  test("a stream without new records keeps its end", () => {
    assert.deepEqual(replayed([view(1, 7)], []), { runs: [], ends: [[1, 7]] });
  });

  test("a first record behind the end is a loss, named by stream and WAL", () => {
    assert.throws(
      () => replayed([view(233, 5)], [record(233, 10), record(233, 11)]),
      (error) =>
        isFault(error, "data-loss") && /WAL wal: stream 233 .* 10, not 5/.test(error.message),
    );
  });

  test("so is a hole later on, and a record that straddles the end", () => {
    assert.throws(() => replayed([view(1, 0)], [record(1, 0), record(1, 2)]), /data|goes on/);
    assert.throws(() => replayed([view(1, 5)], [record(1, 4, 3)]), /goes on/);
  });

  test("unless the hole was trimmed", () => {
    assert.deepEqual(replayed([view(1, 5, 10)], [record(1, 10)]), {
      runs: [[1, [10]]],
      ends: [[1, 11]],
    });
    assert.deepEqual(replayed([view(1, 5, 10)], []).ends, [[1, 10]]);
  });
});

/** Three streams with durable records, some of them committed, then kill -9. */
async function crashed(): Promise<{ world: EngineWorld; dead: RunningEngine }> {
  const world = new EngineWorld();
  const dead = await world.start({ options: { splitBytes: 500 } });
  for (let i = 0; i < 3; i++) await dead.streams.create(world.nextEpoch());
  for (let i = 0; i < 3; i++) await dead.storage.append(record(0, i, 1, 100)).durable;
  await dead.storage.forceUpload(streamId(0));
  for (let i = 3; i < 6; i++) await dead.storage.append(record(0, i, 1, 100)).durable;
  for (let i = 0; i < 9; i++) await dead.storage.append(record(1, i, 1, 100)).durable;
  dead.kill();
  return { world, dead };
}

async function expectAll(world: EngineWorld, engine: RunningEngine): Promise<void> {
  const expected = [6, 9, 0];
  for (const [i, end] of expected.entries()) {
    const stream = await engine.streams.open(streamId(i), world.nextEpoch());
    assert.equal(stream.nextOffset, end, `stream ${i}`);
    const records = await stream.fetch(0, end, { bytesMax: 1e9 });
    assert.deepEqual(bases(records), Array.from({ length: end }, (_, k) => k));
  }
}

describe("recovery of a node", () => {
  test("brings everything durable into objects and deletes the slots", async () => {
    const { world, dead } = await crashed();
    const engine = await world.start();
    await expectAll(world, engine);
    const slots = await keysOf(world.store, walEpochPrefix(CLUSTER, NODE, dead.ports.epoch));
    assert.equal(slots.length, 1, "only the seal stays");
    assert.deepEqual(engine.ports.recovery.pendingRecoveries(), []);
  });

  test("in little memory: several blocks, one finish", async () => {
    const { world } = await crashed();
    const engine = await world.start({ recoveryBytesMax: 1000 });
    await expectAll(world, engine);
  });

  for (const verdict of ["fail", "lost"] as const) {
    test(`repeats safely when the n-th call gives "${verdict}"`, async () => {
      for (let n = 1;; n++) {
        const { world } = await crashed();
        let calls = 0;
        const judge = (): Verdict => ++calls === n ? verdict : "ok";
        const failed = await world.drive(world.start({ judge })).then(() => false, () => true);
        const restarted = await world.start();
        await expectAll(world, restarted);
        if (calls < n) break;
        assert.ok(failed || calls >= n);
      }
    });
  }

  test("a crash at any call loses nothing", async () => {
    for (let n = 1;; n++) {
      const { world } = await crashed();
      let calls = 0;
      const judge = (): Verdict => ++calls >= n ? "hang" : "ok";
      const started = world.start({ judge });
      await world.clock.settle();
      const isDone = calls < n;
      await expectAll(world, await world.start());
      if (isDone) {
        await started;
        break;
      }
    }
  });

  test("a lost slot stops it before anything is finished", async () => {
    const { world, dead } = await crashed();
    const { epoch } = dead.ports;
    // A hole among the last few could be a write that was never acknowledged; this one cannot.
    const slot = dead.wal.state().nextSlot - 11;
    await world.store.delete([walKey(CLUSTER, { nodeId: NODE, nodeEpoch: epoch, slot })]);
    const before = await keysOf(world.store);
    await assert.rejects(world.start(), (error) => isFault(error, "data-loss"));
    assert.deepEqual(await keysOf(world.store), before);
    assert.equal(world.metadata.stream(streamId(1))?.open, true);
  });

  test("a recoverer that slept while another finished is fenced, and reports no loss", async () => {
    // Found by the simulator: it listed the slots, stood still, and then found them deleted.
    const { world } = await crashed();
    const ports = world.metadata.register(NODE);
    let overtaken = false;
    const store: ObjectStore = {
      ...world.store,
      async *list(prefix, options) {
        yield* world.store.list(prefix, options);
        if (overtaken) return;
        overtaken = true;
        await world.start();
      },
    };
    const { env } = world;
    const sleeper = recoverNode({ ...ports, env, store, clusterId: CLUSTER });
    await assert.rejects(sleeper, (error) => isFault(error, "fenced"));
  });

  test("a record of a stream that metadata never opened stops it: the end of the log is lost", async () => {
    const { world } = await crashed();
    const { recovery, objects } = world.metadata.register(NODE);
    const forgetful = {
      ...recovery,
      canHaveHeld: (_node: unknown, _epoch: unknown, stream: number) => stream !== 1,
      finishRecovery: () => assert.fail("nothing may be finished"),
    };
    const { env, store } = world;
    const parts = { objects, recovery: forgetful, env, store, clusterId: CLUSTER, nodeId: NODE };
    await assert.rejects(
      recoverNode(parts),
      (error) =>
        isFault(error, "data-loss") && /stream 1, which .* never opened/.test(error.message),
    );
    await expectAll(world, await world.start());
  });

  test("a WAL that another recoverer was done with first is left alone", async () => {
    const { world, dead } = await crashed();
    const engine = await world.start();
    const { objects, recovery } = engine.ports;
    const recovered = await recoverNode({
      env: world.env,
      store: world.store,
      clusterId: CLUSTER,
      nodeId: NODE,
      objects,
      recovery,
      wals: [{ nodeId: NODE, epoch: dead.ports.epoch }],
    });
    assert.deepEqual([recovered.objects, recovered.slots], [0, 0]);
    await expectAll(world, engine);
  });

  test("a recovery that another one finished first is fenced, however it is refused", async () => {
    const { world } = await crashed();
    const { objects, recovery } = (await world.start({ recover: false })).ports;
    const late = {
      ...recovery,
      async finishRecovery(commit: RecoveryCommit) {
        await recovery.finishRecovery(commit);
        return { ok: false, reason: "conflict", detail: "WAL is sealed" } as const;
      },
    };
    const { env, store } = world;
    const parts = { objects, recovery: late, env, store, clusterId: CLUSTER, nodeId: NODE };
    await assert.rejects(recoverNode(parts), (error) => isFault(error, "fenced"));
  });

  test("the old incarnation can neither append nor commit afterwards", async () => {
    const world = new EngineWorld();
    const old = await world.start();
    await old.streams.create(world.nextEpoch());
    await old.storage.append(record(0, 0)).durable;
    const engine = await world.start();
    await assert.rejects(
      Promise.resolve().then(() => old.storage.append(record(0, 1)).durable),
      (error) => isFault(error, "fenced"),
    );
    await assert.rejects(old.storage.forceUpload(streamId(0)), (error) => isFault(error, "fenced"));
    await old.storage.close();
    const stream = await engine.streams.open(streamId(0), world.nextEpoch());
    assert.equal(stream.nextOffset, 1);
  });
});
