/** What there is to collect, by the image alone: no clock and no store. */
import type { NodeEpoch, NodeId, ObjectId, Position } from "../lib/brand.ts";
import { unnamedIds } from "./decide_garbage.ts";
import { type IdBlock, type Image, walKey, type WalRow } from "./image.ts";

/** Destroyed objects in the order of the entries that destroyed them. */
export interface Destroyed {
  readonly objectId: ObjectId;
  readonly destroyedAt: Position;
}

export function destroyedObjects(image: Image): Destroyed[] {
  const found: Destroyed[] = [];
  for (const objectId of image.destroyed) {
    const destroyedAt = image.objects.get(objectId)?.destroyedAt ?? null;
    if (destroyedAt !== null) found.push({ objectId, destroyedAt });
  }
  return found.toSorted((a, b) => a.destroyedAt - b.destroyedAt || a.objectId - b.objectId);
}

/**
 * Whether the garbage of `node` is for `me`: its own, and that of nodes that are gone. Of those the live node
 * with the smallest id takes care; two would waste requests and harm nothing.
 */
export function collectsFor(image: Image, me: NodeId, node: NodeId): boolean {
  if (node === me) return true;
  if (image.nodes.get(node)?.state === "live") return false;
  return isKeeper(image, me);
}

/** The live node with the smallest id does what one node has to do for all. */
export function isKeeper(image: Image, me: NodeId): boolean {
  for (const { nodeId, state } of image.nodes.values()) {
    if (state === "live" && nodeId < me) return false;
  }
  return image.nodes.get(me)?.state === "live";
}

/** An incarnation that can commit nothing any more. */
export interface DeadEpoch {
  readonly nodeId: NodeId;
  readonly epoch: NodeEpoch;
  /** Where its seal is; null when its WAL is forgotten. */
  readonly sealedSlot: number | null;
}

function isLive(image: Image, node: NodeId, epoch: NodeEpoch): boolean {
  const row = image.nodes.get(node);
  return row?.epoch === epoch && row.state === "live";
}

/** Recovered incarnations that still hold reserved ids and are for `me`, oldest first. */
export function sweepableEpochs(image: Image, me: NodeId): DeadEpoch[] {
  const epochs = new Map<NodeEpoch, DeadEpoch>();
  for (const { nodeId, epoch, sweptAt } of image.idBlocks.values()) {
    if (sweptAt !== null || isLive(image, nodeId, epoch)) continue;
    if (!collectsFor(image, me, nodeId)) continue;
    const state = image.wals.get(walKey(nodeId, epoch))?.state;
    if (state !== undefined && state.kind !== "sealed") continue;
    epochs.set(epoch, { nodeId, epoch, sealedSlot: state?.slot ?? null });
  }
  return [...epochs.values()].toSorted((a, b) => a.epoch - b.epoch);
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

/** Sealed WALs that are for `me`, oldest first. */
export function forgettableWals(image: Image, me: NodeId): WalRow[] {
  return [...image.wals.values()]
    .filter(({ nodeId, state }) => state.kind === "sealed" && collectsFor(image, me, nodeId))
    .toSorted((a, b) => a.epoch - b.epoch);
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
