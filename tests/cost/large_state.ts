/** Metadata of a large cluster, without having lived through it: streams with objects of their own and shared ones. */
import { Draft, State } from "../../src/controller/state.ts";
import {
  nodeEpoch,
  nodeId,
  type ObjectId,
  objectId,
  position,
  streamEpoch,
  streamId,
} from "../../src/lib/brand.ts";
import { idBlockKey, type ObjectRow, partitionKey, walKey } from "../../src/controller/image.ts";

export const LARGE_CLUSTER = "large";
export const LARGE_NODE = nodeId(1);
export const LARGE_BY = { nodeId: LARGE_NODE, epoch: nodeEpoch(1) } as const;
export const LARGE_EPOCH = streamEpoch(0);
/** Offsets of one object. */
export const OBJECT_OFFSETS = 100;
const OBJECT_BYTES = 64 * 1024 * 1024;
/** One in so many objects is shared. */
const SHARED = 20;
/** Ids of dead objects are purged long ago: only what lives is in a block. */
const BLOCK_IDS = 4_096;
const AT = position(1_000);

export interface LargeSize {
  readonly streams: number;
  readonly objects: number;
}

export function topicOf(index: number): string {
  return index.toString(16).padStart(32, "0");
}

function objectRow(id: ObjectId, change: Partial<ObjectRow>): ObjectRow {
  return {
    objectId: id,
    kind: "stream",
    state: "committed",
    size: OBJECT_BYTES,
    attributes: 0,
    bytesCrc: (id * 2_654_435_761) % 2 ** 32,
    indexCrc: (id * 40_503) % 2 ** 32,
    order: position(1),
    nodeId: null,
    stream: null,
    rangesDigest: "",
    links: [],
    linkedBy: null,
    destroyedAt: null,
    ...change,
  };
}

/** Each stream is the only one of its topic; ten streams in a hundred have no more than a tenth of the objects. */
export function largeState({ streams, objects }: LargeSize): State {
  const state = new State(LARGE_CLUSTER);
  const draft = new Draft(state);
  const shared = Math.floor(objects / SHARED);
  const perStream = Math.floor((objects - shared) / streams);
  const node = { nodeId: LARGE_NODE, epoch: LARGE_BY.epoch };
  const incarnation = topicOf(1);
  draft.nodes.set(LARGE_NODE, { ...node, incarnation, host: "h", port: 1, state: "live" });
  const open = { kind: "open" } as const;
  draft.wals.set(walKey(LARGE_NODE, LARGE_BY.epoch), { ...node, walTrim: 0, state: open });
  let next = 0;
  for (let i = 0; i < streams; i++) {
    const stream = streamId(i);
    const ids = Array.from({ length: perStream }, () => objectId(next++));
    for (const [n, id] of ids.entries()) {
      const start = n * OBJECT_OFFSETS;
      const end = start + OBJECT_OFFSETS;
      draft.objects.set(id, objectRow(id, { stream: { streamId: stream, start, end } }));
    }
    const [topicId, name] = [topicOf(i), `t${i}`];
    const end = perStream * OBJECT_OFFSETS;
    draft.topics.set(topicId, {
      topicId,
      name,
      partitions: 1,
      replicationFactor: 1,
      configs: {},
      internal: false,
    });
    draft.topicIds.set(name, topicId);
    const tag = partitionKey(topicId, 0);
    draft.partitions.set(tag, {
      topicId,
      partition: 0,
      leader: LARGE_NODE,
      leaderEpoch: LARGE_EPOCH,
      metaStream: null,
    });
    draft.streams.set(stream, {
      streamId: stream,
      epoch: LARGE_EPOCH,
      open: true,
      owner: node,
      start: 0,
      end,
      ranges: [{ epoch: LARGE_EPOCH, nodeId: LARGE_NODE, start: 0, end: null }],
      objects: ids,
      tag,
    });
  }
  const sets = Array.from({ length: shared }, () => objectId(next++));
  for (const id of sets) {
    const rangesDigest = topicOf(id);
    draft.objects.set(id, objectRow(id, { kind: "stream-set", nodeId: LARGE_NODE, rangesDigest }));
  }
  draft.streamSets.set(LARGE_NODE, sets);
  for (let from = 0; from <= next + BLOCK_IDS; from += BLOCK_IDS) {
    const block = {
      ...node,
      from: objectId(from),
      to: from + BLOCK_IDS,
      purged: [],
      sweptAt: null,
    };
    draft.idBlocks.set(idBlockKey(LARGE_NODE, LARGE_BY.epoch, block.from), block);
    draft.nextObjectId = block.to;
  }
  draft.nextStreamId = streams;
  draft.fold(AT);
  return state;
}

/** The first id that no object has. */
export function freeId(state: State): ObjectId {
  return objectId(Math.max(...state.objects.keys()) + 1);
}
