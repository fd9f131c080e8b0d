/**
 * What was stored once stays readable for ever: a sample of each version of each format decodes to these
 * fields. The files were made apart from the code, from the published layouts. What a later build might write
 * is refused by name; a format that may be missing counts as missing.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { readCluster } from "../../src/controller/cluster.ts";
import { decodeEntry, encodeEntry, FEATURE_LEVEL } from "../../src/controller/entry.ts";
import { encodeRecord, type MetadataRecord } from "../../src/controller/record.ts";
import { decodeSnapshot, dumpTables, encodeSnapshot } from "../../src/controller/snapshot.ts";
import { changeQuota, storedQuotas } from "../../src/broker/client_quotas.ts";
import { PushKeys } from "../../src/http/push/keys.ts";
import { Subscriptions } from "../../src/http/push/subscriptions.ts";
import { Webhooks } from "../../src/http/webhook/settings.ts";
import { HttpTexts } from "../../src/node/http_texts.ts";
import { finalizedFeatures, setFeatureLevels } from "../../src/broker/features.ts";
import { readGroupRecord } from "../../src/broker/group/records.ts";
import { changeDynamicSettings, dynamicSettings } from "../../src/broker/live_config.ts";
import {
  nodeEpoch,
  nodeId,
  objectId,
  position,
  streamEpoch,
  streamId,
} from "../../src/lib/brand.ts";
import { DecodeError, fromHex, toHex, toUtf8, utf8, viewOf } from "../../src/lib/bytes.ts";
import { crc32c } from "../../src/lib/crc32c.ts";
import { isFault, messageOf } from "../../src/lib/errors.ts";
import { SLOT_BYTES } from "../../src/lib/limits.ts";
import { decodeAborted, encodeAborted } from "../../src/log/aborted_transactions.ts";
import { decodeEpochs, encodeEpochs } from "../../src/log/leader_epochs.ts";
import {
  decodeLogMeta,
  decodePartitionMeta,
  encodeLogMeta,
  encodePartitionMeta,
} from "../../src/log/log_meta.ts";
import { decodeMetaKeyValue, encodeMetaKeyValue } from "../../src/log/meta_codec.ts";
import {
  decodeSnapshot as decodeProducers,
  decodeSnapshots,
  encodeSnapshot as encodeProducers,
  encodeSnapshots,
} from "../../src/log/producer_snapshot.ts";
import { decodePart, encodePart } from "../../src/log/request_part.ts";
import { decodeRequests, encodeRequests } from "../../src/log/request_snapshot.ts";
import { decodeTimeEntries, encodeTimeEntries } from "../../src/log/time_index.ts";
import { decodeWriters, encodeWriters } from "../../src/log/writer_snapshot.ts";
import { decodeStep, encodeStep } from "../../src/log/writer_step.ts";
import {
  decodeOffsetsTopicKey,
  groupMetadataKey,
  groupMetadataValue,
  offsetCommitKey,
  offsetCommitValue,
} from "../../src/protocol/message/offsets_topic.ts";
import { decodeLeaseKey, leaseKey } from "../../src/protocol/message/lease_records.ts";
import { leaseRecord, readWindow } from "../../src/broker/group/lease/records.ts";
import { decodeVersioned, encodeVersioned } from "../../src/protocol/versioned.ts";
import { decodeAttributes, encodeAttributes } from "../../src/storage/format/attributes.ts";
import { decodeComposite, encodeComposite } from "../../src/storage/format/composite.ts";
import { decodeDataBlocks } from "../../src/storage/format/data_block.ts";
import { decodeFooter } from "../../src/storage/format/footer.ts";
import { IndexBlock } from "../../src/storage/format/index_block.ts";
import { ObjectWriter } from "../../src/storage/format/object_writer.ts";
import { decodeSparseIndex, encodeSparseIndex } from "../../src/storage/format/sparse_index.ts";
import { readStreamRecord, writeStreamRecord } from "../../src/storage/stream_record.ts";
import {
  encodeSeal,
  readWalObject,
  writeWalHeader,
  writeWalRecord,
} from "../../src/storage/wal/wal_object.ts";
import { ruledMetadata } from "../support/broker_world.ts";
import { createFakeClock } from "../support/fake_clock.ts";
import { testEnv } from "../support/test_env.ts";

function sample(path: string): Uint8Array {
  return new Uint8Array(readFileSync(new URL(`samples/${path}`, import.meta.url)));
}

/** A copy with some bytes changed. */
function changed(bytes: Uint8Array, at: number, hex: string): Uint8Array {
  const copy = bytes.slice();
  copy.set(fromHex(hex), at);
  return copy;
}

