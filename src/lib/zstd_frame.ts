/**
 * Walks zstd frames (RFC 8878, section 3.1) without inflating them. Hosts disagree on what follows the
 * first frame and take cut-off input for a short success: so each frame is found here and inflated alone.
 */
import { corrupt } from "./corrupt.ts";

const MAGIC = 0xfd2fb528;
/** Sixteen magic numbers, told apart by the last four bits, begin user data to be skipped. */
const SKIPPABLE_MAGIC = 0x184d2a5;
const DICTIONARY_ID_BYTES = [0, 1, 2, 4];
const CONTENT_SIZE_BYTES = [0, 2, 4, 8];
const BLOCK_RLE = 1;
const BLOCK_RESERVED = 3;

function littleEndian(bytes: Uint8Array, at: number, count: number): number {
  if (count > bytes.length - at) throw corrupt("Cannot decode zstd frame: cut off");
  let value = 0;
  for (let i = count - 1; i >= 0; i--) value = value * 256 + bytes[at + i]!;
  return value;
}

/** Skips the frame header behind the magic number; the declared content size must respect the cap. */
function headerEnd(bytes: Uint8Array, start: number, bytesMax: number): number {
  const descriptor = littleEndian(bytes, start, 1);
  const single = (descriptor & 0x20) !== 0;
  const sizeFlag = descriptor >> 6;
  const sizeAt = start + 1 + (single ? 0 : 1) + DICTIONARY_ID_BYTES[descriptor & 3]!;
  const sizeBytes = sizeFlag === 0 && single ? 1 : CONTENT_SIZE_BYTES[sizeFlag]!;
  // Two bytes count from 256 (RFC 8878, 3.1.1.1.4); the difference matters to no cap.
  if (littleEndian(bytes, sizeAt, sizeBytes) > bytesMax) {
    throw corrupt(`Cannot decode zstd frame: more than ${bytesMax} bytes`);
  }
  return sizeAt + sizeBytes;
}

function blocksEnd(bytes: Uint8Array, start: number): number {
  for (let at = start;;) {
    const head = littleEndian(bytes, at, 3);
    const type = (head >> 1) & 3;
    if (type === BLOCK_RESERVED) throw corrupt("Cannot decode zstd frame: block type");
    at += 3 + (type === BLOCK_RLE ? 1 : head >> 3);
    if ((head & 1) !== 0) return at;
  }
}

/** The data frames in `bytes`, whole. Throws FaultError("corrupt"). */
export function splitZstdFrames(bytes: Uint8Array, bytesMax: number): Uint8Array[] {
  const frames: Uint8Array[] = [];
  let at = 0;
  do {
    const start = at;
    const magic = littleEndian(bytes, at, 4);
    if (magic === MAGIC) {
      const checksumBytes = (littleEndian(bytes, at + 4, 1) & 4) !== 0 ? 4 : 0;
      at = blocksEnd(bytes, headerEnd(bytes, at + 4, bytesMax)) + checksumBytes;
      frames.push(bytes.subarray(start, at));
    } else if (magic >>> 4 === SKIPPABLE_MAGIC) {
      at += 8 + littleEndian(bytes, at + 4, 4);
    } else {
      throw corrupt("Cannot decode zstd frame: magic number");
    }
    if (at > bytes.length) throw corrupt("Cannot decode zstd frame: cut off");
  } while (at < bytes.length);
  return frames;
}
