import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import fc from "fast-check";
import {
  addSnapshot,
  clusterOf,
  type Content,
  contentOf,
  killedTwice,
  storeOf,
} from "../../tests/support/stored_world.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { decodeEntry, encodeEntry } from "../controller/entry.ts";
import { encodeRecord } from "../controller/record.ts";
import { decodeSnapshot, encodeSnapshot } from "../controller/snapshot.ts";
import { position } from "../lib/brand.ts";
import { fromHex, getInt64, toUtf8, viewOf } from "../lib/bytes.ts";
import { CLUSTER_KEY } from "../object/object_key.ts";
import { type ByteSource, SequentialReader, storeSource } from "./byte_source.ts";
import { inspect } from "./inspect.ts";
import { type Item, itemJson, itemLine } from "./item.ts";
import { kindOf } from "./kind.ts";

const { codecs } = testEnv();

function sourceOf(bytes: Uint8Array, name = "file"): ByteSource {
  return { name, size: bytes.length, read: async (start, end) => bytes.slice(start, end) };
}

interface Seen {
  readonly kind: string | null;
  readonly items: readonly Item[];
  readonly lines: readonly string[];
  readonly damage: string | null;
}

async function look(source: ByteSource): Promise<Seen> {
  const kind = await kindOf(source);
  const items: Item[] = [];
  if (kind === null) return { kind, items, lines: [], damage: null };
  const walk = inspect(source, kind, codecs);
  for (;;) {
    const next = await walk.next();
    if (next.done === true) return { kind, items, lines: items.map(itemLine), damage: next.value };
    items.push(next.value);
  }
}

const DATA = `5a 02 00000002 00000045
  22 00000000000000e9 0000000000000000 000000000000000a 00000002 00000002 6162
  22 00000000000000e9 0000000000000000 000000000000000c 00000001 00000001 63
  00000000000000e9 000000000000000a 00000003 00000002 0000000000000000 0000004f
  000000000000004f 00000024 ${"00".repeat(28)} 88e241b785f4cff7`;
const RECORD = "22 0000000000000001 0000000000000002 0000000000000003 00000004 00000005 68656c6c6f";
const WAL =
  `edcba987 0000000000000000 000000000000007c 0000000000000000 00000007 0000018bcfe56800 ffffffffffffffff
  87654321 00000026 0000000000000018 2fc8e9ac 5d52a992 ${RECORD}
  87654321 00000026 0000000000000056 2fc8e9ac 3a914fba ${RECORD}`;
/** Objects 1 and 2 (bucket 233), three entries. */
const COMPOSITE = `52 00000002 0000000000000001 00000000 0000 0000000000000002 00000002 00e9
  0000000000000005 0000000000000000 00000001 00000001 0000000000000000 00000030
  0000000000000005 0000000000000001 00000001 00000001 0000000000000030 00000030
  0000000000000005 0000000000000002 00000002 00000001 0000000000000000 00000030
  0000000000000021 0000006c ${"00".repeat(28)} 88e241b785f4cff8`;

