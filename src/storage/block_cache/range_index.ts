/**
 * Finds the stream set object of a node that holds an offset. Metadata does not know which streams such an
 * object has: that is read from its index and kept as a small table. The list of objects always comes from
 * metadata, so an object that disappeared is never asked. Where many tables are missing, after a restart,
 * a sparse index says which object to try first.
 */
import type { NodeId, ObjectId, Offset, StreamId } from "../../lib/brand.ts";
import { isFault } from "../../lib/errors.ts";
import { INDEX_LOADS_IN_FLIGHT_MAX } from "../../lib/limits.ts";
import { Lru } from "../../lib/lru.ts";
import { MissingObject } from "../missing_object.ts";
import type { ObjectManager, StreamSetRef } from "../ports.ts";
import type { IndexCache } from "./index_cache.ts";
import { RangeTable } from "./range_table.ts";
import { searchSteps } from "./search_steps.ts";
import type { SparseReader } from "./sparse_indexes.ts";

/** What is known of stream set objects, however it was read. */
export type RangeTables = Lru<ObjectId, RangeTable>;

export function rangeTables(bytesMax: number): RangeTables {
  return new Lru(bytesMax, (table) => table.bytes);
}

interface Searched {
  readonly found: StreamSetRef | null;
  /** Why one of the objects could not be searched. */
  readonly broken: Error | null;
}

export class RangeIndex {
  readonly #objects: Pick<ObjectManager, "streamSetObjects">;
  readonly #indexes: IndexCache;
  readonly #sparse: SparseReader;
  readonly #tables: RangeTables;

  constructor(
    objects: Pick<ObjectManager, "streamSetObjects">,
    indexes: IndexCache,
    sparse: SparseReader,
    tables: RangeTables,
  ) {
    this.#objects = objects;
    this.#indexes = indexes;
    this.#sparse = sparse;
    this.#tables = tables;
  }

  /**
   * Null when no stream set object of the node has the offset. One that is gone or damaged stands in nobody's way
   * but of those who want what is in it: MissingObject or a fault is thrown once no other one has the offset.
   */
  async find(node: NodeId, stream: StreamId, offset: Offset): Promise<StreamSetRef | null> {
    const unknown: StreamSetRef[] = [];
    for (const object of this.#objects.streamSetObjects(node)) {
      const table = this.#tables.peek(object.objectId);
      if (table === undefined) unknown.push(object);
      else if (table.holds(stream, offset)) {
        this.#tables.get(object.objectId);
        return object;
      }
    }
    let broken: Error | null = null;
    for (const step of await this.#steps(node, stream, offset, unknown)) {
      const searched = await this.#findUnknown(step, stream, offset);
      if (searched.found !== null) return searched.found;
      broken ??= searched.broken;
    }
    if (broken !== null) throw broken;
    return null;
  }

  /** Fewer are read in one go: one more request for the sparse index would be in vain. */
  async #steps(
    node: NodeId,
    stream: StreamId,
    offset: Offset,
    unknown: readonly StreamSetRef[],
  ): Promise<readonly (readonly StreamSetRef[])[]> {
    if (unknown.length === 0) return [];
    if (unknown.length <= INDEX_LOADS_IN_FLIGHT_MAX) return [unknown];
    const steps = searchSteps(unknown, this.#sparse.of(node), stream, offset);
    if (steps.isHinted) return steps.steps;
    await this.#sparse.refresh(node);
    return searchSteps(unknown, this.#sparse.of(node), stream, offset).steps;
  }

  /** Throws what may pass, as a store that is away: the rest of the search would be in vain, too. */
  async #findUnknown(
    objects: readonly StreamSetRef[],
    stream: StreamId,
    offset: Offset,
  ): Promise<Searched> {
    const loads = await Promise.allSettled(objects.map((object) => this.#load(object)));
    const at = loads.findIndex((one) =>
      one.status === "fulfilled" && one.value.holds(stream, offset)
    );
    const found = objects[at] ?? null;
    let broken: Error | null = null;
    for (const load of loads) {
      if (found !== null || load.status === "fulfilled") continue;
      const error: unknown = load.reason;
      if (!(error instanceof MissingObject) && !isFault(error, "corrupt")) throw error;
      broken ??= error;
    }
    return { found, broken };
  }

  async #load(object: StreamSetRef): Promise<RangeTable> {
    const table = new RangeTable((await this.#indexes.get(object)).ranges());
    this.#tables.set(object.objectId, table);
    return table;
  }
}
