/**
 * Which node leads a partition: rendezvous hashing. Every node computes the same answer from the same
 * list, and when a node joins or leaves only its own share moves.
 */
import type { NodeId } from "../lib/brand.ts";
import { toUtf8, viewOf } from "../lib/bytes.ts";
import { md5 } from "../lib/md5.ts";

/** How much a node wants a key: the first 52 bits of a digest, so that the number is exact. */
function score(key: string, node: NodeId): number {
  const view = viewOf(md5(toUtf8(`${node}/${key}`)));
  return (view.getUint32(0) >>> 0) * 2 ** 20 + (view.getUint32(4) >>> 12);
}

/** Null without nodes. Ties go to the smaller id. */
export function placePartition(key: string, nodes: readonly NodeId[]): NodeId | null {
  if (nodes.length === 1) return nodes[0]!;
  let best: NodeId | null = null;
  let bestScore = -1;
  for (const node of nodes) {
    const value = score(key, node);
    if (value > bestScore || (value === bestScore && best !== null && node < best)) {
      best = node;
      bestScore = value;
    }
  }
  return best;
}