function same(bytes: Uint8Array, expected: Uint8Array): void {
  assert.equal(toHex(bytes), toHex(expected));
}

const HELLO = {
  streamId: streamId(1),
  epoch: streamEpoch(2),
  baseOffset: 3,
  count: 4,
  payload: toUtf8("hello"),
};

test("stream record 1", () => {
  const bytes = sample("stream-record/1.bin");
  assert.deepEqual(readStreamRecord(bytes, 0), HELLO);
  const written = new Uint8Array(38);
  writeStreamRecord(written, 0, HELLO);
  same(written, bytes);
  assert.throws(() => readStreamRecord(changed(bytes, 0, "23"), 0), /stream record: .*magic 35/);
});

describe("WAL", () => {
  const owner = { nodeId: nodeId(7), epoch: nodeEpoch(1_700_000_000_000) };

  test("object 1 of two records in slot 1", () => {
    const bytes = sample("wal-object/1.bin");
    const header = {
      ...owner,
      startOffset: SLOT_BYTES,
      bodyLength: 124,
      sticky: 0,
      trimOffset: -1,
    };
    assert.deepEqual(readWalObject(bytes, owner, 1), {
      kind: "data",
      header,
      records: [HELLO, HELLO],
    });
    const written = new Uint8Array(172);
    writeWalHeader(written, 0, header);
    for (const at of [0, 62]) writeWalRecord(written, 48 + at, SLOT_BYTES + at, HELLO);
    same(written, bytes);
  });

  test("seal 1", () => {
    const bytes = sample("wal-seal/1.bin");
    const read = readWalObject(bytes, owner, 1);
    assert.deepEqual([read.kind, read.kind === "seal" && read.recovery], ["seal", 99]);
    same(encodeSeal(owner, 1, position(99)), bytes);
  });

  test("other versions are refused: AutoMQ's V0, and what is not known yet", () => {
    for (const magic of ["12345678", "edcba988"]) {
      for (const path of ["wal-object/1.bin", "wal-seal/1.bin"]) {
        const other = changed(sample(path), 0, magic);
        assert.throws(
          () => readWalObject(other, owner, 1),
          new RegExp(`WAL header: .*magic ${magic}`),
        );
      }
    }
  });
});

test("data object 1", () => {
  const bytes = sample("data-object/1.bin");
  const { indexPosition, indexLength } = decodeFooter("data", bytes, 163);
  assert.deepEqual([indexPosition, indexLength], [79, 36]);
  const index = new IndexBlock(bytes.subarray(79, 115), 79);
  assert.deepEqual(index.entry(0), {
    streamId: streamId(233),
    start: 10,
    end: 13,
    recordCount: 2,
    position: 0,
    size: 79,
  });
  const records = decodeDataBlocks(bytes.subarray(0, 79));
  assert.deepEqual(
    records.map(({ baseOffset, count, payload }) => [baseOffset, count, utf8(payload)]),
    [
      [10, 2, "ab"],
      [12, 1, "c"],
    ],
  );
  const writer = new ObjectWriter();
  for (const record of records) writer.add(record);
  same(writer.finish().encode(), bytes);
  const blocks = (at: number, hex: string) => changed(bytes, at, hex).subarray(0, 79);
  assert.throws(() => decodeDataBlocks(blocks(0, "5b")), /data block: magic 91, flag 2/);
  assert.throws(() => decodeDataBlocks(blocks(1, "03")), /data block: magic 90, flag 3/);
  assert.throws(
    () => decodeFooter("data", changed(bytes, 162, "f9"), 163),
    /footer magic 88e241b785f4cff9/,
  );
});

test("composite object 1", () => {
  const bytes = sample("composite-object/1.bin");
  const links = decodeComposite(bytes);
  const entry = (
    e: { start: number; end: number; position: number; size: number },
  ) => [e.start, e.end, e.position, e.size];
  assert.deepEqual(links.map((link) => [link.objectId, link.bucket, link.entries.map(entry)]), [
    [1, 0, [[10, 25, 0, 50], [25, 30, 50, 50]]],
    [2, 233, [[30, 40, 0, 50]]],
  ]);
  same(encodeComposite(links), bytes);
  assert.throws(() => decodeComposite(changed(bytes, 0, "53")), /composite object: magic 83/);
  assert.throws(() => decodeComposite(changed(bytes, 188, "f9")), /footer magic 88e241b785f4cff9/);
});

