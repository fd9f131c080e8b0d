/** Entries and snapshots on the wire: golden bytes, evolution, damage, and that both tell the same story. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { CLUSTER, incarnationOf, World } from "../../tests/support/controller_world.ts";
import { Walk } from "../../tests/support/metadata_walk.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { seededRandom } from "../env/random.ts";
import { nodeEpoch, nodeId, position, streamId } from "../lib/brand.ts";
import { fromHex, toHex, toUtf8, utf8, viewOf } from "../lib/bytes.ts";
import { crc32c } from "../lib/crc32c.ts";
import { isFault } from "../lib/errors.ts";
import { decodeEntry, encodeEntry, entryHash, type EntryHead, NO_HASH } from "./entry.ts";
import { decodeRecords, encodeRecord, type MetadataRecord } from "./record.ts";
import { Replica } from "./replica.ts";
import { decodeSnapshot, dumpTables, encodeSnapshot } from "./snapshot.ts";

const { codecs } = testEnv();
const plain = { ...codecs, supports: () => false };

const head: EntryHead = {
  at: position(7),
  previous: fromHex("000102030405060708090a0b0c0d0e0f"),
  clusterId: "c1",
  featureLevel: 1,
  writer: {
    nodeId: nodeId(3),
    epoch: nodeEpoch(5),
    incarnation: incarnationOf(0xabcdef),
    firstCommand: 11,
    lastCommand: 12,
  },
};
const records: readonly MetadataRecord[] = [
  { type: "stream-closed", streamId: streamId(4), end: 2 ** 40 },
  { type: "kv-deleted", key: "kä" },
];
const GOLDEN = `534b4d4c 01 0001 0000000000000007 000102030405060708090a0b0c0d0e0f 02 6331
  00000003 0000000000000005 00000000000000000000000000abcdef 000000000000000b 000000000000000c
  0000005d ${
  toHex(
    toUtf8(
      `[{"type":"stream-closed","streamId":4,"end":1099511627776},{"type":"kv-deleted","key":"kä"}]`,
    ),
  )
}`;

const GOLDEN_CRC = "a537477e";

/** Puts a right CRC behind changed bytes. */
function sealed(body: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(body.length + 4);
  bytes.set(body);
  viewOf(bytes).setUint32(body.length, crc32c(body));
  return bytes;
}

describe("entry", () => {
  test("golden bytes", () => {
    const bytes = encodeEntry(head, records.map(encodeRecord));
    assert.equal(toHex(bytes), toHex(fromHex(`${GOLDEN} ${GOLDEN_CRC}`)));
    assert.deepEqual(decodeEntry(bytes), { ...head, featureLevel: 1, records });
  });

  test("a newer version or feature level is refused with a clear line", () => {
    const body = fromHex(GOLDEN);
    for (const [at, value] of [[4, 2], [6, 9]] as const) {
      const newer = body.slice();
      newer[at] = value;
      assert.throws(() => decodeEntry(sealed(newer)), (error) => isFault(error, "config"));
    }
  });

  test("unknown record types and wrong numbers are refused, unknown fields are left out", () => {
    const read = (json: string) => decodeRecords(toUtf8(json));
    assert.deepEqual(read(`[{"type":"kv-deleted","key":"a","note":1}]`), [
      { type: "kv-deleted", key: "a" },
    ]);
    for (
      const json of [
        `[{"type":"kv-vanished","key":"a"}]`,
        `[{"type":"toString"}]`,
        `[{"type":"kv-deleted"}]`,
        `[{"type":"stream-closed","streamId":1,"end":1.5}]`,
        `[{"type":"stream-closed","streamId":1,"end":-1}]`,
        `[{"type":"stream-closed","streamId":1,"end":9007199254740993}]`,
        `[{"type":"stream-closed","streamId":"1","end":1}]`,
        `{}`,
        `[null]`,
        `[`,
      ]
    ) assert.throws(() => read(json), (error) => isFault(error, "corrupt"), json);
    const fraction: MetadataRecord = { type: "producer-ids", next: 0.5 };
    assert.throws(() => encodeRecord(fraction), /safe integer/);
  });

  test("every flipped or missing byte is found", () => {
    const bytes = encodeEntry(head, records.map(encodeRecord));
    for (let at = 0; at < bytes.length; at++) {
      const broken = bytes.slice();
      broken[at] = broken[at]! ^ 1;
      assert.throws(() => decodeEntry(broken), (error) => isFault(error, "corrupt"));
      assert.throws(() => decodeEntry(bytes.subarray(0, at)), (e) => isFault(e, "corrupt"));
    }
  });

  test("the chain: an entry of another log, place or cluster is not applied", () => {
    const make = (change: Partial<EntryHead>) =>
      encodeEntry({ ...head, at: position(1), previous: NO_HASH, clusterId: CLUSTER, ...change }, [
        encodeRecord(records[1]!),
      ]);
    const first = make({});
    const next = { at: position(2), previous: entryHash(first) };
    for (
      const wrong of [
        make({ clusterId: "other" }),
        make({ at: position(2) }),
        make({ previous: entryHash(first) }),
      ]
    ) assert.throws(() => new Replica(CLUSTER).take(wrong), (e) => isFault(e, "corrupt"));
    const replica = new Replica(CLUSTER);
    replica.take(first);
    const fork = {
      at: position(2),
      previous: entryHash(make({ writer: { ...head.writer, lastCommand: 99 } })),
    };
    assert.throws(() => replica.take(make(fork)), (e) => isFault(e, "corrupt"));
    assert.equal(replica.state.at, 1);
    replica.take(make(next));
    assert.equal(replica.state.at, 2);
  });
});

