import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { objectId, streamId } from "../../lib/brand.ts";
import { DEFAULT_COMPACTION_OPTIONS, pricedCompaction } from "./options.ts";
import { bytesWanted, isWorthWaiting, type SizedSource } from "./patience.ts";

const MIB = 2 ** 20;
const SPLIT = 32 * MIB;

/** `objects` of equal pieces of so many streams. */
function uploads(objects: number, streams: number, bytes: number): SizedSource[] {
  return Array.from({ length: objects }, (_, o) => ({
    objectId: objectId(o),
    size: bytes,
    blocks: Array.from({ length: streams }, (_, s) => ({
      objectId: objectId(o),
      streamId: streamId(s),
      start: o,
      end: o + 1,
      recordCount: 1,
      position: s * bytes / streams,
      size: bytes / streams,
    })),
  }));
}

function waits(sources: readonly SizedSource[], options = DEFAULT_COMPACTION_OPTIONS): boolean {
  return isWorthWaiting(sources, bytesWanted(sources, options));
}

describe("patience", () => {
  test("a hundred streams with 0.8 MiB per upload: 32 MiB of each are 3.2 GiB in all", () => {
    const sources = uploads(8, 100, 80 * MIB);
    const wanted = bytesWanted(sources, DEFAULT_COMPACTION_OPTIONS);
    assert.ok(wanted >= 100 * SPLIT && wanted <= 1.1 * 100 * SPLIT, `${wanted / MIB} MiB`);
    assert.ok(waits(sources));
  });

  test("the same streams with enough wait no longer", () => {
    assert.equal(waits(uploads(41, 100, 80 * MIB)), false);
  });

  test("a thousand streams would need 400 uploads: they are joined as they are", () => {
    assert.equal(waits(uploads(8, 1_000, 80 * MIB)), false);
  });

  test("most of the bytes decide: two large streams beside many small ones", () => {
    const small = uploads(8, 1_000, 10 * MIB);
    const large = uploads(8, 2, 40 * MIB);
    const sources = large.map(({ objectId: id, size, blocks }, i) => ({
      objectId: id,
      size: size + small[i]!.size,
      blocks: [
        ...blocks,
        ...small[i]!.blocks.map((block) => ({
          ...block,
          streamId: streamId(block.streamId + 2),
        })),
      ],
    }));
    assert.equal(waits(sources), false, "160 MiB of each large stream");
  });

  test("never past so many objects, nor past half of the largest run", () => {
    const sources = uploads(60, 100, 40 * MIB);
    assert.equal(waits(sources), false, "1.4 times as much would be more than 64 objects");
    const few = { ...DEFAULT_COMPACTION_OPTIONS, setBytesMax: 4_096 * MIB };
    assert.equal(waits(uploads(8, 100, 80 * MIB), few), false);
  });

  test("where requests have prices, reads of 8 MiB decide: 16 objects in 128 MiB", () => {
    const { waitObjectsMax } = pricedCompaction(128 * MIB);
    assert.equal(waitObjectsMax, 16);
    const options = { ...DEFAULT_COMPACTION_OPTIONS, waitObjectsMax };
    assert.equal(waits(uploads(8, 100, 80 * MIB), options), false, "40 objects of 80 MiB");
    assert.ok(waits(uploads(8, 100, 256 * MIB), options), "14 objects of 256 MiB");
  });

  test("nothing that lives: nothing to wait for", () => {
    const dead = [{ objectId: objectId(1), size: 100, blocks: [] }];
    assert.equal(bytesWanted(dead, DEFAULT_COMPACTION_OPTIONS), 0);
    assert.equal(waits(dead), false);
  });
});
