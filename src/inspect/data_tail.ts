/** The end of a data object: footer and index, each with what is wrong with it. */
import { decodeFooter, type Footer, FOOTER_BYTES } from "../storage/format/footer.ts";
import { INDEX_ENTRY_BYTES, IndexBlock, type IndexEntry } from "../storage/format/index_block.ts";
import { damageOf } from "./blocks.ts";
import type { ByteSource } from "./byte_source.ts";

export type DataTail =
  | {
    readonly ok: true;
    readonly footer: Footer;
    readonly bytes: Uint8Array;
    readonly index: IndexBlock;
  }
  | {
    readonly ok: false;
    readonly damage: string;
    readonly footer: Footer | null;
    /** Entries before the damage. */
    readonly entries: readonly IndexEntry[];
  };

export async function readDataTail(source: ByteSource): Promise<DataTail> {
  const { size } = source;
  let footer: Footer;
  try {
    footer = decodeFooter("data", await source.read(Math.max(0, size - FOOTER_BYTES), size), size);
  } catch (error) {
    return { ok: false, damage: damageOf(error), footer: null, entries: [] };
  }
  const { indexPosition, indexLength } = footer;
  const bytes = await source.read(indexPosition, indexPosition + indexLength);
  try {
    return { ok: true, footer, bytes, index: new IndexBlock(bytes, indexPosition) };
  } catch (error) {
    const entries = soundEntries(bytes, indexPosition);
    return { ok: false, damage: damageOf(error), footer, entries };
  }
}

function soundEntries(bytes: Uint8Array, dataEnd: number): IndexEntry[] {
  const entries: IndexEntry[] = [];
  for (let at = 0; at + INDEX_ENTRY_BYTES <= bytes.length; at += INDEX_ENTRY_BYTES) {
    try {
      const one = new IndexBlock(bytes.subarray(at, at + INDEX_ENTRY_BYTES), dataEnd);
      entries.push(one.entry(0));
    } catch (error) {
      damageOf(error);
      break;
    }
  }
  return entries;
}
