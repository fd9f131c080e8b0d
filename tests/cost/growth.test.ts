/** What one step costs does not grow with what it does not need: counted in rows and requests, not in time. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { apply } from "../../src/controller/apply.ts";
import { createCollector } from "../../src/controller/collector.ts";
import type { Command } from "../../src/controller/command.ts";
import { openMetadata } from "../../src/controller/controller.ts";
import { decide } from "../../src/controller/decide.ts";
import { NO_HASH } from "../../src/controller/entry.ts";
import { createManagers } from "../../src/controller/managers.ts";
import type { MetadataStore } from "../../src/controller/metadata_store.ts";
import { encodeSnapshot, encodeSnapshotInSteps } from "../../src/controller/snapshot.ts";
import { Draft, type State } from "../../src/controller/state.ts";
import { objectId, position, streamEpoch, streamId } from "../../src/lib/brand.ts";
import { METADATA_SNAPSHOT_STEP_ROWS, OBJECT_RETAIN_AGE_MS_MIN } from "../../src/lib/limits.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import { snapshotKey } from "../../src/object/object_key.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { createCompactor } from "../../src/storage/compaction/compactor.ts";
import { createFakeClock } from "../support/fake_clock.ts";
import { testEnv } from "../support/test_env.ts";
import {
  freeId,
  LARGE_BY,
  LARGE_CLUSTER,
  LARGE_EPOCH,
  LARGE_NODE,
  type LargeSize,
  largeState,
  OBJECT_OFFSETS,
  topicOf,
} from "./large_state.ts";

/** The same streams, ten and a hundred times as many; each has as many objects. */
const SIZES: readonly LargeSize[] = [
  { streams: 20, objects: 200 },
  { streams: 200, objects: 2_000 },
  { streams: 2_000, objects: 20_000 },
];
const OBJECTS_OF_A_STREAM = 9;

/** Rows that were read, by walking over a table or by key. */
interface Visits {
  walked: number;
  read: number;
}

/** What grows with the cluster; nodes, WALs and blocks of ids are few. */
const WALKED = ["streams", "objects", "topics", "partitions"] as const;

class CountingMap<K, V> extends Map<K, V> {
  visits: Visits | undefined;

  override get(key: K): V | undefined {
    if (this.visits !== undefined) this.visits.read++;
    return super.get(key);
  }
  override *entries(): MapIterator<[K, V]> {
    for (const entry of super.entries()) {
      if (this.visits !== undefined) this.visits.walked++;
      yield entry;
    }
  }
  override *values(): MapIterator<V> {
    for (const [, value] of this.entries()) yield value;
  }
  override [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }
}

/** Counts from now on. */
function watch(state: State, tables: readonly (typeof WALKED)[number][]): Visits {
  const visits: Visits = { walked: 0, read: 0 };
  for (const table of tables) {
    const counting = new CountingMap<unknown, unknown>();
    for (const [key, row] of state[table]) counting.set(key, row);
    counting.visits = visits;
    Object.assign(state, { [table]: counting });
  }
  return visits;
}

function run(state: State, command: Command): void {
  const at = position(state.at + 1);
  const draft = new Draft(state);
  const verdict = decide(draft, command, at);
  assert.ok(verdict.ok, `${command.type}: ${JSON.stringify(verdict)}`);
  for (const record of verdict.records) apply(draft, record, at);
  draft.fold(at);
}

const CHECKSUMS = { size: 1, bytesCrc: 1, indexCrc: 1 };
const END = OBJECTS_OF_A_STREAM * OBJECT_OFFSETS;

function rangeOf(stream: number, start: number, end: number) {
  return { streamId: streamId(stream), start, end };
}

