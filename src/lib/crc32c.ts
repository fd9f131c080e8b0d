/** CRC-32C (Castagnoli): record batches, stored objects. */
import { createCrc } from "./crc.ts";
import type { Crc } from "./crc.ts";

const CASTAGNOLI = 0x82f63b78;
let engine: Crc | null = null;

/** Continues `crc` over bytes; the module is made at the first call. */
export function crc32c(bytes: Uint8Array, crc = 0): number {
  engine ??= createCrc(CASTAGNOLI);
  return engine(bytes, crc);
}
