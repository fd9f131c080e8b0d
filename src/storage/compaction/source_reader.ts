/** Reads what compaction needs of existing objects: indexes, and blocks by range reads that neighbours share. */
import type { ObjectId } from "../../lib/brand.ts";
import { isFault } from "../../lib/errors.ts";
import { COMPACTION_READS_MAX } from "../../lib/limits.ts";
import { dataKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import type { CompositeIndex } from "../format/composite.ts";
import type { IndexBlock } from "../format/index_block.ts";
import {
  decoding,
  readComposite,
  readIndex,
  readRange,
  tailGuessBytes,
} from "../format/object_reader.ts";
import { MissingObject } from "../missing_object.ts";
import type { ObjectRef } from "../ports.ts";
import type { SourceBlock } from "./blocks.ts";
import type { CompactionBudget } from "./budget.ts";
import { checkBlock } from "./check_block.ts";
import { type RangeRead, readsOf } from "./steps.ts";

export interface SourceReaderOptions {
  readonly store: ObjectStore;
  readonly clusterId: string;
  readonly budget: CompactionBudget;
  readonly signal: AbortSignal;
  readonly onRead: (bytes: number) => void;
  /** The object is damaged: it must not be asked for again. */
  readonly onDamaged: (id: ObjectId) => void;
}

export class SourceReader {
  readonly #options: SourceReaderOptions;

  constructor(options: SourceReaderOptions) {
    this.#options = options;
  }

  index(object: ObjectRef): Promise<IndexBlock> {
    const key = this.#key(object.objectId);
    return this.#read(
      object.objectId,
      tailGuessBytes(object.size),
      () => readIndex(this.#options.store, key, object),
    );
  }

  composite(object: ObjectRef): Promise<CompositeIndex> {
    const key = this.#key(object.objectId);
    return this.#read(object.objectId, 0, () => readComposite(this.#options.store, key, object));
  }

  /** In the order of the objects, a few at a time. */
  async indexes(objects: readonly ObjectRef[]): Promise<IndexBlock[]> {
    const indexes: IndexBlock[] = [];
    for (let at = 0; at < objects.length; at += COMPACTION_READS_MAX) {
      const some = objects.slice(at, at + COMPACTION_READS_MAX);
      indexes.push(...await Promise.all(some.map((object) => this.index(object))));
    }
    return indexes;
  }

  /** The bytes of each block, checked against its index entry. */
  async blocks(blocks: readonly SourceBlock[]): Promise<Map<SourceBlock, Uint8Array>> {
    const found = new Map<SourceBlock, Uint8Array>();
    await Promise.all(readsOf(blocks).map((read) => this.#readBlocks(read, found)));
    return found;
  }

  async #readBlocks(read: RangeRead, found: Map<SourceBlock, Uint8Array>): Promise<void> {
    const { objectId, start, end } = read;
    const { store, signal } = this.#options;
    const key = this.#key(objectId);
    const bytes = await this.#read(
      objectId,
      end - start,
      () => readRange(store, key, start, end, signal),
    );
    for (const block of read.blocks) {
      const part = bytes.subarray(block.position - start, block.position - start + block.size);
      this.#guard(objectId, () => decoding(key, () => checkBlock(part, block)));
      found.set(block, part);
    }
  }

  #key(id: ObjectId): string {
    return dataKey(this.#options.clusterId, id);
  }

  async #read<T>(id: ObjectId, bytes: number, work: () => Promise<T | null>): Promise<T> {
    const { budget, signal, onRead } = this.#options;
    try {
      const answer = await budget.read(bytes, signal, work);
      if (answer === null) throw new MissingObject(id);
      onRead(bytes);
      return answer;
    } catch (error) {
      throw this.#noted(id, error);
    }
  }

  #guard(id: ObjectId, work: () => void): void {
    try {
      work();
    } catch (error) {
      throw this.#noted(id, error);
    }
  }

  #noted(id: ObjectId, error: unknown): unknown {
    if (isFault(error, "corrupt")) this.#options.onDamaged(id);
    return error;
  }
}
