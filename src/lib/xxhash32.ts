/** xxHash32, the checksum of LZ4 frames (xxHash specification, section "XXH32"). */
import { viewOf } from "./bytes.ts";

const PRIME_1 = 0x9e3779b1;
const PRIME_2 = 0x85ebca77;
const PRIME_3 = 0xc2b2ae3d;
const PRIME_4 = 0x27d4eb2f;
const PRIME_5 = 0x165667b1;

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function round(lane: number, word: number): number {
  return Math.imul(rotate((lane + Math.imul(word, PRIME_2)) | 0, 13), PRIME_1);
}

/** Four lanes over whole stripes of 16 bytes; returns their merged state. */
function mergeStripes(view: DataView, end: number, seed: number): number {
  let a = (seed + PRIME_1 + PRIME_2) | 0;
  let b = (seed + PRIME_2) | 0;
  let c = seed | 0;
  let d = (seed - PRIME_1) | 0;
  for (let at = 0; at < end; at += 16) {
    a = round(a, view.getInt32(at, true));
    b = round(b, view.getInt32(at + 4, true));
    c = round(c, view.getInt32(at + 8, true));
    d = round(d, view.getInt32(at + 12, true));
  }
  return (rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)) | 0;
}

function avalanche(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 15), PRIME_2);
  mixed = Math.imul(mixed ^ (mixed >>> 13), PRIME_3);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

export function xxhash32(bytes: Uint8Array, seed = 0): number {
  const view = viewOf(bytes);
  const stripesEnd = bytes.length & ~15;
  let hash = stripesEnd > 0 ? mergeStripes(view, stripesEnd, seed) : (seed + PRIME_5) | 0;
  hash = (hash + bytes.length) | 0;
  let at = stripesEnd;
  for (; at + 4 <= bytes.length; at += 4) {
    const word = Math.imul(view.getInt32(at, true), PRIME_3);
    hash = Math.imul(rotate((hash + word) | 0, 17), PRIME_4);
  }
  for (; at < bytes.length; at++) {
    hash = Math.imul(rotate((hash + Math.imul(bytes[at]!, PRIME_5)) | 0, 11), PRIME_1);
  }
  return avalanche(hash);
}
