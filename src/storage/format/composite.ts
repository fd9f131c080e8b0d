/**
 * The composite object: links to stream objects of one stream instead of their data.
 *
 *   objects block: u8 magic 0x52 · i32 count · count x (i64 object id · i32 first entry · i16 bucket)
 *   index block: the linked objects' entries one after the other; positions refer to the linked object
 *   footer with a magic of its own; its index position is where the objects block ends
 */
import { type ObjectId, objectId, type Offset, type StreamId } from "../../lib/brand.ts";
import { ByteReader, ByteWriter, DecodeError } from "../../lib/bytes.ts";
import { partitionPoint } from "../../lib/partition_point.ts";
import { decodeFooter, encodeFooter } from "./footer.ts";
import { encodeIndex, INDEX_ENTRY_BYTES, IndexBlock, type IndexEntry } from "./index_block.ts";

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

interface Unit {
  readonly objectId: ObjectId;
  readonly bucket: number;
  readonly firstEntry: number;
}

function decodeUnits(bytes: Uint8Array): Unit[] {
  const reader = new ByteReader(bytes);
  const magic = reader.u8();
  if (magic !== MAGIC) throw new DecodeError(`Not a composite object: magic ${magic}`);
  const count = reader.i32();
  const units: Unit[] = [];
  for (let i = 0; i < count; i++) {
    const [id, firstEntry, bucket] = [reader.i64(), reader.i32(), reader.i16()];
    units.push({ objectId: objectId(id), firstEntry, bucket });
  }
  if (reader.remaining > 0) throw new DecodeError("Composite object: bytes behind its links");
  if (count === 0) throw new DecodeError("Composite object without links");
  return units;
}

/** One linked object with its part of the index. */
export interface LinkIndex {
  readonly objectId: ObjectId;
  readonly bucket: number;
  readonly index: IndexBlock;
  readonly streamId: StreamId;
  readonly start: Offset;
  readonly end: Offset;
}

/** A composite as a reader keeps it: links in offset order, without gaps, of one stream. */
export class CompositeIndex {
  readonly links: readonly LinkIndex[];
  readonly bytes: number;

  /** `bytes` is the whole object; the index keeps a view of it. */
  constructor(bytes: Uint8Array) {
    const { indexPosition, indexLength } = decodeFooter("composite", bytes, bytes.length);
    if (indexLength % INDEX_ENTRY_BYTES !== 0) {
      throw new DecodeError(`Composite object: index of ${indexLength} bytes`);
    }
    const count = indexLength / INDEX_ENTRY_BYTES;
    const units = decodeUnits(bytes.subarray(0, indexPosition));
    this.bytes = bytes.length;
    this.links = units.map(({ objectId: id, bucket, firstEntry: from }, i) => {
      const until = units[i + 1]?.firstEntry ?? count;
      if (from < 0 || until <= from || until > count || (i === 0 && from !== 0)) {
        throw new DecodeError(`Composite object: entries [${from}, ${until}) of link ${i}`);
      }
      const at = (entry: number) => indexPosition + entry * INDEX_ENTRY_BYTES;
      const index = new IndexBlock(bytes.subarray(at(from), at(until)), Number.MAX_SAFE_INTEGER);
      return { objectId: id, bucket, index, ...spanOf(index, i) };
    });
    for (const [i, link] of this.links.entries()) {
      const before = this.links[i - 1];
      if (before === undefined) continue;
      if (before.streamId !== link.streamId || before.end !== link.start) {
        throw new DecodeError(`Composite object: link ${i} does not continue the one before`);
      }
    }
  }

  /** The link that holds the offset. */
  at(offset: Offset): LinkIndex | null {
    const link = this.links[partitionPoint(this.links.length, (i) => this.links[i]!.end <= offset)];
    return link !== undefined && link.start <= offset ? link : null;
  }
}

function spanOf(index: IndexBlock, i: number): Pick<LinkIndex, "streamId" | "start" | "end"> {
  const ranges = index.ranges();
  const [only] = ranges;
  if (only === undefined || ranges.length > 1) {
    throw new DecodeError(`Composite object: link ${i} is not one range of one stream`);
  }
  return only;
}

export function decodeComposite(bytes: Uint8Array): CompositeLink[] {
  return new CompositeIndex(bytes).links.map(({ objectId: id, bucket, index }) => ({
    objectId: id,
    bucket,
    entries: Array.from({ length: index.count }, (_, i) => index.entry(i)),
  }));
}
