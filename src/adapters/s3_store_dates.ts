/**
 * When an object was written, by the store's clock. Ages decide what is deleted, so an answer without a date must
 * not look like one from long ago.
 */

/** In a listing, which has no time of its own: what has no date is never old. */
export function listedAtMs({ LastModified }: { readonly LastModified?: Date | undefined }): number {
  return LastModified?.getTime() ?? Infinity;
}

/** In an answer with the store's time: what has no date was written just now. */
export function readAtMs(lastModified: Date | undefined, storeNowMs: number): number {
  return lastModified?.getTime() ?? storeNowMs;
}
