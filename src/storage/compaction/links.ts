/** Makes one composite of neighbours: their links and index entries, none of their data. */
import type { ObjectId, Offset } from "../../lib/brand.ts";
import { crc32c } from "../../lib/crc32c.ts";
import { encodeAttributes } from "../format/attributes.ts";
import { type CompositeLink, encodeComposite } from "../format/composite.ts";
import { encodeIndex, type IndexBlock, type IndexEntry } from "../format/index_block.ts";
import type { NewStreamObject, StreamObjectRef } from "../ports.ts";
import { bytesOf } from "./blocks.ts";
import type { SourceReader } from "./source_reader.ts";

const ONLY_BUCKET = 0;

function entriesOf(index: IndexBlock): IndexEntry[] {
  return Array.from({ length: index.count }, (_, i) => index.entry(i));
}

/** Composites among the objects give their links: a composite never links to a composite. */
async function linksOf(reader: SourceReader, object: StreamObjectRef): Promise<CompositeLink[]> {
  if (object.links === undefined) {
    const entries = entriesOf(await reader.index(object));
    return [{ objectId: object.objectId, bucket: ONLY_BUCKET, entries }];
  }
  const { links } = await reader.composite(object);
  return links.map(({ objectId, bucket, index }) => ({
    objectId,
    bucket,
    entries: entriesOf(index),
  }));
}

function endOf({ entries }: CompositeLink): Offset {
  return entries.at(-1)!.end;
}

export interface Links {
  /** In offset order; those that lie wholly below the stream's start are left out. */
  readonly live: readonly CompositeLink[];
  /** End of the first live link, null without one: below it there is nothing to forget. */
  readonly firstEnd: Offset | null;
  readonly dead: number;
}

/** A link that is dead only in part stays whole. */
export async function readLinks(
  reader: SourceReader,
  objects: readonly StreamObjectRef[],
  streamStart: Offset,
): Promise<Links> {
  const links: CompositeLink[] = [];
  for (const object of objects) links.push(...await linksOf(reader, object));
  const live = links.filter((link) => endOf(link) > streamStart);
  const [first] = live;
  return {
    live,
    firstEnd: first === undefined ? null : endOf(first),
    dead: links.length - live.length,
  };
}

export interface NewComposite {
  readonly bytes: Uint8Array;
  readonly object: NewStreamObject;
  readonly links: readonly ObjectId[];
}

/** Its size is that of the data behind it, as the byte counts of streams need it. */
export function compositeOf(objectId: ObjectId, links: readonly CompositeLink[]): NewComposite {
  const bytes = encodeComposite(links);
  const entries = links.flatMap((link) => link.entries);
  const { streamId, start } = entries[0]!;
  return {
    bytes,
    links: links.map((link) => link.objectId),
    object: {
      objectId,
      size: bytesOf(entries),
      bytesCrc: crc32c(bytes),
      indexCrc: crc32c(encodeIndex(entries)),
      range: { streamId, start, end: entries.at(-1)!.end },
      attributes: encodeAttributes({ type: "composite", bucket: ONLY_BUCKET, deepDelete: false }),
    },
  };
}
