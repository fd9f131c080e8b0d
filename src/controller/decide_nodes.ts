/** Registration, recovery and leadership of nodes. */
import { nodeEpoch, type Position } from "../lib/brand.ts";
import type { NodeEpoch, NodeId, StreamId } from "../lib/brand.ts";
import type { Uuid } from "../lib/uuid.ts";
import type { CommandOf } from "./metadata_store.ts";
import type { Refused } from "./command.ts";
import type { StreamRow, WalRow } from "./image.ts";
import { partitionKey, walKey } from "./image.ts";
import { checkUpload } from "./decide_objects.ts";
import type { StateImage } from "./state.ts";
import { approve, checkRequester, refuse, type Verdict } from "./verdict.ts";

/** The first one always succeeds: a live duplicate is superseded on purpose. */
export function decideRegister(
  image: StateImage,
  command: CommandOf<"register-node">,
  at: Position,
): Verdict<"register-node"> {
  const { nodeId, incarnation, host, port, again = false } = command;
  if (again && image.nodes.get(nodeId)?.incarnation !== incarnation) {
    return refuse("fenced", `Node ${nodeId} is registered by another process`);
  }
  const record = { type: "node-registered", nodeId, incarnation, host, port } as const;
  return { ok: true, records: [record], result: { epoch: nodeEpoch(at) } };
}

type FoundWal = { readonly ok: true; readonly row: WalRow } | Refused;

function findWal(image: StateImage, node: NodeId, epoch: NodeEpoch): FoundWal {
  const row = image.wals.get(walKey(node, epoch));
  return row === undefined
    ? refuse("not-found", `Node ${node} has no WAL of epoch ${epoch}`)
    : { ok: true, row };
}

function heldStreams(image: StateImage, node: NodeId, epoch: NodeEpoch): StreamRow[] {
  return [...image.streams.values()].filter(({ open, owner }) =>
    open && owner.nodeId === node && owner.epoch === epoch
  ).toSorted((a, b) => a.streamId - b.streamId);
}

/** A later recoverer always wins: its entry's position is the token R that the seal carries. */
export function decideBeginRecovery(
  image: StateImage,
  command: CommandOf<"begin-recovery">,
  at: Position,
): Verdict<"begin-recovery"> {
  const { by, nodeId, epoch } = command;
  const fenced = checkRequester(image, by);
  if (fenced !== null) return fenced;
  if (by.nodeId === nodeId && by.epoch === epoch) {
    return refuse("invalid", `Node ${nodeId} cannot recover its current epoch ${epoch}`);
  }
  const found = findWal(image, nodeId, epoch);
  if (!found.ok) return found;
  if (found.row.state.kind === "sealed") {
    return refuse("conflict", `WAL of node ${nodeId}, epoch ${epoch}, is sealed already`);
  }
  const streams = heldStreams(image, nodeId, epoch).map(({ streamId }) => streamId);
  const record = { type: "recovery-begun", nodeId, epoch, by: by.nodeId } as const;
  const { walTrim } = found.row;
  return { ok: true, records: [record], result: { recovery: at, walTrim, streams } };
}

/** Every stream that the dead incarnation holds must be closed, at the end that the objects give it. */
function checkEnds(
  held: readonly StreamRow[],
  ends: ReadonlyMap<StreamId, number>,
  uploaded: ReadonlyMap<StreamId, number>,
): Refused | null {
  for (const row of held) {
    const { streamId } = row;
    const end = ends.get(streamId);
    if (end === undefined) return refuse("invalid", `Stream ${streamId} is missing in the ends`);
    const committed = uploaded.get(streamId) ?? row.end;
    const trimmedPast = end > committed && end <= row.start;
    if (end !== committed && !trimmedPast) {
      const detail = `Stream ${streamId} ends at ${committed}, not at ${end}`;
      return { ok: false, reason: "not-continuous", detail, expected: committed };
    }
  }
  return null;
}

