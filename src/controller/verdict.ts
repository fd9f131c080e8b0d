/** What a decision is made of: an approval with records and a result, or a refusal that says why. */
import { assert } from "../lib/assert.ts";
import type { NodeId, Offset, StreamEpoch, StreamId } from "../lib/brand.ts";
import type { Command, RefusalReason, Refused, Requester, ResultOf } from "./command.ts";
import type { NodeRow, StreamRow } from "./image.ts";
import type { MetadataRecord } from "./record.ts";
import type { StateImage } from "./state.ts";

interface Approved<T extends Command["type"]> {
  readonly ok: true;
  /** Empty when the wish is fulfilled already. */
  readonly records: readonly MetadataRecord[];
  readonly result: ResultOf<T>;
}

export type Verdict<T extends Command["type"]> = Approved<T> | Refused;

/** For commands without a result of their own. */
export function approve(
  ...records: readonly MetadataRecord[]
): { readonly ok: true; readonly records: readonly MetadataRecord[]; readonly result: object } {
  return { ok: true, records, result: {} };
}

export function refuse(reason: RefusalReason, detail: string): Refused {
  return { ok: false, reason, detail };
}

export function notContinuous(stream: StreamId, found: Offset, expected: Offset): Refused {
  const detail = `Stream ${stream}: ${found} is not the next offset ${expected}`;
  return { ok: false, reason: "not-continuous", detail, expected };
}

/** First step of nearly every command: only the newest incarnation of a node may act. */
export function checkRequester(image: StateImage, { nodeId, epoch }: Requester): Refused | null {
  const row = image.nodes.get(nodeId);
  if (row === undefined) return refuse("fenced", `Node ${nodeId} was never registered`);
  if (row.epoch !== epoch) {
    return refuse("fenced", `Node ${nodeId}: epoch ${epoch} was superseded by ${row.epoch}`);
  }
  return row.state === "live"
    ? null
    : refuse("fenced", `Node ${nodeId}: epoch ${epoch} is being recovered or was`);
}

type Owned = { readonly ok: true; readonly row: StreamRow } | Refused;

/** The requester must hold the stream, by this epoch. A closed stream still counts as held. */
export function checkOwner(
  image: StateImage,
  by: Requester,
  stream: StreamId,
  epoch: StreamEpoch,
): Owned {
  const row = image.streams.get(stream);
  if (row === undefined) return refuse("not-found", `Stream ${stream} does not exist`);
  if (epoch < row.epoch) {
    return refuse("fenced", `Stream ${stream}: epoch ${epoch} was superseded by ${row.epoch}`);
  }
  if (epoch > row.epoch) {
    return refuse("invalid", `Stream ${stream}: epoch ${epoch} was never opened, ${row.epoch} is`);
  }
  if (row.owner.nodeId !== by.nodeId || row.owner.epoch !== by.epoch) {
    return refuse("fenced", `Stream ${stream} is held by node ${row.owner.nodeId}`);
  }
  return { ok: true, row };
}

/** Nodes that may lead, ascending: the order must be the same on every replica. */
export function liveNodes(image: StateImage): NodeId[] {
  return [...image.nodes.values()].filter((row: NodeRow) => row.state === "live")
    .map(({ nodeId }) => nodeId).toSorted((a, b) => a - b);
}

export function countProblem(count: number, max: number): Refused | null {
  assert(max > 0, "A bound must be positive");
  return Number.isSafeInteger(count) && count >= 1 && count <= max
    ? null
    : refuse("invalid", `Count must be from 1 to ${max}, not ${count}`);
}
