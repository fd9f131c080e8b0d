/**
 * Compaction: new objects for old ones, in one entry. The inputs' range lists are proved by their
 * digests; what the outputs leave out must be dead (below a stream's start, or of a deleted stream).
 */
import type { NodeId, ObjectId, StreamId } from "../lib/brand.ts";
import type { StreamRange } from "../storage/ports.ts";
import type { Refused } from "./command.ts";
import { checkNewIds, idsOf, rangeProblem, rangesOf } from "./decide_objects.ts";
import { streamObjectRecord, streamSetRecord } from "./decide_objects.ts";
import type { ObjectRow } from "./image.ts";
import type { CommandOf } from "./metadata_store.ts";
import {
  clipBelow,
  covers,
  overlaps,
  rangesByStream,
  rangesDigest,
  sameSpans,
  type Span,
} from "./ranges.ts";
import type { StateImage } from "./state.ts";
import { approve, checkRequester, refuse, type Verdict } from "./verdict.ts";

type Compaction = CommandOf<"commit-compaction">;
/** The low two bits of an object's attributes are its type. */
const TYPE_MASK = 0b11;
const TYPE_COMPOSITE = 1;

/** Whose stream set objects the inputs are; of a compaction without any, the requester's. */
function listOf(image: StateImage, { by, replaces }: Compaction): NodeId {
  for (const { objectId } of replaces) {
    const row = image.objects.get(objectId);
    if (row !== undefined && row.nodeId !== null) return row.nodeId;
  }
  return by.nodeId;
}

/** A node compacts its own list; those of nodes that are gone are anybody's. */
function checkList(image: StateImage, command: Compaction): Refused | null {
  const list = listOf(image, command);
  if (list === command.by.nodeId || image.nodes.get(list)?.state === "gone") return null;
  return refuse("conflict", `The stream set objects are those of node ${list}`);
}

function checkInput(
  row: ObjectRow | undefined,
  ranges: readonly StreamRange[],
  { objectId: id, list }: { readonly objectId: ObjectId; readonly list: NodeId },
): Refused | null {
  if (row === undefined || row.state !== "committed" || row.linkedBy !== null) {
    return refuse("conflict", `Object ${id} is not there to be replaced`);
  }
  if (row.stream === null) {
    if (row.nodeId !== list) {
      return refuse("conflict", `Object ${id} stands in the list of node ${row.nodeId}`);
    }
    return rangesDigest(ranges) === row.rangesDigest
      ? null
      : refuse("conflict", `Object ${id}: the ranges do not match its digest`);
  }
  const { streamId, start, end } = row.stream;
  const [only] = ranges;
  const same = ranges.length === 1 && only?.streamId === streamId && only.start === start &&
    only.end === end;
  return same ? null : refuse("conflict", `Object ${id}: the range is not its own`);
}

function checkInputs(image: StateImage, command: Compaction): Refused | null {
  const { replaces } = command;
  if (replaces.length === 0) return refuse("invalid", "A compaction without inputs");
  if (new Set(replaces.map(({ objectId }) => objectId)).size !== replaces.length) {
    return refuse("invalid", "An input is named twice");
  }
  const list = listOf(image, command);
  for (const { objectId, ranges } of replaces) {
    const problem = checkInput(image.objects.get(objectId), ranges, { objectId, list });
    if (problem !== null) return problem;
  }
  return checkList(image, command);
}

function checkCoverage(
  image: StateImage,
  stream: StreamId,
  inputs: readonly Span[],
  outputs: readonly Span[],
): Refused | null {
  const row = image.streams.get(stream);
  if (overlaps(outputs)) return refuse("conflict", `Stream ${stream}: outputs overlap`);
  if (!covers(inputs, outputs)) {
    return refuse("conflict", `Stream ${stream}: outputs hold more than the inputs`);
  }
  if (row === undefined) return null;
  return sameSpans(clipBelow(inputs, row.start), clipBelow(outputs, row.start))
    ? null
    : refuse("conflict", `Stream ${stream}: outputs leave out live records`);
}

function checkOutputs(image: StateImage, command: Compaction): Refused | null {
  const outputs = rangesOf(command);
  for (const range of outputs) {
    const problem = rangeProblem(range);
    if (problem !== null) return problem;
  }
  const wrongId = checkNewIds(image, command.by, idsOf(command));
  if (wrongId !== null) return wrongId;
  const before = rangesByStream(command.replaces.flatMap(({ ranges }) => ranges));
  const after = rangesByStream(outputs);
  for (const stream of new Set([...before.keys(), ...after.keys()])) {
    const inputs = before.get(stream) ?? [];
    const problem = checkCoverage(image, stream, inputs, after.get(stream) ?? []);
    if (problem !== null) return problem;
  }
  return null;
}

/** A link is a plain input, or was a link of an input: nothing else may be adopted. */
function checkLinks(image: StateImage, command: Compaction): Refused | null {
  const usable = new Set<ObjectId>();
  for (const { objectId } of command.replaces) {
    const row = image.objects.get(objectId)!;
    if (row.kind === "stream") usable.add(objectId);
    for (const link of row.links) usable.add(link);
  }
  const links = new Map(command.composites?.map((one) => [one.objectId, one.links]));
  for (const { objectId, attributes, range } of command.streamObjects) {
    const own = links.get(objectId) ?? [];
    if (((attributes & TYPE_MASK) === TYPE_COMPOSITE) !== (own.length > 0)) {
      return refuse("invalid", `Object ${objectId}: exactly composites have links`);
    }
    if (own.length === 0) continue;
    const spans: Span[] = [];
    for (const link of own) {
      const stream = image.objects.get(link)?.stream ?? null;
      if (!usable.delete(link) || stream?.streamId !== range.streamId) {
        return refuse("conflict", `Object ${objectId} cannot link to object ${link}`);
      }
      spans.push(stream);
    }
    if (!covers(spans, [range])) {
      return refuse("conflict", `Object ${objectId}: its links do not cover its range`);
    }
  }
  return null;
}

export function decideCommitCompaction(
  image: StateImage,
  command: Compaction,
): Verdict<"commit-compaction"> {
  const refused = checkRequester(image, command.by) ?? checkInputs(image, command) ??
    checkOutputs(image, command) ?? checkLinks(image, command);
  if (refused !== null) return refused;
  const { streamSetObject, streamObjects, replaces } = command;
  const links = new Map(command.composites?.map((one) => [one.objectId, one.links]));
  return approve({
    type: "compacted",
    nodeId: listOf(image, command),
    streamSetObject: streamSetObject === null ? null : streamSetRecord(streamSetObject),
    streamObjects: streamObjects.map((object) =>
      streamObjectRecord(object, links.get(object.objectId) ?? [])
    ),
    replaced: replaces.map(({ objectId }) => objectId),
  });
}
