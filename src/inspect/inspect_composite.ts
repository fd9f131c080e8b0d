/** A composite object: its links, each with the index entries that it lends. */
import { crc32c } from "../lib/crc32c.ts";
import { SLOT_BYTES } from "../lib/limits.ts";
import { type CompositeLink, decodeComposite } from "../storage/format/composite.ts";
import { decodeFooter, FOOTER_BYTES } from "../storage/format/footer.ts";
import { damageOf } from "./blocks.ts";
import type { ByteSource } from "./byte_source.ts";
import { entryItem } from "./inspect_data.ts";
import { type Item, item } from "./item.ts";

/** A composite holds 36 bytes for each 512 KiB of data; one above this is none of ours. */
export const COMPOSITE_BYTES_MAX = SLOT_BYTES;

function linksOf(bytes: Uint8Array): readonly CompositeLink[] | string {
  try {
    return decodeComposite(bytes);
  } catch (error) {
    return damageOf(error);
  }
}

function footerItem(bytes: Uint8Array): Item | null {
  try {
    const { indexPosition, indexLength } = decodeFooter("composite", bytes, bytes.length);
    return item("footer", bytes.length - FOOTER_BYTES, {
      indexPosition,
      indexLength,
      bytesCrc: crc32c(bytes),
      indexCrc: crc32c(bytes.subarray(indexPosition, indexPosition + indexLength)),
    });
  } catch (error) {
    damageOf(error);
    return null;
  }
}

/** Returns the damage. */
export async function* inspectComposite(source: ByteSource): AsyncGenerator<Item, string | null> {
  if (source.size > COMPOSITE_BYTES_MAX) return `a composite object of ${source.size} bytes`;
  const bytes = await source.read(0, source.size);
  const links = linksOf(bytes);
  if (typeof links !== "string") {
    for (const { objectId, bucket, entries } of links) {
      yield item("link", null, { object: objectId, bucket, entries: entries.length });
      for (const entry of entries) yield entryItem("index", null, entry);
    }
  }
  const footer = footerItem(bytes);
  if (footer !== null) yield footer;
  return typeof links === "string" ? links : null;
}
