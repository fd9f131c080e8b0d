/** The rows of the metadata in memory, and what is read off them. */
import type {
  NodeEpoch,
  NodeId,
  ObjectId,
  Offset,
  StreamEpoch,
  StreamId,
} from "../../src/lib/brand.ts";
import type {
  NewStreamObject,
  NewStreamSetObject,
  Refusal,
  StreamObjectRef,
  StreamRange,
  StreamSetRef,
  StreamView,
} from "../../src/storage/ports.ts";

export interface Owner {
  readonly nodeId: NodeId;
  readonly epoch: NodeEpoch;
}

export interface StreamState {
  readonly streamId: StreamId;
  epoch: StreamEpoch;
  owner: Owner;
  open: boolean;
  start: Offset;
  end: Offset;
  ranges: { nodeId: NodeId; start: Offset; end: Offset | null }[];
  objects: StreamObjectRef[];
}

export interface WalState extends Owner {
  walTrim: number;
  /** Token of the newest recovery; 0 while the WAL is in use. */
  recovery: number;
  sealedSlot: number | null;
}

export interface StreamSetState extends StreamSetRef {
  readonly ranges: readonly StreamRange[];
}

export function refuse(reason: "fenced" | "not-found" | "not-open" | "not-closed"): Refusal {
  return { ok: false, reason };
}
export function conflict(detail: string): Refusal {
  return { ok: false, reason: "conflict", detail };
}

export interface Objects {
  readonly streamSetObject: NewStreamSetObject | null;
  readonly streamObjects: readonly NewStreamObject[];
}

export function objectsOf(
  { streamSetObject, streamObjects }: Objects,
): { readonly objectId: ObjectId }[] {
  return streamSetObject === null ? [...streamObjects] : [streamSetObject, ...streamObjects];
}

export function sortedRanges({ streamSetObject, streamObjects }: Objects): StreamRange[] {
  return [...streamSetObject?.ranges ?? [], ...streamObjects.map(({ range }) => range)]
    .toSorted((a, b) => a.streamId - b.streamId || a.start - b.start);
}

export function viewOf({ streamId: id, epoch, open, start, end }: StreamState): StreamView {
  return { streamId: id, epoch, open, start, end };
}

export function streamObjectRef(object: NewStreamObject): StreamObjectRef {
  const { objectId: id, size, attributes, bytesCrc, indexCrc, range } = object;
  const checksums = { bytesCrc, indexCrc };
  return {
    objectId: id,
    kind: "stream",
    size,
    attributes,
    checksums,
    start: range.start,
    end: range.end,
  };
}
