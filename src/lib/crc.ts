/** Makes a synchronous CRC-32 function for any reflected polynomial, on the module of crc_module.ts. */
import {
  assembleCrcModule,
  CRC_TABLE_BYTES,
  CRC_WINDOW_AT,
  CRC_WINDOW_BYTES,
} from "./crc_module.ts";
import type { CrcExports } from "./crc_module.ts";

/** Continues `crc` (0 to begin with) over bytes: `crc(b, crc(a))` is the checksum of a then b. */
export type Crc = (bytes: Uint8Array, crc?: number) => number;

let compiled: WebAssembly.Module | null = null;

function instantiate(): CrcExports {
  compiled ??= new WebAssembly.Module(assembleCrcModule());
  // The module is our own: its exports are known.
  return new WebAssembly.Instance(compiled).exports as unknown as CrcExports;
}

/** Table t maps a byte that is followed by t zero bytes to its share of the remainder. */
function fillTables(tables: Int32Array, polynomial: number): void {
  for (let byte = 0; byte < 256; byte++) {
    let rest = byte;
    for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ polynomial : rest >>> 1;
    tables[byte] = rest;
  }
  for (let i = 256; i < tables.length; i++) {
    const previous = tables[i - 256]!;
    tables[i] = (previous >>> 8) ^ tables[previous & 255]!;
  }
}

/** `polynomial` in reflected (least significant bit first) form. Costs about a millisecond: make it once. */
export function createCrc(polynomial: number): Crc {
  const { memory, update } = instantiate();
  fillTables(new Int32Array(memory.buffer, 0, CRC_TABLE_BYTES / 4), polynomial);
  const window = new Uint8Array(memory.buffer, CRC_WINDOW_AT, CRC_WINDOW_BYTES);
  return (bytes, crc = 0) => {
    let running = crc;
    for (let at = 0; at < bytes.length; at += CRC_WINDOW_BYTES) {
      const whole = bytes.length <= CRC_WINDOW_BYTES;
      const part = whole ? bytes : bytes.subarray(at, at + CRC_WINDOW_BYTES);
      window.set(part);
      running = update(CRC_WINDOW_AT, part.length, running);
    }
    return running >>> 0;
  };
}
