/**
 * Lays out a data object: data blocks in ascending stream order, index block, footer. Stream set objects
 * and stream objects share the layout. The layout is computed first, so that the size is known before
 * a byte is encoded, and encoding can be repeated when an upload fails.
 */
import { assert } from "../../lib/assert.ts";
import { DATA_BLOCK_PAYLOAD_BYTES } from "../../lib/limits.ts";
import type { StreamRange } from "../ports.ts";
import { endOffset, type StreamRecord } from "../stream_record.ts";
import { dataBlockBytes, writeDataBlock } from "./data_block.ts";
import { encodeFooter, FOOTER_BYTES } from "./footer.ts";
import { encodeIndex, ENTRY_OFFSETS_MAX, IndexBlock, type IndexEntry } from "./index_block.ts";

export interface ObjectLayout {
  readonly size: number;
  readonly ranges: readonly StreamRange[];
  /** Encoded index block. */
  readonly index: Uint8Array;
  /** The whole object, into memory of exactly its size. */
  encode(bytes?: Uint8Array): Uint8Array;
  /** The same bytes in parts of equal size, the last may be shorter. */
  parts(partBytes: number): Generator<Uint8Array>;
}

export class ObjectWriter {
  readonly #blockPayloadBytes: number;
  readonly #blocks: (readonly StreamRecord[])[] = [];
  readonly #entries: IndexEntry[] = [];
  #open: StreamRecord[] = [];
  #openPayloadBytes = 0;
  #position = 0;

  constructor(blockPayloadBytes = DATA_BLOCK_PAYLOAD_BYTES) {
    this.#blockPayloadBytes = blockPayloadBytes;
  }

  /** Streams ascending, offsets of a stream ascending. */
  add(record: StreamRecord): void {
    const last = this.#open.at(-1);
    assert(record.count > 0, `Record of stream ${record.streamId} covers no offset`);
    if (last !== undefined) {
      const inOrder = record.streamId > last.streamId ||
        (record.streamId === last.streamId && record.baseOffset >= endOffset(last));
      assert(inOrder, `Object out of order at stream ${record.streamId}, ${record.baseOffset}`);
      if (this.#mustCloseBefore(record, last)) this.#closeBlock();
    }
    this.#open.push(record);
    this.#openPayloadBytes += record.payload.length;
  }

  /** Blocks never span streams or gaps; the payload count starts anew with each block. */
  #mustCloseBefore(record: StreamRecord, last: StreamRecord): boolean {
    return record.streamId !== last.streamId || record.baseOffset !== endOffset(last) ||
      this.#openPayloadBytes >= this.#blockPayloadBytes ||
      endOffset(record) - this.#open[0]!.baseOffset > ENTRY_OFFSETS_MAX;
  }

  #closeBlock(): void {
    const first = this.#open[0];
    const last = this.#open.at(-1);
    if (first === undefined || last === undefined) return;
    const size = dataBlockBytes(this.#open);
    this.#entries.push({
      streamId: first.streamId,
      start: first.baseOffset,
      end: endOffset(last),
      recordCount: this.#open.length,
      position: this.#position,
      size,
    });
    this.#blocks.push(this.#open);
    this.#position += size;
    this.#open = [];
    this.#openPayloadBytes = 0;
  }

  finish(): ObjectLayout {
    this.#closeBlock();
    const blocks = this.#blocks;
    const index = encodeIndex(this.#entries);
    const dataEnd = this.#position;
    const footer = encodeFooter("data", { indexPosition: dataEnd, indexLength: index.length });
    const size = dataEnd + index.length + FOOTER_BYTES;
    return {
      size,
      ranges: new IndexBlock(index, dataEnd).ranges(),
      index,
      encode(bytes = new Uint8Array(size)) {
        assert(bytes.length === size, `Object of ${size} bytes in memory of ${bytes.length}`);
        let at = 0;
        for (const records of blocks) at = writeDataBlock(bytes, at, records);
        bytes.set(index, at);
        bytes.set(footer, at + index.length);
        return bytes;
      },
      parts: (partBytes) => cut(pieces(blocks, index, footer), size, partBytes),
    };
  }
}

/** A block is valid until the next one is asked for: all of them pass through one buffer. */
function* pieces(
  blocks: readonly (readonly StreamRecord[])[],
  index: Uint8Array,
  footer: Uint8Array,
): Generator<Uint8Array> {
  let scratch = new Uint8Array(0);
  for (const records of blocks) {
    const bytes = dataBlockBytes(records);
    if (bytes > scratch.length) scratch = new Uint8Array(bytes);
    writeDataBlock(scratch, 0, records);
    yield scratch.subarray(0, bytes);
  }
  yield index;
  yield footer;
}

/** Cuts pieces of any size into parts of equal size. */
function* cut(
  source: Iterable<Uint8Array>,
  size: number,
  partBytes: number,
): Generator<Uint8Array> {
  let left = size;
  let part = new Uint8Array(Math.min(partBytes, left));
  let filled = 0;
  for (const piece of source) {
    for (let at = 0; at < piece.length;) {
      const taken = piece.subarray(at, at + part.length - filled);
      part.set(taken, filled);
      filled += taken.length;
      at += taken.length;
      if (filled < part.length) continue;
      yield part;
      left -= filled;
      part = new Uint8Array(Math.min(partBytes, left));
      filled = 0;
    }
  }
}
