/** The signal that an object in the local metadata is gone from the store: the metadata may be stale. */
import type { ObjectId } from "../lib/brand.ts";

/** Never leaves whoever reads: it becomes a fresh look or a new plan, and then a fault. */
export class MissingObject extends Error {
  override readonly name = "MissingObject";
  readonly objectId: ObjectId;

  constructor(objectId: ObjectId) {
    super(`Object ${objectId} is not in the store`);
    this.objectId = objectId;
  }
}
