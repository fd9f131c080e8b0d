/** Compression as a port: the host brings the fastest implementation it has. */

export type CodecName = "gzip" | "snappy" | "lz4" | "zstd";

export interface Codecs {
  /**
   * Synchronous, so that its order is the caller's order. gzip and zstd have levels, as their own
   * libraries count them; without one, or for the other codecs, the codec's default holds.
   */
  compress(codec: CodecName, bytes: Uint8Array, level?: number): Uint8Array;
  /** Throws FaultError("corrupt") on bad input or when the result would pass `bytesMax`. */
  decompress(codec: CodecName, bytes: Uint8Array, bytesMax: number): Uint8Array;
  /** Whether this host has the codec at all. */
  supports(codec: CodecName): boolean;
}