const COMMANDS: Readonly<Record<string, (state: State) => Command>> = {
  "an upload": (state) => ({
    type: "commit-upload",
    by: LARGE_BY,
    commit: {
      streamSetObject: {
        objectId: freeId(state),
        ...CHECKSUMS,
        ranges: [0, 1, 2, 3].map((stream) => rangeOf(stream, END, END + 10)),
      },
      streamObjects: [{
        objectId: objectId(freeId(state) + 1),
        ...CHECKSUMS,
        range: rangeOf(4, END, END + 10),
        attributes: 0,
      }],
      walTrim: 1,
    },
  }),
  "a trim": () => ({
    type: "trim-stream",
    by: LARGE_BY,
    streamId: streamId(5),
    epoch: LARGE_EPOCH,
    start: 2 * OBJECT_OFFSETS,
  }),
  "a compaction": (state) => ({
    type: "commit-compaction",
    by: LARGE_BY,
    streamSetObject: null,
    streamObjects: [{
      objectId: freeId(state),
      ...CHECKSUMS,
      range: rangeOf(6, 0, 2 * OBJECT_OFFSETS),
      attributes: 0,
    }],
    composites: [],
    replaces: [0, 1].map((n) => ({
      objectId: state.streams.get(streamId(6))!.objects[n]!,
      ranges: [rangeOf(6, n * OBJECT_OFFSETS, (n + 1) * OBJECT_OFFSETS)],
    })),
  }),
  "a new stream": () => ({ type: "create-stream", by: LARGE_BY, epoch: streamEpoch(0) }),
  "a deleted topic": () => ({ type: "delete-topic", topicId: topicOf(7) }),
  "a reservation": () => ({ type: "reserve-ids", by: LARGE_BY, count: 4_096 }),
};

suite("a commit", () => {
  for (const [name, commandOf] of Object.entries(COMMANDS)) {
    test(`${name} reads the rows that it is about, however many there are`, () => {
      const found = SIZES.map((size) => {
        const state = largeState(size);
        const command = commandOf(state);
        const visits = watch(state, WALKED);
        run(state, command);
        return { ...visits };
      });
      assert.equal(found[0]!.walked, 0, "no table is walked over");
      assert.ok(found[0]!.read < 200, `${found[0]!.read} rows are read`);
      for (const visits of found) assert.deepEqual(visits, found[0]);
    });
  }

  test("blocks of ids are as many as living objects need: one whose ids are all purged goes", () => {
    const state = largeState(SIZES[0]!);
    for (let i = 0; i < 50; i++) {
      const from = state.nextObjectId;
      run(state, { type: "reserve-ids", by: LARGE_BY, count: 2 });
      const objectIds = [objectId(from), objectId(from + 1)];
      run(state, { type: "purge", by: LARGE_BY, objectIds });
      const again = decide(new Draft(state), {
        type: "purge",
        by: LARGE_BY,
        objectIds,
      }, position(state.at + 1));
      assert.ok(again.ok && again.records.length === 0, "they are gone, and stay so");
    }
    assert.equal(state.idBlocks.size, largeState(SIZES[0]!).idBlocks.size);
  });
});

/** Counts requests and the bytes of their answers. */
function counted(store: ObjectStore): { store: ObjectStore; calls: Record<string, number> } {
  const calls: Record<string, number> = {};
  const count = (op: string) => void (calls[op] = (calls[op] ?? 0) + 1);
  return {
    calls,
    store: {
      ...store,
      get: (key, options) => (count("get"), store.get(key, options)),
      put: (key, body, options) => (count("put"), store.put(key, body, options)),
      list: (prefix, options) => (count("list"), store.list(prefix, options)),
    },
  };
}

async function openLarge(size: LargeSize) {
  const clock = createFakeClock();
  const env = testEnv({ clock });
  const base = createMemoryStore(clock);
  const state = largeState(size);
  const bytes = encodeSnapshot({ state, lastHash: NO_HASH }, env.codecs);
  await base.put(snapshotKey(LARGE_CLUSTER, state.at), bytes);
  const { store, calls } = counted(base);
  const options = { store, env, clusterId: LARGE_CLUSTER, nodeId: LARGE_NODE, pollMs: null };
  return { clock, env, store, calls, metadata: await openMetadata(options) };
}

function stateOf(metadata: MetadataStore): State {
  return metadata.view() as State;
}

