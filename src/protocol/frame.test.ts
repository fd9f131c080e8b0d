/** Frames across chunk borders, bad lengths, memory. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { concatBytes, DecodeError, equalBytes, fromHex } from "../lib/bytes.ts";
import { FrameDecoder } from "./frame.ts";

const THREE = fromHex("00000003 010203  00000000  00000001 ff");
const FRAMES = [fromHex("010203"), new Uint8Array(0), fromHex("ff")];

test("frames come out whole, wherever the stream is split", () => {
  for (let first = 0; first <= THREE.length; first++) {
    for (let second = first; second <= THREE.length; second++) {
      const decoder = new FrameDecoder(100);
      const parts = [
        THREE.subarray(0, first),
        THREE.subarray(first, second),
        THREE.subarray(second),
      ];
      assert.deepEqual(parts.flatMap((part) => decoder.push(part)), FRAMES);
      assert.equal(decoder.pendingBytes, 0);
    }
  }
});

test("byte by byte, a frame comes with its last byte", () => {
  const decoder = new FrameDecoder(100);
  const counts = Array.from(THREE, (byte) => decoder.push(Uint8Array.of(byte)).length);
  assert.deepEqual(counts, [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1]);
});

test("a frame inside one chunk is a view of it", () => {
  const decoder = new FrameDecoder(100);
  const [frame] = decoder.push(THREE);
  assert.equal(frame?.buffer, THREE.buffer);
});

test("a gathered frame does not share the chunks' memory", () => {
  const decoder = new FrameDecoder(100);
  const head = fromHex("00000002 aa");
  decoder.push(head);
  head.fill(0);
  assert.deepEqual(decoder.push(fromHex("bb")), [fromHex("aabb")]);
});

test("negative and oversize lengths are refused", () => {
  for (const hex of ["ffffffff", "80000000", "00000065"]) {
    assert.throws(() => new FrameDecoder(100).push(fromHex(hex)), DecodeError);
  }
  assert.deepEqual(new FrameDecoder(100).push(fromHex("00000064")), []);
});

test("what is held follows what came, not what was promised", () => {
  const decoder = new FrameDecoder(2 ** 30);
  decoder.push(fromHex("40000000 0102"));
  assert.equal(decoder.pendingBytes, 6);
});

test("large frames in many chunks", () => {
  const body = new Uint8Array(9 * 1024 * 1024).map((_, i) => i % 251);
  const stream = concatBytes([fromHex("00900000"), body, fromHex("00000000")]);
  const decoder = new FrameDecoder(body.length);
  const frames: Uint8Array[] = [];
  for (let at = 0; at < stream.length; at += 65_536) {
    frames.push(...decoder.push(stream.slice(at, at + 65_536)));
  }
  assert.equal(frames.length, 2);
  assert.ok(frames[0] !== undefined && equalBytes(frames[0], body));
});

test("any frames, any chunks", () => {
  const frames = fc.array(fc.uint8Array({ maxLength: 30 }), { maxLength: 6 });
  const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 40 });
  fc.assert(fc.property(frames, sizes, (bodies, cuts) => {
    const stream = concatBytes(
      bodies.flatMap((body) => [Uint8Array.of(0, 0, 0, body.length), body]),
    );
    const decoder = new FrameDecoder(30);
    const out: Uint8Array[] = [];
    for (let at = 0, turn = 0; at < stream.length; turn++) {
      const size = cuts[turn % cuts.length] ?? 1;
      out.push(...decoder.push(stream.slice(at, at + size)));
      at += size;
    }
    assert.deepEqual(out, bodies);
  }));
});
