/** Walks over the data blocks of an object, one block in memory at a time. */
import { DecodeError } from "../lib/bytes.ts";
import { AssertionError } from "../lib/assert.ts";
import { DATA_BLOCK_BYTES_MAX } from "../lib/limits.ts";
import { DATA_BLOCK_HEADER_BYTES, readDataBlockHeader } from "../storage/format/data_block.ts";
import { encodedBytes, readStreamRecord, type StreamRecord } from "../storage/stream_record.ts";
import type { SequentialReader } from "./byte_source.ts";

export interface WalkedBlock {
  readonly at: number;
  /** With the header. */
  readonly bytes: number;
  readonly records: readonly StreamRecord[];
  /** Why the walk ends here; the records before the damage are there. */
  readonly damage: string | null;
}

/** The message of what a decoder throws at damaged bytes; anything else is thrown on. */
export function damageOf(error: unknown): string {
  // Branded ids assert; here their input came from outside.
  if (error instanceof DecodeError || error instanceof AssertionError) return error.message;
  throw error;
}

/** Blocks from the reader's place up to `end`, or up to the first damage. Records are views of their block. */
export async function* walkBlocks(
  reader: SequentialReader,
  end: number,
): AsyncGenerator<WalkedBlock> {
  while (reader.position < end) {
    const block = await readBlock(reader, end);
    yield block;
    if (block.damage !== null) return;
  }
}

async function readBlock(reader: SequentialReader, end: number): Promise<WalkedBlock> {
  const at = reader.position;
  const broken = (damage: string) => ({ at, bytes: reader.position - at, records: [], damage });
  if (end - at < DATA_BLOCK_HEADER_BYTES) return broken(`${end - at} bytes are no data block`);
  const head = await reader.take(DATA_BLOCK_HEADER_BYTES);
  let length: number;
  let count: number;
  try {
    ({ length, records: count } = readDataBlockHeader(head));
  } catch (error) {
    return broken(damageOf(error));
  }
  if (length > end - reader.position || length > DATA_BLOCK_BYTES_MAX) {
    return broken(`Data block of ${length} bytes passes the end of the blocks at ${end}`);
  }
  return {
    at,
    bytes: DATA_BLOCK_HEADER_BYTES + length,
    ...readRecords(await reader.take(length), count),
  };
}

function readRecords(bytes: Uint8Array, count: number): Pick<WalkedBlock, "records" | "damage"> {
  const records: StreamRecord[] = [];
  let at = 0;
  try {
    for (let i = 0; i < count; i++) {
      const record = readStreamRecord(bytes, at);
      at += encodedBytes(record);
      records.push(record);
    }
  } catch (error) {
    return { records, damage: damageOf(error) };
  }
  const damage = at === bytes.length
    ? null
    : `Data block ends at ${bytes.length}, its records at ${at}`;
  return { records, damage };
}
