/** What a node that starts believes to be the end of the metadata, for the check of it against the store. */
import {
  type NodeEpoch,
  type NodeId,
  type ObjectId,
  objectId,
  type StreamId,
} from "../lib/brand.ts";
import { TAIL_BLOCKS_MAX, TAIL_PROBE_IDS } from "../lib/limits.ts";
import type { KnownWal, MetadataEnd } from "../storage/recover_tail.ts";
import type { IdBlock, Image, WalRow } from "./image.ts";
import { spanContains } from "./ranges.ts";

export function metadataEndOf(image: Image, node: NodeId): MetadataEnd {
  const [newest] = [...image.wals.values()]
    .filter(({ nodeId, state }) => nodeId === node && state.kind !== "sealed")
    .toSorted((a, b) => b.epoch - a.epoch);
  const { at, nextObjectId } = image;
  return { at, nextObjectId, wal: newest === undefined ? null : knownWal(image, newest) };
}

function knownWal(image: Image, { nodeId, epoch, walTrim }: WalRow): KnownWal {
  const held = [...image.streams.values()].filter(({ open, owner }) =>
    open && owner.nodeId === nodeId && owner.epoch === epoch
  );
  const blocks = [...image.idBlocks.values()]
    .filter((block) => block.nodeId === nodeId && block.epoch === epoch)
    .toSorted((a, b) => b.from - a.from).slice(0, TAIL_BLOCKS_MAX);
  return {
    nodeId,
    epoch,
    walTrim,
    held,
    nextIds: blocks.flatMap((one) => nextIds(image, one)),
    canHaveHeld: (stream) => canHaveHeld(image, nodeId, epoch, stream),
  };
}

/**
 * Who writes to a stream has opened it. Of the same node whoever holds it since has a later epoch; it may also have
 * moved to another node, which may have registered earlier, or be deleted.
 */
export function canHaveHeld(
  image: Pick<Image, "streams" | "nextStreamId">,
  node: NodeId,
  epoch: NodeEpoch,
  stream: StreamId,
): boolean {
  const row = image.streams.get(stream);
  if (row === undefined) return stream < image.nextStreamId;
  return row.owner.nodeId !== node || row.owner.epoch >= epoch;
}

/** Ids are handed out ascending: those after the last that was used. */
function nextIds(image: Image, { from, to, purged }: IdBlock): ObjectId[] {
  let next = to;
  while (next > from && !isUsed(image, purged, next - 1)) next -= 1;
  const count = Math.min(TAIL_PROBE_IDS, to - next);
  return Array.from({ length: count }, (_, i) => objectId(next + i));
}

function isUsed(image: Image, purged: IdBlock["purged"], id: number): boolean {
  return image.objects.has(objectId(id)) || spanContains(purged, id);
}
