/** The index of an object as its writer knows it: who reads the object next need not ask for it. */
import type { ObjectId } from "../lib/brand.ts";
import type { CompositeIndex } from "./format/composite.ts";
import type { IndexBlock } from "./format/index_block.ts";
import type { NewStreamSetObject } from "./ports.ts";

/** What a commit brought. */
export interface Learned {
  readonly streamSetObject: Pick<NewStreamSetObject, "objectId" | "ranges"> | null;
  readonly indexes: readonly WrittenIndex[];
}

export interface WrittenIndex {
  readonly objectId: ObjectId;
  readonly index: IndexBlock | CompositeIndex;
}
