/** Randomness as an argument, so that a seed replays a run. */

export interface Random {
  /** A uniform number in [0, 1). */
  float(): number;
  bytes(count: number): Uint8Array;
  /** An independent generator: draws from it do not move this one. */
  derive(name: string): Random;
}

/** A uniform integer in [0, below). */
export function randomInt(random: Random, below: number): number {
  return Math.floor(random.float() * below);
}

/** A version 4 UUID as 16 bytes. */
export function randomUuid(random: Random): Uint8Array {
  const bytes = random.bytes(16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes;
}

function hashName(name: string, seed: number): number {
  let hash = seed ^ 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** A small seeded generator (mulberry32) for simulation and tests; not for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  return {
    float: () => next() / 2 ** 32,
    bytes: (count) => Uint8Array.from({ length: count }, () => next() & 0xff),
    derive: (name) => seededRandom(hashName(name, seed)),
  };
}
