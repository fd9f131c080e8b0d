/** Object ids and uploads: every commit is checked for epoch, ids, ownership and continuity. */
import {
  type NodeEpoch,
  type NodeId,
  type ObjectId,
  objectId,
  type Offset,
  type StreamId,
} from "../lib/brand.ts";
import { OBJECT_IDS_RESERVED_MAX } from "../lib/limits.ts";
import type { NewStreamObject, NewStreamSetObject, StreamRange } from "../storage/ports.ts";
import type { Refused, Requester } from "./command.ts";
import { type ObjectRow, walKey } from "./image.ts";
import type { CommandOf } from "./metadata_store.ts";
import { rangesByStream, rangesDigest, type Span, spanContains } from "./ranges.ts";
import type { RecordOf, StreamObjectRecord, StreamSetRecord } from "./record.ts";
import type { StateImage } from "./state.ts";
import {
  approve,
  checkRequester,
  countProblem,
  notContinuous,
  refuse,
  type Verdict,
} from "./verdict.ts";

export function decideReserveIds(
  image: StateImage,
  { by, count }: CommandOf<"reserve-ids">,
): Verdict<"reserve-ids"> {
  const refused = checkRequester(image, by) ?? countProblem(count, OBJECT_IDS_RESERVED_MAX);
  if (refused !== null) return refused;
  const { nodeId, epoch } = by;
  const from = objectId(image.nextObjectId);
  const record = { type: "ids-reserved", nodeId, epoch, from, to: from + count } as const;
  return { ok: true, records: [record], result: { first: from } };
}

/** The ids must be the requester's, each used once in its life. */
export function checkNewIds(
  image: StateImage,
  by: Requester,
  ids: readonly ObjectId[],
): Refused | null {
  if (new Set(ids).size !== ids.length) return refuse("invalid", "An object id is used twice");
  const blocks = [...image.idBlocks.values()].filter(({ nodeId, epoch, sweptAt }) =>
    nodeId === by.nodeId && epoch === by.epoch && sweptAt === null
  );
  for (const id of ids) {
    const block = blocks.find(({ from, to }) => from <= id && id < to);
    if (block === undefined) {
      return refuse("conflict", `Object ${id} is not reserved by node epoch ${by.epoch}`);
    }
    const row = image.objects.get(id);
    if (row !== undefined) return refuse("conflict", `Object ${id} is ${row.state} already`);
    if (spanContains(block.purged, id)) return refuse("conflict", `Object ${id} is purged already`);
  }
  return null;
}

export function rangeProblem({ streamId, start, end }: StreamRange): Refused | null {
  return Number.isSafeInteger(start) && Number.isSafeInteger(end) && 0 <= start && start < end
    ? null
    : refuse("invalid", `Stream ${streamId}: [${start}, ${end}) is not a range`);
}

export function streamSetRecord(object: NewStreamSetObject): StreamSetRecord {
  const { objectId: id, size, bytesCrc, indexCrc, ranges } = object;
  return { objectId: id, size, bytesCrc, indexCrc, rangesDigest: rangesDigest(ranges) };
}

export function streamObjectRecord(
  object: NewStreamObject,
  links: readonly ObjectId[],
): StreamObjectRecord {
  const { objectId: id, size, bytesCrc, indexCrc, attributes, range } = object;
  return { objectId: id, size, bytesCrc, indexCrc, attributes, links, ...range };
}

export interface NewObjects {
  readonly streamSetObject: NewStreamSetObject | null;
  readonly streamObjects: readonly NewStreamObject[];
}

export function rangesOf({ streamSetObject, streamObjects }: NewObjects): StreamRange[] {
  return [...(streamSetObject?.ranges ?? []), ...streamObjects.map(({ range }) => range)];
}

export function idsOf({ streamSetObject, streamObjects }: NewObjects): ObjectId[] {
  const ids = streamObjects.map((object) => object.objectId);
  return streamSetObject === null ? ids : [streamSetObject.objectId, ...ids];
}

type Advance = { readonly ok: true; readonly end: Offset | null } | Refused;

