import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import fc from "fast-check";
import { batch } from "../../tests/quirks/quirks.ts";
import { assertOnce, drive, FaultWorld } from "../../tests/faults/world.ts";
import { record } from "../../tests/support/records.ts";
import {
  addSnapshot,
  appendRecords,
  check,
  checkChanged,
  CLUSTER,
  clusterOf,
  type Content,
  contentOf,
  dataObject,
  emptyCluster,
  killedTwice,
  stateOf,
  type StoredObject,
  storeOf,
} from "../../tests/support/stored_world.ts";
import { rangesDigest } from "../controller/ranges.ts";
import { nodeEpoch, nodeId, objectId, position, streamId } from "../lib/brand.ts";
import { crc32c } from "../lib/crc32c.ts";
import { SLOT_BYTES, WAL_BULKS_IN_FLIGHT_MAX } from "../lib/limits.ts";
import {
  CLUSTER_KEY,
  dataKey,
  logKey,
  probeKey,
  sparseIndexKey,
  walKey,
} from "../object/object_key.ts";
import { assignOffsets } from "../protocol/record_batch.ts";
import { encodeAttributes } from "../storage/format/attributes.ts";
import { encodeComposite } from "../storage/format/composite.ts";
import { IndexBlock } from "../storage/format/index_block.ts";
import type { StreamRange } from "../storage/ports.ts";
import type { StreamRecord } from "../storage/stream_record.ts";
import {
  encodeSeal,
  walRecordBytes,
  writeWalHeader,
  writeWalRecord,
} from "../storage/wal/wal_object.ts";
import { SpanSet } from "./coverage.ts";
import type { BrokenWal } from "./fsck_wal.ts";
import { cutWal, deleteOrphans, Orphans } from "./repair.ts";

const NODE = nodeId(1);
const EPOCH = nodeEpoch(1);
const isWal = (key: string) => key.includes("/wal/");

let base: Content;
let snapshot: string;
before(async () => {
  const world = await killedTwice();
  base = await contentOf(world.bucket);
  snapshot = await addSnapshot(base);
});

function flip(content: Content, key: string, at: number): void {
  const bytes = content.get(key)!;
  bytes[at] = bytes[at]! ^ 0x10;
}

/** Objects that a node still needs: the seal of the recovered WAL is not one of them. */
function neededKeys(): string[] {
  return [...base.keys()].filter((key) => key !== CLUSTER_KEY && base.get(key)!.length > 48);
}

describe("a node's store", () => {
  test("is clean after kill -9, a restart and another kill -9", async () => {
    const { summary, damaged, text } = await checkChanged(base, () => {});
    assert.equal(summary.verdict, "clean", text);
    assert.deepEqual(damaged, []);
    assert.ok(summary.dataObjects >= 1 && summary.walObjects >= 2 && summary.streams >= 4);
    assert.ok(summary.garbageBytes > 0, "the seal of the first WAL");
  });

  test("is clean while it runs, after a clean stop, and after a restart", async () => {
    const world = new FaultWorld();
    let q = await world.start();
    await drive(world.clock, q.topic("t"));
    await drive(world.clock, q.produce("t", batch(["a"])));
    assert.equal((await check(world.bucket)).summary.verdict, "clean");
    await drive(world.clock, q.node.close());
    assert.equal((await check(world.bucket)).summary.verdict, "clean");
    q = await world.start();
    await drive(world.clock, q.produce("t", batch(["b"])));
    await drive(world.clock, q.node.close());
    const { summary, text } = await check(world.bucket);
    assert.equal(summary.verdict, "clean", text);
  });

  test("fsck writes nothing", async () => {
    const store = await storeOf(base);
    const refuse = () => Promise.reject(new Error("a write"));
    await check({ ...store, put: refuse, putParts: refuse, delete: refuse });
  });

  test("an empty store is no cluster; a cluster object alone is one without content", async () => {
    assert.equal((await check(await storeOf(new Map()))).summary.verdict, "empty");
    const only = new Map([[CLUSTER_KEY, base.get(CLUSTER_KEY)!]]);
    assert.equal((await check(await storeOf(only))).summary.verdict, "clean");
  });
});

