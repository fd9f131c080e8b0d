/**
 * The footer, the last 48 bytes of a data or composite object.
 *
 *   i64 index position · i32 index length · 28 zero bytes · i64 magic
 */
import { DecodeError, getInt64, setInt64, viewOf } from "../../lib/bytes.ts";

export const FOOTER_BYTES = 48;
const MAGIC_AT = 40;
const MAGIC_OF_KIND = {
  data: 0x88e241b785f4cff7n,
  composite: 0x88e241b785f4cff8n,
} as const;

export type FooterKind = keyof typeof MAGIC_OF_KIND;

export interface Footer {
  readonly indexPosition: number;
  readonly indexLength: number;
}

export function encodeFooter(kind: FooterKind, footer: Footer): Uint8Array {
  const bytes = new Uint8Array(FOOTER_BYTES);
  const view = viewOf(bytes);
  setInt64(view, 0, footer.indexPosition);
  view.setInt32(8, footer.indexLength);
  view.setBigUint64(MAGIC_AT, MAGIC_OF_KIND[kind]);
  return bytes;
}

/** Reads the footer at the end of an object of `objectSize` bytes, given its last bytes. */
export function decodeFooter(kind: FooterKind, tail: Uint8Array, objectSize: number): Footer {
  if (tail.length < FOOTER_BYTES) throw new DecodeError(`Footer cut off: ${tail.length} bytes`);
  const view = viewOf(tail.subarray(tail.length - FOOTER_BYTES));
  const magic = view.getBigUint64(MAGIC_AT);
  if (magic !== MAGIC_OF_KIND[kind]) {
    throw new DecodeError(`Wrong footer magic ${magic.toString(16)} of a ${kind} object`);
  }
  const footer = { indexPosition: getInt64(view, 0), indexLength: view.getInt32(8) };
  const { indexPosition, indexLength } = footer;
  if (
    indexPosition < 0 || indexLength < 0 ||
    indexPosition + indexLength + FOOTER_BYTES !== objectSize
  ) {
    throw new DecodeError(
      `Footer does not fit: index at ${indexPosition} of ${indexLength} bytes in ${objectSize}`,
    );
  }
  return footer;
}
