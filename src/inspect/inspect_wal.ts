/** A WAL object or seal, record by record. */
import type { WalKey } from "../object/object_key.ts";
import { SLOT_BYTES, WAL_OBJECT_HEADER_BYTES } from "../lib/limits.ts";
import {
  readWalHeader,
  readWalObject,
  readWalRecord,
  type WalHeader,
} from "../storage/wal/wal_object.ts";
import { damageOf } from "./blocks.ts";
import type { ByteSource } from "./byte_source.ts";
import { type Item, item } from "./item.ts";
import { recordFields } from "./payload.ts";

function headerItem(header: WalHeader): Item {
  const { startOffset, bodyLength, sticky, nodeId, epoch, trimOffset } = header;
  const isSeal = bodyLength === 0;
  return item(isSeal ? "seal" : "header", 0, {
    node: nodeId,
    epoch,
    slot: startOffset / SLOT_BYTES,
    start: startOffset,
    body: bodyLength,
    ...(isSeal ? { recovery: sticky } : { sticky }),
    trim: trimOffset,
  });
}

/** `place` is what the key says; without one the header is believed. Returns the damage. */
export async function* inspectWal(
  source: ByteSource,
  place: WalKey | null,
): AsyncGenerator<Item, string | null> {
  const most = WAL_OBJECT_HEADER_BYTES + SLOT_BYTES;
  const bytes = await source.read(0, Math.min(source.size, most));
  let header: WalHeader;
  try {
    header = readWalHeader(bytes);
  } catch (error) {
    return damageOf(error);
  }
  yield headerItem(header);
  for (let at = WAL_OBJECT_HEADER_BYTES; at < bytes.length;) {
    const address = header.startOffset + at - WAL_OBJECT_HEADER_BYTES;
    let line: Item;
    let next: number;
    try {
      const { record, end } = readWalRecord(bytes, at, address);
      line = item("record", at, recordFields(record));
      next = end;
    } catch (error) {
      return damageOf(error);
    }
    yield line;
    at = next;
  }
  if (source.size > most) return `${source.size} bytes do not fit a slot`;
  return objectDamage(bytes, header, place);
}

function objectDamage(bytes: Uint8Array, header: WalHeader, place: WalKey | null): string | null {
  const owner = place === null ? header : { nodeId: place.nodeId, epoch: place.nodeEpoch };
  try {
    readWalObject(bytes, owner, place?.slot ?? header.startOffset / SLOT_BYTES);
    return null;
  } catch (error) {
    return damageOf(error);
  }
}
