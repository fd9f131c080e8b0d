import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeEpoch, nodeId, streamEpoch, streamId } from "../../lib/brand.ts";
import {
  PAYLOAD_BYTES_MAX,
  SLOT_BYTES,
  WAL_KEPT_SLABS_MAX,
  WAL_SLAB_BYTES_MAX,
} from "../../lib/limits.ts";
import type { StreamRecord } from "../stream_record.ts";
import { Bulk } from "./bulk.ts";
import { WalMemory } from "./wal_memory.ts";
import { readWalObject } from "./wal_object.ts";

const OWNER = { nodeId: nodeId(1), epoch: nodeEpoch(5) };

function record(baseOffset: number, bytes: number): StreamRecord {
  const payload = new Uint8Array(bytes).fill(baseOffset + 1);
  return { streamId: streamId(1), epoch: streamEpoch(1), baseOffset, count: 1, payload };
}

test("a stored record views the bulk, and keeps its bytes when the bulk moves", () => {
  const bulk = new Bulk(OWNER, 0, new WalMemory());
  const first = bulk.append(record(0, 100));
  const rest = [1, 2, 3, 4].map((offset) => bulk.append(record(offset, 60_000)));
  const { body } = bulk.finish(-1);
  assert.equal(rest.at(-1)!.payload.buffer, body.buffer);
  assert.notEqual(first.payload.buffer, body.buffer);
  const read = readWalObject(body, OWNER, 0);
  assert.deepEqual(read.kind === "data" && read.records, [first, ...rest]);
});

test("small bulks share memory and do not touch each other", () => {
  const memory = new WalMemory();
  const bodies = [0, 1, 2].map((slot) => {
    const bulk = new Bulk(OWNER, slot, memory);
    bulk.append(record(slot, 1_000));
    return bulk.finish(-1).body;
  });
  assert.equal(new Set(bodies.map(({ buffer }) => buffer)).size, 1);
  for (const [slot, body] of bodies.entries()) {
    const read = readWalObject(body, OWNER, slot);
    assert.deepEqual(read.kind === "data" && read.records, [record(slot, 1_000)]);
  }
});

test("shared memory grows with demand up to its bound", () => {
  const memory = new WalMemory();
  const sizes = new Set<number>();
  for (let slot = 0; slot < 40; slot++) {
    const bulk = new Bulk(OWNER, slot, memory);
    for (let offset = 0; offset < 8; offset++) bulk.append(record(offset, 100_000));
    sizes.add(bulk.finish(-1).body.buffer.byteLength);
  }
  assert.ok(Math.max(...sizes) <= WAL_SLAB_BYTES_MAX);
  assert.ok(Math.min(...sizes) >= 800_000);
});

/** Fills bulks of a slab's size, one per slot; answers the memory of each. */
function slabs(memory: WalMemory, from: number, count: number): ArrayBufferLike[] {
  return Array.from({ length: count }, (_, i) => {
    const bulk = new Bulk(OWNER, from + i, memory);
    bulk.append(record(from + i, WAL_SLAB_BYTES_MAX - 1_000));
    return bulk.finish(-1).body.buffer;
  });
}

test("memory of forgotten slots is used again, but for what is viewed and what is current", () => {
  const memory = new WalMemory();
  const first = slabs(memory, 0, 4);
  assert.equal(new Set(first).size, 4);
  memory.forget(2, (buffer) => buffer === first[0]);
  const second = slabs(memory, 4, 2);
  assert.equal(second[0], first[1], "slot 1 is forgotten and not viewed");
  assert.ok(!first.includes(second[1]!), "slot 0 was viewed, the others are needed");
  memory.forget(100, () => false);
  assert.ok(second[1]!.byteLength > 0, "the current slab stays");
  assert.equal(first[0]!.byteLength, WAL_SLAB_BYTES_MAX, "what was viewed is never touched again");
});

test("only so much forgotten memory is kept", () => {
  const memory = new WalMemory();
  const first = slabs(memory, 0, WAL_KEPT_SLABS_MAX + 3);
  memory.forget(WAL_KEPT_SLABS_MAX + 2, () => false);
  const kept = first.filter((buffer) => buffer.byteLength > 0);
  assert.equal(kept.length, WAL_KEPT_SLABS_MAX + 1, "the kept ones and the current one");
});

test("the largest record fits a slot exactly", () => {
  const bulk = new Bulk(OWNER, 3, new WalMemory());
  const payload = new Uint8Array(PAYLOAD_BYTES_MAX);
  bulk.append({ ...record(0, 0), payload });
  assert.equal(bulk.bodyBytes, SLOT_BYTES);
  assert.equal(bulk.finish(-1).body.length, SLOT_BYTES + 48);
  assert.throws(() => bulk.append(record(1, 0)), /slot overflows/);
});

test("an empty bulk is not an object", () => {
  assert.throws(() => new Bulk(OWNER, 0, new WalMemory()).finish(-1), /would be a seal/);
});