test("sparse index 0", () => {
  const bytes = sample("sparse-index/0.bin");
  const range = { start: 50, end: 100, objectId: objectId(88) };
  const streams = [{ streamId: streamId(1), ranges: [range] }];
  assert.deepEqual(decodeSparseIndex(bytes), streams);
  same(encodeSparseIndex(streams), bytes);
  assert.throws(() => decodeSparseIndex(changed(bytes, 0, "0001")), /version 1/);
});

test("attributes 1", () => {
  const bytes = sample("attributes/1.bin");
  const fields = [
    { type: "composite", bucket: 10, deepDelete: true },
    { type: "normal", bucket: 233, deepDelete: false },
    { type: "normal", bucket: 0, deepDelete: false },
  ] as const;
  for (const [i, one] of fields.entries()) {
    const bits = viewOf(bytes).getInt32(4 * i);
    assert.deepEqual(decodeAttributes(bits), one);
    assert.equal(encodeAttributes(one), bits);
  }
  for (const type of [2, 3]) {
    assert.throws(() => decodeAttributes(type), new RegExp(`object type ${type}`));
  }
});

describe("meta stream of a partition", () => {
  test("record 0", () => {
    const bytes = sample("meta-record/0.bin");
    assert.deepEqual(decodeMetaKeyValue(bytes), { key: "LOG", value: toUtf8("{}") });
    same(encodeMetaKeyValue("LOG", toUtf8("{}")), bytes);
    assert.throws(() => decodeMetaKeyValue(changed(bytes, 0, "01")), /meta record: magic 1/);
  });

  test("LOG 1", () => {
    const bytes = sample("log-meta/1.json");
    const closed = {
      baseOffset: 0,
      createdMs: 1_700_000_000_000,
      lastModifiedMs: 1_700_000_005_000,
      bytes: 4096,
      log: { start: 0, end: 50 },
      time: { start: 0, end: 24 },
      txn: { start: 0, end: 0 },
      firstBatchTimestampMs: 1_699_999_999_000,
      largest: { timestampMs: 1_700_000_004_000, offset: 49 },
    };
    const open = {
      baseOffset: 50,
      createdMs: 1_700_000_006_000,
      lastModifiedMs: 1_700_000_006_000,
      bytes: 0,
      log: { start: 50, end: -1 },
      time: { start: 24, end: -1 },
      txn: { start: 0, end: -1 },
      firstBatchTimestampMs: -1,
      largest: { timestampMs: -1, offset: -1 },
    };
    const meta = {
      streams: new Map([["log", streamId(3)], ["tim", streamId(9)]]),
      segments: [closed, open],
      countedTo: 50,
    };
    assert.deepEqual(decodeLogMeta(bytes), meta);
    same(encodeLogMeta(meta), bytes);
  });

  test("LOG 2: a cleaned segment lies in streams of its own", () => {
    const bytes = sample("log-meta/2.json");
    const decoded = decodeLogMeta(bytes);
    assert.equal(decoded.streams.get("log.cleaned.1"), streamId(12));
    assert.deepEqual(decoded.segments.map(({ suffix }) => suffix), [".cleaned.1", undefined]);
    same(encodeLogMeta(decoded), bytes);
  });

  test("PARTITION 1", () => {
    const bytes = sample("partition-meta/1.json");
    const meta = { logStartOffset: 8, cleanerOffset: 2, recoveryPoint: 13, cleanShutdown: true };
    assert.deepEqual(decodePartitionMeta(bytes), meta);
    same(encodePartitionMeta(meta), bytes);
  });

  test("a later version of either is refused", () => {
    const newer = (path: string, version: number) =>
      toUtf8(utf8(sample(path)).replace("{", `{"v":${version},`));
    const refused = (what: string, version: number) => (error: unknown) =>
      isFault(error, "corrupt") &&
      messageOf(error) ===
        `Cannot read ${what} of a partition: it has version ${version}, this build knows ${
          version - 1
        }`;
    const log = newer("log-meta/1.json", 3);
    const partition = newer("partition-meta/1.json", 2);
    assert.throws(() => decodeLogMeta(log), refused("LOG", 3));
    assert.throws(() => decodePartitionMeta(partition), refused("PARTITION", 2));
  });

  const producer = { producerId: 7, epoch: 3, coordinatorEpoch: 2 };
  const last = { lastSequence: 1, lastOffset: 13, offsetDelta: 3, timestampMs: 1000 };
  const before = { lastSequence: 0, lastOffset: 9, offsetDelta: 1, timestampMs: 900 };
  const version1 = {
    ...producer,
    batches: [last],
    lastTimestampMs: 1000,
    appendedMs: 1000,
    currentTxnFirstOffset: 5,
  };
  const version100 = {
    ...producer,
    coordinatorEpoch: -1,
    batches: [before, last],
    lastTimestampMs: 1000,
    appendedMs: 2000,
    currentTxnFirstOffset: null,
  };

  test("producer snapshots 1, which is Kafka's, and 100", () => {
    assert.deepEqual(decodeProducers(sample("producer-snapshot/1.bin")), [version1]);
    const bytes = sample("producer-snapshot/100.bin");
    assert.deepEqual(decodeProducers(bytes), [version100]);
    same(encodeProducers([version100]), bytes);
    // The log gives the same state, so this one is passed over.
    assert.equal(decodeProducers(changed(bytes, 0, "0065")), null);
  });

  test("the list of producer snapshots 24", () => {
    const bytes = sample("producer-snapshots/24.bin");
    const list = decodeSnapshots(bytes);
    assert.deepEqual(list.map(({ offset }) => offset), [6, 14]);
    assert.deepEqual(list.map((one) => decodeProducers(one.bytes)), [[version1], [version100]]);
    same(encodeSnapshots(list), bytes);
    assert.deepEqual(decodeSnapshots(changed(bytes, 0, "19")), []);
  });

  test("requests with an Idempotency-Key 1", () => {
    const id = "000102030405060708090a0b0c0d0e0f";
    const fingerprint = "101112131415161718191a1b1c1d1e1f";
    const bytes = sample("requests/1.bin");
    const runs = [
      { baseOffset: 104, count: 2, timeMs: 1000, isAppendTime: false },
      { baseOffset: 110, count: 1, timeMs: 1500, isAppendTime: true },
    ];
    const entries = [{ id, fingerprint, partitions: 3, appendedMs: 2000, runs }];
    assert.deepEqual(decodeRequests(bytes), { offset: 111, entries });
    same(encodeRequests(111, entries), bytes);
    assert.equal(decodeRequests(changed(bytes, 0, "02")), null);
    const part = sample("request-part/1.bin");
    const fields = { id, fingerprint, partitions: 3, first: 2, givenMs: 1000 };
    assert.deepEqual(decodePart(part), fields);
    same(encodePart(fields), part);
    assert.equal(decodePart(changed(part, 0, "02")), null);
  });

  test("named writers 1", () => {
    const closer = { name: "b", epoch: 1, sequence: 2 };
    const sensor = { name: "sensor-ä", epoch: 3, sequence: 41 };
    const closing = { end: 119, by: closer };
    const entries = [{ ...sensor, end: 117 }, { ...closer, end: 119 }];
    const bytes = sample("writers/1.bin");
    assert.deepEqual(decodeWriters(bytes), { offset: 120, closing, order: "0007", entries });
    same(encodeWriters(120, { closing, order: "0007", entries: () => entries }), bytes);
    const step = { closes: true, order: "0007", writer: sensor };
    assert.deepEqual(decodeStep(sample("writer-step/1.bin")), step);
    same(encodeStep(step), sample("writer-step/1.bin"));
  });

  test("leader epochs 0", () => {
    const bytes = sample("leader-epochs/0.bin");
    const entries = [{ epoch: 0, startOffset: 104 }, { epoch: 1, startOffset: 106 }];
    assert.deepEqual(decodeEpochs(bytes), entries);
    same(encodeEpochs(entries), bytes);
    assert.throws(() => decodeEpochs(changed(bytes, 3, "01")), /leader epochs: version 1/);
  });

  test("time index 1", () => {
    const bytes = sample("time-index/1.bin");
    const entries = [
      { timestampMs: 1_700_000_000_000, offset: 65 },
      { timestampMs: 1_700_000_009_000, offset: 75 },
    ];
    assert.deepEqual(decodeTimeEntries(bytes, 45), entries);
    same(encodeTimeEntries(entries, 45), bytes);
  });

  test("entries of the transaction index, which are Kafka's", () => {
    const bytes = sample("transaction-index/1.bin");
    const entries = [
      { producerId: 4001, firstOffset: 65, lastOffset: 70, lastStableOffset: 66 },
      { producerId: 2 ** 40 + 5, firstOffset: 66, lastOffset: 75, lastStableOffset: 76 },
    ];
    assert.deepEqual(decodeAborted(bytes), entries);
    same(encodeAborted(entries), bytes);
    assert.throws(() => decodeAborted(changed(bytes, 0, "0001")), DecodeError);
  });
});

