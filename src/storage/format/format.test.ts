import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { record } from "../../../tests/support/records.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { objectId, streamId } from "../../lib/brand.ts";
import { concatBytes, DecodeError, fromHex, toHex, toUtf8 } from "../../lib/bytes.ts";
import { crc32c } from "../../lib/crc32c.ts";
import { isFault } from "../../lib/errors.ts";
import { createMemoryStore } from "../../object/memory.ts";
import type { StreamRecord } from "../stream_record.ts";
import { decodeAttributes, encodeAttributes } from "./attributes.ts";
import { type CompositeLink, decodeComposite, encodeComposite } from "./composite.ts";
import { decodeDataBlocks, writeDataBlock } from "./data_block.ts";
import { decodeFooter } from "./footer.ts";
import { encodeIndex, IndexBlock, type IndexEntry } from "./index_block.ts";
import { decodeRecords, readIndex, tailGuessBytes } from "./object_reader.ts";
import { type ObjectLayout, ObjectWriter } from "./object_writer.ts";

function entry(
  stream: number,
  start: number,
  end: number,
  position: number,
  size: number,
): IndexEntry {
  return { streamId: streamId(stream), start, end, recordCount: 1, position, size };
}

function layOut(records: readonly StreamRecord[], blockBytes?: number): ObjectLayout {
  const writer = new ObjectWriter(blockBytes);
  for (const one of records) writer.add(one);
  return writer.finish();
}

const GOLDEN = `5a 02 00000002 00000045
  22 00000000000000e9 0000000000000000 000000000000000a 00000002 00000002 6162
  22 00000000000000e9 0000000000000000 000000000000000c 00000001 00000001 63
  00000000000000e9 000000000000000a 00000003 00000002 0000000000000000 0000004f
  000000000000004f 00000024 ${"00".repeat(28)} 88e241b785f4cff7`;

describe("attributes", () => {
  test("golden values", () => {
    const composite = { type: "composite", bucket: 10, deepDelete: true } as const;
    assert.equal(encodeAttributes(composite), 262185);
    assert.deepEqual(decodeAttributes(262185), composite);
    assert.equal(encodeAttributes({ type: "normal", bucket: 233, deepDelete: false }), 932);
  });

  test("a negative bucket does not reach the bits above it", () => {
    const attributes = { type: "normal", bucket: -2, deepDelete: false } as const;
    assert.deepEqual(decodeAttributes(encodeAttributes(attributes)), attributes);
  });
});

