import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { objectId, streamId } from "../../lib/brand.ts";
import { ENTRY_OFFSETS_MAX, type IndexEntry } from "../format/index_block.ts";
import {
  type Analysis,
  type AnalysisLimits,
  analyze,
  analyzeSplit,
  type Group,
  type SourceObject,
} from "./analysis.ts";
import { liveBlocks, rangesOf, regroup, type SourceBlock } from "./blocks.ts";
import { outputsOf, piecesOf, readsOf, stepsOf } from "./steps.ts";

type Drawn = readonly [stream: number, start: number, end: number, bytes: number];

/** Blocks of the given sizes, one after the other. */
function source(id: number, ...drawn: readonly Drawn[]): SourceObject {
  let position = 0;
  const blocks = drawn.map(([stream, start, end, size]): SourceBlock => {
    const at = position;
    position += size;
    return {
      objectId: objectId(id),
      streamId: streamId(stream),
      start,
      end,
      recordCount: 1,
      position: at,
      size,
    };
  });
  return { objectId: objectId(id), blocks };
}

/** Header of a data block and of its one record. */
const HEADERS = 43;
const withHeaders = (...drawn: readonly Drawn[]): Drawn[] =>
  drawn.map(([stream, start, end, payload]) => [stream, start, end, payload + HEADERS]);

const OBJECTS = [
  source(0, ...withHeaders([0, 0, 15, 2], [1, 25, 30, 2], [1, 30, 60, 22], [2, 30, 60, 22])),
  source(1, ...withHeaders([0, 15, 20, 1], [1, 60, 120, 52])),
  source(2, ...withHeaders([1, 400, 500, 92], [2, 230, 270, 32])),
];
const OTHERS = [
  source(0, [0, 0, 20, 20], [1, 30, 60, 30], [2, 30, 60, 30]),
  source(1, [0, 20, 25, 5], [1, 60, 120, 60]),
  source(2, [1, 400, 500, 100], [2, 230, 270, 40]),
];
const NO_LIMITS: AnalysisLimits = { splitBytes: 100, streamsMax: 100, streamObjectsMax: 100 };

function drawGroup({ kind, blocks }: Group): string {
  const [{ streamId: stream, start, end }] = rangesOf(blocks) as [IndexEntry];
  return `${kind} ${stream}[${start},${end})`;
}

function draw(analysis: Analysis): { groups: string[]; used: number[] } {
  if (analysis.kind !== "groups") return { groups: [analysis.kind], used: [] };
  return { groups: analysis.groups.map(drawGroup), used: [...analysis.used].toSorted() };
}

describe("analysis (AutoMQ's CompactionAnalyzerTest)", () => {
  test("blocks below a stream's start and of missing streams are left out", () => {
    const live = liveBlocks(
      OBJECTS[0]!.blocks,
      (stream) => stream === 0 ? 15 : stream === 1 ? 0 : null,
    );
    assert.deepEqual(live.map(({ streamId: id, start }) => [id, start]), [[1, 25], [1, 30]]);
  });

  test("split 100: large pieces and pieces before a gap get an object of their own", () => {
    assert.deepEqual(draw(analyze(OBJECTS, NO_LIMITS)), {
      groups: [
        "keep 0[0,20)",
        "split 1[25,120)",
        "split 1[400,500)",
        "split 2[30,60)",
        "keep 2[230,270)",
      ],
      used: [0, 1, 2],
    });
  });

  test("split 30: all of them", () => {
    const { groups } = draw(analyze(OBJECTS, { ...NO_LIMITS, splitBytes: 30 }));
    assert.deepEqual(groups.map((text) => text.split(" ")[0]), Array(5).fill("split"));
  });

  test("split 70, two stream objects at most: the object behind the smallest split is left out", () => {
    const limits = { ...NO_LIMITS, splitBytes: 70, streamObjectsMax: 2 };
    assert.deepEqual(draw(analyze(OBJECTS, limits)), {
      groups: ["split 0[0,20)", "split 1[25,120)", "keep 2[30,60)"],
      used: [0, 1],
    });
  });

  test("split 50, one stream object at most", () => {
    const limits = { ...NO_LIMITS, splitBytes: 50, streamObjectsMax: 1 };
    assert.deepEqual(draw(analyze(OTHERS, limits)), {
      groups: ["keep 0[0,25)", "split 1[30,120)", "keep 2[30,60)"],
      used: [0, 1],
    });
  });

  test("split 50, one stream at most: nothing is left", () => {
    const limits = { ...NO_LIMITS, splitBytes: 50, streamsMax: 1 };
    assert.equal(analyze(OTHERS, limits).kind, "nothing");
  });

  test("split 29, two stream objects, then one", () => {
    const limits = { ...NO_LIMITS, splitBytes: 29, streamObjectsMax: 2 };
    assert.deepEqual(draw(analyze(OTHERS, limits)), {
      groups: ["keep 0[0,25)", "split 1[30,120)", "split 2[30,60)"],
      used: [0, 1],
    });
    assert.equal(analyze(OTHERS, { ...limits, streamObjectsMax: 1 }).kind, "nothing");
  });

  test("objects that share no stream are joined all the same: their number must stay bounded", () => {
    const apart = [source(0, [0, 0, 1, 9]), source(1, [1, 0, 1, 9])];
    assert.deepEqual(draw(analyze(apart, NO_LIMITS)).used, [0, 1]);
  });

  test("an overlap stops everything", () => {
    const twice = [source(0, [0, 0, 10, 9]), source(1, [0, 9, 11, 9])];
    assert.deepEqual(analyze(twice, NO_LIMITS), { kind: "overlap", stream: 0 });
  });

  test("a forced split keeps what would be too many objects for the next turn", () => {
    const { groups } = draw(analyzeSplit([OTHERS[0]!], 2));
    assert.deepEqual(groups, ["keep 0[0,20)", "split 1[30,60)", "split 2[30,60)"]);
  });

  test("a forced split of several puts a stream's pieces together, a gap parts them", () => {
    const sources = [
      source(0, [0, 0, 10, 9], [1, 0, 10, 9]),
      source(1, [0, 10, 20, 9], [1, 15, 20, 9]),
    ];
    const all = draw(analyzeSplit(sources, 3));
    assert.deepEqual(all.groups, ["split 0[0,20)", "split 1[0,10)", "split 1[15,20)"]);
    assert.deepEqual(all.used, [0, 1]);
    const half = draw(analyzeSplit(sources, 2));
    assert.deepEqual(half.groups, ["split 0[0,10)", "split 1[0,10)"]);
    assert.deepEqual(half.used, [0]);
  });
});

