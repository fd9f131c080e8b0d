/**
 * Metadata records: what happened, as a union tagged by `type`. An entry of the log carries a list of
 * them as JSON. A record names facts that `apply` cannot derive; the checks were made by `decide`.
 * A type never changes its meaning; a new meaning is a new type and a higher feature level.
 */
import { nodeEpoch, nodeId, objectId, streamEpoch, streamId } from "../lib/brand.ts";
import { toUtf8, utf8 } from "../lib/bytes.ts";
import { corrupt } from "../lib/corrupt.ts";
import { assert } from "../lib/assert.ts";
import {
  branded,
  flag,
  int,
  list,
  mapOf,
  nullable,
  type Of,
  pair,
  type Path,
  readShape,
  type Shape,
  struct,
  text,
} from "./shape.ts";

const node = branded(nodeId);
const epoch = branded(nodeEpoch);
const stream = branded(streamId);
const leaderEpoch = branded(streamEpoch);
const object = branded(objectId);

const objectFields = {
  objectId: object,
  size: int,
  bytesCrc: int,
  indexCrc: int,
};
const streamSetObject = struct({ ...objectFields, rangesDigest: text });
const streamObject = struct({
  ...objectFields,
  attributes: int,
  streamId: stream,
  start: int,
  end: int,
  links: list(object),
});
/** Objects of an upload or a recovery, and the new end of every stream in them. */
const uploaded = {
  streamSetObject: nullable(streamSetObject),
  streamObjects: list(streamObject),
  ends: list(pair(stream, int)),
};

const RECORDS = {
  "node-registered": struct({ nodeId: node, incarnation: text, host: text, port: int }),
  "recovery-begun": struct({ nodeId: node, epoch, by: node }),
  "recovery-finished": struct({ nodeId: node, epoch, ...uploaded, slot: int }),
  "wal-forgotten": struct({ nodeId: node, epoch }),
  "leaders-assigned": struct({
    nodeId: node,
    partitions: list(struct({ topicId: text, partitions: list(int) })),
  }),
  "topic-created": struct({
    topicId: text,
    name: text,
    replicationFactor: int,
    configs: mapOf(text),
    internal: flag,
    leaders: list(nullable(node)),
  }),
  "partitions-created": struct({ topicId: text, leaders: list(nullable(node)) }),
  "topic-deleted": struct({ topicId: text }),
  "topic-configured": struct({ topicId: text, changes: mapOf(nullable(text)) }),
  "meta-stream-set": struct({ topicId: text, partition: int, streamId: stream }),
  "stream-created": struct({
    streamId: stream,
    nodeId: node,
    nodeEpoch: epoch,
    epoch: leaderEpoch,
    tag: nullable(text),
  }),
  "stream-opened": struct({
    streamId: stream,
    nodeId: node,
    nodeEpoch: epoch,
    epoch: leaderEpoch,
  }),
  "stream-closed": struct({ streamId: stream, end: int }),
  "stream-trimmed": struct({ streamId: stream, start: int }),
  "stream-deleted": struct({ streamId: stream }),
  "ids-reserved": struct({ nodeId: node, epoch, from: object, to: int }),
  "uploaded": struct({ nodeId: node, epoch, ...uploaded, walTrim: int }),
  "compacted": struct({
    nodeId: node,
    streamSetObject: nullable(streamSetObject),
    streamObjects: list(streamObject),
    replaced: list(object),
  }),
  "epoch-swept": struct({ nodeId: node, epoch }),
  /** Ids as spans: a sweep names thousands of neighbours. */
  "purged": struct({
    ids: list(pair(int, int)),
    blocks: list(struct({ nodeId: node, epoch, from: object })),
  }),
  "kv-put": struct({ key: text, value: text }),
  "kv-deleted": struct({ key: text }),
  "producer-ids": struct({ next: int }),
  /** The head of the entry says it too: that is what refuses a build that does not know the level. */
  "feature-level": struct({ level: int }),
};

type Records = typeof RECORDS;
type RecordType = keyof Records;
export type RecordOf<T extends RecordType> = { readonly type: T } & Of<Records[T]>;
/** Distributes over the types, so that a switch on `type` narrows. */
export type MetadataRecord = { [T in RecordType]: RecordOf<T> }[RecordType];

export type StreamSetRecord = Of<typeof streamSetObject>;
export type StreamObjectRecord = Of<typeof streamObject>;

/** Refuses what JSON would change silently: fractions, NaN, numbers past 2^53. */
function checked(_key: string, value: unknown): unknown {
  assert(
    typeof value !== "number" || (Number.isSafeInteger(value) && value >= 0),
    `Record holds ${String(value)}, not a non-negative safe integer`,
  );
  return value;
}

/** One record as JSON text; entry.ts joins them, so their lengths add up. */
export function encodeRecord(record: MetadataRecord): Uint8Array {
  return toUtf8(JSON.stringify(record, checked));
}

const typed = struct({ type: text });

function decodeRecord(value: unknown, path: Path): MetadataRecord {
  const { type } = typed(value, path);
  if (!Object.hasOwn(RECORDS, type)) {
    throw corrupt(`Cannot read ${path}: unknown record type ${type}`);
  }
  const shape: Shape<object> = RECORDS[type as RecordType];
  // `type` names the shape that has just read the rest.
  return { type, ...shape(value, path) } as MetadataRecord;
}

const recordList = list(decodeRecord);

export function decodeRecords(bytes: Uint8Array): readonly MetadataRecord[] {
  return readShape(recordList, parseJson(bytes), "records");
}

export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8(bytes));
  } catch (cause) {
    throw corrupt("Cannot parse metadata: not JSON", cause);
  }
}