/** Runs a walk and gives the log that it would have written. */
function logOf(seed: number, steps: number): { world: World; log: Uint8Array[] } {
  const world = new World();
  const walk = new Walk(world, seededRandom(seed));
  for (let i = 0; i < steps; i++) world.run(walk.next());
  let previous = NO_HASH;
  const log = world.records.map((list, i) => {
    const writer = { ...head.writer, firstCommand: i + 1, lastCommand: i + 1 };
    const entryHead = { ...head, at: position(i + 1), previous, clusterId: CLUSTER, writer };
    const bytes = encodeEntry(entryHead, list.map(encodeRecord));
    previous = entryHash(bytes);
    return bytes;
  });
  return { world, log };
}

describe("snapshot", () => {
  test("snapshot(apply*(s)) = apply*(snapshot(s)), wherever it is taken", () => {
    const seeds = fc.integer({ min: 1, max: 2 ** 31 });
    fc.assert(
      fc.property(seeds, fc.double({ min: 0, max: 1, noNaN: true }), (seed, share) => {
        const { world, log } = logOf(seed, 150);
        const cut = Math.floor(log.length * share);
        const whole = new Replica(CLUSTER);
        for (const bytes of log) whole.take(bytes);
        const writers = [...whole.state.writers.values()];
        assert.deepEqual(dumpTables(whole.state), { ...dumpTables(world.state), writers });

        const part = new Replica(CLUSTER);
        for (const bytes of log.slice(0, cut)) part.take(bytes);
        const stored = encodeSnapshot(part, codecs);
        const loaded = new Replica(CLUSTER);
        loaded.adopt(decodeSnapshot(stored, part.state.at, codecs));
        for (const bytes of log.slice(cut)) loaded.take(bytes);
        assert.deepEqual(dumpTables(loaded.state), dumpTables(whole.state));
      }),
      { numRuns: 40 },
    );
  });

  test("packed and plain ones are read alike; damage and newer builds are told apart", () => {
    const { log } = logOf(5, 100);
    const replica = new Replica(CLUSTER);
    for (const bytes of log) replica.take(bytes);
    const at = replica.state.at;
    for (const codec of [codecs, plain]) {
      const bytes = encodeSnapshot(replica, codec);
      assert.deepEqual(decodeSnapshot(bytes, at, codecs).state, replica.state);
    }
    const bytes = encodeSnapshot(replica, plain);
    assert.match(utf8(bytes.subarray(0, 4)), /^SKMS$/);
    const corrupt = (error: unknown) => isFault(error, "corrupt");
    for (let flip = 0; flip < bytes.length; flip += 97) {
      const broken = bytes.slice();
      broken[flip] = broken[flip]! ^ 4;
      assert.throws(() => decodeSnapshot(broken, at, codecs), corrupt);
    }
    assert.throws(() => decodeSnapshot(bytes, position(at + 1), codecs), corrupt);
    const newer = bytes.slice(0, -4);
    newer[4] = 2;
    const config = (error: unknown) => isFault(error, "config");
    assert.throws(() => decodeSnapshot(sealed(newer), at, codecs), config);
  });
});
