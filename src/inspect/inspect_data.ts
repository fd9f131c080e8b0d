/** A stream set object or a stream object: blocks with their records, index, footer. */
import { crc32c } from "../lib/crc32c.ts";
import { FOOTER_BYTES } from "../storage/format/footer.ts";
import type { IndexEntry } from "../storage/format/index_block.ts";
import { DATA_BLOCK_HEADER_BYTES } from "../storage/format/data_block.ts";
import { encodedBytes } from "../storage/stream_record.ts";
import { walkBlocks, type WalkedBlock } from "./blocks.ts";
import { type ByteSource, SequentialReader } from "./byte_source.ts";
import { type DataTail, readDataTail } from "./data_tail.ts";
import { IndexCheck } from "./index_check.ts";
import { type Item, item } from "./item.ts";
import { recordFields } from "./payload.ts";

export function entryItem(part: string, at: number | null, entry: IndexEntry): Item {
  const { streamId, start, end, recordCount, position, size } = entry;
  return item(part, at, { stream: streamId, start, end, records: recordCount, position, size });
}

function* blockItems(block: WalkedBlock): Generator<Item> {
  yield item("block", block.at, { bytes: block.bytes, records: block.records.length });
  let at = block.at + DATA_BLOCK_HEADER_BYTES;
  for (const record of block.records) {
    yield item("record", at, recordFields(record));
    at += encodedBytes(record);
  }
}

function* indexItems(tail: DataTail): Generator<Item> {
  const count = tail.ok ? tail.index.count : tail.entries.length;
  for (let i = 0; i < count; i++) {
    yield entryItem("index", null, tail.ok ? tail.index.entry(i) : tail.entries[i]!);
  }
}

/** Returns the damage. */
export async function* inspectData(source: ByteSource): AsyncGenerator<Item, string | null> {
  const tail = await readDataTail(source);
  const dataEnd = tail.footer?.indexPosition ?? Math.max(0, source.size - FOOTER_BYTES);
  const reader = new SequentialReader(source);
  const check = tail.ok ? new IndexCheck(tail.index, dataEnd) : null;
  let damage: string | null = null;
  for await (const block of walkBlocks(reader, dataEnd)) {
    yield* blockItems(block);
    // Without a footer nobody knows where the blocks end: there the walk fails for sure.
    if (block.damage !== null && tail.footer !== null) {
      damage ??= `block at ${block.at}: ${block.damage}`;
    }
    if (block.damage === null) damage ??= check?.block(block) ?? null;
  }
  yield* indexItems(tail);
  if (!tail.ok) return damage ?? tail.damage;
  await reader.skipTo(source.size);
  yield item("footer", source.size - FOOTER_BYTES, {
    indexPosition: dataEnd,
    indexLength: tail.footer.indexLength,
    bytesCrc: reader.crc,
    indexCrc: crc32c(tail.bytes),
  });
  return damage ?? check?.end() ?? null;
}
