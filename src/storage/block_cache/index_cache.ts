/** Index blocks of data objects, read once while in use and kept up to a number of bytes. */
import { assert } from "../../lib/assert.ts";
import type { ObjectId, Offset } from "../../lib/brand.ts";
import { Lru } from "../../lib/lru.ts";
import { SingleFlight } from "../../lib/single_flight.ts";
import { dataKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import { decodeAttributes } from "../format/attributes.ts";
import { CompositeIndex } from "../format/composite.ts";
import type { IndexBlock } from "../format/index_block.ts";
import { readComposite, readIndex } from "../format/object_reader.ts";
import type { ObjectRef } from "../ports.ts";
import { MissingObject } from "../missing_object.ts";

/** The object that really holds an offset, with its index: the object asked for, or one that it links to. */
export interface HeldIndex {
  readonly objectId: ObjectId;
  readonly index: IndexBlock;
  /** Bounds what the index may answer. */
  readonly until: Offset;
}

/** What is known of objects, however it was read. */
export type CachedIndexes = Lru<ObjectId, IndexBlock | CompositeIndex>;

export function cachedIndexes(bytesMax: number): CachedIndexes {
  return new Lru(bytesMax, (index) => index.bytes);
}

export class IndexCache {
  readonly #store: ObjectStore;
  readonly #clusterId: string;
  readonly #cached: CachedIndexes;
  readonly #loads = new SingleFlight<ObjectId, IndexBlock | CompositeIndex>();

  constructor(store: ObjectStore, clusterId: string, cached: CachedIndexes) {
    this.#store = store;
    this.#clusterId = clusterId;
    this.#cached = cached;
  }

  /** Null when a composite links to nothing that holds the offset. Throws MissingObject. */
  async at(object: ObjectRef, offset: Offset): Promise<HeldIndex | null> {
    const index = await this.#get(object);
    if (!(index instanceof CompositeIndex)) {
      return { objectId: object.objectId, index, until: Number.MAX_SAFE_INTEGER };
    }
    const link = index.at(offset);
    return link === null ? null : { objectId: link.objectId, index: link.index, until: link.end };
  }

  /** Of an object that holds its data itself. Throws MissingObject. */
  async get(object: ObjectRef): Promise<IndexBlock> {
    const index = await this.#get(object);
    assert(!(index instanceof CompositeIndex), `Object ${object.objectId} only links to others`);
    return index;
  }

  async #get(object: ObjectRef): Promise<IndexBlock | CompositeIndex> {
    const id = object.objectId;
    return this.#cached.get(id) ?? await this.#loads.run(id, () => this.#load(object));
  }

  async #load(object: ObjectRef): Promise<IndexBlock | CompositeIndex> {
    const key = dataKey(this.#clusterId, object.objectId);
    const isComposite = decodeAttributes(object.attributes).type === "composite";
    const index = isComposite
      ? await readComposite(this.#store, key, object)
      : await readIndex(this.#store, key, object);
    if (index === null) throw new MissingObject(object.objectId);
    this.#cached.set(object.objectId, index);
    return index;
  }
}