const A = "a".repeat(32);
const FIRST = "1".padStart(32, "0");
const crcs = { bytesCrc: 11, indexCrc: 12 };

/** By type, so that a new type does not compile before it stands in a sample of its version. */
const RECORDS = {
  "node-registered": { nodeId: 1, incarnation: FIRST, host: "h", port: 9092 },
  "recovery-begun": { nodeId: 1, epoch: 2, by: 3 },
  "recovery-finished": {
    nodeId: 1,
    epoch: 2,
    streamSetObject: null,
    streamObjects: [],
    ends: [[5, 9]],
    slot: 4,
  },
  "wal-forgotten": { nodeId: 1, epoch: 2 },
  "leaders-assigned": { nodeId: 1, partitions: [{ topicId: A, partitions: [0, 2] }] },
  "topic-created": {
    topicId: A,
    name: "t",
    replicationFactor: 3,
    configs: { "retention.ms": "-1" },
    internal: false,
    leaders: [1, null],
  },
  "partitions-created": { topicId: A, leaders: [1] },
  "topic-deleted": { topicId: A },
  "topic-configured": { topicId: A, changes: { "retention.ms": null } },
  "meta-stream-set": { topicId: A, partition: 0, streamId: 4 },
  "stream-created": { streamId: 5, nodeId: 1, nodeEpoch: 2, epoch: 1, tag: `${A}/0` },
  "stream-opened": { streamId: 5, nodeId: 1, nodeEpoch: 2, epoch: 2 },
  "stream-closed": { streamId: 4, end: 2 ** 40 },
  "stream-trimmed": { streamId: 5, start: 3 },
  "stream-deleted": { streamId: 5 },
  "ids-reserved": { nodeId: 1, epoch: 2, from: 20, to: 84 },
  "uploaded": {
    nodeId: 1,
    epoch: 2,
    streamSetObject: { objectId: 20, size: 300, ...crcs, rangesDigest: "d0" },
    streamObjects: [{
      objectId: 21,
      size: 400,
      ...crcs,
      attributes: 0,
      streamId: 5,
      start: 0,
      end: 9,
      links: [],
    }],
    ends: [[5, 9]],
    walTrim: 7,
  },
  "compacted": {
    nodeId: 1,
    streamSetObject: null,
    streamObjects: [{
      objectId: 22,
      size: 800,
      ...crcs,
      attributes: 1,
      streamId: 5,
      start: 0,
      end: 18,
      links: [21, 23],
    }],
    replaced: [20],
  },
  "epoch-swept": { nodeId: 1, epoch: 2 },
  "purged": { ids: [[20, 22]], blocks: [{ nodeId: 1, epoch: 2, from: 20 }] },
  "kv-put": { key: "kä", value: "v" },
  "kv-deleted": { key: "kä" },
  "producer-ids": { next: 1000 },
  "feature-level": { level: 1 },
} satisfies Record<MetadataRecord["type"], object>;

