/**
 * Which neighbours to put together. The rule bounds the work: an object is only rewritten together with
 * others that are as large as it in sum, so that each byte is rewritten a logarithmic number of times,
 * and only when there are enough of them, so that a stream with little data costs nothing.
 */

export interface WindowLimits {
  /** Objects from which on a window is worth a rewrite. */
  readonly countMin: number;
  /** Bytes from which on it is, with two objects or more. */
  readonly bytesEnough: number;
  /** How many times as large as its largest object a window is at least: two when absent. */
  readonly growth?: number;
  readonly countMax: number;
  readonly bytesMax: number;
}

/** Half-open, of a list of sizes. */
export interface Window {
  readonly from: number;
  readonly to: number;
}

interface Sized {
  readonly size: number;
  /** Counts for more than one object. */
  readonly weight?: number;
}

/** The longest window that ends at `to`. */
function windowBefore(items: readonly Sized[], to: number, limits: WindowLimits): Window | null {
  const { countMin, bytesEnough, growth = 2, countMax, bytesMax } = limits;
  let [bytes, largest, weight] = [0, 0, 0];
  let best: Window | null = null;
  for (let from = to - 1; from >= 0; from--) {
    const { size, weight: own = 1 } = items[from]!;
    bytes += size;
    largest = Math.max(largest, size);
    weight += own;
    if (bytes > bytesMax || weight > countMax) break;
    const count = to - from;
    if (count < 2) continue;
    const isWorth = bytes >= bytesEnough || (count >= countMin && bytes >= growth * largest);
    if (isWorth && largest * 2 <= bytes) best = { from, to };
  }
  return best;
}

/** The newest window of a list in order of age; null when none is worth it. */
export function chooseWindow(items: readonly Sized[], limits: WindowLimits): Window | null {
  for (let to = items.length; to >= 2; to--) {
    const window = windowBefore(items, to, limits);
    if (window !== null) return window;
  }
  return null;
}

/** Parts of a list in which each item continues the one before it. */
export function runsOf<T>(items: readonly T[], continues: (before: T, next: T) => boolean): T[][] {
  const runs: T[][] = [];
  for (const [i, item] of items.entries()) {
    if (i > 0 && continues(items[i - 1]!, item)) runs.at(-1)!.push(item);
    else runs.push([item]);
  }
  return runs;
}
