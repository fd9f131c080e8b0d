/** Prints times and sizes of the metadata of 1, 10 and 100 % of a large cluster. */
import process from "node:process";
import { apply } from "../../src/controller/apply.ts";
import { destroyedObjects } from "../../src/controller/gc.ts";
import { openMetadata } from "../../src/controller/controller.ts";
import { decide } from "../../src/controller/decide.ts";
import { NO_HASH } from "../../src/controller/entry.ts";
import { createManagers } from "../../src/controller/managers.ts";
import { decodeSnapshot, encodeSnapshotInSteps } from "../../src/controller/snapshot.ts";
import { Draft, type State } from "../../src/controller/state.ts";
import { objectId, position, streamId } from "../../src/lib/brand.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import { snapshotKey } from "../../src/object/object_key.ts";
import { createCompactor } from "../../src/storage/compaction/compactor.ts";
import {
  freeId,
  LARGE_BY,
  LARGE_CLUSTER,
  LARGE_NODE,
  largeState,
  OBJECT_OFFSETS,
} from "../cost/large_state.ts";
import { createFakeClock } from "../support/fake_clock.ts";
import { testEnv } from "../support/test_env.ts";

const STREAMS = 10_000;
const OBJECTS = 100_000;
const COMMITS = 200;
const MIB = 1024 * 1024;

function timed<T>(work: () => T): { readonly ms: number; readonly value: T } {
  const startedMs = performance.now();
  const value = work();
  return { ms: performance.now() - startedMs, value };
}

/** Uploads of ten streams each, one commit after the other. */
function commitMs(state: State): number {
  let id = freeId(state);
  const ends = new Map<number, number>();
  const { ms } = timed(() => {
    for (let n = 0; n < COMMITS; n++) {
      const ranges = Array.from({ length: 10 }, (_, i) => {
        const stream = (n * 10 + i) % Math.min(100, state.streams.size);
        const start = ends.get(stream) ?? state.streams.get(streamId(stream))!.end;
        ends.set(stream, start + OBJECT_OFFSETS);
        return { streamId: streamId(stream), start, end: start + OBJECT_OFFSETS };
      });
      const checksums = { size: 1, bytesCrc: 1, indexCrc: 1 };
      const streamSetObject = { objectId: id, ...checksums, ranges };
      id = objectId(id + 1);
      const commit = { streamSetObject, streamObjects: [], walTrim: n };
      const at = position(state.at + 1);
      const draft = new Draft(state);
      const verdict = decide(draft, { type: "commit-upload", by: LARGE_BY, commit }, at);
      if (!verdict.ok) throw new Error(verdict.detail);
      for (const record of verdict.records) apply(draft, record, at);
      draft.fold(at);
    }
  });
  return ms / COMMITS;
}

async function looksMs(state: State): Promise<readonly [first: number, next: number]> {
  const env = testEnv();
  const store = createMemoryStore(env.clock);
  const bytes = drained(state).bytes;
  await store.put(snapshotKey(LARGE_CLUSTER, state.at), bytes);
  const base = { store, env, clusterId: LARGE_CLUSTER, nodeId: LARGE_NODE };
  const metadata = await openMetadata({ ...base, pollMs: null });
  const managers = createManagers(metadata, () => LARGE_BY);
  const objects = { ...managers.objects, streamSetObjects: () => [] };
  const compactor = createCompactor({
    ...base,
    objects,
    streams: managers.streams,
    compaction: managers.compaction,
    options: { objectsMin: 1_000 },
  });
  const times = [];
  for (let i = 0; i < 2; i++) {
    const startedMs = performance.now();
    await compactor.look();
    times.push(performance.now() - startedMs);
    await metadata.submit({ type: "reserve-ids", by: LARGE_BY, count: 1 });
  }
  return [times[0]!, times[1]!];
}

function drained(state: State): { readonly bytes: Uint8Array; readonly longestMs: number } {
  const steps = encodeSnapshotInSteps({ state, lastHash: NO_HASH }, testEnv().codecs);
  let longestMs = 0;
  for (;;) {
    const { ms, value: step } = timed(() => steps.next());
    longestMs = Math.max(longestMs, ms);
    if (step.done === true) return { bytes: step.value, longestMs };
  }
}

async function openMs(state: State, bytes: Uint8Array): Promise<number> {
  const env = testEnv({ clock: createFakeClock() });
  const store = createMemoryStore(env.clock);
  await store.put(snapshotKey(LARGE_CLUSTER, state.at), bytes);
  const startedMs = performance.now();
  const base = { store, env, clusterId: LARGE_CLUSTER, nodeId: LARGE_NODE };
  const metadata = await openMetadata({ ...base, pollMs: null });
  const ms = performance.now() - startedMs;
  await metadata.close();
  return ms;
}

function heapMib(): number {
  const { gc } = globalThis as { gc?: () => void };
  gc?.();
  return process.memoryUsage().heapUsed / MIB;
}

export async function printGrowth(): Promise<void> {
  console.log(
    "| streams | objects | heap MiB | snapshot MiB | written in ms | longest step ms | start ms | commit ms | garbage look ms | compaction look ms, the next |",
  );
  console.log("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
  for (const share of [0.01, 0.1, 1]) {
    const [streams, objects] = [STREAMS * share, OBJECTS * share];
    const before = heapMib();
    const state = largeState({ streams, objects });
    const heap = heapMib() - before;
    const { ms: writtenMs, value: { bytes, longestMs } } = timed(() => drained(state));
    decodeSnapshot(bytes, state.at, testEnv().codecs);
    const startMs = await openMs(state, bytes);
    const [look, nextLook] = await looksMs(state);
    const { ms: garbageMs } = timed(() => destroyedObjects(state));
    const cells = [
      streams,
      objects,
      heap.toFixed(0),
      (bytes.length / MIB).toFixed(2),
      writtenMs.toFixed(0),
      longestMs.toFixed(0),
      startMs.toFixed(0),
      commitMs(state).toFixed(2),
      garbageMs.toFixed(2),
      `${look.toFixed(1)}, ${nextLook.toFixed(1)}`,
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
}