describe("a changed byte", () => {
  test("in any region of any object is found, and the object is named", async () => {
    for (const key of neededKeys()) {
      const size = base.get(key)!.length;
      const step = Math.max(1, Math.floor(size / 60));
      for (let at = 0; at < size; at += at < 50 || at > size - 50 ? Math.min(step, 5) : step) {
        const { summary, findings } = await checkChanged(base, (copy) => flip(copy, key, at));
        assert.equal(summary.verdict, "damaged", `${key} byte ${at}`);
        assert.ok(
          findings.some((one) => one.severity === "damage" && one.key === key),
          `${key} ${at}`,
        );
      }
    }
  });

  test("in a seal of a WAL that stays is found too", async () => {
    const seal = [...base.keys()].find((key) => base.get(key)!.length === 48)!;
    const { damaged } = await checkChanged(base, (copy) => flip(copy, seal, 0));
    assert.deepEqual(damaged, [`wal ${seal}`]);
  });

  test("in the cluster object", async () => {
    const { damaged } = await checkChanged(base, (copy) => flip(copy, CLUSTER_KEY, 0));
    assert.deepEqual(damaged, [`metadata ${CLUSTER_KEY}`]);
    const named = new TextDecoder().decode(base.get(CLUSTER_KEY)).indexOf(clusterOf(base));
    const other = await checkChanged(base, (copy) => flip(copy, CLUSTER_KEY, named + 3));
    assert.deepEqual(other.damaged.filter((one) => one.endsWith(CLUSTER_KEY)), [
      `metadata ${CLUSTER_KEY}`,
    ]);
    assert.ok(other.summary.dataObjects > 0, "the rest is checked under the other id");
  });
});

test("a cluster with any name is found by its keys when its cluster object is gone", async () => {
  for (const name of ["caf\u00e9 100%", "a/b", "x"]) {
    const { damaged, summary } = await checkChanged(emptyCluster(1, name), (copy) => {
      copy.delete(CLUSTER_KEY);
    });
    assert.deepEqual(damaged, [`metadata ${CLUSTER_KEY}`]);
    assert.deepEqual([summary.clusterId, summary.streams], [name, 1]);
  }
});

describe("objects that are cut, grown or gone", () => {
  test("truncated or longer by one byte", async () => {
    for (const key of neededKeys()) {
      for (const by of [-1, 1]) {
        const { damaged } = await checkChanged(base, (copy) => {
          const grown = new Uint8Array(copy.get(key)!.length + by);
          grown.set(copy.get(key)!.subarray(0, grown.length));
          copy.set(key, grown);
        });
        assert.ok(
          damaged.some((one) => one.endsWith(` ${key}`)),
          `${key} ${by}: ${damaged.join()}`,
        );
      }
    }
  });

  test("a data object that is gone is missing, and its offsets are told", async () => {
    const key = [...base.keys()].find((one) => !isWal(one) && !one.startsWith("meta/"))!;
    const { damaged, text } = await checkChanged(base, (copy) => void copy.delete(key));
    assert.ok(damaged.includes(`missing ${key}`));
    assert.match(text, /missing .* is not in the store: a stream set object of node 1/);
    assert.ok(damaged.some((one) => /^range stream \d+$/.test(one)));
    assert.match(text, /\[0, 2\) of partition \S+\/0 is in no readable object/);
  });

  test("a log entry that is gone, in the middle or below the end", async () => {
    const { at } = await stateOf(base);
    for (const lost of [1, 4, at - 1]) {
      const key = logKey(clusterOf(base), position(lost));
      const { damaged } = await checkChanged(base, (copy) => void copy.delete(key));
      assert.deepEqual(damaged, [`metadata ${key}`]);
    }
  });

  test("without the snapshot a lost entry stops the check there", async () => {
    const key = logKey(clusterOf(base), position(4));
    const { damaged, summary } = await checkChanged(base, (copy) => {
      copy.delete(snapshot);
      copy.delete(key);
    });
    assert.ok(damaged.includes(`metadata ${key}`), damaged.join("\n"));
    assert.equal(summary.verdict, "damaged");
  });

  test("a damaged snapshot is named, the log stands in for it; without a log nothing does", async () => {
    const ok = await checkChanged(base, (copy) => flip(copy, snapshot, 30));
    assert.deepEqual(ok.damaged, [`metadata ${snapshot}`]);
    assert.ok(ok.summary.dataObjects > 0);
    const lost = await checkChanged(base, (copy) => {
      flip(copy, snapshot, 30);
      copy.delete(logKey(clusterOf(base), position(1)));
    });
    assert.equal(lost.rest, null);
    assert.match(lost.text, /objects and WALs were not checked/);
  });

  test("the end of the log is gone: objects and WALs know more than the metadata", async () => {
    const { at } = await stateOf(base);
    const { damaged } = await checkChanged(base, (copy) => {
      copy.delete(snapshot);
      for (let from = 3; from <= at; from++) copy.delete(logKey(clusterOf(base), position(from)));
    });
    assert.ok(damaged.some((one) => one.startsWith("ahead ") && isWal(one)), damaged.join("\n"));
    assert.ok(damaged.some((one) => one.startsWith("ahead ") && !isWal(one)), damaged.join("\n"));
  });
});

