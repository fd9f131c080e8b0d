/**
 * The codecs of Kafka on this host: gzip and zstd from node:zlib, raw snappy from hysnappy, LZ4 our own.
 * Whatever goes wrong inside a decoder leaves here as FaultError("corrupt").
 */
import * as zlib from "node:zlib";
import { snappyCompressor, snappyUncompressor } from "hysnappy";
import type { CodecName, Codecs } from "../env/codecs.ts";
import { assert } from "../lib/assert.ts";
import { corrupt } from "../lib/corrupt.ts";
import { messageOf } from "../lib/errors.ts";
import { GrowingOutput } from "../lib/growing_output.ts";
import { decodeLz4Frames, encodeLz4Frame } from "../lib/lz4_frame.ts";
import { deflateSnappy, inflateSnappy } from "../lib/xerial.ts";
import type { RawSnappy } from "../lib/xerial.ts";
import { splitZstdFrames } from "../lib/zstd_frame.ts";

interface Codec {
  readonly compress: (bytes: Uint8Array, level?: number) => Uint8Array;
  readonly decompress: (bytes: Uint8Array, bytesMax: number) => Uint8Array;
}

/** Snappy instances that have grown past this are dropped: WebAssembly memory never shrinks. */
const SNAPPY_KEPT_BYTES = 4 * 1024 * 1024;

/** Any failure inside `work` becomes the fault of a corrupt input. */
function decoding<T>(codec: CodecName, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw corrupt(`Cannot inflate ${codec}: ${messageOf(cause)}`, cause);
  }
}

/** Buffer's slice() shares memory where Uint8Array's copies: the core must never hold one. */
function plain(buffer: Uint8Array): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
}

const GZIP_DEFAULT_LEVEL = -1;

const gzip: Codec = {
  compress: (bytes, level = GZIP_DEFAULT_LEVEL) => plain(zlib.gzipSync(bytes, { level })),
  // An output cap of 0 is out of zlib's range; one byte more than asked is refused below.
  decompress: (bytes, bytesMax) =>
    decoding(
      "gzip",
      () => plain(zlib.gunzipSync(bytes, { maxOutputLength: Math.max(1, bytesMax) })),
    ),
};

function createZstd(): Codec | null {
  // Node 20 has no zstd, whatever the types say.
  const { zstdCompressSync, zstdDecompressSync }: Partial<typeof zlib> = zlib;
  if (zstdCompressSync === undefined || zstdDecompressSync === undefined) return null;
  return {
    compress(bytes, level) {
      const { ZSTD_c_compressionLevel: parameter } = zlib.constants;
      const options = level === undefined ? {} : { params: { [parameter]: level } };
      return plain(zstdCompressSync(bytes, options));
    },
    decompress: (bytes, bytesMax) => {
      const frames = splitZstdFrames(bytes, bytesMax);
      const output = new GrowingOutput(bytesMax, 0);
      const inflate = (frame: Uint8Array): Uint8Array => {
        const maxOutputLength = Math.max(1, bytesMax - output.length);
        return decoding("zstd", () => plain(zstdDecompressSync(frame, { maxOutputLength })));
      };
      const [only] = frames;
      if (frames.length === 1 && only !== undefined) return inflate(only);
      for (const frame of frames) output.append(inflate(frame));
      return output.result();
    },
  };
}

function createRawSnappy(): RawSnappy {
  let deflater: ReturnType<typeof snappyCompressor> | null = null;
  let inflater: ReturnType<typeof snappyUncompressor> | null = null;
  return {
    deflate(bytes) {
      deflater ??= snappyCompressor();
      return deflater(bytes);
    },
    inflate(block, length) {
      // A trap leaves the instance's stack pointer where it was: no instance survives a failure.
      const current = inflater ?? snappyUncompressor();
      inflater = null;
      const out = decoding("snappy", () => current(block, length));
      if (block.length + length <= SNAPPY_KEPT_BYTES) inflater = current;
      return out;
    },
  };
}

function createSnappy(): Codec {
  const raw = createRawSnappy();
  return {
    compress: (bytes) => deflateSnappy(bytes, raw),
    decompress: (bytes, bytesMax) => inflateSnappy(bytes, bytesMax, raw),
  };
}

const lz4: Codec = {
  compress: (bytes) => encodeLz4Frame(bytes),
  decompress: decodeLz4Frames,
};

export function createCodecs(): Codecs {
  const table: Readonly<Record<CodecName, Codec | null>> = {
    gzip,
    snappy: createSnappy(),
    lz4,
    zstd: createZstd(),
  };
  function need(name: CodecName): Codec {
    const codec = table[name];
    assert(codec !== null, `codec ${name} used though this host lacks it`);
    return codec;
  }
  return {
    supports: (name) => table[name] !== null,
    compress: (name, bytes, level) => need(name).compress(bytes, level),
    decompress(name, bytes, bytesMax) {
      const out = need(name).decompress(bytes, bytesMax);
      if (out.length > bytesMax) {
        throw corrupt(`Cannot inflate ${name}: more than ${bytesMax} bytes`);
      }
      return out;
    },
  };
}