interface Holder {
  readonly nodeId: NodeId;
  readonly epoch: NodeEpoch;
}

/**
 * The new end of one stream; null when the stream is gone, because then its records are dead bytes.
 * A range may start above the end only where a trim has dropped what lay between.
 */
function advance(image: StateImage, holder: Holder, stream: StreamId, spans: Span[]): Advance {
  const row = image.streams.get(stream);
  if (row === undefined) {
    return stream < image.nextStreamId
      ? { ok: true, end: null }
      : refuse("not-found", `Stream ${stream} never existed`);
  }
  if (row.owner.nodeId !== holder.nodeId || row.owner.epoch !== holder.epoch) {
    return refuse("fenced", `Stream ${stream} is held by node ${row.owner.nodeId}`);
  }
  if (!row.open) return refuse("not-open", `Stream ${stream} is closed`);
  let end = row.end;
  for (const span of spans.toSorted((a, b) => a.start - b.start)) {
    const trimmedPast = span.start > end && span.start <= row.start;
    if (span.start !== end && !trimmedPast) return notContinuous(stream, span.start, end);
    end = span.end;
  }
  return { ok: true, end };
}

type UploadContent = Pick<
  RecordOf<"uploaded">,
  "streamSetObject" | "streamObjects" | "ends"
>;
type CheckedUpload = { readonly ok: true; readonly content: UploadContent } | Refused;

/** `by` wrote the objects under its own ids; `holder` is the incarnation whose records they hold. */
export function checkUpload(
  image: StateImage,
  by: Requester,
  holder: Holder,
  objects: NewObjects,
): CheckedUpload {
  const ranges = rangesOf(objects);
  for (const range of ranges) {
    const problem = rangeProblem(range);
    if (problem !== null) return problem;
  }
  const wrongId = checkNewIds(image, by, idsOf(objects));
  if (wrongId !== null) return wrongId;
  const ends: [StreamId, Offset][] = [];
  for (const [stream, spans] of rangesByStream(ranges)) {
    const advanced = advance(image, holder, stream, spans);
    if (!advanced.ok) return advanced;
    if (advanced.end !== null) ends.push([stream, advanced.end]);
  }
  const { streamSetObject, streamObjects } = objects;
  return {
    ok: true,
    content: {
      streamSetObject: streamSetObject === null ? null : streamSetRecord(streamSetObject),
      streamObjects: streamObjects.map((object) => streamObjectRecord(object, [])),
      ends,
    },
  };
}

/** Whether the commit is in the log already: its answer was lost and its caller asks again. */
function isRepeated(image: StateImage, objects: NewObjects): boolean {
  const same = (
    row: ObjectRow | undefined,
    { bytesCrc, size }: { bytesCrc: number; size: number },
  ) => row !== undefined && row.bytesCrc === bytesCrc && row.size === size;
  const all = objects.streamSetObject === null
    ? objects.streamObjects
    : [objects.streamSetObject, ...objects.streamObjects];
  return all.length > 0 && all.every((object) => same(image.objects.get(object.objectId), object));
}

export function decideCommitUpload(
  image: StateImage,
  { by, commit }: CommandOf<"commit-upload">,
): Verdict<"commit-upload"> {
  const fenced = checkRequester(image, by);
  if (fenced !== null) return fenced;
  const { nodeId, epoch } = by;
  const wal = image.wals.get(walKey(nodeId, epoch));
  if (wal === undefined || wal.state.kind !== "open") {
    return refuse("fenced", `WAL of node ${nodeId}, epoch ${epoch}, is not open`);
  }
  if (isRepeated(image, commit)) return approve();
  const { walTrim } = commit;
  if (!Number.isSafeInteger(walTrim) || walTrim < wal.walTrim) {
    return refuse("invalid", `WAL trim ${walTrim} lies below ${wal.walTrim}`);
  }
  const upload = checkUpload(image, by, by, commit);
  if (!upload.ok) return upload;
  if (idsOf(commit).length === 0 && walTrim === wal.walTrim) return approve();
  return approve({ type: "uploaded", nodeId, epoch, ...upload.content, walTrim });
}
