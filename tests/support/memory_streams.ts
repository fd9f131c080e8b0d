/**
 * A StreamClient in memory for tests: appends become durable by hand or at once, any call can be made to
 * fail, and `crash()` forgets what was not durable and fences every open stream, as a new process would.
 */
import {
  type Offset,
  type StreamEpoch,
  streamEpoch,
  type StreamId,
  streamId,
} from "../../src/lib/brand.ts";
import { assert } from "../../src/lib/assert.ts";
import { FaultError } from "../../src/lib/errors.ts";
import type { ReadOptions } from "../../src/storage/storage.ts";
import { endOffset, type StreamRecord } from "../../src/storage/stream_record.ts";
import type { Stream, StreamAppend, StreamClient } from "../../src/stream/stream.ts";

export type StreamOp = "create" | "open" | "delete" | "append" | "fetch" | "trim" | "close";

interface Pending {
  readonly row: Row;
  readonly record: StreamRecord;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** What outlives a crash. */
interface Row {
  readonly id: StreamId;
  epoch: number;
  start: Offset;
  records: StreamRecord[];
  /** Ends the handle that is open now. */
  incarnation: number;
  open: boolean;
}

export interface MemoryStreams extends StreamClient {
  /** `auto` makes appends durable in a microtask; `manual` waits for `confirm`. */
  durability: "auto" | "manual";
  /** Asked before every call; return an error to make the call throw or reject with it. */
  fail: ((op: StreamOp, call: number, stream: StreamId | null) => Error | null) | null;
  /** False makes every cache-only read a miss. */
  cached: boolean;
  /** Calls so far, of all kinds. */
  readonly calls: number;
  /** Appends so far: what would cost writes. */
  readonly appends: number;
  /** Appends that are not durable, oldest first. */
  readonly pending: number;
  /** Makes the oldest `count` appends durable (all by default), in order. */
  confirm(count?: number): void;
  /** Drops what is not durable and fences every open stream. */
  crash(): void;
  /** Records of a stream that are durable, for assertions. */
  records(stream: StreamId): readonly StreamRecord[];
  /** Replaces the durable records of a stream: damage for tests. */
  tamper(stream: StreamId, change: (record: StreamRecord) => StreamRecord | null): void;
  readonly ids: readonly StreamId[];
  readonly tags: ReadonlyMap<StreamId, string>;
}

function end(row: Row): Offset {
  const last = row.records.at(-1);
  return last === undefined ? row.start : Math.max(row.start, endOffset(last));
}

class MemoryStreamStore implements MemoryStreams {
  durability: "auto" | "manual" = "auto";
  fail: MemoryStreams["fail"] = null;
  cached = true;
  calls = 0;
  appends = 0;
  readonly rows = new Map<StreamId, Row>();
  readonly tags = new Map<StreamId, string>();
  queue: Pending[] = [];
  #nextId = 1;

  get pending(): number {
    return this.queue.length;
  }

  get ids(): readonly StreamId[] {
    return [...this.rows.keys()];
  }

  enter(op: StreamOp, stream: StreamId | null): void {
    const call = this.calls++;
    const error = this.fail?.(op, call, stream) ?? null;
    if (error !== null) throw error;
  }

  confirm(count = this.queue.length): void {
    for (const { row, record, resolve } of this.queue.splice(0, count)) {
      assert(end(row) === record.baseOffset, "appends of a stream become durable in order");
      row.records.push(record);
      resolve();
    }
  }

  crash(): void {
    const lost = this.queue;
    this.queue = [];
    for (const row of this.rows.values()) {
      row.incarnation++;
      row.open = false;
    }
    for (const { reject } of lost) {
      reject(new FaultError("closed", "the process crashed", { retriable: false }));
    }
  }

  records(stream: StreamId): readonly StreamRecord[] {
    return this.#row(stream).records;
  }

  tamper(stream: StreamId, change: (record: StreamRecord) => StreamRecord | null): void {
    const row = this.#row(stream);
    row.records = row.records.map(change).filter((record) => record !== null);
  }

