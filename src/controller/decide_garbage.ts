/** The end of an object's life: ids of dead incarnations are swept, deleted objects are purged. */
import type { ObjectId } from "../lib/brand.ts";
import type { Refused, Requester } from "./command.ts";
import { type IdBlock, idBlockKey, type Image, walKey } from "./image.ts";
import type { CommandOf } from "./metadata_store.ts";
import { spanContains, spansOfIds } from "./ranges.ts";
import type { StateImage } from "./state.ts";
import { approve, checkRequester, refuse, type Verdict } from "./verdict.ts";

/** Ids of a block that may have an object in the store although no row names it. */
export function unnamedIds(image: Image, block: IdBlock): ObjectId[] {
  const ids: ObjectId[] = [];
  for (let id: number = block.from; id < block.to; id++) {
    if (!image.objects.has(id as ObjectId) && !spanContains(block.purged, id)) {
      ids.push(id as ObjectId);
    }
  }
  return ids;
}

/** Only an epoch that can commit nothing any more is swept: superseded or given up, and recovered. */
function deadProblem(
  image: StateImage,
  { nodeId, epoch }: CommandOf<"sweep-epoch">,
): Refused | null {
  const node = image.nodes.get(nodeId);
  if (node === undefined || epoch > node.epoch) {
    return refuse("not-found", `Node ${nodeId} has no epoch ${epoch}`);
  }
  if (node.epoch === epoch && node.state === "live") {
    return refuse("invalid", `Epoch ${epoch} of node ${nodeId} is current`);
  }
  const wal = image.wals.get(walKey(nodeId, epoch));
  return wal === undefined || wal.state.kind === "sealed"
    ? null
    : refuse("conflict", `WAL of node ${nodeId}, epoch ${epoch}, is ${wal.state.kind}`);
}

export function decideSweepEpoch(
  image: StateImage,
  command: CommandOf<"sweep-epoch">,
): Verdict<"sweep-epoch"> {
  const refused = checkRequester(image, command.by) ?? deadProblem(image, command);
  if (refused !== null) return refused;
  const { nodeId, epoch } = command;
  const blocks = [...image.idBlocks.values()].filter((block) =>
    block.nodeId === nodeId && block.epoch === epoch && block.sweptAt === null
  );
  if (blocks.length === 0) return { ok: true, records: [], result: { swept: 0 } };
  const swept = blocks.reduce((sum, block) => sum + unnamedIds(image, block).length, 0);
  return { ok: true, records: [{ type: "epoch-swept", nodeId, epoch }], result: { swept } };
}

type Fate = "gone" | "purge" | Refused;

function fateOf(image: StateImage, by: Requester, id: ObjectId): Fate {
  const row = image.objects.get(id);
  if (row !== undefined) {
    if (row.state === "destroyed") return "purge";
    return refuse("conflict", `Object ${id} is ${row.state}, not destroyed`);
  }
  if (id >= image.nextObjectId) return refuse("not-found", `Object ${id} was never reserved`);
  for (const block of image.idBlocks.values()) {
    if (id < block.from || id >= block.to) continue;
    if (spanContains(block.purged, id)) return "gone";
    const own = block.nodeId === by.nodeId && block.epoch === by.epoch;
    return own || block.sweptAt !== null
      ? "purge"
      : refuse("conflict", `Object ${id} may still be committed by node ${block.nodeId}`);
  }
  return "gone";
}

export function decidePurge(
  image: StateImage,
  { by, objectIds, blocks = [] }: CommandOf<"purge">,
): Verdict<"purge"> {
  const fenced = checkRequester(image, by);
  if (fenced !== null) return fenced;
  const ids: ObjectId[] = [];
  for (const id of objectIds) {
    const fate = fateOf(image, by, id);
    if (typeof fate !== "string") return fate;
    if (fate === "purge") ids.push(id);
  }
  const found = blocks.filter((block) =>
    image.idBlocks.has(idBlockKey(block.nodeId, block.epoch, block.from))
  );
  for (const { nodeId, epoch, from } of found) {
    if (image.idBlocks.get(idBlockKey(nodeId, epoch, from))?.sweptAt === null) {
      return refuse("conflict", `Block ${from} of node ${nodeId}, epoch ${epoch}, is not swept`);
    }
  }
  if (ids.length === 0 && found.length === 0) return approve();
  const spans = spansOfIds(ids).map(({ start, end }): [number, number] => [start, end]);
  return approve({
    type: "purged",
    ids: spans,
    blocks: found.map(({ nodeId, epoch, from }) => ({ nodeId, epoch, from })),
  });
}