suite("a node with much metadata", () => {
  test("starts with the same few requests", async () => {
    const found = [];
    for (const size of SIZES) {
      const { calls, metadata } = await openLarge(size);
      assert.equal(metadata.view().streams.size, size.streams);
      found.push({ ...calls });
      await metadata.close();
    }
    for (const calls of found) assert.deepEqual(calls, found[0]);
    // A list of snapshots, the newest one, and one window of entries behind it.
    assert.deepEqual(found[0], { list: 1, get: 1 + 16 });
  });

  test("looks for garbage among the garbage", async () => {
    for (const size of SIZES) {
      const { env, store, clock, metadata } = await openLarge(size);
      const collector = createCollector({
        store,
        env,
        clusterId: LARGE_CLUSTER,
        metadata,
        requester: () => LARGE_BY,
        intervalMs: null,
      });
      const state = stateOf(metadata);
      assert.ok((await metadata.submit(COMMANDS["a trim"]!(state))).ok);
      await clock.advance(OBJECT_RETAIN_AGE_MS_MIN);
      const visits = watch(state, WALKED);
      assert.equal((await collector.collect()).deleted, 2, "the trimmed objects");
      assert.equal(state.destroyed.size, 0);
      assert.equal(visits.walked, 0);
      await collector.close();
      await metadata.close();
    }
  });

  test("gives the objects of a stream to a read without making them anew", async () => {
    const { metadata } = await openLarge(SIZES[0]!);
    const { objects } = createManagers(metadata, () => LARGE_BY);
    const [stream, other] = [streamId(1), streamId(2)];
    const view = objects.viewObjects(stream);
    const sets = objects.streamSetObjects(LARGE_NODE);
    assert.equal(view?.streamObjects.length, OBJECTS_OF_A_STREAM);
    const state = stateOf(metadata);
    const trim = COMMANDS["a trim"]!(state);
    run(state, trim);
    assert.equal(objects.viewObjects(stream), view, "nothing about it has changed");
    assert.equal(objects.streamSetObjects(LARGE_NODE), sets);
    const trimmed = streamId(5);
    assert.equal(objects.viewObjects(trimmed)?.streamObjects.length, OBJECTS_OF_A_STREAM - 2);
    assert.notEqual(objects.viewObjects(other), view);
    await metadata.close();
  });

  test("plans compaction for the streams that have changed", async () => {
    const { env, store, clock, metadata } = await openLarge(SIZES[1]!);
    const managers = createManagers(metadata, () => LARGE_BY);
    let planned = 0;
    const objects = {
      ...managers.objects,
      streamSetObjects: () => [],
      viewObjects: (stream: Parameters<typeof managers.objects.viewObjects>[0]) => {
        planned++;
        return managers.objects.viewObjects(stream);
      },
    };
    const compactor = createCompactor({
      env,
      store,
      clusterId: LARGE_CLUSTER,
      nodeId: LARGE_NODE,
      objects,
      streams: managers.streams,
      compaction: managers.compaction,
      // Enough objects of one size for a composite are not there.
      options: { objectsMin: OBJECTS_OF_A_STREAM + 3 },
    });
    await compactor.look();
    assert.equal(planned, SIZES[1]!.streams);
    planned = 0;
    const state = stateOf(metadata);
    run(state, COMMANDS["a trim"]!(state));
    await clock.advance(60_000);
    await compactor.look();
    assert.equal(planned, 1, "only the trimmed one");
    await compactor.close();
    await metadata.close();
  });

  test("writes a snapshot in steps, of the moment when it began", () => {
    const state = largeState(SIZES[2]!);
    const { codecs } = testEnv();
    const whole = encodeSnapshot({ state, lastHash: NO_HASH }, codecs);
    const steps = encodeSnapshotInSteps({ state, lastHash: NO_HASH }, codecs);
    let count = 1;
    let step = steps.next();
    run(state, COMMANDS["a deleted topic"]!(state));
    for (; step.done !== true; count++) step = steps.next();
    assert.deepEqual(step.value, whole);
    assert.ok(count >= SIZES[2]!.objects / METADATA_SNAPSHOT_STEP_ROWS, `${count} steps`);
    const small = encodeSnapshotInSteps(
      { state: largeState(SIZES[0]!), lastHash: NO_HASH },
      codecs,
    );
    assert.equal(small.next().done, true, "a small one is written at once");
  });
});
