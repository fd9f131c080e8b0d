/**
 * How many of the first `count` places are before something, when all that are come first: one more than the
 * last that is, and the index of the first that is not.
 */
export function partitionPoint(count: number, isBefore: (at: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
