/** Finds the topic whose name differs from a new one in `.` and `_` only, without a walk for each new name. */
import type { Position } from "../lib/brand.ts";
import type { Image } from "../controller/image.ts";
import { collisionKey } from "./topic_name.ts";

/** Built when it is asked after a change, so once per entry that brings topics, not once per topic. */
export class CollisionIndex {
  #at: Position | null = null;
  #names: ReadonlyMap<string, string> = new Map();

  find(image: Image, key: string): string | undefined {
    if (this.#at !== image.at) {
      this.#names = new Map(
        [...image.topics.values()].map(({ name }) => [collisionKey(name), name]),
      );
      this.#at = image.at;
    }
    return this.#names.get(key);
  }
}
