/** Object records: commit, replace, destroy, purge. A state only ever moves forward. */
import type { NodeId, ObjectId, Position, StreamId } from "../lib/brand.ts";
import { position } from "../lib/brand.ts";
import type { ObjectRow } from "./image.ts";
import { idBlockKey } from "./image.ts";
import { mergeSpans, type Span } from "./ranges.ts";
import type { RecordOf, StreamObjectRecord, StreamSetRecord } from "./record.ts";
import type { Draft } from "./state.ts";

/** Destroys an object and what it links to; no reference is left to any of them. */
export function destroyObject(draft: Draft, id: ObjectId, at: Position): void {
  const row = draft.objects.get(id);
  if (row === undefined || row.state === "destroyed") return;
  draft.objects.set(id, { ...row, state: "destroyed", destroyedAt: at, linkedBy: null });
  for (const link of row.links) {
    if (draft.objects.get(link)?.linkedBy === id) destroyObject(draft, link, at);
  }
}

function streamSetRow(object: StreamSetRecord, nodeId: NodeId, order: Position): ObjectRow {
  const { objectId, size, bytesCrc, indexCrc, rangesDigest } = object;
  return {
    objectId,
    size,
    bytesCrc,
    indexCrc,
    rangesDigest,
    nodeId,
    order,
    kind: "stream-set",
    state: "committed",
    attributes: 0,
    stream: null,
    links: [],
    linkedBy: null,
    destroyedAt: null,
  };
}

function streamObjectRow(object: StreamObjectRecord, order: Position): ObjectRow {
  const { objectId, size, bytesCrc, indexCrc, attributes, links, streamId, start, end } = object;
  return {
    objectId,
    size,
    bytesCrc,
    indexCrc,
    attributes,
    links,
    order,
    kind: links.length > 0 ? "composite" : "stream",
    state: "committed",
    nodeId: null,
    stream: { streamId, start, end },
    rangesDigest: "",
    linkedBy: null,
    destroyedAt: null,
  };
}

/** In order of offsets; uploads come last, so the place is looked for from the end. */
function withObject(
  draft: Draft,
  ids: readonly ObjectId[],
  { objectId, start }: StreamObjectRecord,
): ObjectId[] {
  let place = ids.length;
  while (place > 0 && draft.objects.get(ids[place - 1]!)!.stream!.start > start) place--;
  return ids.toSpliced(place, 0, objectId);
}

/** An object of a stream that is gone, or wholly below its start, is destroyed at once: no leak. */
function addStreamObject(draft: Draft, object: StreamObjectRecord, at: Position): void {
  draft.objects.set(object.objectId, streamObjectRow(object, at));
  const stream = draft.streams.get(object.streamId);
  if (stream === undefined || object.end <= stream.start) {
    return destroyObject(draft, object.objectId, at);
  }
  const objects = withObject(draft, stream.objects, object);
  draft.streams.set(object.streamId, { ...stream, objects });
}

type Uploaded = Omit<RecordOf<"recovery-finished">, "type" | "slot">;

export function applyUploaded(draft: Draft, record: Uploaded, at: Position): void {
  const { nodeId, streamSetObject: object } = record;
  if (object !== null) {
    draft.objects.set(object.objectId, streamSetRow(object, nodeId, at));
    const list = draft.streamSets.get(nodeId) ?? [];
    draft.streamSets.set(nodeId, [...list, object.objectId]);
  }
  for (const streamObject of record.streamObjects) addStreamObject(draft, streamObject, at);
  for (const [stream, end] of record.ends) {
    const row = draft.streams.get(stream);
    if (row !== undefined) draft.streams.set(stream, { ...row, end });
  }
}

