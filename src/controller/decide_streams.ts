/** Streams: who may own, close, trim and delete one. */
import { streamId } from "../lib/brand.ts";
import { nextOffset } from "./apply_streams.ts";
import type { Refused, Requester } from "./command.ts";
import type { StreamRow } from "./image.ts";
import type { CommandOf } from "./metadata_store.ts";
import type { StateImage } from "./state.ts";
import {
  approve,
  checkOwner,
  checkRequester,
  notContinuous,
  refuse,
  type Verdict,
} from "./verdict.ts";

/** A stream of a partition may only be held by the partition's leader; without a tag nothing is known. */
function checkTag(image: StateImage, by: Requester, tag: string | null): Refused | null {
  if (tag === null) return null;
  const partition = image.partitions.get(tag);
  if (partition === undefined) return refuse("not-found", `Partition ${tag} does not exist`);
  return partition.leader === by.nodeId
    ? null
    : refuse("fenced", `Partition ${tag} is led by ${partition.leader}`);
}

export function decideCreateStream(
  image: StateImage,
  { by, epoch, tag }: CommandOf<"create-stream">,
): Verdict<"create-stream"> {
  const refused = checkRequester(image, by) ?? checkTag(image, by, tag ?? null);
  if (refused !== null) return refused;
  const id = streamId(image.nextStreamId);
  const record = {
    type: "stream-created",
    streamId: id,
    nodeId: by.nodeId,
    nodeEpoch: by.epoch,
    epoch,
    tag: tag ?? null,
  } as const;
  return { ok: true, records: [record], result: { streamId: id } };
}

/** Whether an open with the epoch that the stream has already is a repetition by the same node. */
function reopens(row: StreamRow, by: Requester): Refused | "held" | "closed" {
  const { owner, open, streamId: id } = row;
  if (owner.nodeId !== by.nodeId) {
    return refuse("fenced", `Stream ${id}: epoch ${row.epoch} is held by node ${owner.nodeId}`);
  }
  if (!open) return "closed";
  return owner.epoch === by.epoch
    ? "held"
    : refuse("not-closed", `Stream ${id} awaits the recovery of node epoch ${owner.epoch}`);
}

export function decideOpenStream(
  image: StateImage,
  command: CommandOf<"open-stream">,
): Verdict<"open-stream"> {
  const { by, streamId: id, epoch } = command;
  const fenced = checkRequester(image, by);
  if (fenced !== null) return fenced;
  const row = image.streams.get(id);
  if (row === undefined) return refuse("not-found", `Stream ${id} does not exist`);
  if (epoch < row.epoch) {
    return refuse("fenced", `Stream ${id}: epoch ${epoch} was superseded by ${row.epoch}`);
  }
  const misplaced = checkTag(image, by, row.tag);
  if (misplaced !== null) return misplaced;
  if (epoch === row.epoch) {
    const again = reopens(row, by);
    if (typeof again !== "string") return again;
    if (again === "held") {
      return { ok: true, records: [], result: { start: row.start, end: nextOffset(row) } };
    }
  } else if (row.open) {
    return refuse("not-closed", `Stream ${id} is still open with epoch ${row.epoch}`);
  }
  const record = {
    type: "stream-opened",
    streamId: id,
    nodeId: by.nodeId,
    nodeEpoch: by.epoch,
    epoch,
  } as const;
  return { ok: true, records: [record], result: { start: row.start, end: nextOffset(row) } };
}

/** Everything up to the end must be in data objects: what only the WAL holds would be lost from sight. */
export function decideCloseStream(
  image: StateImage,
  { by, streamId: id, epoch, end }: CommandOf<"close-stream">,
): Verdict<"close-stream"> {
  const fenced = checkRequester(image, by);
  if (fenced !== null) return fenced;
  const owned = checkOwner(image, by, id, epoch);
  if (!owned.ok) return owned;
  const { row } = owned;
  const trimmedPast = end > row.end && end <= row.start;
  if (end !== row.end && !trimmedPast) return notContinuous(id, end, row.end);
  if (!row.open) return approve();
  return approve({ type: "stream-closed", streamId: id, end: row.end });
}

/** May lie past the committed end: then nothing is left to read until new records come. */
export function decideTrimStream(
  image: StateImage,
  { by, streamId: id, epoch, start }: CommandOf<"trim-stream">,
): Verdict<"trim-stream"> {
  const fenced = checkRequester(image, by);
  if (fenced !== null) return fenced;
  const owned = checkOwner(image, by, id, epoch);
  if (!owned.ok) return owned;
  const { row } = owned;
  if (!row.open) return refuse("not-open", `Stream ${id} is closed`);
  if (start === row.start) return approve();
  if (!Number.isSafeInteger(start) || start < row.start) {
    return refuse("invalid", `Stream ${id} starts at ${row.start}; ${start} would bring data back`);
  }
  return approve({ type: "stream-trimmed", streamId: id, start });
}

export function decideDeleteStream(
  image: StateImage,
  { by, streamId: id }: CommandOf<"delete-stream">,
): Verdict<"delete-stream"> {
  const fenced = checkRequester(image, by);
  if (fenced !== null) return fenced;
  const row = image.streams.get(id);
  if (row === undefined) return approve();
  return row.open
    ? refuse("not-closed", `Stream ${id} is open`)
    : approve({ type: "stream-deleted", streamId: id });
}
