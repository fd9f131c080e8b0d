/**
 * The composite object: links to stream objects of one stream instead of their data.
 *
 *   objects block: u8 magic 0x52 · i32 count · count x (i64 object id · i32 first entry · i16 bucket)
 *   index block: the linked objects' entries one after the other; positions refer to the linked object
 *   footer with a magic of its own; its index position is where the objects block ends
 */
import { type ObjectId, objectId } from "../../lib/brand.ts";
import { ByteReader, ByteWriter, DecodeError } from "../../lib/bytes.ts";
import { decodeFooter, encodeFooter } from "./footer.ts";
import { encodeIndex, IndexBlock, type IndexEntry } from "./index_block.ts";

const MAGIC = 0x52;

export interface CompositeLink {
  readonly objectId: ObjectId;
  readonly bucket: number;
  readonly entries: readonly IndexEntry[];
}

export function encodeComposite(links: readonly CompositeLink[]): Uint8Array {
  const writer = new ByteWriter();
  writer.u8(MAGIC);
  writer.i32(links.length);
  let firstEntry = 0;
  for (const link of links) {
    writer.i64(link.objectId);
    writer.i32(firstEntry);
    writer.i16(link.bucket);
    firstEntry += link.entries.length;
  }
  const indexPosition = writer.length;
  const index = encodeIndex(links.flatMap((link) => link.entries));
  writer.bytes(index);
  writer.bytes(encodeFooter("composite", { indexPosition, indexLength: index.length }));
  return writer.view().slice();
}

export function decodeComposite(bytes: Uint8Array): CompositeLink[] {
  const { indexPosition, indexLength } = decodeFooter("composite", bytes, bytes.length);
  const reader = new ByteReader(bytes.subarray(0, indexPosition));
  const magic = reader.u8();
  if (magic !== MAGIC) throw new DecodeError(`Not a composite object: magic ${magic}`);
  const count = reader.i32();
  const units: { id: ObjectId; from: number; bucket: number }[] = [];
  for (let i = 0; i < count; i++) {
    units.push({ id: objectId(reader.i64()), from: reader.i32(), bucket: reader.i16() });
  }
  if (reader.remaining > 0) throw new DecodeError("Composite object: bytes behind its links");
  const end = indexPosition + indexLength;
  const index = new IndexBlock(bytes.subarray(indexPosition, end), Number.MAX_SAFE_INTEGER);
  return units.map(({ id, from, bucket }, i) => {
    const until = units[i + 1]?.from ?? index.count;
    if (from < 0 || until <= from || until > index.count) {
      throw new DecodeError(`Composite object: entries [${from}, ${until}) of link ${i}`);
    }
    const entries = Array.from({ length: until - from }, (_, k) => index.entry(from + k));
    return { objectId: id, bucket, entries };
  });
}