describe("golden bytes", () => {
  test("the smallest data object", async () => {
    const { kind, lines, damage } = await look(sourceOf(fromHex(DATA)));
    assert.equal(kind, "data");
    assert.equal(damage, null);
    assert.deepEqual(lines.slice(0, 4), [
      "block     @0 bytes=79 records=2",
      "record    @10 stream=233 epoch=0 offset=10 count=2 bytes=2 index.bytes=6162",
      "record    @45 stream=233 epoch=0 offset=12 count=1 bytes=1 index.bytes=63",
      "index     stream=233 start=10 end=13 records=2 position=0 size=79",
    ]);
    assert.match(
      lines[4]!,
      /^footer {4}@115 indexPosition=79 indexLength=36 bytesCrc=\d+ indexCrc=\d+$/,
    );
  });

  test("a WAL object of two records", async () => {
    const { kind, items, damage } = await look(sourceOf(fromHex(WAL)));
    assert.equal(kind, "wal");
    assert.equal(damage, null);
    assert.deepEqual(items[0], {
      part: "header",
      at: 0,
      fields: {
        node: 7,
        epoch: 1_700_000_000_000,
        slot: 0,
        start: 0,
        body: 124,
        sticky: 0,
        trim: -1,
      },
    });
    const fields = { stream: 1, epoch: 2, offset: 3, count: 4, bytes: 5, payload: "68656c6c6f" };
    assert.deepEqual(items.slice(1), [
      { part: "record", at: 48, fields },
      { part: "record", at: 110, fields },
    ]);
  });

  test("a header alone that is no seal of ours is shown, then called damaged", async () => {
    const header =
      "edcba987 000000000000002a 0000000000000054 000000000000007e 00000001 0000000000000002 00000000000000a8";
    const { lines, damage } = await look(sourceOf(fromHex(header)));
    assert.match(lines[0]!, /start=42 body=84 sticky=126 trim=168/);
    assert.match(damage!, /WAL object starts at 42|has 0 bytes/);
  });

  test("a composite object", async () => {
    const bytes = fromHex(COMPOSITE);
    assert.equal(bytes.length, 189);
    const { kind, lines, damage } = await look(sourceOf(bytes));
    assert.equal(kind, "composite");
    assert.equal(damage, null);
    assert.deepEqual(lines.slice(0, 5), [
      "link      object=1 bucket=0 entries=2",
      "index     stream=5 start=0 end=1 records=1 position=0 size=48",
      "index     stream=5 start=1 end=2 records=1 position=48 size=48",
      "link      object=2 bucket=233 entries=1",
      "index     stream=5 start=2 end=4 records=1 position=0 size=48",
    ]);
    assert.match(lines[5]!, /^footer {4}@141 indexPosition=33 indexLength=108/);
  });

  test("what a probe has left, told by its name, with the writer that won", async () => {
    const bytes = Uint8Array.from({ length: 64 }, (_, i) => (62 + 7 * i) % 256);
    const name = "meta/probe/0011223344556677/raced";
    const { kind, lines, damage } = await look(sourceOf(bytes, name));
    assert.equal(kind, "probe");
    assert.equal(damage, null);
    assert.equal(lines.length, 1);
    assert.match(
      lines[0]!,
      /^probe {5}@0 run=0011223344556677 name=raced writer=2 body=3e454c535a61686f.{112}$/,
    );
    const cut = await look(sourceOf(bytes.subarray(1), `./store/${name}`));
    assert.deepEqual([cut.kind, cut.damage], ["probe", "not what a probe writes"]);
  });

  test("a sparse index, told by its name", async () => {
    const bytes = fromHex(
      "0000 00000001 0000000000000001 00000001 0000000000000032 0000000000000064 0000000000000058",
    );
    const name = "store/52674dec/_kafka_X/node-1";
    assert.deepEqual(
      await look(sourceOf(bytes, name)).then(({ kind, lines, damage }) => ({
        kind,
        lines,
        damage,
      })),
      {
        kind: "sparse",
        lines: ["stream    stream=1 ranges=1", "range     stream=1 start=50 end=100 object=88"],
        damage: null,
      },
    );
    bytes[1] = 9;
    assert.equal((await look(sourceOf(bytes, name))).damage, "Sparse index of version 9");
  });
});

describe("damage", () => {
  test("a data object is told up to the damage", async () => {
    const whole = fromHex(DATA);
    const at = async (place: number, value: number) => {
      const bytes = whole.slice();
      bytes[place] = value;
      return await look(sourceOf(bytes, "00000000/_kafka_X/0"));
    };
    const record = await at(45, 0x23);
    assert.deepEqual(record.items.map(({ part }) => part), ["block", "record", "index", "footer"]);
    assert.match(record.damage!, /^block at 0: .*invalid magic 35/);
    const index = await at(79 + 19, 9);
    assert.match(index.damage!, /index entry 0 says 2 records up to 19/);
    const entry = await at(79 + 16, 0xff);
    assert.match(entry.damage!, /Index entry 0 is not valid/);
    const footer = await at(162, 0);
    assert.equal(footer.kind, "data", "its name tells what it is");
    assert.deepEqual(footer.items.slice(0, 3).map(({ part }) => part), [
      "block",
      "record",
      "record",
    ]);
    assert.match(footer.damage!, /Wrong footer magic/);
  });

  test("a WAL object is told up to the damaged record", async () => {
    const bytes = fromHex(WAL);
    bytes[bytes.length - 1] = 0;
    const { items, damage } = await look(sourceOf(bytes));
    assert.equal(items.length, 2);
    assert.equal(damage, "WAL record at 110 fails its CRC");
  });

  test("a WAL object under another's name", async () => {
    const name = "8F14E45FCEEA167A5A36DEDD4BEA2543/_kafka_C/7/1700000000000/wal/67108864-134217728";
    const { damage } = await look(sourceOf(fromHex(WAL), `/some/where/${name}`));
    assert.equal(damage, "WAL object starts at 0, not in slot 1");
  });

  test("what is none of ours has no kind", async () => {
    for (const bytes of [toUtf8("hello"), new Uint8Array(0), new Uint8Array(500)]) {
      assert.equal((await look(sourceOf(bytes))).kind, null);
    }
  });

  test("any bytes under any name of ours give an answer", async () => {
    const names = [
      "x/wal/0-67108864",
      "a/log/00000000000000000001",
      "a/snap/00000000000000000001",
      "meta/cluster",
      "00000000/_kafka_X/0",
      "52674dec/_kafka_X/node-1",
    ];
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.tuple(fc.constantFrom(DATA, WAL, COMPOSITE), fc.nat(400), fc.nat(255)).map(
        ([hex, at, value]) => {
          const copy = fromHex(hex);
          copy[at % copy.length] = value;
          return copy;
        },
      ),
    );
    await fc.assert(
      fc.asyncProperty(bytes, fc.constantFrom(...names), async (content, name) => {
        const { kind } = await look(sourceOf(content, name));
        assert.notEqual(kind, null);
      }),
      { numRuns: 400 },
    );
  });
});