describe("data object", () => {
  test("smallest object, byte for byte", () => {
    const layout = layOut([record(233, 10, 2, toUtf8("ab")), record(233, 12, 1, toUtf8("c"))]);
    assert.equal(toHex(layout.encode()), toHex(fromHex(GOLDEN)));
    assert.equal(layout.size, 163);
  });

  test("blocks close at the payload threshold and at streams", () => {
    const layout = layOut([
      record(233, 10, 5, 512),
      record(233, 15, 10, 512),
      record(233, 25, 5, 512),
      record(234, 0, 5, 512),
    ], 1024);
    const ranges = [
      { streamId: streamId(233), start: 10, end: 30 },
      { streamId: streamId(234), start: 0, end: 5 },
    ];
    assert.deepEqual(layout.ranges, ranges);
    const bytes = layout.encode();
    assert.equal(bytes.length, layout.size);
    const { indexPosition } = decodeFooter("data", bytes, layout.size);
    const index = new IndexBlock(layout.index, indexPosition);
    const found = index.find(streamId(233), 10, 30, 1e9).entries;
    assert.deepEqual(found.map(({ recordCount }) => recordCount), [2, 1]);
    assert.equal(index.find(streamId(234), 1, 2, 1e9).entries[0]?.start, 0);
  });

  test("the threshold does not carry over to the next stream", () => {
    const layout = layOut(
      [record(1, 0, 1, 1000), record(2, 0, 1, 900), record(2, 1, 1, 900)],
      1024,
    );
    assert.equal(layout.index.length, 2 * 36);
  });

  test("refuses streams and offsets that go back", () => {
    assert.throws(() => layOut([record(2, 0), record(1, 0)]));
    assert.throws(() => layOut([record(1, 5, 2), record(1, 6)]));
    layOut([record(1, 5, 2), record(1, 7), record(2, 0)]);
  });

  test("an entry never covers more offsets than its delta holds", () => {
    const big = 2 ** 31 - 1;
    const layout = layOut([record(1, 0, big), record(1, big, big)]);
    assert.equal(layout.index.length, 2 * 36);
  });

  test("encoding in steps gives the same bytes, each once", () => {
    const layout = layOut([...Array(20).keys()].map((i) => record(i - i % 3, i, 1, 7 * i)), 64);
    const bytes = new Uint8Array(layout.size);
    const steps = [...layout.encodeInto(bytes, 100)];
    assert.ok(steps.length > 5);
    assert.ok(steps.slice(0, -1).every(({ length }) => length >= 100));
    assert.equal(toHex(concatBytes(steps)), toHex(layout.encode()));
    assert.equal(toHex(bytes), toHex(layout.encode()));
  });

  test("parts are the same bytes, all but the last equal", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 7, max: 400 }),
        (sizes, partBytes) => {
          const layout = layOut(
            sizes.map((size, i) => record(i % 3 === 0 ? i : i - i % 3, i, 1, size)),
            256,
          );
          const parts = [...layout.parts(partBytes)];
          assert.equal(toHex(concatBytes(parts)), toHex(layout.encode()));
          assert.ok(parts.slice(0, -1).every(({ length }) => length === partBytes));
        },
      ),
      { numRuns: 50 },
    );
  });

  test("damaged blocks do not decode", () => {
    const bytes = fromHex(GOLDEN).subarray(0, 79);
    assert.equal(decodeDataBlocks(bytes).length, 2);
    for (const [at, value] of [[0, 1], [1, 0], [5, 3], [9, 0x46], [10, 0x21]] as const) {
      const damaged = bytes.slice();
      damaged[at] = value;
      assert.throws(() => decodeDataBlocks(damaged), DecodeError);
    }
    assert.throws(() => decodeDataBlocks(bytes.subarray(0, 78)), DecodeError);
  });
});

describe("index block", () => {
  /** Three blocks of 100, 50 and 90 records of 10 bytes each; then another stream. */
  function sample(): IndexBlock {
    const sizes = [100, 50, 90, 1];
    let position = 0;
    let start = 0;
    const entries = sizes.map((count, i) => {
      const size = count * 43 + 10;
      const stream = i === 3 ? 2 : 1;
      if (i === 3) start = 110;
      const made = { ...entry(stream, start, start + count, position, size), recordCount: count };
      position += size;
      start += count;
      return made;
    });
    return new IndexBlock(encodeIndex(entries), position);
  }

  const cases = [
    [10, 150, 100_000, true, 2],
    [10, 200, 100_000, true, 3],
    [10, 10_000, 800, true, 3],
    [10, 10_000, 1_600, false, 3],
    [10, 800, 100_000, false, 3],
  ] as const;
  for (const [start, end, bytesMax, fulfilled, blocks] of cases) {
    test(`find [${start}, ${end}) in ${bytesMax} bytes`, () => {
      const found = sample().find(streamId(1), start, end, bytesMax);
      assert.equal(found.fulfilled, fulfilled);
      assert.equal(found.entries.length, blocks);
    });
  }

  test("merges adjacent ranges of a stream", () => {
    const index = new IndexBlock(
      encodeIndex([
        entry(200, 10, 15, 0, 20),
        entry(234, 0, 5, 20, 20),
        entry(234, 5, 25, 40, 20),
        entry(250, 30, 35, 60, 20),
      ]),
      80,
    );
    assert.deepEqual(index.ranges().map((r) => [r.streamId, r.start, r.end]), [
      [200, 10, 15],
      [234, 0, 25],
      [250, 30, 35],
    ]);
    for (const id of [100, 230, 300]) {
      assert.deepEqual(index.find(streamId(id), 0, 9, 9).entries, []);
    }
  });

  test("refuses entries that are not in order, empty or outside the data", () => {
    const bad = [
      [entry(2, 0, 5, 0, 20), entry(1, 0, 5, 20, 20)],
      [entry(1, 0, 5, 0, 20), entry(1, 4, 6, 20, 20)],
      [entry(1, 5, 5, 0, 20)],
      [entry(1, 0, 5, 0, 200)],
    ];
    for (const entries of bad) {
      assert.throws(() => new IndexBlock(encodeIndex(entries), 100), DecodeError);
    }
  });
});

