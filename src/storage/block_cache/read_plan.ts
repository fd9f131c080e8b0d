/** Decides in which objects an offset of a stream lies. Pure. */
import type { NodeId, Offset } from "../../lib/brand.ts";
import type { StreamObjectRef, StreamObjectsView } from "../ports.ts";

export type Place =
  /** In an object of the stream's own. */
  | { readonly kind: "stream-object"; readonly object: StreamObjectRef; readonly until: Offset }
  /** In one of the node's stream set objects. */
  | { readonly kind: "stream-set"; readonly nodeId: NodeId; readonly until: Offset }
  | { readonly kind: "nowhere" };

/** A stream's own object goes before its owner's stream set objects. `until` bounds what the place answers. */
export function locate(view: StreamObjectsView, offset: Offset): Place {
  const object = view.streamObjects.find(({ start, end }) => start <= offset && offset < end);
  if (object !== undefined) return { kind: "stream-object", object, until: object.end };
  const range = view.ranges.find(({ start, end }) =>
    start <= offset && (end === null || offset < end)
  );
  if (range === undefined) return { kind: "nowhere" };
  const nextOwn = view.streamObjects.find(({ start }) => start > offset)?.start;
  const until = Math.min(range.end ?? Number.MAX_SAFE_INTEGER, nextOwn ?? Number.MAX_SAFE_INTEGER);
  return { kind: "stream-set", nodeId: range.nodeId, until };
}