describe("what nobody needs", () => {
  test("orphans and garbage are named with their bytes, foreign keys noted; nothing of it is damage", async () => {
    const id = clusterOf(base);
    const state = await stateOf(base);
    const epoch = state.nodes.get(NODE)!.epoch;
    const never = dataKey(id, objectId(1));
    const probe = probeKey("r", "x");
    const ghost = walKey(id, { nodeId: nodeId(9), nodeEpoch: nodeEpoch(2), slot: 0 });
    const sealed = walKey(id, { nodeId: NODE, nodeEpoch: EPOCH, slot: 0 });
    const { summary, findings } = await checkChanged(base, (copy) => {
      for (const key of [never, probe, ghost, sealed]) copy.set(key, new Uint8Array(7));
      copy.set("notes.txt", new Uint8Array(1));
      // A hint is nobody's loss, whatever is in it.
      copy.set(sparseIndexKey(id, NODE), new Uint8Array(3));
      appendRecords(copy, {
        type: "purged",
        ids: [[2, 3]],
        blocks: [],
      });
      copy.set(dataKey(id, objectId(2)), new Uint8Array(5));
    });
    assert.equal(summary.verdict, "clean");
    assert.ok(epoch > 1);
    const of = (kind: string) =>
      findings.filter((one) => one.kind === kind).map(({ key }) => key).toSorted();
    assert.deepEqual(of("orphan"), [dataKey(id, objectId(2)), ghost, probe].toSorted());
    assert.ok(of("garbage").includes(never) && of("garbage").includes(sealed));
    assert.deepEqual(of("foreign"), ["notes.txt"]);
    assert.equal(summary.orphanBytes, 19);
  });

  test("a repair deletes orphans and nothing else", async () => {
    const store = await storeOf(base);
    await store.put(probeKey("r", "x"), new Uint8Array(7));
    await store.put("notes.txt", new Uint8Array(7));
    const before = await check(store);
    const orphans = new Orphans();
    for (const one of before.findings) orphans.take(one);
    const deleted = await deleteOrphans(before.rest!, before.summary.position, orphans);
    assert.deepEqual(deleted?.gone, [probeKey("r", "x")]);
    assert.equal([...(await contentOf(store)).keys()].length, base.size + 1);
    assert.equal((await check(store)).summary.orphanBytes, 0);
  });

  test("a repair does nothing once a node wrote metadata", async () => {
    const copy: Content = new Map(base);
    copy.set(probeKey("r", "x"), new Uint8Array(7));
    const before = await check(await storeOf(copy));
    appendRecords(copy, { type: "producer-ids", next: 1 });
    const later = { ...before.rest!, store: await storeOf(copy) };
    assert.equal(await deleteOrphans(later, before.summary.position, new Orphans()), null);
  });

  test("a store that is written to meanwhile is not judged", async () => {
    const content: Content = new Map(base);
    const store = await storeOf(content);
    const { at } = await stateOf(content);
    const key = logKey(clusterOf(base), position(at + 1));
    const head: typeof store.head = async (asked) => {
      if (asked === key) await store.put(key, new Uint8Array(1));
      return await store.head(asked);
    };
    assert.equal((await check({ ...store, head })).summary.verdict, "changed");
  });
});

// --- metadata that no node would write ----------------------------------------------------------

