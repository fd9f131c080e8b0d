/** Whether an index says what the blocks hold: every entry its blocks, every block in one entry, nothing between. */
import type { IndexBlock, IndexEntry } from "../storage/format/index_block.ts";
import { endOffset, type StreamRecord } from "../storage/stream_record.ts";
import type { WalkedBlock } from "./blocks.ts";

export class IndexCheck {
  readonly #index: IndexBlock;
  readonly #dataEnd: number;
  #entry = -1;
  #current: IndexEntry | null = null;
  /** Offset that the current entry's next record must have. */
  #next = 0;
  #records = 0;

  constructor(index: IndexBlock, dataEnd: number) {
    this.#index = index;
    this.#dataEnd = dataEnd;
  }

  /** Takes the blocks in their order; says what is wrong first, else null. */
  block({ at, bytes, records }: WalkedBlock): string | null {
    if (this.#current === null || at >= this.#current.position + this.#current.size) {
      const problem = this.#leave() ?? this.#enter(at);
      if (problem !== null) return problem;
    }
    const entry = this.#current!;
    if (at + bytes > entry.position + entry.size) {
      return `the block at ${at} passes the end of index entry ${this.#entry}`;
    }
    for (const record of records) {
      const problem = this.#record(entry, record);
      if (problem !== null) return problem;
    }
    return null;
  }

  /** After the last block. */
  end(): string | null {
    const problem = this.#leave();
    if (problem !== null) return problem;
    return this.#entry === this.#index.count - 1
      ? null
      : `${this.#index.count} index entries, blocks of ${this.#entry + 1}`;
  }

  #enter(at: number): string | null {
    this.#entry += 1;
    if (this.#entry >= this.#index.count) return `no index entry names the block at ${at}`;
    const entry = this.#index.entry(this.#entry);
    this.#current = entry;
    this.#next = entry.start;
    this.#records = 0;
    if (entry.position !== at) {
      return `index entry ${this.#entry} begins at ${entry.position}, not at ${at}`;
    }
    return entry.position + entry.size <= this.#dataEnd
      ? null
      : `index entry ${this.#entry} passes the end of the blocks`;
  }

  #record(entry: IndexEntry, record: StreamRecord): string | null {
    const { streamId, baseOffset, count } = record;
    if (streamId !== entry.streamId || baseOffset !== this.#next || count <= 0) {
      return `index entry ${this.#entry} expects stream ${entry.streamId} at ${this.#next}, ` +
        `its block holds stream ${streamId} at ${baseOffset}, ${count} offsets`;
    }
    this.#next = endOffset(record);
    this.#records += 1;
    return null;
  }

  #leave(): string | null {
    const entry = this.#current;
    if (entry === null) return null;
    return this.#next === entry.end && this.#records === entry.recordCount
      ? null
      : `index entry ${this.#entry} says ${entry.recordCount} records up to ${entry.end}, ` +
        `its blocks hold ${this.#records} up to ${this.#next}`;
  }
}
