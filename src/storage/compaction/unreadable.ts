/** Objects that compaction cannot read: each is named in the log once and left alone from then on. */
import type { Logger } from "../../env/logger.ts";
import type { ObjectId } from "../../lib/brand.ts";
import { isFault, messageOf } from "../../lib/errors.ts";
import { Lru } from "../../lib/lru.ts";
import { MissingObject } from "../missing_object.ts";
import { type Input, keyOf } from "./refusals.ts";

const REMEMBERED_MAX = 1_000;

export interface UnreadableOptions {
  readonly log: Logger;
  /** An object is gone: fresh metadata may not name it any more. */
  readonly refresh: () => Promise<void>;
}

export class Unreadable {
  readonly #options: UnreadableOptions;
  readonly #damaged = new Lru<ObjectId, true>(REMEMBERED_MAX, () => 1);
  readonly #missing = new Lru<ObjectId, true>(REMEMBERED_MAX, () => 1);

  constructor(options: UnreadableOptions) {
    this.#options = options;
  }

  has(id: ObjectId): boolean {
    return this.#damaged.get(id) === true;
  }

  add(id: ObjectId): void {
    this.#damaged.set(id, true);
  }

  /** False when the error is not one of the inputs: then it is the caller's. */
  async explains(error: unknown, inputs: readonly Input[]): Promise<boolean> {
    const isMissing = error instanceof MissingObject;
    if (!isMissing && !isFault(error, "corrupt")) return false;
    if (isMissing && this.#missing.get(error.objectId) === undefined) {
      // Gone by somebody's compaction or trim, or lost; the next look tells.
      this.#missing.set(error.objectId, true);
      await this.#options.refresh();
      return true;
    }
    if (isMissing) this.add(error.objectId);
    const fields = { inputs: keyOf("of", inputs), error: messageOf(error) };
    this.#options.log.log("error", "compaction-input-unreadable", fields);
    return true;
  }
}
