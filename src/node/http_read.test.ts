import assert from "node:assert/strict";
import { test } from "node:test";
import { createBrokerWorld } from "../../tests/support/broker_world.ts";
import { createPermits } from "../broker/routes.ts";
import { toUtf8, viewOf } from "../lib/bytes.ts";
import { crc32c } from "../lib/crc32c.ts";
import { HTTP_READ_BYTES_MAX } from "../lib/limits.ts";
import { buildBatch } from "../protocol/record_batch.ts";
import type { NewRecord } from "../protocol/record_writer.ts";
import { readFrom } from "./http_read.ts";

function record(value: Uint8Array): NewRecord {
  return { key: null, value, headers: [], timestampMs: 1 };
}

async function rig() {
  const { env, log: logOf, createTopic } = await createBrokerWorld({ routes: () => [] });
  await createTopic("t");
  const log = await logOf("t");
  const batch = (codec: "gzip" | null, ...values: Uint8Array[]) =>
    buildBatch({ records: values.map(record), codec, codecs: env.codecs });
  return {
    batch,
    /** Right from the outside, no records on the inside. */
    unsound() {
      const bytes = batch(null, toUtf8("abcdef"), toUtf8("ghijkl"));
      bytes.fill(0xff, 61);
      viewOf(bytes).setUint32(17, crc32c(bytes.subarray(21)));
      return bytes;
    },
    append: (bytes: Uint8Array) => assert.ok(log.append(bytes).ok),
    read: (offset: number, recordsMax = 100) =>
      readFrom(() => Promise.resolve({ ok: true, log }), {
        offset,
        recordsMax,
        bytesMax: HTTP_READ_BYTES_MAX,
        waitMs: 0,
        signal: new AbortController().signal,
      }, { env, permits: createPermits() }),
  };
}

test("a batch that holds no records is named, and hides neither those before nor behind it", async () => {
  const { append, batch, unsound, read } = await rig();
  append(batch(null, toUtf8("a"), toUtf8("b")));
  append(unsound());
  append(batch(null, toUtf8("c")));
  const before = await read(0);
  assert.ok(before.ok);
  assert.deepEqual([before.records.length, before.next], [2, 2]);
  const at = await read(before.next);
  assert.ok(!at.ok);
  assert.deepEqual([at.error, at.next], ["INVALID_RECORD", 4]);
  const behind = await read(4);
  assert.ok(behind.ok);
  assert.deepEqual([behind.records.length, behind.next], [1, 5]);
});

test("records that inflate to much more than was asked for are read in several turns", async () => {
  const { append, batch, read } = await rig();
  const large = new Uint8Array(HTTP_READ_BYTES_MAX / 2);
  append(batch("gzip", large, large, large));
  const seen: number[] = [];
  for (let offset = 0; offset < 3;) {
    const page = await read(offset);
    assert.ok(page.ok);
    assert.ok(page.records.length === 1, `${page.records.length} records`);
    seen.push(page.records[0]!.offset);
    offset = page.next;
  }
  assert.deepEqual(seen, [0, 1, 2]);
});