describe("a node's store", () => {
  let content: Content;
  before(async () => {
    content = await contentOf((await killedTwice()).bucket);
    await addSnapshot(content);
  });

  test("every object of it decodes without damage, to lines and to JSON", async () => {
    const store = await storeOf(content);
    const kinds = new Set<string | null>();
    for await (const info of store.list("")) {
      const { kind, damage, items } = await look(storeSource(store, info));
      assert.equal(damage, null, info.key);
      assert.ok(items.length > 0);
      for (const one of items) assert.doesNotThrow(() => JSON.parse(itemJson(one)));
      kinds.add(kind);
    }
    assert.deepEqual([...kinds].toSorted(), ["cluster", "data", "entry", "snapshot", "wal"]);
  });

  test("batches, meta records and metadata are told in words", async () => {
    const all: string[] = [];
    const store = await storeOf(content);
    for await (const info of store.list("")) {
      all.push(...(await look(storeSource(store, info))).lines);
    }
    const text = all.join("\n");
    assert.match(
      text,
      /batch\.offsets=0\.\.1 batch\.records=2 .*batch\.codec=none .*batch\.crc=ok/,
    );
    assert.match(text, /batch\.codec=gzip/);
    assert.match(text, /meta\.key=LOG meta\.value\.streamMap\.log=\d+/);
    assert.match(text, /^seal .*recovery=\d+/m);
    assert.match(text, /^record {4}type=topic-created topicId=\w+ name=t/m);
    assert.match(text, /^topics {4}topicId=\w+ name=t partitions=2/m);
    assert.match(
      text,
      new RegExp(`^cluster {3}@0 clusterId=${clusterOf(content)} formatVersion=1`, "m"),
    );
  });

  test("secrets in the metadata are not shown, in an entry or in a snapshot", async () => {
    const texts = new Map([["webhook/t", "se-cret"], ["push-keys", "se-cret"], ["other", "shown"]]);
    const [entryKey, entryBytes] = [...content].find(([name]) => name.includes("/log/"))!;
    const puts = Array.from(texts, ([key, value]) => encodeRecord({ type: "kv-put", key, value }));
    const entry = encodeEntry(decodeEntry(entryBytes), puts);
    const [snapshotKey, snapshotBytes] = [...content].find(([name]) => /snap/.test(name))!;
    const at = position(getInt64(viewOf(snapshotBytes), 7));
    const snapshot = decodeSnapshot(snapshotBytes, at, codecs);
    for (const [key, value] of texts) snapshot.state.kv.set(key, { version: 1, value });
    const written = encodeSnapshot(snapshot, codecs);
    for (const [key, bytes] of [[entryKey, entry], [snapshotKey, written]] as const) {
      const { lines, damage } = await look(sourceOf(bytes, key));
      assert.equal(damage, null);
      const text = lines.join("\n");
      assert.doesNotMatch(text, /se-cret/);
      assert.match(text, /key=webhook\/t value="?\(secret\)/);
      assert.match(text, /key=other value.*=shown/);
    }
  });

  test("a damaged metadata entry is told all the same", async () => {
    const [key, bytes] = [...content].find(([name]) => name.includes("/log/"))!;
    const broken = bytes.slice();
    const text = new TextDecoder("latin1").decode(bytes);
    broken[text.indexOf('"incarnation":"') + 20]! ^= 1;
    const { damage, lines } = await look(sourceOf(broken, key));
    assert.match(damage!, /bad CRC/);
    assert.deepEqual(lines.map((line) => line.split(" ")[0]), ["entry", "record"]);
    const noJson = bytes.slice();
    noJson[text.indexOf("[{")] = 0;
    const head = await look(sourceOf(noJson, key));
    assert.match(head.damage!, /bad CRC/);
    assert.match(head.lines[0]!, /^entry {5}@0 position=1/);
    const cut = await look(sourceOf(bytes.subarray(0, 30), key));
    assert.match(cut.damage!, /bad CRC/);
    assert.equal((await look(sourceOf(toUtf8("{}"), CLUSTER_KEY))).lines.length, 0);
  });
});

test("the sequential reader gives the bytes in any steps, and their CRC", async () => {
  const bytes = Uint8Array.from({ length: 3_000 }, (_, i) => i & 255);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 700 }), { maxLength: 8 }),
      async (steps) => {
        const reader = new SequentialReader(sourceOf(bytes));
        let at = 0;
        for (const step of steps) {
          if (at + step > bytes.length) break;
          assert.deepEqual(await reader.take(step), bytes.slice(at, at + step));
          at += step;
        }
        await reader.skipTo(bytes.length);
        assert.equal(reader.position, bytes.length);
      },
    ),
    { numRuns: 40 },
  );
});
