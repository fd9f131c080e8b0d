/** Shapes of the image's rows as they stand in a snapshot. */
import { nodeEpoch, nodeId, objectId, position, streamEpoch, streamId } from "../lib/brand.ts";
import { corrupt } from "../lib/corrupt.ts";
import {
  branded,
  flag,
  int,
  list,
  mapOf,
  nullable,
  oneOf,
  pair,
  type Shape,
  struct,
  text,
} from "./shape.ts";
import type { WalRow } from "./image.ts";

const node = branded(nodeId);
const epoch = branded(nodeEpoch);
const stream = branded(streamId);
const leaderEpoch = branded(streamEpoch);
const object = branded(objectId);
const place = branded(position);

const kind = struct({ kind: text });
const recovering = struct({ by: node, recovery: place });
const sealed = struct({ slot: int });

const walState: Shape<WalRow["state"]> = (value, path) => {
  const found = kind(value, path).kind;
  if (found === "open") return { kind: "open" };
  if (found === "recovering") return { kind: "recovering", ...recovering(value, path) };
  if (found === "sealed") return { kind: "sealed", ...sealed(value, path) };
  throw corrupt(`Cannot read ${path}: unknown state ${found}`);
};

const nodeRow = struct({
  nodeId: node,
  epoch,
  incarnation: text,
  host: text,
  port: int,
  state: oneOf("live", "gone"),
});
const walRow = struct({ nodeId: node, epoch, walTrim: int, state: walState });
const topicRow = struct({
  topicId: text,
  name: text,
  partitions: int,
  replicationFactor: int,
  configs: mapOf(text),
  internal: flag,
});
const partitionRow = struct({
  topicId: text,
  partition: int,
  leader: nullable(node),
  leaderEpoch,
  metaStream: nullable(stream),
});
const streamRow = struct({
  streamId: stream,
  epoch: leaderEpoch,
  open: flag,
  owner: struct({ nodeId: node, epoch }),
  start: int,
  end: int,
  ranges: list(struct({ epoch: leaderEpoch, nodeId: node, start: int, end: nullable(int) })),
  objects: list(object),
  tag: nullable(text),
});
const objectRow = struct({
  objectId: object,
  kind: oneOf("stream-set", "stream", "composite"),
  state: oneOf("committed", "destroyed"),
  size: int,
  attributes: int,
  bytesCrc: int,
  indexCrc: int,
  order: place,
  nodeId: nullable(node),
  stream: nullable(struct({ streamId: stream, start: int, end: int })),
  rangesDigest: text,
  links: list(object),
  linkedBy: nullable(object),
  destroyedAt: nullable(place),
});
const idBlock = struct({
  nodeId: node,
  epoch,
  from: object,
  to: int,
  purged: list(struct({ start: int, end: int })),
  sweptAt: nullable(place),
});
const writerRow = struct({ nodeId: node, epoch, incarnation: text, lastCommand: int });

export const tablesShape = struct({
  nextStreamId: int,
  nextObjectId: int,
  nextProducerId: int,
  nodes: list(nodeRow),
  wals: list(walRow),
  topics: list(topicRow),
  partitions: list(partitionRow),
  streams: list(streamRow),
  objects: list(objectRow),
  streamSets: list(pair(node, list(object))),
  idBlocks: list(idBlock),
  kv: list(pair(text, struct({ version: int, value: text }))),
  writers: list(writerRow),
});
