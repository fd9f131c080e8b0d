/** How large one request to the store is: memory against money. */
import {
  PRICED_COMPACTION_PUT_BYTES_MAX,
  PRICED_PUT_BYTES_MAX,
  PRICED_PUT_BYTES_MIN,
  PRICED_PUT_PART_BYTES,
  PUT_PART_BYTES,
  SINGLE_PUT_BYTES_MAX,
  SLOT_BYTES,
} from "../lib/limits.ts";

export interface PutSizes {
  /** Larger objects are written in parts. */
  readonly singleBytesMax: number;
  readonly partBytes: number;
}

export const DEFAULT_PUT_SIZES: PutSizes = {
  singleBytesMax: SINGLE_PUT_BYTES_MAX,
  partBytes: PUT_PART_BYTES,
};

/** For stores that charge for requests: a block, a third of the log cache and the bulk that it ends with, is one PUT. */
export function pricedPutSizes(logCacheBytesMax: number): PutSizes {
  const block = logCacheBytesMax / 3 + SLOT_BYTES;
  return {
    singleBytesMax: Math.min(
      PRICED_PUT_BYTES_MAX,
      Math.max(PRICED_PUT_BYTES_MIN, Math.ceil(block)),
    ),
    partBytes: PRICED_PUT_PART_BYTES,
  };
}

export const PRICED_COMPACTION_PUT_SIZES: PutSizes = {
  singleBytesMax: PRICED_COMPACTION_PUT_BYTES_MAX,
  partBytes: PRICED_PUT_PART_BYTES,
};
