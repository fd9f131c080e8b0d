/**
 * LZ4 frames, as Kafka uses them: 64 KiB blocks, independent, without checksums but the header's.
 * The reader takes the whole format (linked blocks, block and content checksums, content size, several
 * frames, skippable frames) but dictionaries. All integers are little-endian.
 */
import { ByteWriter, viewOf } from "./bytes.ts";
import { corrupt } from "./corrupt.ts";
import { GrowingOutput } from "./growing_output.ts";
import { decodeLz4Block, encodeLz4Block, lz4BlockBytesMax, lz4OutputMax } from "./lz4_block.ts";
import { xxhash32 } from "./xxhash32.ts";

const MAGIC = 0x184d2204;
/** Sixteen magic numbers, told apart by the last four bits, begin user data to be skipped. */
const SKIPPABLE_MAGIC = 0x184d2a5;
const VERSION_1 = 0b0100_0000;
const BLOCKS_INDEPENDENT = 0b0010_0000;
const BLOCK_CHECKSUM = 0b0001_0000;
const CONTENT_SIZE = 0b0000_1000;
const CONTENT_CHECKSUM = 0b0000_0100;
const FLAG_RESERVED = 0b0000_0010;
const DICTIONARY = 0b0000_0001;
/** Block size codes 4..7 mean 64 KiB, 256 KiB, 1 MiB, 4 MiB. */
const CODE_64_KIB = 4;
const BLOCK_BYTES = 64 * 1024;
/** Top bit of a block's length: the block is stored as it is. */
const STORED = 0x80000000;
/** First guess of the output's size relative to the input, where the frame does not tell. */
const RATIO_GUESS = 4;

interface FrameHeader {
  readonly independent: boolean;
  readonly blockChecksum: boolean;
  readonly contentChecksum: boolean;
  readonly contentBytes: number | null;
  readonly blockBytesMax: number;
}

class LittleEndianReader {
  readonly bytes: Uint8Array;
  readonly #view: DataView;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.#view = viewOf(bytes);
  }
  get remaining(): number {
    return this.bytes.length - this.at;
  }
  take(count: number): Uint8Array {
    if (count > this.remaining) throw corrupt("Cannot decode LZ4 frame: cut off");
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }
  u8(): number {
    return this.take(1)[0]!;
  }
  u32(): number {
    this.take(4);
    return this.#view.getUint32(this.at - 4, true);
  }
}

function readFlags(flags: number, descriptor: number): Omit<FrameHeader, "contentBytes"> {
  const sizeCode = (descriptor >> 4) & 7;
  if ((flags & 0b1100_0000) !== VERSION_1 || (flags & FLAG_RESERVED) !== 0) {
    throw corrupt("Cannot decode LZ4 frame: unknown version or flags");
  }
  if ((descriptor & 0b1000_1111) !== 0 || sizeCode < CODE_64_KIB) {
    throw corrupt("Cannot decode LZ4 frame: unknown block size");
  }
  if ((flags & DICTIONARY) !== 0) throw corrupt("Cannot decode LZ4 frame: it needs a dictionary");
  return {
    independent: (flags & BLOCKS_INDEPENDENT) !== 0,
    blockChecksum: (flags & BLOCK_CHECKSUM) !== 0,
    contentChecksum: (flags & CONTENT_CHECKSUM) !== 0,
    blockBytesMax: 1 << (2 * sizeCode + 8),
  };
}

/** Reads behind the magic number. The header checksum must be right: only message format 0 had a wrong one. */
function readHeader(reader: LittleEndianReader): FrameHeader {
  const start = reader.at;
  const flags = reader.u8();
  const fixed = readFlags(flags, reader.u8());
  let contentBytes: number | null = null;
  if ((flags & CONTENT_SIZE) !== 0) {
    const low = reader.u32();
    contentBytes = reader.u32() * 2 ** 32 + low;
  }
  const checksum = (xxhash32(reader.bytes.subarray(start, reader.at)) >>> 8) & 255;
  if (reader.u8() !== checksum) throw corrupt("Cannot decode LZ4 frame: header checksum");
  return { ...fixed, contentBytes };
}

