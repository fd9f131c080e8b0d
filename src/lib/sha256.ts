/** SHA-256 (FIPS 180-4), synchronous: what is decided within one step cannot wait for the platform's digest. */
import { viewOf } from "./bytes.ts";

const BLOCK_BYTES = 64;
const LENGTH_BYTES = 8;
const ROUNDS = 64;

/** The first 32 bits of the fractional parts of roots of the first primes. */
function rootsOfPrimes(count: number, root: (prime: number) => number): Int32Array {
  const words = new Int32Array(count);
  for (let prime = 2, found = 0; found < count; prime++) {
    let isPrime = true;
    for (let by = 2; by * by <= prime; by++) isPrime &&= prime % by !== 0;
    if (isPrime) words[found++] = ((root(prime) % 1) * 2 ** 32) | 0;
  }
  return words;
}

const CONSTANTS = rootsOfPrimes(ROUNDS, Math.cbrt);
const INITIAL = rootsOfPrimes(8, Math.sqrt);

function rotate(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}

function padded(bytes: Uint8Array): DataView {
  const blocks = Math.ceil((bytes.length + 1 + LENGTH_BYTES) / BLOCK_BYTES);
  const message = new Uint8Array(blocks * BLOCK_BYTES);
  message.set(bytes);
  message[bytes.length] = 0x80;
  const view = viewOf(message);
  view.setUint32(message.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(message.length - 4, (bytes.length * 8) >>> 0);
  return view;
}

/** The message schedule of one block. Each sum is cut to 32 bits, else engines count in doubles. */
function expand(words: Int32Array, view: DataView, at: number): void {
  for (let i = 0; i < 16; i++) words[i] = view.getInt32(at + 4 * i);
  for (let i = 16; i < ROUNDS; i++) {
    const a = words[i - 15]!;
    const b = words[i - 2]!;
    const s0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3);
    const s1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10);
    const sum = (words[i - 16]! + s0) | 0;
    words[i] = (((sum + words[i - 7]!) | 0) + s1) | 0;
  }
}

function addBlock(state: Int32Array, words: Int32Array): void {
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  let e = state[4]!;
  let f = state[5]!;
  let g = state[6]!;
  let h = state[7]!;
  for (let i = 0; i < ROUNDS; i++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const given = (CONSTANTS[i]! + words[i]!) | 0;
    const first = (((((h + s1) | 0) + ((e & f) ^ (~e & g))) | 0) + given) | 0;
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const second = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + second) | 0;
  }
  state[0] = state[0]! + a;
  state[1] = state[1]! + b;
  state[2] = state[2]! + c;
  state[3] = state[3]! + d;
  state[4] = state[4]! + e;
  state[5] = state[5]! + f;
  state[6] = state[6]! + g;
  state[7] = state[7]! + h;
}

export function sha256(bytes: Uint8Array): Uint8Array {
  const view = padded(bytes);
  const state = INITIAL.slice();
  const words = new Int32Array(ROUNDS);
  for (let at = 0; at < view.byteLength; at += BLOCK_BYTES) {
    expand(words, view, at);
    addBlock(state, words);
  }
  const digest = new Uint8Array(32);
  const out = viewOf(digest);
  for (const [i, word] of state.entries()) out.setInt32(4 * i, word);
  return digest;
}
