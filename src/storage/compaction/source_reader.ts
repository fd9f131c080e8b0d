/** Reads what compaction needs of existing objects: indexes, and blocks by range reads that neighbours share. */
import type { ObjectId } from "../../lib/brand.ts";
import { isFault } from "../../lib/errors.ts";
import {
  COMPACTION_INDEX_BYTES,
  COMPACTION_READS_MAX,
  COMPACTION_WHOLE_CACHE_BYTES,
} from "../../lib/limits.ts";
import { Lru } from "../../lib/lru.ts";
import { dataKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import type { CompositeIndex } from "../format/composite.ts";
import { IndexBlock } from "../format/index_block.ts";
import {
  decoding,
  readComposite,
  readIndex,
  readRange,
  readWhole,
  tailGuessBytes,
} from "../format/object_reader.ts";
import { MissingObject } from "../missing_object.ts";
import type { ObjectRef } from "../ports.ts";
import type { WrittenIndex } from "../written_index.ts";
import type { SourceBlock } from "./blocks.ts";
import type { CompactionBudget } from "./budget.ts";
import { checkBlock } from "./check_block.ts";
import { type RangeRead, type ReadLimits, readsOf } from "./steps.ts";

export interface SourceReaderOptions {
  readonly limits: ReadLimits & { readonly wholeBytesMax: number };
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
  /** Of objects that this node wrote: they are linked or joined before long. */
  readonly #written = new Lru<ObjectId, IndexBlock>(COMPACTION_INDEX_BYTES, ({ bytes }) => bytes);
  /** Small objects whose blocks are asked for next. */
  readonly #whole = new Lru<ObjectId, Uint8Array>(
    COMPACTION_WHOLE_CACHE_BYTES,
    ({ length }) => length,
  );

  constructor(options: SourceReaderOptions) {
    this.#options = options;
  }

  learn(written: readonly WrittenIndex[]): void {
    for (const { objectId, index } of written) {
      if (index instanceof IndexBlock) this.#written.set(objectId, index);
    }
  }

  async index(object: ObjectRef): Promise<IndexBlock> {
    return this.#written.get(object.objectId) ?? await this.#readIndex(object);
  }

  #readIndex(object: ObjectRef): Promise<IndexBlock> {
    const key = this.#key(object.objectId);
    return this.#read(
      object.objectId,
      tailGuessBytes(object.size),
      () => readIndex(this.#options.store, key, object),
    );
  }

  /** The index of an object that is about to be rewritten: the blocks of a small one come with it. */
  async indexOfSource(object: ObjectRef): Promise<IndexBlock> {
    const { objectId, size } = object;
    const { limits } = this.#options;
    if (size > limits.wholeBytesMax) return await this.index(object);
    const { store, signal } = this.#options;
    const key = this.#key(objectId);
    const whole = await this.#read(objectId, size, () => readWhole(store, key, object, signal));
    this.#whole.set(objectId, whole.bytes);
    return whole.index;
  }

  /** Gives back the memory of small objects. */
  forget(): void {
    this.#whole.clear();
  }

  composite(object: ObjectRef): Promise<CompositeIndex> {
    const key = this.#key(object.objectId);
    return this.#read(object.objectId, 0, () => readComposite(this.#options.store, key, object));
  }

  /** Of objects that are about to be rewritten, in their order, a few at a time. */
  async indexes(objects: readonly ObjectRef[]): Promise<IndexBlock[]> {
    const indexes: IndexBlock[] = [];
    for (let at = 0; at < objects.length; at += COMPACTION_READS_MAX) {
      const some = objects.slice(at, at + COMPACTION_READS_MAX);
      indexes.push(...await Promise.all(some.map((object) => this.indexOfSource(object))));
    }
    return indexes;
  }

  /** The bytes of each block, checked against its index entry. */
  async blocks(blocks: readonly SourceBlock[]): Promise<Map<SourceBlock, Uint8Array>> {
    const found = new Map<SourceBlock, Uint8Array>();
    await Promise.all(
      readsOf(blocks, this.#options.limits).map((read) => this.#readBlocks(read, found)),
    );
    return found;
  }

  async #readBlocks(read: RangeRead, found: Map<SourceBlock, Uint8Array>): Promise<void> {
    const { objectId, start, end } = read;
    const key = this.#key(objectId);
    const bytes = this.#whole.get(objectId)?.subarray(start, end) ?? await this.#readRange(read);
    for (const block of read.blocks) {
      const part = bytes.subarray(block.position - start, block.position - start + block.size);
      this.#guard(objectId, () => decoding(key, () => checkBlock(part, block)));
      found.set(block, part);
    }
  }

  #readRange({ objectId, start, end }: RangeRead): Promise<Uint8Array> {
    const { store, signal } = this.#options;
    const key = this.#key(objectId);
    return this.#read(objectId, end - start, () => readRange(store, key, start, end, signal));
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
