/** CRC-32 (IEEE 802.3, as zlib): WAL record headers and bodies. */
import { createCrc } from "./crc.ts";
import type { Crc } from "./crc.ts";

const IEEE = 0xedb88320;
let engine: Crc | null = null;

/** Continues `crc` over bytes; the module is made at the first call. */
export function crc32(bytes: Uint8Array, crc = 0): number {
  engine ??= createCrc(IEEE);
  return engine(bytes, crc);
}