describe("object reader", () => {
  async function stored(layout: ObjectLayout) {
    const store = createMemoryStore(testEnv().clock);
    const bytes = layout.encode();
    await store.put("k", bytes);
    const checksums = { bytesCrc: crc32c(bytes), indexCrc: crc32c(layout.index) };
    return { store, ref: { size: layout.size, checksums }, bytes };
  }

  test("reads an index larger than the guess with a second request", async () => {
    const writer = new ObjectWriter();
    for (let i = 0; i < 52_428; i++) writer.add(record(i, 0));
    const { store, ref } = await stored(writer.finish());
    assert.ok(tailGuessBytes(ref.size) < ref.size);
    assert.equal((await readIndex(store, "k", ref))?.count, 52_428);
  });

  test("a missing object is null, a damaged one a fault", async () => {
    const { store, ref, bytes } = await stored(layOut([record(1, 0)]));
    assert.equal(await readIndex(store, "other", ref), null);
    bytes[12] = 9;
    await store.put("k", bytes);
    await assert.rejects(readIndex(store, "k", ref), (error) => isFault(error, "corrupt"));
    await store.put("k", bytes.subarray(1));
    await assert.rejects(readIndex(store, "k", ref), (error) => isFault(error, "corrupt"));
  });

  test("an entry may cover several physical blocks", () => {
    const bytes = new Uint8Array(10 * 2 + 34 * 3);
    const end = writeDataBlock(bytes, 0, [record(1, 10), record(1, 11, 2)]);
    writeDataBlock(bytes, end, [record(1, 13)]);
    assert.deepEqual(decodeRecords("k", bytes).map((r) => r.baseOffset), [10, 11, 13]);
  });
});

describe("composite object", () => {
  const links: CompositeLink[] = [
    {
      objectId: objectId(1),
      bucket: 0,
      entries: [entry(7, 10, 25, 0, 50), entry(7, 25, 30, 50, 50)],
    },
    { objectId: objectId(2), bucket: 233, entries: [entry(7, 30, 40, 0, 50)] },
  ];

  test("golden bytes", () => {
    const bytes = encodeComposite(links);
    const head = "52 00000002 0000000000000001 00000000 0000 0000000000000002 00000002 00e9";
    assert.equal(toHex(bytes.subarray(0, 33)), head.replaceAll(" ", ""));
    assert.equal(bytes.length, 189);
    const footer = `0000000000000021 0000006c ${"00".repeat(28)} 88e241b785f4cff8`;
    assert.equal(toHex(bytes.subarray(141)), footer.replaceAll(" ", ""));
    assert.deepEqual(decodeComposite(bytes), links);
  });

  test("damaged ones do not decode", () => {
    const bytes = encodeComposite(links);
    for (const [at, value] of [[0, 0], [4, 3], [16, 9], [150, 1]] as const) {
      const damaged = bytes.slice();
      damaged[at] = value;
      assert.throws(() => decodeComposite(damaged), DecodeError);
    }
  });
});