  // oxlint-disable-next-line require-await
  async create(epoch: StreamEpoch, tag?: string): Promise<Stream> {
    this.enter("create", null);
    const id = streamId(this.#nextId++);
    const row: Row = { id, epoch, start: 0, records: [], incarnation: 0, open: true };
    this.rows.set(id, row);
    if (tag !== undefined) this.tags.set(id, tag);
    return new MemoryStream(this, row);
  }

  // oxlint-disable-next-line require-await
  async open(stream: StreamId, epoch: StreamEpoch): Promise<Stream> {
    this.enter("open", stream);
    const row = this.#row(stream);
    if (epoch < row.epoch) throw new FaultError("fenced", "a newer epoch", { retriable: false });
    assert(!row.open || epoch > row.epoch, `stream ${stream} is open already`);
    row.epoch = epoch;
    row.incarnation++;
    row.open = true;
    return new MemoryStream(this, row);
  }

  async read(
    stream: StreamId,
    start: Offset,
    end: Offset,
    options: ReadOptions,
  ): Promise<readonly StreamRecord[] | null> {
    return await new MemoryStream(this, this.#row(stream)).fetch(start, end, options);
  }

  // oxlint-disable-next-line require-await
  async delete(stream: StreamId): Promise<void> {
    this.enter("delete", stream);
    assert(this.rows.get(stream)?.open !== true, `stream ${stream} is open`);
    this.rows.delete(stream);
  }

  // oxlint-disable-next-line require-await
  async close(): Promise<void> {
    for (const row of this.rows.values()) {
      row.incarnation++;
      row.open = false;
    }
  }

  #row(stream: StreamId): Row {
    const row = this.rows.get(stream);
    assert(row !== undefined, `stream ${stream} does not exist`);
    return row;
  }
}

class MemoryStream implements Stream {
  readonly streamId: StreamId;
  readonly epoch: StreamEpoch;
  readonly #store: MemoryStreamStore;
  readonly #row: Row;
  readonly #incarnation: number;
  #nextOffset: Offset;
  #last: Promise<void> = Promise.resolve();

  constructor(store: MemoryStreamStore, row: Row) {
    this.#store = store;
    this.#row = row;
    this.streamId = row.id;
    this.epoch = streamEpoch(row.epoch);
    this.#incarnation = row.incarnation;
    this.#nextOffset = end(row);
  }

  get startOffset(): Offset {
    return this.#row.start;
  }
  get confirmOffset(): Offset {
    return end(this.#row);
  }
  get nextOffset(): Offset {
    return this.#nextOffset;
  }

  #enter(op: StreamOp): void {
    this.#store.enter(op, this.streamId);
    if (this.#row.incarnation !== this.#incarnation) {
      throw new FaultError("fenced", "the stream has a newer owner", { retriable: false });
    }
  }

  append(count: number, payload: Uint8Array): StreamAppend {
    this.#enter("append");
    assert(count > 0, "an append covers at least one offset");
    this.#store.appends++;
    const record: StreamRecord = {
      streamId: this.streamId,
      epoch: this.epoch,
      baseOffset: this.#nextOffset,
      count,
      payload: payload.slice(),
    };
    this.#nextOffset += count;
    const durable = new Promise<void>((resolve, reject) => {
      this.#store.queue.push({ row: this.#row, record, resolve, reject });
    });
    durable.catch(() => {});
    this.#last = durable;
    if (this.#store.durability === "auto") {
      queueMicrotask(() => {
        if (this.#store.durability === "auto") this.#store.confirm();
      });
    }
    return { baseOffset: record.baseOffset, record, durable };
  }

  // oxlint-disable-next-line require-await
  async fetch(
    start: Offset,
    stop: Offset,
    options: ReadOptions,
  ): Promise<readonly StreamRecord[] | null> {
    this.#enter("fetch");
    assert(stop <= this.confirmOffset, "reads stay below the confirm offset");
    assert(start >= this.startOffset, "reads stay above the start offset");
    if (options.cacheOnly === true && !this.#store.cached) return null;
    const found: StreamRecord[] = [];
    let bytes = 0;
    for (const record of this.#row.records) {
      if (endOffset(record) <= start || record.baseOffset >= stop) continue;
      if (found.length > 0 && bytes + record.payload.length > options.bytesMax) break;
      found.push(record);
      bytes += record.payload.length;
    }
    return found;
  }

  // oxlint-disable-next-line require-await
  async trim(start: Offset): Promise<void> {
    this.#enter("trim");
    assert(start <= this.confirmOffset, "a trim stays below the confirm offset");
    this.#row.start = Math.max(this.#row.start, start);
    this.#row.records = this.#row.records.filter((record) => endOffset(record) > start);
  }

  async close(): Promise<void> {
    this.#enter("close");
    await this.#last;
    this.#row.incarnation++;
    this.#row.open = false;
  }
}

export function createMemoryStreams(): MemoryStreams {
  return new MemoryStreamStore();
}
