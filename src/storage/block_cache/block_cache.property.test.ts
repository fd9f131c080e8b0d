import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  COMPACTION_CLUSTER,
  COMPACTION_NODE,
  CompactionWorld,
  type Incarnation,
  payloadOf,
} from "../../../tests/support/compaction_world.ts";
import { streamId } from "../../lib/brand.ts";
import { sparseIndexKey } from "../../object/object_key.ts";
import { endOffset, type StreamRecord } from "../stream_record.ts";
import type { BlockCache } from "./block_cache.ts";

const STREAMS = 3;
const KEY = sparseIndexKey(COMPACTION_CLUSTER, COMPACTION_NODE);

type Step =
  | { readonly do: "upload"; readonly isLearned: boolean; readonly times: number }
  | { readonly do: "compact"; readonly isLearned: boolean; readonly splitBytes: number }
  | { readonly do: "trim"; readonly stream: number; readonly share: number }
  | { readonly do: "restart" }
  | { readonly do: "hint"; readonly what: "lost" | "damaged" | "old"; readonly at: number }
  | { readonly do: "wait"; readonly ms: number }
  /** Sequential readers that begin together, each with a budget of its own. */
  | { readonly do: "read"; readonly readers: readonly Reader[] };

interface Reader {
  readonly stream: number;
  /** Of the stream. */
  readonly share: number;
  readonly bytesMax: number;
  readonly reads: number;
}

const stream = fc.nat({ max: STREAMS - 1 });
const share = fc.double({ min: 0, max: 1, noNaN: true });
const reader: fc.Arbitrary<Reader> = fc.record({
  stream,
  share,
  bytesMax: fc.constantFrom(1, 50, 300, 5_000),
  reads: fc.integer({ min: 1, max: 6 }),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("upload" as const),
      isLearned: fc.boolean(),
      times: fc.integer({ min: 1, max: 12 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("compact" as const),
      isLearned: fc.boolean(),
      splitBytes: fc.constantFrom(1, 400, 1e9),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("trim" as const), stream, share }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("hint" as const),
      what: fc.constantFrom("lost" as const, "damaged" as const, "old" as const),
      at: fc.nat({ max: 2_000 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("wait" as const),
      ms: fc.constantFrom(1, 59_000, 61_000),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("read" as const),
      readers: fc.array(reader, { minLength: 1, maxLength: 4 }),
    }),
  },
);

interface Run {
  readonly world: CompactionWorld;
  node: Incarnation;
  cache: BlockCache;
  oldHint: Uint8Array | null;
}

/** One answer: without a gap from the place that was asked for, within its budget, byte for byte. */
function expectRecords(
  records: readonly StreamRecord[],
  id: number,
  start: number,
  end: number,
  bytesMax: number,
): void {
  assert.ok(records.length > 0, `nothing of stream ${id} at ${start}`);
  assert.ok(records[0]!.baseOffset <= start && start < endOffset(records[0]!));
  let next = records[0]!.baseOffset;
  let bytes = 0;
  for (const record of records) {
    assert.deepEqual([record.streamId, record.baseOffset], [id, next]);
    assert.deepEqual(record.payload, payloadOf(id, next, record.payload.length));
    next = endOffset(record);
    bytes += record.payload.length;
  }
  assert.ok(records.at(-1)!.baseOffset < end);
  assert.ok(records.length === 1 || bytes <= bytesMax, `${bytes} bytes, not ${bytesMax}`);
}

async function readOn({ world, node, cache }: Run, one: Reader): Promise<void> {
  const { start, end } = node.managers.streams.viewStream(streamId(one.stream))!;
  let at = start + Math.floor((end - start) * one.share);
  for (let i = 0; i < one.reads && at < end; i++) {
    const { bytesMax } = one;
    const records = await world.drive(cache.read(streamId(one.stream), at, end, { bytesMax }));
    expectRecords(records, one.stream, at, end, bytesMax);
    at = endOffset(records.at(-1)!);
  }
}

async function changeHint(run: Run, { what, at }: Extract<Step, { do: "hint" }>): Promise<void> {
  const { store } = run.node;
  const now = (await store.get(KEY))?.bytes ?? null;
  if (what === "lost") await store.delete([KEY]);
  if (what === "old" && run.oldHint !== null) await store.put(KEY, run.oldHint);
  if (what === "damaged" && now !== null) {
    await store.put(KEY, Uint8Array.from(now, (byte, i) => i === at % now.length ? ~byte : byte));
  }
  run.oldHint = now;
}

async function take(run: Run, one: Step): Promise<void> {
  const { world, node } = run;
  switch (one.do) {
    case "upload":
      for (let i = 0; i < one.times; i++) {
        const sizes = [[1, 40], [2, 90], [1, 10]] as const;
        const records = [0, 1, 2].flatMap((id) => id === i % 4 ? [] : world.next(id, ...sizes));
        const written = await world.upload(node, records);
        if (one.isLearned) run.cache.learn(written);
      }
      return await world.clock.settle();
    case "compact": {
      const { splitBytes, isLearned } = one;
      const compactor = world.compactor(node, { splitBytes, objectsMin: 3 }, (written) => {
        if (isLearned) run.cache.learn(written);
      });
      await world.drive(compactor.look());
      return await world.drive(compactor.close());
    }
    case "trim": {
      const { start, end } = node.managers.streams.viewStream(streamId(one.stream))!;
      return await world.trim(node, one.stream, start + Math.floor((end - start) * one.share));
    }
    case "restart":
      run.node = await world.start();
      run.cache = world.reader(run.node);
      return;
    case "hint":
      return await changeHint(run, one);
    case "wait":
      return await world.clock.advance(one.ms);
    case "read":
      await Promise.all(one.readers.map((reader) => readOn(run, reader)));
  }
}

test("property: whatever is cached, hinted, learned or read ahead, a read gives the stream's records", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 5, maxLength: 30, size: "max" }),
      async (steps) => {
        const world = new CompactionWorld();
        const node = await world.start();
        await world.createStreams(node, STREAMS);
        const run: Run = { world, node, cache: world.reader(node), oldHint: null };
        for (const one of steps) await take(run, one);
        await world.check(run.node, run.cache);
      },
    ),
    { numRuns: 12 },
  );
});