function readBlock(
  reader: LittleEndianReader,
  size: number,
  header: FrameHeader,
  output: GrowingOutput,
  frameStart: number,
): void {
  const stored = (size & STORED) !== 0;
  const length = size & ~STORED;
  if (length > header.blockBytesMax) throw corrupt("Cannot decode LZ4 frame: block too long");
  const block = reader.take(length);
  if (header.blockChecksum && reader.u32() !== xxhash32(block)) {
    throw corrupt("Cannot decode LZ4 frame: block checksum");
  }
  if (stored) return output.append(block);
  const blockMax = Math.min(header.blockBytesMax, lz4OutputMax(length));
  const buffer = output.room(blockMax);
  const window = buffer.subarray(0, Math.min(buffer.length, output.length + blockMax));
  const historyStart = header.independent ? output.length : frameStart;
  output.length = decodeLz4Block(block, window, output.length, historyStart);
}

function readFrame(reader: LittleEndianReader, output: GrowingOutput, bytesMax: number): void {
  const header = readHeader(reader);
  const frameStart = output.length;
  if (header.contentBytes !== null && header.contentBytes > bytesMax - frameStart) {
    throw corrupt(`Cannot decode LZ4 frame: more than ${bytesMax} bytes`);
  }
  for (let size = reader.u32(); size !== 0; size = reader.u32()) {
    readBlock(reader, size, header, output, frameStart);
  }
  const content = output.result().subarray(frameStart);
  if (header.contentBytes !== null && header.contentBytes !== content.length) {
    throw corrupt("Cannot decode LZ4 frame: content size");
  }
  if (header.contentChecksum && reader.u32() !== xxhash32(content)) {
    throw corrupt("Cannot decode LZ4 frame: content checksum");
  }
}

/** Inflates all frames in `bytes`. Throws FaultError("corrupt"), also when the output would pass `bytesMax`. */
export function decodeLz4Frames(bytes: Uint8Array, bytesMax: number): Uint8Array {
  const reader = new LittleEndianReader(bytes);
  const output = new GrowingOutput(bytesMax, bytes.length * RATIO_GUESS);
  do {
    const magic = reader.u32();
    if (magic === MAGIC) readFrame(reader, output, bytesMax);
    else if (magic >>> 4 === SKIPPABLE_MAGIC) reader.take(reader.u32());
    else throw corrupt("Cannot decode LZ4 frame: magic number");
  } while (reader.remaining > 0);
  return output.result();
}

function writeU32(writer: ByteWriter, value: number): void {
  for (let shift = 0; shift < 32; shift += 8) writer.u8((value >>> shift) & 255);
}

/** One frame of independent 64 KiB blocks; Java's reader refuses linked ones. */
export function encodeLz4Frame(bytes: Uint8Array): Uint8Array {
  const writer = new ByteWriter(64 + (bytes.length >> 1));
  const descriptor = Uint8Array.of(VERSION_1 | BLOCKS_INDEPENDENT, CODE_64_KIB << 4);
  writeU32(writer, MAGIC);
  writer.bytes(descriptor);
  writer.u8((xxhash32(descriptor) >>> 8) & 255);
  const scratch = new Uint8Array(lz4BlockBytesMax(Math.min(bytes.length, BLOCK_BYTES)));
  for (let at = 0; at < bytes.length; at += BLOCK_BYTES) {
    const block = bytes.subarray(at, at + BLOCK_BYTES);
    const length = encodeLz4Block(block, scratch);
    const stored = length >= block.length;
    writeU32(writer, stored ? (block.length | STORED) >>> 0 : length);
    writer.bytes(stored ? block : scratch.subarray(0, length));
  }
  writeU32(writer, 0);
  return writer.view();
}
