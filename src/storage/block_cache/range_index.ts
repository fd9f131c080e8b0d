/**
 * Finds the stream set object of a node that holds an offset. Metadata does not know which streams such an
 * object has: that is read from its index and kept as a small table. The list of objects always comes from
 * metadata, so an object that disappeared is never asked, and its table falls out of the cache.
 */
import type { NodeId, ObjectId, Offset, StreamId } from "../../lib/brand.ts";
import { INDEX_LOADS_IN_FLIGHT_MAX } from "../../lib/limits.ts";
import { Lru } from "../../lib/lru.ts";
import type { ObjectManager, StreamRange, StreamSetRef } from "../ports.ts";
import type { IndexCache } from "./index_cache.ts";
import { RangeTable } from "./range_table.ts";

export class RangeIndex {
  readonly #objects: Pick<ObjectManager, "streamSetObjects">;
  readonly #indexes: IndexCache;
  readonly #tables: Lru<ObjectId, RangeTable>;

  constructor(
    objects: Pick<ObjectManager, "streamSetObjects">,
    indexes: IndexCache,
    bytesMax: number,
  ) {
    this.#objects = objects;
    this.#indexes = indexes;
    this.#tables = new Lru(bytesMax, (table) => table.bytes);
  }

  get bytes(): number {
    return this.#tables.weight;
  }

  /** An upload of ours: known without reading it. */
  learn(id: ObjectId, ranges: readonly StreamRange[]): void {
    this.#tables.set(id, new RangeTable(ranges));
  }

  /** Throws MissingObject. Null when no stream set object of the node has the offset. */
  async find(node: NodeId, stream: StreamId, offset: Offset): Promise<StreamSetRef | null> {
    const unknown: StreamSetRef[] = [];
    for (const object of this.#objects.streamSetObjects(node)) {
      const table = this.#tables.get(object.objectId);
      if (table === undefined) unknown.push(object);
      else if (table.holds(stream, offset)) return object;
    }
    for (let at = 0; at < unknown.length; at += INDEX_LOADS_IN_FLIGHT_MAX) {
      const found = await this.#findUnknown(
        unknown.slice(at, at + INDEX_LOADS_IN_FLIGHT_MAX),
        stream,
        offset,
      );
      if (found !== null) return found;
    }
    return null;
  }

  async #findUnknown(
    objects: readonly StreamSetRef[],
    stream: StreamId,
    offset: Offset,
  ): Promise<StreamSetRef | null> {
    const tables = await Promise.all(objects.map((object) => this.#load(object)));
    return objects.find((_, i) => tables[i]!.holds(stream, offset)) ?? null;
  }

  async #load(object: StreamSetRef): Promise<RangeTable> {
    const table = new RangeTable((await this.#indexes.get(object)).ranges());
    this.#tables.set(object.objectId, table);
    return table;
  }
}
