/** Object ids from blocks that metadata reserved for this node epoch, handed out ascending. */
import { type ObjectId, objectId } from "../../lib/brand.ts";
import { OBJECT_ID_BLOCK } from "../../lib/limits.ts";
import { refused } from "../engine_refusal.ts";
import type { ObjectManager } from "../ports.ts";

export class IdPool {
  readonly #objects: ObjectManager;
  readonly #blockSize: number;
  #next = 0;
  #end = 0;

  constructor(objects: ObjectManager, blockSize = OBJECT_ID_BLOCK) {
    this.#objects = objects;
    this.#blockSize = blockSize;
  }

  /** One caller at a time. What is left of an old block is swept with the epoch. */
  async take(count: number): Promise<ObjectId[]> {
    if (this.#end - this.#next < count) {
      const blockSize = Math.max(count, this.#blockSize);
      const answer = await this.#objects.reserveIds(blockSize);
      if (!answer.ok) throw refused("Reserving object ids", answer);
      this.#next = answer.first;
      this.#end = answer.first + blockSize;
    }
    const first = this.#next;
    this.#next += count;
    return Array.from({ length: count }, (_, i) => objectId(first + i));
  }
}
