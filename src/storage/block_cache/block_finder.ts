/** Finds the blocks that hold an offset: metadata names the object, its index the bytes. */
import type { ObjectId, Offset, StreamId } from "../../lib/brand.ts";
import type { IndexEntry } from "../format/index_block.ts";
import type { ObjectManager } from "../ports.ts";
import type { IndexCache } from "./index_cache.ts";
import type { RangeIndex } from "./range_index.ts";
import { locate } from "./read_plan.ts";

export interface FoundBlocks {
  readonly objectId: ObjectId;
  /** Adjacent, the first of them holds the offset. */
  readonly entries: readonly IndexEntry[];
}

export class BlockFinder {
  readonly #objects: Pick<ObjectManager, "viewObjects">;
  readonly #indexes: IndexCache;
  readonly #ranges: RangeIndex;

  constructor(
    objects: Pick<ObjectManager, "viewObjects">,
    indexes: IndexCache,
    ranges: RangeIndex,
  ) {
    this.#objects = objects;
    this.#indexes = indexes;
    this.#ranges = ranges;
  }

  /** In one object; null when none holds the offset. Throws MissingObject. */
  async find(
    stream: StreamId,
    offset: Offset,
    end: Offset,
    bytes: number,
  ): Promise<FoundBlocks | null> {
    const view = this.#objects.viewObjects(stream);
    if (view === null) return null;
    const place = locate(view, offset);
    if (place.kind === "nowhere") return null;
    const object = place.kind === "stream-object"
      ? place.object
      : await this.#ranges.find(place.nodeId, stream, offset);
    if (object === null) return null;
    const held = await this.#indexes.at(object, offset);
    if (held === null) return null;
    const until = Math.min(end, place.until, held.until);
    const { entries } = held.index.find(stream, offset, until, bytes);
    return entries.length === 0 ? null : { objectId: held.objectId, entries };
  }
}