describe("steps", () => {
  const analysis = analyze(OBJECTS, NO_LIMITS);
  assert.equal(analysis.kind, "groups");
  const outputs = outputsOf(analysis.kind === "groups" ? analysis.groups : []);
  const drawn = (bytesMax: number) =>
    stepsOf(piecesOf(outputs), bytesMax).map((step) => {
      const text = new Map<number, string>();
      for (const { output, block } of step) {
        const range = `${block.streamId}[${block.start},${block.end})`;
        text.set(output, `${text.get(output) ?? outputs[output]!.kind} ${range}`);
      }
      return [...text.values()];
    });

  test("cache 1024: one step", () => {
    assert.deepEqual(drawn(1024), [[
      "stream-set 0[0,15) 0[15,20) 2[230,270)",
      "stream 1[25,30) 1[30,60) 1[60,120)",
      "stream 1[400,500)",
      "stream 2[30,60)",
    ]]);
  });

  test("cache 300: two, the shared object goes on in the second", () => {
    assert.deepEqual(drawn(300), [
      ["stream-set 0[0,15) 0[15,20)", "stream 1[25,30) 1[30,60) 1[60,120)"],
      ["stream 1[400,500)", "stream 2[30,60)", "stream-set 2[230,270)"],
    ]);
  });

  test("cache 5: block by block, a large block is no reason to fail", () => {
    assert.equal(drawn(5).length, piecesOf(outputs).length);
  });

  test("neighbours and near blocks of one object share a request", () => {
    const blocks = [
      ...source(1, [0, 0, 1, 10], [0, 1, 2, 10], [0, 2, 3, 10]).blocks.filter((_, i) => i !== 1),
      ...source(2, [0, 3, 4, 5]).blocks,
    ];
    const reads = readsOf(blocks).map(({ objectId: id, start, end }) => [id, start, end]);
    assert.deepEqual(reads, [[1, 0, 30], [2, 0, 5]]);
    const far = source(1, [0, 0, 1, 10], [0, 1, 2, 1e6], [0, 2, 3, 10]).blocks;
    assert.equal(readsOf([far[0]!, far[2]!]).length, 2);
  });
});

describe("index of moved blocks (CompactionUtilTest)", () => {
  const entry = (
    stream: number,
    start: number,
    end: number,
    size: number,
    recordCount = 1,
  ): IndexEntry => ({ streamId: streamId(stream), start, end, recordCount, position: 0, size });

  const BLOCKS = [
    entry(0, 0, 15, 20, 1),
    entry(0, 15, 30, 5, 2),
    entry(0, 30, 100, 80, 3),
    entry(2, 40, 100, 80, 4),
    entry(2, 120, 150, 30, 5),
  ];
  const fields = (entries: readonly IndexEntry[]) =>
    entries.map((
      { streamId: id, start, end, recordCount, position, size },
    ) => [id, start, end - start, recordCount, position, size]);

  test("neighbours share an entry up to the limit", () => {
    assert.deepEqual(fields(regroup(BLOCKS, 30)), [
      [0, 0, 30, 3, 0, 25],
      [0, 30, 70, 3, 25, 80],
      [2, 40, 60, 4, 105, 80],
      [2, 120, 30, 5, 185, 30],
    ]);
  });

  test("neither offsets nor record counts pass 31 bits", () => {
    const wide = [
      entry(0, 0, ENTRY_OFFSETS_MAX, 1),
      entry(0, ENTRY_OFFSETS_MAX, ENTRY_OFFSETS_MAX + 1, 1),
    ];
    assert.equal(regroup(wide, 999).length, 2);
    const many = [entry(0, 0, 1, 1, 2 ** 31 - 1), entry(0, 1, 2, 1)];
    assert.equal(regroup(many, 999).length, 2);
  });

  test("ranges of all blocks", () => {
    const ranges = rangesOf(BLOCKS).map(({ streamId: id, start, end }) => [id, start, end]);
    assert.deepEqual(ranges, [[0, 0, 100], [2, 40, 100], [2, 120, 150]]);
  });
});