function streamRecord({ fields }: StoredObject, stream: number, start: number, end: number) {
  return { ...fields, attributes: 0, streamId: streamId(stream), start, end, links: [] };
}

function setRecord({ fields }: StoredObject, ranges: readonly StreamRange[]) {
  return { ...fields, rangesDigest: rangesDigest(ranges) };
}

function rangesOf({ index }: StoredObject): StreamRange[] {
  return new IndexBlock(index, Number.MAX_SAFE_INTEGER).ranges();
}

interface Upload {
  readonly set?: StoredObject;
  readonly objects?: readonly (readonly [StoredObject, number, number, number])[];
  readonly ends: readonly (readonly [number, number])[];
}

function commit(content: Content, { set, objects = [], ends }: Upload): void {
  for (const one of [...(set === undefined ? [] : [set]), ...objects.map(([object]) => object)]) {
    content.set(one.key, one.bytes);
  }
  appendRecords(content, {
    type: "uploaded",
    nodeId: NODE,
    epoch: EPOCH,
    streamSetObject: set === undefined ? null : setRecord(set, rangesOf(set)),
    streamObjects: objects.map(([object, ...range]) => streamRecord(object, ...range)),
    ends: ends.map(([stream, end]) => [streamId(stream), end]),
    walTrim: 0,
  });
}

function records(stream: number, from: number, to: number): StreamRecord[] {
  return Array.from({ length: to - from }, (_, i) => record(stream, from + i));
}

