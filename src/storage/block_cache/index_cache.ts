/** Index blocks of data objects, read once while in use and kept up to a number of bytes. */
import type { ObjectId } from "../../lib/brand.ts";
import { Lru } from "../../lib/lru.ts";
import { SingleFlight } from "../../lib/single_flight.ts";
import { dataKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import type { IndexBlock } from "../format/index_block.ts";
import { readIndex } from "../format/object_reader.ts";
import type { ObjectRef } from "../ports.ts";
import { MissingObject } from "./missing_object.ts";

export class IndexCache {
  readonly #store: ObjectStore;
  readonly #clusterId: string;
  readonly #cached: Lru<ObjectId, IndexBlock>;
  readonly #loads = new SingleFlight<ObjectId, IndexBlock>();

  constructor(store: ObjectStore, clusterId: string, bytesMax: number) {
    this.#store = store;
    this.#clusterId = clusterId;
    this.#cached = new Lru(bytesMax, (index) => index.bytes);
  }

  get bytes(): number {
    return this.#cached.weight;
  }

  /** Throws MissingObject. */
  async get(object: ObjectRef): Promise<IndexBlock> {
    const id = object.objectId;
    return this.#cached.get(id) ?? await this.#loads.run(id, () => this.#load(object));
  }

  async #load(object: ObjectRef): Promise<IndexBlock> {
    const index = await readIndex(this.#store, dataKey(this.#clusterId, object.objectId), object);
    if (index === null) throw new MissingObject(object.objectId);
    this.#cached.set(object.objectId, index);
    return index;
  }
}
