/** Which partition a key belongs to: Kafka's default, murmur2 over the key, as Java clients compute it. */
import { viewOf } from "../lib/bytes.ts";

const SEED = 0x9747b28c;
const M = 0x5bd1e995;
const R = 24;

/** 32-bit MurmurHash2 with Kafka's seed, as a signed number. */
export function murmur2(key: Uint8Array): number {
  const view = viewOf(key);
  const whole = key.length & ~3;
  let h = (SEED ^ key.length) | 0;
  for (let at = 0; at < whole; at += 4) {
    let k = Math.imul(view.getInt32(at, true), M);
    k = Math.imul(k ^ (k >>> R), M);
    h = Math.imul(h, M) ^ k;
  }
  for (let i = key.length - 1; i >= whole; i--) h ^= key[i]! << (8 * (i - whole));
  if (whole < key.length) h = Math.imul(h, M);
  h = Math.imul(h ^ (h >>> 13), M);
  return h ^ (h >>> 15);
}

export function partitionOfKey(key: Uint8Array, partitions: number): number {
  return (murmur2(key) & 0x7fffffff) % partitions;
}