describe("ranges", () => {
  test("objects that cover every stream once are clean, in any number and order", async () => {
    const content = emptyCluster(2);
    commit(content, {
      set: dataObject(0, [...records(0, 0, 5), ...records(1, 0, 3)], 2),
      ends: [[0, 5], [1, 3]],
    });
    commit(content, {
      set: dataObject(1, records(1, 3, 4)),
      objects: [[dataObject(2, records(0, 5, 9), 1), 0, 5, 9]],
      ends: [[0, 9], [1, 4]],
    });
    const { summary, text } = await check(await storeOf(content));
    assert.equal(summary.verdict, "clean", text);
    assert.equal(summary.dataObjects, 3);
  });

  test("a gap, an overlap, and offsets past the end", async () => {
    const gap = emptyCluster(1);
    commit(gap, { objects: [[dataObject(0, records(0, 0, 3)), 0, 0, 3]], ends: [[0, 3]] });
    commit(gap, { objects: [[dataObject(1, records(0, 5, 7)), 0, 5, 7]], ends: [[0, 7]] });
    const first = await check(await storeOf(gap));
    assert.deepEqual(first.damaged, ["range stream 0"]);
    assert.match(first.text, /\[3, 5\) is in no readable object/);

    const overlap = emptyCluster(1);
    const two = dataObject(1, records(0, 2, 7));
    commit(overlap, { objects: [[dataObject(0, records(0, 0, 3)), 0, 0, 3]], ends: [[0, 3]] });
    commit(overlap, { objects: [[two, 0, 2, 7]], ends: [[0, 7]] });
    const second = await check(await storeOf(overlap));
    assert.equal(second.damaged.length, 1);
    assert.match(second.text, /\[2, 3\) of stream 0, as does another object/);

    const past = emptyCluster(1);
    commit(past, {
      objects: [[two, 0, 2, 7], [dataObject(0, records(0, 0, 2)), 0, 0, 2]],
      ends: [[0, 5]],
    });
    assert.deepEqual((await check(await storeOf(past))).damaged, [`range ${two.key}`]);
  });

  test("what lies below a stream's start, or belongs to a deleted stream, is dead", async () => {
    const content = emptyCluster(2);
    commit(content, {
      set: dataObject(0, [...records(0, 0, 5), ...records(1, 0, 3)]),
      ends: [[0, 5], [1, 3]],
    });
    appendRecords(
      content,
      { type: "stream-trimmed", streamId: streamId(0), start: 4 },
      { type: "stream-deleted", streamId: streamId(1) },
    );
    commit(content, { set: dataObject(1, records(0, 5, 6)), ends: [[0, 6]] });
    const { summary, text } = await check(await storeOf(content));
    assert.equal(summary.verdict, "clean", text);
  });

  test("a digest that is not that of the index", async () => {
    const content = emptyCluster(1);
    const object = dataObject(0, records(0, 0, 3));
    content.set(object.key, object.bytes);
    appendRecords(content, {
      type: "uploaded",
      nodeId: NODE,
      epoch: EPOCH,
      streamSetObject: setRecord(object, [{ streamId: streamId(0), start: 0, end: 4 }]),
      streamObjects: [],
      ends: [[streamId(0), 4]],
      walTrim: 0,
    });
    const { damaged } = await check(await storeOf(content));
    assert.deepEqual(damaged, [`index ${object.key}`, "range stream 0"]);
  });

  test("a row that nothing refers to, or twice, or with foreign attributes", async () => {
    const content = emptyCluster(1);
    const object = dataObject(0, records(0, 0, 3));
    commit(content, { objects: [[object, 0, 0, 3]], ends: [[0, 3]] });
    const again = { ...streamRecord(object, 0, 0, 3), attributes: 1 };
    appendRecords(content, {
      type: "uploaded",
      nodeId: NODE,
      epoch: EPOCH,
      streamSetObject: null,
      streamObjects: [again],
      ends: [],
      walTrim: 0,
    });
    const { damaged, text } = await check(await storeOf(content));
    assert.ok(damaged.includes(`metadata ${object.key}`));
    assert.match(text, /as does another/);
    assert.match(text, /attributes of a composite/);
  });

  test("an index that says something else than the blocks", async () => {
    const object = dataObject(0, records(0, 0, 4), 2);
    for (
      const [at, name] of [[15, "start"], [19, "end"], [23, "records"], [
        36 + 31,
        "position",
      ]] as const
    ) {
      const content = emptyCluster(1);
      const bytes = object.bytes.slice();
      const indexAt = bytes.length - 48 - 72;
      bytes[indexAt + at] = bytes[indexAt + at]! + 1;
      const index = bytes.slice(indexAt, -48);
      const fields = { ...object.fields, bytesCrc: crc32c(bytes), indexCrc: crc32c(index) };
      commit(content, { objects: [[{ ...object, bytes, fields }, 0, 0, 4]], ends: [[0, 4]] });
      const { damaged } = await check(await storeOf(content));
      assert.ok(damaged.some((one) => /^(block|index) /.test(one)), `${name}: ${damaged.join()}`);
    }
  });

  test("a Kafka batch that was broken before it was stored", async () => {
    const good = batch(["x", "y"]);
    assignOffsets(good, 0, 0);
    const broken = good.slice();
    broken[broken.length - 1] = broken[broken.length - 1]! ^ 1;
    for (
      const [bytes, count, isClean] of [[good, 2, true], [broken, 2, false], [
        good,
        3,
        false,
      ]] as const
    ) {
      const content = emptyCluster(1);
      const object = dataObject(0, [record(0, 0, count, bytes)]);
      commit(content, { objects: [[object, 0, 0, count]], ends: [[0, count]] });
      const { damaged } = await check(await storeOf(content));
      assert.deepEqual(damaged, isClean ? [] : [`batch ${object.key}`]);
    }
  });

  test("spans merge, and what comes twice is told", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(40), fc.integer({ min: 1, max: 6 })), { maxLength: 20 }),
        (list) => {
          const set = new SpanSet();
          const held = new Set<number>();
          for (const [start, length] of list) {
            const own = Array.from({ length }, (_, i) => start + i);
            const twice = set.add(start, start + length);
            assert.equal(twice !== null, own.some((one) => held.has(one)));
            if (twice !== null) assert.ok(held.has(twice.start) && held.has(twice.end - 1));
            for (const one of own) held.add(one);
          }
          const spans = set.spans.flatMap(({ start, end }) =>
            Array.from({ length: end - start }, (_, i) => start + i)
          );
          assert.deepEqual(spans, [...held].toSorted((a, b) => a - b));
          const isApart = ({ start }: { start: number }, i: number) =>
            i === 0 || start > set.spans[i - 1]!.end;
          assert.ok(set.spans.every(isApart));
        },
      ),
    );
  });
});

