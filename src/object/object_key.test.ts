import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nodeEpoch, nodeId, objectId, position } from "../lib/brand.ts";
import {
  dataKey,
  isKey,
  logKey,
  parseDataKey,
  parseLogKey,
  parseSnapshotKey,
  parseSparseIndexKey,
  parseWalKey,
  snapshotKey,
  sparseIndexKey,
  walEpochPrefix,
  walKey,
  walNodePrefix,
} from "./object_key.ts";

const DATA_KEYS: readonly (readonly [number, string])[] = [
  [0, "00000000/_kafka_X/0"],
  [1, "10000000/_kafka_X/1"],
  [42, "a2000000/_kafka_X/42"],
  [100, "46000000/_kafka_X/100"],
  [233, "9e000000/_kafka_X/233"],
  [4096, "00010000/_kafka_X/4096"],
  [1_000_000, "0424f000/_kafka_X/1000000"],
  [4_294_967_295, "ffffffff/_kafka_X/4294967295"],
  [4_886_718_345, "987654321/_kafka_X/4886718345"],
];

const NODE_HASHES: readonly (readonly [number, string])[] = [
  [0, "CFCD208495D565EF66E7DFF9F98764DA"],
  [1, "C4CA4238A0B923820DCC509A6F75849B"],
  [2, "C81E728D9D4C2F636F067F89CC14862C"],
  [3, "ECCBC87E4B5CE2FE28308FD9F2A7BAF3"],
  [233, "E165421110BA03099A1C0393373C5B43"],
];

test("data keys equal the golden table, both ways", () => {
  for (const [id, key] of DATA_KEYS) {
    assert.equal(dataKey("X", objectId(id)), key);
    assert.equal(parseDataKey("X", key), id);
  }
});

test("WAL keys equal the golden values, both ways", () => {
  for (const [id, hash] of NODE_HASHES) {
    assert.equal(walNodePrefix("C", nodeId(id)), `${hash}/_kafka_C/${id}/`);
  }
  const parsed = { nodeId: nodeId(7), nodeEpoch: nodeEpoch(1_700_000_000_000), slot: 1 };
  const key = "8F14E45FCEEA167A5A36DEDD4BEA2543/_kafka_C/7/1700000000000/wal/67108864-134217728";
  assert.equal(walKey("C", parsed), key);
  assert.deepEqual(parseWalKey("C", key), parsed);
  assert.ok(key.startsWith(walEpochPrefix("C", parsed.nodeId, parsed.nodeEpoch)));
});

test("metadata keys have twenty digits, both ways", () => {
  assert.equal(logKey("C", position(17)), "meta/_kafka_C/log/00000000000000000017");
  assert.equal(snapshotKey("C", position(17)), "meta/_kafka_C/snap/00000000000000000017");
  assert.equal(parseLogKey("C", logKey("C", position(17))), 17);
  assert.equal(parseSnapshotKey("C", snapshotKey("C", position(17))), 17);
});

test("parsers refuse keys of another kind, cluster or spelling", () => {
  const wal = walKey("C", { nodeId: nodeId(7), nodeEpoch: nodeEpoch(9), slot: 0 });
  for (const parse of [parseDataKey, parseWalKey, parseLogKey, parseSnapshotKey]) {
    for (
      const key of ["", "a", "a/b/c", "meta/cluster", "00000000/_kafka_D/0", "00000000/_kafka_C/x"]
    ) {
      assert.equal(parse("C", key), null, key);
    }
  }
  for (
    const key of [
      "10000000/_kafka_C/01",
      "10000000/_kafka_C/1/2",
      "20000000/_kafka_C/1",
      "10000000/_kafka_C/-1",
    ]
  ) assert.equal(parseDataKey("C", key), null, key);
  assert.equal(parseWalKey("C", wal.replace("/0-67108864", "/1-67108865")), null);
  for (const key of [`${wal}0`, wal.replace("/0-", "/1-"), wal.replace("/7/", "/8/"), `${wal}/x`]) {
    assert.equal(parseWalKey("C", key), null, key);
  }
  assert.equal(parseLogKey("C", "meta/_kafka_C/log/17"), null);
  assert.equal(parseLogKey("C", "meta/_kafka_C/log/99999999999999999999"), null);
});

test("every key parses back, and log keys sort by position", () => {
  const id = fc.nat({ max: Number.MAX_SAFE_INTEGER });
  fc.assert(fc.property(id, id, fc.nat(), (a, b, slot) => {
    assert.equal(parseDataKey("c-1", dataKey("c-1", objectId(a))), a);
    const wal = { nodeId: nodeId(a), nodeEpoch: nodeEpoch(b), slot: slot % 2 ** 26 };
    assert.deepEqual(parseWalKey("c-1", walKey("c-1", wal)), wal);
    assert.equal(logKey("c", position(a)) < logKey("c", position(b)), a < b);
  }));
});

test("a key has no empty, dot or dot-dot segment", () => {
  for (const key of ["a", "a/b", "..a/b..", "a b"]) assert.ok(isKey(key), key);
  for (const key of ["", "/a", "a/", "a//b", "..", "a/../b", "./a"]) assert.ok(!isKey(key), key);
});

const SPARSE_HASHES: readonly (readonly [number, string])[] = [
  [0, "52674deb"],
  [1, "52674dec"],
  [2, "52674ded"],
  [32, "fa827004"],
  [233, "55cb8d0d"],
  [1000, "63a594c4"],
];

test("keys of sparse indexes equal the golden table, both ways", () => {
  for (const [id, hash] of SPARSE_HASHES) {
    const key = `${hash}/_kafka_X/node-${id}`;
    assert.equal(sparseIndexKey("X", nodeId(id)), key);
    assert.equal(parseSparseIndexKey("X", key), id);
    assert.equal(parseSparseIndexKey("Y", key), null);
    assert.equal(parseDataKey("X", key), null);
    assert.equal(parseWalKey("X", key), null);
  }
  for (
    const key of [dataKey("X", objectId(1)), "52674dec/_kafka_X/1", "52674dec/_kafka_X/node-2"]
  ) {
    assert.equal(parseSparseIndexKey("X", key), null);
  }
});
