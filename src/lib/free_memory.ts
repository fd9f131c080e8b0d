/**
 * Gives memory back now instead of at some later collection: pages that were never touched cost several
 * times the copy into them, and what is freed at once is used again while it is warm.
 */

/** All views of the buffer are empty from now on. Hosts without `transfer` leave it to their collector. */
export function freeMemory(buffer: ArrayBufferLike): void {
  if (buffer instanceof ArrayBuffer && typeof buffer.transfer === "function") buffer.transfer(0);
}
