/** What there is to collect, by the image alone: no clock and no store. */
import type { NodeEpoch, NodeId, ObjectId, Position } from "../lib/brand.ts";
import { unnamedIds } from "./decide_garbage.ts";
import { type IdBlock, type Image, walKey } from "./image.ts";

/** Destroyed objects in the order of the entries that destroyed them. */
export interface Destroyed {
  readonly objectId: ObjectId;
  readonly destroyedAt: Position;
}

export function destroyedObjects(image: Image): Destroyed[] {
  const found: Destroyed[] = [];
  for (const { objectId, destroyedAt } of image.objects.values()) {
    if (destroyedAt !== null) found.push({ objectId, destroyedAt });
  }
  return found.toSorted((a, b) => a.destroyedAt - b.destroyedAt || a.objectId - b.objectId);
}

/** Earlier incarnations of a node that hold reserved ids and are recovered. */
export function sweepableEpochs(image: Image, node: NodeId): NodeEpoch[] {
  const current = image.nodes.get(node)?.epoch;
  const epochs = new Set<NodeEpoch>();
  for (const block of image.idBlocks.values()) {
    if (block.nodeId !== node || block.sweptAt !== null || block.epoch === current) continue;
    const wal = image.wals.get(walKey(node, block.epoch));
    if (wal === undefined || wal.state.kind === "sealed") epochs.add(block.epoch);
  }
  return [...epochs].toSorted((a, b) => a - b);
}

export interface SweptBlock {
  readonly block: IdBlock;
  /** Ids without a row: never committed, so whatever the store holds under them is garbage. */
  readonly ids: readonly ObjectId[];
}

export function sweptBlocks(image: Image): SweptBlock[] {
  return [...image.idBlocks.values()].filter(({ sweptAt }) => sweptAt !== null)
    .toSorted((a, b) => a.from - b.from)
    .map((block) => ({ block, ids: unnamedIds(image, block) }));
}

/** Sealed WALs of earlier incarnations of a node. */
export function forgettableWals(image: Image, node: NodeId): NodeEpoch[] {
  return [...image.wals.values()]
    .filter(({ nodeId, state }) => nodeId === node && state.kind === "sealed")
    .map(({ epoch }) => epoch).toSorted((a, b) => a - b);
}

/** The last of ascending positions for which `isOld` holds; positions age in order. */
export async function newestOld(
  positions: readonly Position[],
  isOld: (at: Position) => Promise<boolean>,
): Promise<Position | null> {
  let low = 0;
  let high = positions.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (await isOld(positions[middle]!)) low = middle + 1;
    else high = middle;
  }
  return positions[low - 1] ?? null;
}