describe("composites", () => {
  const parts = [dataObject(0, records(0, 0, 3), 1), dataObject(1, records(0, 3, 6), 1)];
  const bytes = encodeComposite(parts.map(({ fields, index }) => {
    const block = new IndexBlock(index, Number.MAX_SAFE_INTEGER);
    const entries = Array.from({ length: block.count }, (_, i) => block.entry(i));
    return { objectId: fields.objectId, bucket: 0, entries };
  }));
  const key = dataKey(CLUSTER, objectId(2));

  function composed(stored: Uint8Array = bytes): Content {
    const content = emptyCluster(1);
    commit(content, { objects: parts.map((one, i) => [one, 0, 3 * i, 3 * i + 3]), ends: [[0, 6]] });
    content.set(key, stored);
    const index = stored.subarray(5 + 28, -48);
    appendRecords(content, {
      type: "compacted",
      nodeId: NODE,
      streamSetObject: null,
      streamObjects: [{
        objectId: objectId(2),
        size: stored.length,
        bytesCrc: crc32c(stored),
        indexCrc: crc32c(index),
        attributes: encodeAttributes({ type: "composite", bucket: 0, deepDelete: false }),
        streamId: streamId(0),
        start: 0,
        end: 6,
        links: [objectId(0), objectId(1)],
      }],
      replaced: [objectId(0), objectId(1)],
    });
    return content;
  }

  test("stand for their links", async () => {
    const { summary, text } = await check(await storeOf(composed()));
    assert.equal(summary.verdict, "clean", text);
    assert.equal(summary.dataObjects, 3);
  });

  test("are checked byte by byte, as are their links", async () => {
    for (let at = 0; at < bytes.length; at += 7) {
      const { damaged } = await checkChanged(composed(), (copy) => flip(copy, key, at));
      assert.ok(damaged.some((one) => one.endsWith(` ${key}`)), `byte ${at}`);
    }
    const gone = await checkChanged(composed(), (copy) => void copy.delete(parts[1]!.key));
    assert.deepEqual(gone.damaged, [`missing ${parts[1]!.key}`]);
  });

  test("lend only entries that their links have", async () => {
    const foreign = bytes.slice();
    const at = 5 + 28 + 31;
    foreign[at] = foreign[at]! + 1;
    const { damaged } = await check(await storeOf(composed(foreign)));
    assert.deepEqual(damaged, [`index ${key}`]);
  });
});

// --- WAL ----------------------------------------------------------------------------------------

const slotOf = (slot: number) => walKey(CLUSTER, { nodeId: NODE, nodeEpoch: EPOCH, slot });

function walObject(slot: number, list: readonly StreamRecord[]): Uint8Array {
  const body = list.reduce((sum, one) => sum + walRecordBytes(one), 0);
  const bytes = new Uint8Array(48 + body);
  writeWalHeader(bytes, 0, {
    nodeId: NODE,
    epoch: EPOCH,
    startOffset: slot * SLOT_BYTES,
    bodyLength: body,
    sticky: 0,
    trimOffset: -1,
  });
  let at = 48;
  for (const one of list) at = writeWalRecord(bytes, at, slot * SLOT_BYTES + at - 48, one);
  return bytes;
}

/** Slots with one record each of stream 0. */
function withWal(slots: number): Content {
  const content = emptyCluster(1);
  for (let slot = 0; slot < slots; slot++) {
    content.set(slotOf(slot), walObject(slot, records(0, slot, slot + 1)));
  }
  return content;
}