/** The CRC at the end made right again. */
function sealed(bytes: Uint8Array): Uint8Array {
  viewOf(bytes).setUint32(bytes.length - 4, crc32c(bytes.subarray(0, -4)));
  return bytes;
}

const NEWER_LEVEL = (FEATURE_LEVEL + 1).toString(16).padStart(4, "0");

function refusedAsNewer(what: string, version: number, level: number) {
  const text =
    `Cannot read ${what}: it has version ${version}, feature level ${level}; this build knows ` +
    `version 1 and levels up to ${FEATURE_LEVEL}. Start a newer build.`;
  return (error: unknown) => isFault(error, "config") && messageOf(error) === text;
}

describe("metadata", () => {
  test("entry 1, with a record of every type", () => {
    const bytes = sample("metadata-entry/1.bin");
    const { records, ...head } = decodeEntry(bytes);
    assert.deepEqual(
      records,
      Object.entries(RECORDS).map(([type, fields]) => ({ type, ...fields })),
    );
    assert.deepEqual(head, {
      featureLevel: 1,
      at: position(7),
      previous: fromHex("000102030405060708090a0b0c0d0e0f"),
      clusterId: "sample",
      writer: {
        nodeId: nodeId(3),
        epoch: nodeEpoch(5),
        incarnation: "abcdef".padStart(32, "0"),
        firstCommand: 11,
        lastCommand: 12,
      },
    });
    same(encodeEntry(head, records.map(encodeRecord)), bytes);
    const version = sealed(changed(bytes, 4, "02"));
    assert.throws(() => decodeEntry(version), refusedAsNewer("metadata entry", 2, 1));
    const level = sealed(changed(bytes, 5, NEWER_LEVEL));
    assert.throws(
      () => decodeEntry(level),
      refusedAsNewer("metadata entry", 1, FEATURE_LEVEL + 1),
    );
  });

  test("snapshot 1, with a row of every kind", () => {
    const bytes = sample("metadata-snapshot/1.bin");
    const { codecs } = testEnv();
    const { state, lastHash } = decodeSnapshot(bytes, position(7), codecs);
    assert.equal(state.clusterId, "sample");
    assert.equal(toHex(lastHash), "000102030405060708090a0b0c0d0e0f");
    const tables = dumpTables(state) as Record<string, unknown>;
    assert.deepEqual(Object.entries(tables).filter(([, rows]) => typeof rows === "number"), [
      ["nextStreamId", 6],
      ["nextObjectId", 84],
      ["nextProducerId", 1000],
    ]);
    assert.deepEqual(tables["nodes"], [
      { nodeId: 1, epoch: 2, incarnation: FIRST, host: "h", port: 9092, state: "live" },
    ]);
    assert.deepEqual(tables["wals"], [
      { nodeId: 1, epoch: 1, walTrim: 4, state: { kind: "sealed", slot: 4 } },
      { nodeId: 1, epoch: 2, walTrim: 0, state: { kind: "open" } },
      { nodeId: 3, epoch: 1, walTrim: 2, state: { kind: "recovering", by: 1, recovery: 6 } },
    ]);
    assert.deepEqual(tables["partitions"], [
      { topicId: A, partition: 0, leader: 1, leaderEpoch: 2, metaStream: 4 },
    ]);
    const [topic] = tables["topics"] as { readonly name: string; readonly configs: object }[];
    assert.deepEqual([topic!.name, topic!.configs], ["t", { "retention.ms": "-1" }]);
    assert.deepEqual(tables["streams"], [{
      streamId: 5,
      epoch: 2,
      open: true,
      owner: { nodeId: 1, epoch: 2 },
      start: 3,
      end: 18,
      ranges: [{ epoch: 1, nodeId: 3, start: 0, end: 9 }, {
        epoch: 2,
        nodeId: 1,
        start: 9,
        end: null,
      }],
      objects: [22],
      tag: `${A}/0`,
    }]);
    const rows = tables["objects"] as {
      readonly objectId: number;
      readonly kind: string;
      readonly state: string;
      readonly linkedBy: number | null;
      readonly destroyedAt: number | null;
    }[];
    assert.deepEqual(rows.map((o) => [o.objectId, o.kind, o.state, o.linkedBy, o.destroyedAt]), [
      [20, "stream-set", "destroyed", null, 7],
      [21, "stream", "committed", 22, null],
      [22, "composite", "committed", null, null],
    ]);
    assert.deepEqual(tables["streamSets"], [[1, [20]]]);
    const block = { nodeId: 1, epoch: 2, from: 20, to: 84, purged: [{ start: 24, end: 26 }] };
    assert.deepEqual(tables["idBlocks"], [{ ...block, sweptAt: null }]);
    assert.deepEqual(tables["kv"], [["kä", { version: 3, value: "v" }]]);
    const plain = { ...codecs, supports: () => false };
    same(encodeSnapshot({ state, lastHash }, plain), bytes);

    const read = (other: Uint8Array) => () => decodeSnapshot(sealed(other), position(7), codecs);
    assert.throws(read(changed(bytes, 4, "02")), refusedAsNewer("snapshot", 2, 1));
    assert.throws(
      read(changed(bytes, 5, NEWER_LEVEL)),
      refusedAsNewer("snapshot", 1, FEATURE_LEVEL + 1),
    );
    const packing = 4 + 1 + 2 + 8 + 16 + 1 + "sample".length;
    assert.throws(read(changed(bytes, packing, "02")), /Cannot read snapshot: packing 2/);
  });

  test("cluster object 1", () => {
    const bytes = sample("cluster/1.json");
    const cluster = { clusterId: "sample", formatVersion: 1, featureLevel: 1 };
    assert.deepEqual(readCluster(bytes), cluster);
    for (const newer of [{ formatVersion: 2 }, { featureLevel: FEATURE_LEVEL + 1 }]) {
      const { formatVersion, featureLevel } = { ...cluster, ...newer };
      const text = `format is ${formatVersion}, feature level ${featureLevel};`;
      assert.throws(
        () => readCluster(toUtf8(JSON.stringify({ ...cluster, ...newer }))),
        (error) => isFault(error, "config") && messageOf(error).includes(text),
      );
    }
  });
});

