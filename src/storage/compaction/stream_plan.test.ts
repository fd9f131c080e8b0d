import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { objectId } from "../../lib/brand.ts";
import type { StreamObjectRef } from "../ports.ts";
import { DEFAULT_COMPACTION_OPTIONS } from "./options.ts";
import { deadBytes, planStream, type StreamPlanInput } from "./stream_plan.ts";
import { chooseWindow } from "./window.ts";

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

interface Drawn {
  readonly size: number;
  readonly links?: number;
  /** Offsets missing before it. */
  readonly gap?: number;
}

/** Ten offsets each. */
function objects(...drawn: readonly Drawn[]): StreamObjectRef[] {
  let at = 0;
  return drawn.map(({ size, links, gap = 0 }, i) => {
    const start = at + gap;
    at = start + 10;
    return {
      objectId: objectId(i),
      kind: "stream",
      size,
      attributes: links === undefined ? 0 : 1,
      checksums: { bytesCrc: 0, indexCrc: 0 },
      start,
      end: at,
      ...(links === undefined ? {} : { links }),
    };
  });
}

function times(count: number, drawn: Drawn): Drawn[] {
  return Array.from({ length: count }, () => drawn);
}

function plan(list: readonly Drawn[], input: Partial<StreamPlanInput> = {}) {
  const all = { start: 0, objects: objects(...list), cleanFrom: 0, isPressing: false, ...input };
  const job = planStream(all, DEFAULT_COMPACTION_OPTIONS);
  return job === null ? null : [job.kind, ...job.objects.map(({ objectId: id }) => id)];
}

const SMALL = { size: 100 };
const LARGE = { size: 40 * MIB };

describe("plan of one stream", () => {
  test("too little work is no work, however old it is", () => {
    assert.equal(plan([]), null);
    assert.equal(plan(times(7, SMALL)), null);
    assert.equal(plan(times(7, LARGE)), null);
  });

  test("eight small neighbours are merged, a gap parts them", () => {
    assert.deepEqual(plan(times(8, SMALL)), ["merge", 0, 1, 2, 3, 4, 5, 6, 7]);
    assert.equal(plan([...times(4, SMALL), { ...SMALL, gap: 5 }, ...times(3, SMALL)]), null);
    const later = plan([...times(4, SMALL), { ...SMALL, gap: 5 }, ...times(7, SMALL)]);
    assert.deepEqual(later, ["merge", 4, 5, 6, 7, 8, 9, 10, 11]);
  });

  test("a merge fills at most 64 MiB, and few large ones are worth it too", () => {
    assert.deepEqual(plan(times(3, { size: 20 * MIB })), ["merge", 0, 1, 2]);
    assert.deepEqual(plan(times(5, { size: 20 * MIB })), ["merge", 2, 3, 4]);
  });

  test("what a merge made is not written again for a few small ones", () => {
    assert.equal(plan([{ size: 10 * MIB }, ...times(7, SMALL)]), null);
    assert.deepEqual(plan([{ size: 10 * MIB }, ...times(8, SMALL)])?.slice(0, 2), ["merge", 1]);
  });

  test("eight large neighbours are linked, composites among them", () => {
    assert.deepEqual(plan(times(8, LARGE)), ["link", 0, 1, 2, 3, 4, 5, 6, 7]);
    const composite = { size: 300 * MIB, links: 8 };
    assert.deepEqual(plan([composite, ...times(8, LARGE)])?.length, 1 + 9);
  });

  test("a composite stays below 10 GiB and its number of links", () => {
    const list = times(9, { size: 2 * GIB, links: 30 });
    // Five of them are all that fits, and too few to be worth it.
    assert.equal(plan(list), null);
    assert.deepEqual(plan(list, { isPressing: true }), ["link", 4, 5, 6, 7, 8]);
    assert.equal(plan(times(8, { size: GIB, links: 1_000 })), null);
  });

  test("MAJOR_V1 filter: small objects wait until they are merged, unless the cluster has too many", () => {
    const list = [
      ...times(20, { size: 40 * MIB, links: 5 }),
      ...times(20, LARGE),
      ...times(7, { size: 64 }),
    ];
    const job = plan(list)!;
    assert.equal(job[0], "link");
    assert.equal(job.at(-1), 39);
    const pressing = plan(list, { isPressing: true })!;
    assert.deepEqual([pressing[0], pressing.at(-1)], ["merge", 46]);
  });

  test("small objects between large ones do not part them for ever (their 3473)", () => {
    const list = [...times(4, LARGE), SMALL, ...times(4, LARGE)];
    assert.deepEqual(plan(list)?.length, 1 + 9);
  });

  test("MINOR_V1 never touches composites", () => {
    assert.equal(plan([...times(4, SMALL), { size: 100, links: 2 }, ...times(3, SMALL)]), null);
  });

  test("a single composite of 2 GiB is left alone", () => {
    assert.equal(plan([{ size: 2 * GIB, links: 40 }], { start: 1 }), null);
  });

  test("cleanup: the first composite, with enough dead bytes by its offsets (their 3425)", () => {
    const list = [{ size: 2 * GIB, links: 40 }, { size: 2 * GIB, links: 40 }];
    assert.equal(plan(list, { start: 2 }), null);
    assert.deepEqual(plan(list, { start: 3 }), ["cleanup", 0]);
    assert.equal(plan(list, { start: 3, cleanFrom: 4 }), null);
    assert.deepEqual(plan([{ size: 200 * MIB, links: 4 }], { start: 5 }), ["cleanup", 0]);
    assert.equal(plan([{ size: 100 * MIB, links: 4 }], { start: 5 }), null);
    assert.equal(deadBytes(objects({ size: 100 })[0]!, 25), 100);
  });
});

describe("window", () => {
  const limits = { countMin: 4, bytesEnough: Infinity, countMax: 50, bytesMax: 1e6 };

  test("property: rewriting until nothing is left leaves few objects and writes each byte seldom", () => {
    fc.assert(fc.property(
      fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1, maxLength: 300 }),
      (sizes) => {
        let list: { size: number }[] = [];
        let written = 0;
        for (const size of sizes) {
          list.push({ size });
          for (
            let window = chooseWindow(list, limits);
            window !== null;
            window = chooseWindow(list, limits)
          ) {
            const { from, to } = window;
            const merged = list.slice(from, to).reduce((sum, one) => sum + one.size, 0);
            written += merged;
            list = [...list.slice(0, from), { size: merged }, ...list.slice(to)];
          }
        }
        const total = sizes.reduce((a, b) => a + b, 0);
        // Each rewrite at least doubles what a byte lies in, from 1 byte to all of them.
        assert.ok(written <= total * Math.log2(2 * total), `${written} of ${total}`);
        assert.ok(list.length <= 4 * Math.log2(2 * total) + 4, `${list.length} objects`);
      },
    ));
  });
});