export function decideFinishRecovery(
  image: StateImage,
  command: CommandOf<"finish-recovery">,
): Verdict<"finish-recovery"> {
  const { by, nodeId, epoch, recovery, sealedSlot: slot } = command;
  const fenced = checkRequester(image, by);
  if (fenced !== null) return fenced;
  const found = findWal(image, nodeId, epoch);
  if (!found.ok) return found;
  const { state, walTrim } = found.row;
  if (state.kind === "sealed" && state.slot === slot) return approve();
  if (state.kind !== "recovering") {
    return refuse("conflict", `WAL of node ${nodeId}, epoch ${epoch}, is ${state.kind}`);
  }
  if (state.recovery !== recovery || state.by !== by.nodeId) {
    return refuse("fenced", `Recovery ${recovery} was superseded by ${state.recovery}`);
  }
  if (slot < walTrim) return refuse("invalid", `Slot ${slot} lies below the WAL trim ${walTrim}`);
  const { streamSetObject, streamObjects } = command;
  const upload = checkUpload(image, by, { nodeId, epoch }, { streamSetObject, streamObjects });
  if (!upload.ok) return upload;
  const ends = new Map(command.ends.map(({ streamId, end }) => [streamId, end]));
  const wrong = checkEnds(heldStreams(image, nodeId, epoch), ends, new Map(upload.content.ends));
  if (wrong !== null) return wrong;
  return approve({ type: "recovery-finished", nodeId, epoch, ...upload.content, slot });
}

export function decideAssignLeaders(
  image: StateImage,
  { by }: CommandOf<"assign-leaders">,
): Verdict<"assign-leaders"> {
  const fenced = checkRequester(image, by);
  if (fenced !== null) return fenced;
  const byTopic = new Map<Uuid, number[]>();
  for (const { topicId, partition, leader } of image.partitions.values()) {
    if (leader !== null && image.nodes.get(leader)?.state === "live") continue;
    const list = byTopic.get(topicId);
    if (list === undefined) byTopic.set(topicId, [partition]);
    else list.push(partition);
  }
  if (byTopic.size === 0) return approve();
  const partitions = [...byTopic].map(([topicId, list]) => ({ topicId, partitions: list }));
  return approve({ type: "leaders-assigned", nodeId: by.nodeId, partitions });
}

/** The old leader sees it in the log, drains and closes; until then the new one cannot open the streams. */
export function decideMovePartition(
  image: StateImage,
  { by, topicId, partition, to, expectedLeaderEpoch }: CommandOf<"move-partition">,
): Verdict<"move-partition"> {
  const fenced = checkRequester(image, by);
  if (fenced !== null) return fenced;
  const row = image.partitions.get(partitionKey(topicId, partition));
  if (row === undefined) {
    return refuse("not-found", `Partition ${partition} of topic id ${topicId} does not exist`);
  }
  if (image.nodes.get(to)?.state !== "live") return refuse("invalid", `Node ${to} is not live`);
  if (row.leaderEpoch !== expectedLeaderEpoch) {
    return refuse("conflict", `Partition is led with epoch ${row.leaderEpoch} by now`);
  }
  if (row.leader === to) return approve();
  const partitions = [{ topicId, partitions: [partition] }];
  return approve({ type: "leaders-assigned", nodeId: to, partitions });
}

export function decideForgetWal(
  image: StateImage,
  { by, nodeId, epoch }: CommandOf<"forget-wal">,
): Verdict<"forget-wal"> {
  const fenced = checkRequester(image, by);
  if (fenced !== null) return fenced;
  const row = image.wals.get(walKey(nodeId, epoch));
  if (row === undefined) return approve();
  return row.state.kind === "sealed"
    ? approve({ type: "wal-forgotten", nodeId, epoch })
    : refuse("conflict", `WAL of node ${nodeId}, epoch ${epoch}, is ${row.state.kind}`);
}
