/**
 * LZ4 block format: sequences of (token, literals, match offset, match length).
 * The decoder writes behind what `out` already holds, so that linked blocks find their history there.
 */
import { viewOf } from "./bytes.ts";
import { corrupt } from "./corrupt.ts";

const MATCH_MIN = 4;
/** A block ends with at least this many literals, and no match starts in its last twelve bytes. */
const LAST_LITERALS = 5;
const MATCH_START_LIMIT = 12;
const OFFSET_MAX = 0xffff;
const HASH_BITS = 13;
/** After 2^n misses in a row the search starts to skip bytes: incompressible input stays cheap. */
const SKIP_SHIFT = 6;

/** Largest output of `length` stored bytes: each byte of a length run stands for 255. */
export function lz4OutputMax(length: number): number {
  return length * 255;
}

/** Copies a match that may overlap its own output (offset shorter than length repeats it). */
function copyMatch(out: Uint8Array, at: number, offset: number, length: number): void {
  if (offset >= length) {
    out.copyWithin(at, at - offset, at - offset + length);
  } else if (offset === 1) {
    out.fill(out[at - 1]!, at, at + length);
  } else {
    for (let i = at; i < at + length; i++) out[i] = out[i - offset]!;
  }
}

/**
 * Decodes one block to `out` from `start`, never past `out`'s end, and returns the end of the output.
 * Matches may reach back to `historyStart`. Throws FaultError("corrupt").
 */
export function decodeLz4Block(
  block: Uint8Array,
  out: Uint8Array,
  start: number,
  historyStart: number,
): number {
  let at = 0;
  let end = start;

  function extend(nibble: number): number {
    let length = nibble;
    if (nibble < 15) return length;
    for (;;) {
      const more = block[at++];
      if (more === undefined) throw corrupt("Cannot decode LZ4 block: length is cut off");
      length += more;
      if (more < 255) return length;
    }
  }

  while (at < block.length) {
    const token = block[at++]!;
    const literals = extend(token >> 4);
    if (literals > block.length - at || literals > out.length - end) {
      throw corrupt("Cannot decode LZ4 block: literals pass the end");
    }
    out.set(block.subarray(at, at + literals), end);
    at += literals;
    end += literals;
    if (at === block.length) return end;
    if (block.length - at < 2) throw corrupt("Cannot decode LZ4 block: match offset is cut off");
    const offset = block[at]! | (block[at + 1]! << 8);
    at += 2;
    const length = extend(token & 15) + MATCH_MIN;
    if (offset === 0 || offset > end - historyStart) {
      throw corrupt("Cannot decode LZ4 block: match lies before the output");
    }
    if (length > out.length - end) throw corrupt("Cannot decode LZ4 block: match passes the end");
    copyMatch(out, end, offset, length);
    end += length;
  }
  throw corrupt("Cannot decode LZ4 block: no last literals");
}

/** Bytes that `encodeLz4Block` may need in the worst case. */
export function lz4BlockBytesMax(length: number): number {
  return length + Math.ceil(length / 255) + 16;
}

function writeLength(out: Uint8Array, at: number, rest: number): number {
  let next = at;
  let left = rest;
  for (; left >= 255; left -= 255) out[next++] = 255;
  out[next++] = left;
  return next;
}

function writeLiterals(out: Uint8Array, at: number, literals: Uint8Array, match: number): number {
  const count = literals.length;
  out[at] = (Math.min(count, 15) << 4) | Math.min(match, 15);
  const next = count < 15 ? at + 1 : writeLength(out, at + 1, count - 15);
  out.set(literals, next);
  return next + count;
}

function hashOf(word: number): number {
  return Math.imul(word, 0x9e3779b1) >>> (32 - HASH_BITS);
}

/** Greedy one-pass encoder; `out` holds lz4BlockBytesMax(input) bytes. Returns the bytes written. */
export function encodeLz4Block(input: Uint8Array, out: Uint8Array): number {
  const view = viewOf(input);
  const seen = new Int32Array(1 << HASH_BITS).fill(-1);
  const startLimit = input.length - MATCH_START_LIMIT;
  const matchEnd = input.length - LAST_LITERALS;
  let anchor = 0;
  let written = 0;
  let misses = 0;
  for (let at = 0; at < startLimit;) {
    const word = view.getInt32(at, true);
    const slot = hashOf(word);
    const candidate = seen[slot]!;
    seen[slot] = at;
    if (candidate < 0 || at - candidate > OFFSET_MAX || view.getInt32(candidate, true) !== word) {
      at += 1 + (misses++ >> SKIP_SHIFT);
      continue;
    }
    misses = 0;
    let length = MATCH_MIN;
    while (at + length < matchEnd && input[candidate + length] === input[at + length]) length++;
    const extra = length - MATCH_MIN;
    written = writeLiterals(out, written, input.subarray(anchor, at), extra);
    out[written++] = (at - candidate) & 255;
    out[written++] = (at - candidate) >> 8;
    if (extra >= 15) written = writeLength(out, written, extra - 15);
    at += length;
    anchor = at;
  }
  return writeLiterals(out, written, input.subarray(anchor), 0);
}