describe("WALs", () => {
  test("whole ones are clean; a seal above them too", async () => {
    const content = withWal(3);
    assert.equal((await check(await storeOf(content))).summary.verdict, "clean");
    content.set(slotOf(3), encodeSeal({ nodeId: NODE, epoch: EPOCH }, 3, position(2)));
    assert.equal((await check(await storeOf(content))).summary.verdict, "clean");
  });

  test("every damaged slot is named", async () => {
    const { damaged, brokenWals } = await checkChanged(withWal(6), (copy) => {
      flip(copy, slotOf(1), 60);
      flip(copy, slotOf(4), 100);
    });
    assert.deepEqual(damaged, [`wal ${slotOf(1)}`, `wal ${slotOf(4)}`]);
    assert.deepEqual(brokenWals.map(({ firstBad, highest }) => [firstBad, highest]), [[1, 5]]);
  });

  test("a slot that was acknowledged once and is gone", async () => {
    const lost = await checkChanged(
      withWal(3 + WAL_BULKS_IN_FLIGHT_MAX),
      (copy) => void copy.delete(slotOf(1)),
    );
    assert.deepEqual(lost.damaged, [`wal ${slotOf(1)}`]);
    const sealed = await checkChanged(withWal(3), (copy) => {
      copy.delete(slotOf(1));
      copy.set(slotOf(3), encodeSeal({ nodeId: NODE, epoch: EPOCH }, 3, position(2)));
    });
    assert.deepEqual(sealed.damaged, [`wal ${slotOf(1)}`]);
  });

  test("an empty slot that a crash may have left is noted, not judged", async () => {
    const { damaged, findings } = await checkChanged(
      withWal(4),
      (copy) => void copy.delete(slotOf(1)),
    );
    assert.deepEqual(damaged, []);
    assert.deepEqual(findings.map(({ kind, key }) => `${kind} ${key}`), [`wal-tail ${slotOf(1)}`]);
  });

  test("a stream that does not go on where its objects end", async () => {
    const { damaged, text } = await checkChanged(withWal(2), (copy) => {
      copy.set(slotOf(2), walObject(2, records(0, 5, 6)));
    });
    assert.deepEqual(damaged, [`wal ${slotOf(2)}`]);
    assert.match(text, /stream 0 goes on at offset 5, not 2/);
  });

  test("slots in foreign places", async () => {
    const { damaged } = await checkChanged(withWal(2), (copy) => {
      copy.set(slotOf(1), copy.get(slotOf(0))!);
    });
    assert.deepEqual(damaged, [`wal ${slotOf(1)}`]);
  });

  test("cut before the first bad slot, it is clean again, and what was in them is told", async () => {
    const content = withWal(6);
    flip(content, slotOf(2), 60);
    const store = await storeOf(content);
    const { brokenWals, rest, summary } = await check(store);
    const cut = await cutWal(rest!, summary.position, brokenWals[0] as BrokenWal);
    assert.deepEqual(cut!.gone.toSorted(), [2, 3, 4, 5].map(slotOf).toSorted());
    assert.deepEqual(cut!.lost, [{ streamId: 0, start: 3, end: 6 }]);
    assert.equal((await check(store)).summary.verdict, "clean");
  });

  test("a node with a damaged slot starts again once its WAL is cut", async () => {
    const world = new FaultWorld();
    let q = await world.start();
    await drive(world.clock, q.topic("t"));
    for (const value of ["a", "b", "c"]) await drive(world.clock, q.produce("t", batch([value])));
    world.kill();
    const content = await contentOf(world.bucket);
    const slots = [...content.keys()].filter(isWal).toSorted((a, b) =>
      content.get(a)!.length - content.get(b)!.length
    );
    const damagedSlots = slots.filter((key) =>
      new TextDecoder("latin1").decode(content.get(key)).endsWith("c\0")
    );
    assert.equal(damagedSlots.length, 1);
    flip(content, damagedSlots[0]!, 60);
    await world.bucket.put(damagedSlots[0]!, content.get(damagedSlots[0]!)!);
    await assert.rejects(world.start(), /CRC/);
    world.kill();

    const { brokenWals, rest, summary } = await check(world.bucket);
    assert.equal(brokenWals.length, 1);
    assert.ok(await cutWal(rest!, summary.position, brokenWals[0]!) !== null);
    q = await world.start();
    assertOnce(await world.values("t"), ["a", "b"]);
    await drive(world.clock, q.node.close());
    assert.equal((await check(world.bucket)).summary.verdict, "clean");
  });
});

test("whatever is damaged in an object that is needed, the store is not called clean", async () => {
  const keys = neededKeys();
  const damageAt = fc.tuple(fc.constantFrom(...keys), fc.nat(), fc.integer({ min: 1, max: 255 }));
  await fc.assert(
    fc.asyncProperty(damageAt, async ([key, place, mask]) => {
      const { damaged } = await checkChanged(base, (copy) => {
        const bytes = copy.get(key)!;
        const at = place % bytes.length;
        bytes[at] = bytes[at]! ^ mask;
      });
      assert.ok(damaged.some((one) => one.endsWith(` ${key}`)));
    }),
    { numRuns: 150 },
  );
});