describe("groups and offsets, in Kafka's format", () => {
  test("keys 0, 1 and 2", () => {
    for (const version of [0, 1]) {
      const bytes = sample(`offset-commit-key/${version}.bin`);
      const key = { group: "g", topic: "t", partition: 2 };
      assert.deepEqual(decodeOffsetsTopicKey(bytes), { kind: "offset", key });
      same(encodeVersioned(offsetCommitKey, version, key), bytes);
    }
    const bytes = sample("group-metadata-key/2.bin");
    assert.deepEqual(decodeOffsetsTopicKey(bytes), { kind: "group", key: { group: "g" } });
    same(encodeVersioned(groupMetadataKey, 2, { group: "g" }), bytes);
    assert.deepEqual(decodeOffsetsTopicKey(changed(bytes, 0, "0003")), {
      kind: "unknown",
      version: 3,
    });
  });

  test("leases", () => {
    const key = sample("lease-key/20480.bin");
    assert.deepEqual(decodeLeaseKey(key), { group: "g", topic: "t", partition: 2 });
    same(encodeVersioned(leaseKey, 20_480, { group: "g", topic: "t", partition: 2 }), key);
    assert.equal(decodeLeaseKey(changed(key, 0, "5001")), null);
    const value = sample("lease-value/0.bin");
    const window = {
      topicId: "0123456789abcdef0123456789abcdef",
      committed: 40,
      start: 42,
      spans: [
        { first: 42, last: 45, state: "leased", holder: 2 ** 48, untilMs: 1_700_000_000_000 },
        { first: 46, last: 46, state: "returned", holder: 7, untilMs: 1_700_000_005_000 },
        { first: 47, last: 99, state: "done", holder: 0, untilMs: 0 },
      ].map((span, at) => ({ ...span, deliveries: [1, 3, 0][at] })),
    };
    assert.deepEqual(readWindow(value), window);
    assert.deepEqual(readWindow(changed(value, 0, "0001")), window);
    const at = { topic: "t", partition: 2 };
    assert.deepEqual(leaseRecord("g", at, readWindow(value)), { key, value });
  });

  for (const version of [0, 1, 2, 3, 4]) {
    test(`values ${version}`, () => {
      const offset = {
        offset: 42,
        leaderEpoch: version >= 3 ? 5 : -1,
        metadata: "m",
        commitTimestamp: 1_700_000_000_000,
        expireTimestamp: version === 1 ? 1_700_000_009_000 : -1,
        topicId: version >= 4 ? "aa".repeat(16) : "00".repeat(16),
      };
      const offsetBytes = sample(`offset-commit-value/${version}.bin`);
      assert.deepEqual(decodeVersioned(offsetCommitValue, offsetBytes), offset);
      same(encodeVersioned(offsetCommitValue, version, offset), offsetBytes);
      const group = {
        protocolType: "consumer",
        generation: 6,
        protocol: "range",
        leader: "m-1",
        currentStateTimestamp: version >= 2 ? 1_700_000_000_000 : -1,
        members: [{
          memberId: "m-1",
          groupInstanceId: version >= 3 ? "i-1" : null,
          clientId: "c",
          clientHost: "/1.2.3.4",
          rebalanceTimeout: version >= 1 ? 20_000 : 0,
          sessionTimeout: 10_000,
          subscription: toUtf8("sub"),
          assignment: toUtf8("asg"),
        }],
      };
      const groupBytes = sample(`group-metadata-value/${version}.bin`);
      assert.deepEqual(decodeVersioned(groupMetadataValue, groupBytes), group);
      same(encodeVersioned(groupMetadataValue, version, group), groupBytes);
    });
  }

  test("a later version of a value only grows at its end; a negative one is none", () => {
    const read = (key: string, value: Uint8Array) => readGroupRecord(sample(key), value, 0);
    const offset = sample("offset-commit-value/4.bin");
    const found = read("offset-commit-key/1.bin", changed(offset, 0, "0005"));
    assert.equal(found.kind === "offset" && found.entry?.offset, 42);
    const group = sample("group-metadata-value/4.bin");
    const known = read("group-metadata-key/2.bin", changed(group, 0, "0005"));
    assert.equal(known.kind === "group" && known.group?.generation, 6);
    assert.throws(
      () => read("offset-commit-key/1.bin", changed(offset, 0, "ffff")),
      /unknown version -1/,
    );
  });
});