/** The output takes the place and the order of its oldest input: readers meet data in order of commit. */
function replaceInList(draft: Draft, record: RecordOf<"compacted">, at: Position): void {
  const { nodeId, streamSetObject: output } = record;
  const replaced = new Set(record.replaced);
  const list = draft.streamSets.get(nodeId) ?? [];
  const inputs = list.filter((id) => replaced.has(id));
  if (inputs.length === 0 && output === null) return;
  const first = inputs[0];
  const place = first === undefined ? list.length : list.indexOf(first);
  const kept = (ids: readonly ObjectId[]) => ids.filter((id) => !replaced.has(id));
  const middle = output === null ? [] : [output.objectId];
  draft.streamSets.set(nodeId, [
    ...kept(list.slice(0, place)),
    ...middle,
    ...kept(list.slice(place)),
  ]);
  if (output === null) return;
  const orders = inputs.map((id) => draft.objects.get(id)!.order);
  const order = position(Math.min(at, ...orders));
  draft.objects.set(output.objectId, streamSetRow(output, nodeId, order));
}

function detachInputs(draft: Draft, replaced: readonly ObjectId[]): void {
  const gone = new Set(replaced);
  const streams = new Set<StreamId>();
  for (const id of replaced) {
    const stream = draft.objects.get(id)!.stream;
    if (stream !== null) streams.add(stream.streamId);
  }
  for (const id of streams) {
    const row = draft.streams.get(id);
    if (row === undefined) continue;
    draft.streams.set(id, { ...row, objects: row.objects.filter((object) => !gone.has(object)) });
  }
}

/** Links move to their new composite before the inputs are destroyed, and so outlive them. */
function applyLinks(draft: Draft, objects: readonly StreamObjectRecord[]): Set<ObjectId> {
  const linked = new Set<ObjectId>();
  for (const { objectId, links } of objects) {
    for (const id of links) {
      linked.add(id);
      draft.objects.set(id, { ...draft.objects.get(id)!, linkedBy: objectId });
    }
  }
  return linked;
}

export function applyCompacted(draft: Draft, record: RecordOf<"compacted">, at: Position): void {
  replaceInList(draft, record, at);
  detachInputs(draft, record.replaced);
  const linked = applyLinks(draft, record.streamObjects);
  for (const object of record.streamObjects) addStreamObject(draft, object, at);
  for (const id of record.replaced) if (!linked.has(id)) destroyObject(draft, id, at);
}

/** Marks the blocks; their ids without a row count as destroyed from here on, without 4,096 rows. */
export function applySwept(
  draft: Draft,
  { nodeId, epoch }: RecordOf<"epoch-swept">,
  at: Position,
): void {
  for (const [key, block] of draft.idBlocks.entries()) {
    if (block.nodeId !== nodeId || block.epoch !== epoch || block.sweptAt !== null) continue;
    draft.idBlocks.set(key, { ...block, sweptAt: at });
  }
}

/** The part of `spans` inside [from, to). */
function inside(spans: readonly Span[], from: number, to: number): Span[] {
  return spans.map(({ start, end }) => ({ start: Math.max(start, from), end: Math.min(end, to) }))
    .filter(({ start, end }) => start < end);
}

/** A purged id leaves its row; its block remembers it, or its owner could commit it a second time. */
export function applyPurged(draft: Draft, record: RecordOf<"purged">): void {
  const spans = record.ids.map(([start, end]) => ({ start, end }));
  for (const { start, end } of spans) {
    for (let id = start; id < end; id++) draft.objects.delete(id as ObjectId);
  }
  for (const [key, block] of draft.idBlocks.entries()) {
    const gone = inside(spans, block.from, block.to);
    if (gone.length === 0) continue;
    const purged = mergeSpans([...block.purged, ...gone]);
    // A block without an id left says no more than none: blocks are as many as their live objects need.
    const isSpent = purged.length === 1 && purged[0]!.start <= block.from &&
      purged[0]!.end >= block.to;
    if (isSpent) draft.idBlocks.delete(key);
    else draft.idBlocks.set(key, { ...block, purged });
  }
  for (const { nodeId, epoch, from } of record.blocks) {
    draft.idBlocks.delete(idBlockKey(nodeId, epoch, from));
  }
}
