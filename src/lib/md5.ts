/**
 * MD5 (RFC 1321), for AutoMQ's key prefix of a node and for the Content-MD5 header that
 * S3 servers want on a batch delete. Never for anything that has to resist an attacker.
 */
import { viewOf } from "./bytes.ts";

const BLOCK_BYTES = 64;
const ROUND_SHIFTS = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]] as const;

const SINES = Int32Array.from(
  { length: BLOCK_BYTES },
  (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32) | 0,
);
const SHIFTS = Uint8Array.from({ length: BLOCK_BYTES }, (_, i) => ROUND_SHIFTS[i >> 4]![i & 3]!);
/** Which word of the block a step reads. */
const WORDS = Uint8Array.from(
  { length: BLOCK_BYTES },
  (_, i) => [i, 5 * i + 1, 3 * i + 5, 7 * i][i >> 4]! & 15,
);

/** The message, a 1 bit, zeros up to the last eight bytes of a block, the length in bits. */
function padMessage(bytes: Uint8Array): DataView {
  const length = (Math.floor((bytes.length + 8) / BLOCK_BYTES) + 1) * BLOCK_BYTES;
  const padded = new Uint8Array(length);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = viewOf(padded);
  view.setUint32(length - 8, (bytes.length << 3) >>> 0, true);
  view.setUint32(length - 4, Math.floor(bytes.length / 2 ** 29), true);
  return view;
}

function mix(round: number, b: number, c: number, d: number): number {
  if (round === 0) return (b & c) | (~b & d);
  if (round === 1) return (d & b) | (~d & c);
  if (round === 2) return b ^ c ^ d;
  return c ^ (b | ~d);
}

function addBlock(state: Int32Array, view: DataView, at: number): void {
  let [a, b, c, d] = [state[0]!, state[1]!, state[2]!, state[3]!];
  for (let i = 0; i < BLOCK_BYTES; i++) {
    const word = view.getInt32(at + 4 * WORDS[i]!, true);
    const sum = (a + mix(i >> 4, b, c, d) + SINES[i]! + word) | 0;
    const shift = SHIFTS[i]!;
    a = d;
    d = c;
    c = b;
    b = (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0;
  }
  state[0] = state[0]! + a;
  state[1] = state[1]! + b;
  state[2] = state[2]! + c;
  state[3] = state[3]! + d;
}

export function md5(bytes: Uint8Array): Uint8Array {
  const view = padMessage(bytes);
  const state = Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
  for (let at = 0; at < view.byteLength; at += BLOCK_BYTES) addBlock(state, view, at);
  const digest = new Uint8Array(16);
  const out = viewOf(digest);
  for (const [i, word] of state.entries()) out.setInt32(4 * i, word, true);
  return digest;
}
