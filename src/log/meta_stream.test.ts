import assert from "node:assert/strict";
import { test } from "node:test";
import { streamEpoch } from "../lib/brand.ts";
import { fromHex, toUtf8, utf8 } from "../lib/bytes.ts";
import { META_COMPACT_BYTES_MIN } from "../lib/limits.ts";
import { createMemoryStreams } from "../../tests/support/memory_streams.ts";
import { decodeMetaKeyValue, encodeMetaKeyValue } from "./meta_codec.ts";
import { MetaStream } from "./meta_stream.ts";

const EPOCH = streamEpoch(1);

async function opened() {
  const streams = createMemoryStreams();
  const stream = await streams.create(EPOCH);
  const meta = new MetaStream(stream);
  await meta.load();
  const reload = async () => {
    streams.crash();
    const again = new MetaStream(await streams.open(stream.streamId, EPOCH));
    await again.load();
    return again;
  };
  return { streams, stream, meta, reload };
}

test("a meta record has AutoMQ's bytes", () => {
  const bytes = encodeMetaKeyValue("LOG", toUtf8("{}"));
  assert.deepEqual(bytes, fromHex("00 00000003 4c4f47 7b7d"));
  assert.deepEqual(decodeMetaKeyValue(bytes), { key: "LOG", value: toUtf8("{}") });
});

test("the last value of a key wins after a restart", async () => {
  const { meta, reload } = await opened();
  await meta.put("LOG", toUtf8("a"));
  await meta.put("PARTITION", toUtf8("p"));
  await meta.put("LOG", toUtf8("b"));
  const again = await reload();
  assert.equal(utf8(again.get("LOG")!), "b");
  assert.equal(utf8(again.get("PARTITION")!), "p");
});

test("an unchanged value costs no write", async () => {
  const { streams, meta } = await opened();
  await meta.put("LOG", toUtf8("a"));
  await meta.put("LOG", toUtf8("a"));
  assert.equal(streams.appends, 1);
});

test("a hollow stream is rewritten and trimmed, and says the same", async () => {
  const { stream, meta, reload } = await opened();
  await meta.put("PARTITION", toUtf8("p"));
  const big = new Uint8Array(META_COMPACT_BYTES_MIN);
  for (let i = 0; i < 4; i++) await meta.put("LOG", big.fill(i).slice());
  await meta.compactIfHollow();
  assert.equal(stream.startOffset, 4);
  await meta.compactIfHollow();
  assert.equal(stream.nextOffset, 6);
  const again = await reload();
  assert.equal(again.get("LOG")![0], 3);
  assert.equal(utf8(again.get("PARTITION")!), "p");
});

test("a small stream is left alone", async () => {
  const { stream, meta } = await opened();
  for (let i = 0; i < 50; i++) await meta.put("LOG", Uint8Array.of(i));
  await meta.compactIfHollow();
  assert.equal(stream.startOffset, 0);
});

test("the trim spares a value that was put during the rewrite and is lost", async () => {
  const { streams, meta, reload } = await opened();
  const big = new Uint8Array(META_COMPACT_BYTES_MIN);
  await meta.put("PARTITION", toUtf8("old"));
  for (let i = 0; i < 4; i++) await meta.put("LOG", big.fill(i).slice());
  streams.durability = "manual";
  const compacting = meta.compactIfHollow();
  const put = meta.put("LOG", toUtf8("lost"));
  streams.confirm(1);
  await compacting;
  const again = reload();
  await assert.rejects(put, /crashed/);
  assert.equal((await again).get("LOG")![0], 3);
  assert.equal(utf8((await again).get("PARTITION")!), "old");
});

test("nothing is trimmed before the rewritten values are durable", async () => {
  const { streams, stream, meta } = await opened();
  await meta.put("PARTITION", toUtf8("p"));
  const big = new Uint8Array(META_COMPACT_BYTES_MIN);
  for (let i = 0; i < 4; i++) await meta.put("LOG", big.fill(i).slice());
  streams.durability = "manual";
  const compacting = meta.compactIfHollow();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(stream.startOffset, 0);
  streams.confirm();
  await compacting;
  assert.equal(stream.startOffset, 4);
});