describe("values of the broker in the metadata", () => {
  /** Metadata that holds the sample, and what it should hold: key and value, a line each. */
  async function stored(path: string) {
    const [key = "", value = ""] = utf8(sample(path)).split("\n");
    const metadata = ruledMetadata();
    await metadata.submit({ type: "put-kv", key, value, expectedVersion: 0 });
    return { metadata, key, value };
  }

  test("broker settings 1", async () => {
    const { metadata, key, value } = await stored("broker-settings/1.txt");
    const settings = { "message.max.bytes": "2000", "log.retention.ms": "7" };
    assert.deepEqual(dynamicSettings(metadata, "1"), settings);
    const written = ruledMetadata();
    assert.equal(await changeDynamicSettings(written, "1", settings, {}), null);
    assert.equal(written.view().kv.get(key)?.value, value);
  });

  test("features 1", async () => {
    const { metadata, key, value } = await stored("features/1.txt");
    const features = finalizedFeatures(metadata);
    const levels = [features.levelOf("transaction.version"), features.levelOf("group.version")];
    assert.deepEqual([levels, features.epoch], [[1, 0], 1]);
    const written = ruledMetadata();
    const given = new Map([["transaction.version", 1], ["group.version", 0]]);
    assert.equal(await setFeatureLevels(written, given), null);
    assert.equal(written.view().kv.get(key)?.value, value);
  });

  test("client quotas 1", async () => {
    const { metadata, key, value } = await stored("client-quotas/1.txt");
    const limits: [string, number][] = [["producer_byte_rate", 1000], ["request_percentage", 12.5]];
    const entity = new Map([["user", 'a"b'], ["client-id", null]]);
    const [quota] = storedQuotas(metadata);
    assert.deepEqual(Object.fromEntries(quota!.entity), Object.fromEntries(entity));
    assert.deepEqual([...quota!.limits], limits);
    const written = ruledMetadata();
    const changes = limits.map(([name, limit]) => ({ key: name, value: limit, remove: false }));
    assert.equal(await changeQuota(written, entity, changes), null);
    assert.equal(written.view().kv.get(key)?.value, value);
  });

  test("push subscription 1", async () => {
    const { metadata, key, value } = await stored("push-subscription/1.txt");
    const known = new Subscriptions(new HttpTexts({ metadata })).get("shop-1");
    const { id, ...input } = known!;
    assert.deepEqual([id, input], ["shop-1", JSON.parse(value)]);
    const written = ruledMetadata();
    await new Subscriptions(new HttpTexts({ metadata: written })).put(id, input);
    assert.equal(written.view().kv.get(key)?.value, value);
  });

  test("push keys 1", async () => {
    const { metadata } = await stored("push-keys/1.txt");
    const env = testEnv({ clock: createFakeClock(1_796_016_379_685) });
    const keys = new PushKeys(new HttpTexts({ metadata }), env);
    assert.deepEqual(await keys.current(), {
      kid: "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
      x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
      d: "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
    });
    assert.equal(keys.jwks().keys.length, 2);
  });

  test("webhook settings 1", async () => {
    const { metadata, key, value } = await stored("webhook-settings/1.txt");
    const settings = new Webhooks(new HttpTexts({ metadata })).get("events");
    assert.deepEqual(settings, {
      provider: "standard",
      secrets: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
      toleranceS: 60,
    });
    const written = ruledMetadata();
    await new Webhooks(new HttpTexts({ metadata: written })).put("events", settings);
    assert.equal(written.view().kv.get(key)?.value, value);
  });
});
