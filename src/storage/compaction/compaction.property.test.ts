import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { CompactionWorld, type Incarnation } from "../../../tests/support/compaction_world.ts";
import type { BlockCache } from "../block_cache/block_cache.ts";
import { createCollector } from "../../controller/collector.ts";
import { streamId } from "../../lib/brand.ts";
import { OBJECT_RETAIN_AGE_MS_MIN } from "../../lib/limits.ts";
import type { CompactionOptions } from "./options.ts";

const STREAMS = 4;

type Step =
  | { readonly do: "upload"; readonly pieces: readonly Piece[]; readonly splitBytes: number }
  | { readonly do: "trim"; readonly stream: number; readonly share: number }
  | { readonly do: "delete"; readonly stream: number }
  | { readonly do: "compact" }
  | { readonly do: "restart" }
  | { readonly do: "wait"; readonly minutes: number };

interface Piece {
  readonly stream: number;
  readonly records: readonly (readonly [count: number, bytes: number])[];
}

const record = fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 0, max: 120 }));
const piece: fc.Arbitrary<Piece> = fc.record({
  stream: fc.nat({ max: STREAMS - 1 }),
  records: fc.array(record, { minLength: 1, maxLength: 4 }),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("upload" as const),
      pieces: fc.array(piece, { minLength: 2, maxLength: 6 }),
      splitBytes: fc.constantFrom(1, 200, 1e9, 1e9, 1e9),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("compact" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("trim" as const),
      stream: fc.nat({ max: STREAMS - 1 }),
      share: fc.constantFrom(0.1, 0.3, 0.5, 1),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("delete" as const),
      stream: fc.nat({ max: STREAMS - 1 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("wait" as const),
      minutes: fc.integer({ min: 1, max: 200 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
);

/** Small enough for a few hundred bytes to set off everything. */
const options: fc.Arbitrary<Partial<CompactionOptions>> = fc.record({
  memoryBytes: fc.integer({ min: 1, max: 2_000 }),
  objectsMin: fc.integer({ min: 2, max: 4 }),
  splitBytes: fc.integer({ min: 1, max: 1_500 }),
  forceSplitMs: fc.constantFrom(0, 7_200_000, 1e12, 1e12, 1e12),
  setObjectsMax: fc.integer({ min: 2, max: 10 }),
  setBytesMax: fc.integer({ min: 500, max: 20_000 }),
  streamsMax: fc.integer({ min: 2, max: 8 }),
  streamObjectsMax: fc.integer({ min: 2, max: 8 }),
  mergeBytesMax: fc.integer({ min: 100, max: 1_500 }),
  linkBytesMin: fc.integer({ min: 0, max: 300 }),
  linkBytesMax: fc.integer({ min: 500, max: 20_000 }),
  linksMax: fc.integer({ min: 2, max: 20 }),
  deadBytesMin: fc.integer({ min: 1, max: 300 }),
  deadBytesMax: fc.integer({ min: 1, max: 2_000 }),
  clusterObjectsMax: fc.constantFrom(3, 1e9, 1e9),
  wholeBytesMax: fc.constantFrom(0, 400, 1e6),
  waitObjectsMax: fc.integer({ min: 0, max: 8 }),
});

interface Run {
  readonly world: CompactionWorld;
  node: Incarnation;
  /** Lives through everything, so what it remembers is often out of date. */
  cache: BlockCache;
}

/** Reads one stream again and again while the work goes on. */
async function readMeanwhile(run: Run, work: Promise<void>): Promise<void> {
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  const [stream] = run.world.streams();
  for (let i = 0; stream !== undefined && !isOver && i < 20; i++) {
    await run.world.checkStream(run.node, stream, run.cache);
  }
  await run.world.drive(over);
}

async function take(run: Run, one: Step, settings: Partial<CompactionOptions>): Promise<void> {
  const { world, node } = run;
  const alive = (stream: number) => world.streams().includes(streamId(stream));
  switch (one.do) {
    case "upload": {
      const records = [0, 1, 2, 3].filter(alive).flatMap((stream) =>
        world.next(
          stream,
          ...one.pieces.filter((p) => p.stream === stream).flatMap((p) => p.records),
        )
      );
      if (records.length > 0) await world.upload(node, records, one.splitBytes);
      return;
    }
    case "trim": {
      if (!alive(one.stream)) return;
      const { start, end } = node.managers.streams.viewStream(streamId(one.stream))!;
      await world.trim(node, one.stream, start + Math.floor((end - start) * one.share));
      return;
    }
    case "delete":
      if (alive(one.stream) && world.streams().length > 1) {
        await world.deleteStream(node, one.stream);
      }
      return;
    case "compact": {
      const compactor = world.compactor(node, settings);
      await readMeanwhile(run, compactor.look());
      await world.drive(compactor.close());
      return;
    }
    case "restart":
      run.node = await world.start();
      run.cache = world.reader(run.node);
      return;
    case "wait":
      await world.clock.advance(one.minutes * 60_000);
  }
}

/** Deletes what metadata calls garbage, as a node does all the time. */
async function collect({ world, node }: Run): Promise<void> {
  const { store, env, metadata, requester } = node;
  const collector = createCollector({
    store,
    env,
    clusterId: "test",
    metadata,
    requester: () => requester,
    intervalMs: null,
  });
  await world.drive(collector.collect());
  await world.drive(collector.close());
}

describe("compaction", () => {
  test("property: whatever is uploaded, trimmed and compacted, every live byte is read back once", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 10, maxLength: 60, size: "max" }),
        options,
        async (steps, settings) => {
          const world = new CompactionWorld();
          const node = await world.start();
          const run: Run = { world, node, cache: world.reader(node) };
          await world.createStreams(node, STREAMS);
          for (const one of steps) {
            await take(run, one, settings);
            if (one.do === "compact") await world.check(run.node, run.cache);
            if (one.do === "wait") await collect(run);
          }
          for (let i = 0; i < 3; i++) await take(run, { do: "compact" }, settings);
          await world.check(run.node);
          const bad = run.node.lines.filter(({ level }) => level === "warn" || level === "error");
          assert.deepEqual(bad, []);

          // Nothing is left behind once the garbage is collected.
          await world.clock.advance(OBJECT_RETAIN_AGE_MS_MIN + 1);
          await collect(run);
          assert.deepEqual(await world.dataObjects(), world.liveObjects(run.node));
          await world.check(run.node, run.cache);
        },
      ),
      { numRuns: 25 },
    );
  });
});
