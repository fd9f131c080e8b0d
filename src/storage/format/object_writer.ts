/**
 * Lays out a data object: data blocks in ascending stream order, index block, footer. Stream set objects
 * and stream objects share the layout. The layout is computed first, so that the size is known before
 * a byte is encoded, and encoding can be repeated when an upload fails.
 */
import { assert } from "../../lib/assert.ts";
import { type Offset, type StreamId, streamId } from "../../lib/brand.ts";
import { DATA_BLOCK_PAYLOAD_BYTES, STREAM_RECORD_HEADER_BYTES } from "../../lib/limits.ts";
import type { StreamRange } from "../ports.ts";
import { listOf, type RecordList } from "../record_list.ts";
import type { StreamRecord } from "../stream_record.ts";
import { DATA_BLOCK_HEADER_BYTES, writeListBlock } from "./data_block.ts";
import { encodeFooter, FOOTER_BYTES } from "./footer.ts";
import { encodeIndex, ENTRY_OFFSETS_MAX, IndexBlock, type IndexEntry } from "./index_block.ts";

export interface ObjectLayout {
  readonly size: number;
  readonly ranges: readonly StreamRange[];
  /** Encoded index block. */
  readonly index: Uint8Array;
  /** The same as readers have it. */
  readonly indexBlock: IndexBlock;
  /** The whole object. */
  encode(): Uint8Array;
  /** The same into memory of exactly its size, step by step; each step views what it has filled. */
  encodeInto(bytes: Uint8Array, stepBytes: number): Generator<Uint8Array>;
  /** The same bytes in parts of equal size, the last may be shorter. */
  parts(partBytes: number): Generator<Uint8Array>;
}

/** Records of one list that become one data block. */
interface Span {
  readonly list: RecordList;
  readonly from: number;
  to: number;
  bytes: number;
}

export class ObjectWriter {
  readonly #blockPayloadBytes: number;
  readonly #blocks: Span[] = [];
  readonly #entries: IndexEntry[] = [];
  /** Records that came one by one. */
  readonly #single: StreamRecord[] = [];
  readonly #singleList = listOf(this.#single);
  #open: Span | null = null;
  #openPayloadBytes = 0;
  /** Stream and end of the last record. */
  #stream = -1;
  #end = 0;
  #position = 0;

  constructor(blockPayloadBytes = DATA_BLOCK_PAYLOAD_BYTES) {
    this.#blockPayloadBytes = blockPayloadBytes;
  }

  /** Streams ascending, offsets of a stream ascending. */
  add(record: StreamRecord): void {
    this.#single.push(record);
    this.#add(record.streamId, this.#singleList, this.#single.length - 1);
  }

  /** Records `from` to `to` of a stream's list, which is read again when the object is encoded. */
  addList(stream: StreamId, list: RecordList, from = 0, to = list.length): void {
    for (let i = from; i < to; i++) this.#add(stream, list, i);
  }

  #add(stream: StreamId, list: RecordList, i: number): void {
    const start = list.startAt(i);
    const end = list.endAt(i);
    assert(end > start, `Record of stream ${stream} covers no offset`);
    const inOrder = stream > this.#stream || (stream === this.#stream && start >= this.#end);
    assert(inOrder, `Object out of order at stream ${stream}, ${start}`);
    if (this.#mustCloseBefore(stream, list, start, end)) this.#closeBlock();
    const payloadBytes = list.payloadBytesAt(i);
    this.#open ??= { list, from: i, to: i, bytes: DATA_BLOCK_HEADER_BYTES };
    this.#open.to += 1;
    this.#open.bytes += STREAM_RECORD_HEADER_BYTES + payloadBytes;
    this.#openPayloadBytes += payloadBytes;
    this.#stream = stream;
    this.#end = end;
  }

  /** Blocks never span streams or gaps; the payload count starts anew with each block. */
  #mustCloseBefore(stream: StreamId, list: RecordList, start: Offset, end: Offset): boolean {
    const open = this.#open;
    if (open === null) return false;
    return stream !== this.#stream || list !== open.list || start !== this.#end ||
      this.#openPayloadBytes >= this.#blockPayloadBytes ||
      end - open.list.startAt(open.from) > ENTRY_OFFSETS_MAX;
  }

  #closeBlock(): void {
    const open = this.#open;
    if (open === null) return;
    this.#entries.push({
      streamId: streamId(this.#stream),
      start: open.list.startAt(open.from),
      end: this.#end,
      recordCount: open.to - open.from,
      position: this.#position,
      size: open.bytes,
    });
    this.#blocks.push(open);
    this.#position += open.bytes;
    this.#open = null;
    this.#openPayloadBytes = 0;
  }

  finish(): ObjectLayout {
    this.#closeBlock();
    const blocks = this.#blocks;
    const index = encodeIndex(this.#entries);
    const dataEnd = this.#position;
    const footer = encodeFooter("data", { indexPosition: dataEnd, indexLength: index.length });
    const size = dataEnd + index.length + FOOTER_BYTES;
    const indexBlock = new IndexBlock(index, dataEnd);
    return {
      size,
      ranges: indexBlock.ranges(),
      index,
      indexBlock,
      encode() {
        const bytes = new Uint8Array(size);
        Array.from(fill(bytes, size, blocks, index, footer));
        return bytes;
      },
      encodeInto(bytes, stepBytes) {
        assert(bytes.length === size, `Object of ${size} bytes in memory of ${bytes.length}`);
        return fill(bytes, stepBytes, blocks, index, footer);
      },
      parts: (partBytes) => cut(pieces(blocks, index, footer), size, partBytes),
    };
  }
}

/** A step ends with the first block that brings it to its size. */
function* fill(
  bytes: Uint8Array,
  stepBytes: number,
  blocks: readonly Span[],
  index: Uint8Array,
  footer: Uint8Array,
): Generator<Uint8Array> {
  let start = 0;
  let at = 0;
  for (const block of blocks) {
    at = writeListBlock(bytes, at, block);
    if (at - start < stepBytes) continue;
    yield bytes.subarray(start, at);
    start = at;
  }
  bytes.set(index, at);
  bytes.set(footer, at + index.length);
  yield bytes.subarray(start);
}

/** A block is valid until the next one is asked for: all of them pass through one buffer. */
function* pieces(
  blocks: readonly Span[],
  index: Uint8Array,
  footer: Uint8Array,
): Generator<Uint8Array> {
  let scratch = new Uint8Array(0);
  for (const block of blocks) {
    if (block.bytes > scratch.length) scratch = new Uint8Array(block.bytes);
    yield scratch.subarray(0, writeListBlock(scratch, 0, block));
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
