/** Stream records: ranges of ownership, trim, deletion. */
import type { Offset, Position, StreamId } from "../lib/brand.ts";
import { destroyObject } from "./apply_objects.ts";
import type { RangeRow, StreamRow } from "./image.ts";
import type { RecordOf } from "./record.ts";
import type { Draft } from "./state.ts";

export function applyStreamCreated(draft: Draft, record: RecordOf<"stream-created">): void {
  const { streamId, nodeId, nodeEpoch, epoch, tag } = record;
  draft.streams.set(streamId, {
    streamId,
    epoch,
    open: true,
    owner: { nodeId, epoch: nodeEpoch },
    start: 0,
    end: 0,
    ranges: [{ epoch, nodeId, start: 0, end: null }],
    objects: [],
    tag,
  });
  draft.nextStreamId = Math.max(draft.nextStreamId, streamId + 1);
}

/** Where the next record of a stream goes: a trim may lie past what was committed. */
export function nextOffset({ start, end }: StreamRow): Offset {
  return Math.max(start, end);
}

/** An empty last range is replaced; a last range of the same node is continued under the new epoch. */
function openRange(row: StreamRow, range: RangeRow): RangeRow[] {
  const kept = row.ranges.filter(({ start, end }) =>
    end !== null && start < end && end > row.start
  );
  const last = kept.at(-1);
  if (last === undefined || last.nodeId !== range.nodeId || last.end !== range.start) {
    return [...kept, range];
  }
  return [...kept.slice(0, -1), { ...range, start: last.start }];
}

export function applyStreamOpened(draft: Draft, record: RecordOf<"stream-opened">): void {
  const { streamId, nodeId, nodeEpoch, epoch } = record;
  const row = draft.streams.get(streamId)!;
  const start = nextOffset(row);
  const owner = { nodeId, epoch: nodeEpoch };
  const ranges = openRange(row, { epoch, nodeId, start, end: null });
  draft.streams.set(streamId, { ...row, epoch, open: true, owner, end: start, ranges });
}

export function applyStreamClosed(draft: Draft, stream: StreamId, end: Offset): void {
  const row = draft.streams.get(stream)!;
  const ranges = row.ranges.map((range) => range.end === null ? { ...range, end } : range);
  draft.streams.set(stream, { ...row, open: false, end, ranges });
}

/** Drops ranges and stream objects wholly below; the last range stays, empty if need be. */
export function applyStreamTrimmed(
  draft: Draft,
  { streamId, start }: RecordOf<"stream-trimmed">,
  at: Position,
): void {
  const row = draft.streams.get(streamId)!;
  const last = row.ranges.length - 1;
  const ranges = row.ranges
    .filter((range, i) => i === last || (range.end ?? row.end) > start)
    .map((range) => ({ ...range, start: Math.max(range.start, Math.min(start, row.end)) }));
  // In order of offsets: the first one that reaches further ends the search.
  const first = row.objects.findIndex((id) => draft.objects.get(id)!.stream!.end > start);
  const dead = first < 0 ? row.objects.length : first;
  for (const id of row.objects.slice(0, dead)) destroyObject(draft, id, at);
  const objects = row.objects.slice(dead);
  draft.streams.set(streamId, { ...row, start, ranges, objects });
}

/** A missing stream was deleted before: the record may meet it when a topic's streams overlap. */
export function applyStreamDeleted(draft: Draft, stream: StreamId, at: Position): void {
  const row = draft.streams.get(stream);
  if (row === undefined) return;
  for (const id of row.objects) destroyObject(draft, id, at);
  draft.streams.delete(stream);
}
