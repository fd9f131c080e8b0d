/**
 * The picture of the cluster: what `apply` builds from the metadata log. Readers get it as it is and
 * must not keep rows over an await when they need the newest.
 */
import type {
  NodeEpoch,
  NodeId,
  ObjectId,
  Offset,
  Position,
  StreamEpoch,
  StreamId,
} from "../lib/brand.ts";
import type { Uuid } from "../lib/uuid.ts";
import type { ObjectChecksums } from "../storage/ports.ts";

/** A read-only view of one table. */
export interface Table<K, V> {
  readonly size: number;
  get(key: K): V | undefined;
  has(key: K): boolean;
  entries(): IterableIterator<[K, V]>;
  values(): IterableIterator<V>;
}

export interface NodeRow {
  readonly nodeId: NodeId;
  readonly epoch: NodeEpoch;
  /** Random per process start. */
  readonly incarnation: Uuid;
  readonly host: string;
  readonly port: number;
  readonly state: "live" | "gone";
}

export interface WalRow {
  readonly nodeId: NodeId;
  readonly epoch: NodeEpoch;
  readonly walTrim: number;
  readonly state:
    | { readonly kind: "open" }
    | { readonly kind: "recovering"; readonly by: NodeId; readonly recovery: Position }
    | { readonly kind: "sealed"; readonly slot: number };
}

export interface TopicRow {
  readonly topicId: Uuid;
  readonly name: string;
  readonly partitions: number;
  readonly replicationFactor: number;
  /** Overrides only; defaults come from the broker's configuration. */
  readonly configs: Readonly<Record<string, string>>;
  readonly internal: boolean;
}

export interface PartitionRow {
  readonly topicId: Uuid;
  readonly partition: number;
  /** Null while the old leader is being recovered. */
  readonly leader: NodeId | null;
  readonly leaderEpoch: StreamEpoch;
  /** The partition's meta stream; null until the first leader has created it. */
  readonly metaStream: StreamId | null;
}

export interface RangeRow {
  readonly epoch: StreamEpoch;
  readonly nodeId: NodeId;
  readonly start: Offset;
  readonly end: Offset | null;
}

export interface StreamRow {
  readonly streamId: StreamId;
  readonly epoch: StreamEpoch;
  readonly open: boolean;
  /** Incarnation that holds it, or held it last. */
  readonly owner: { readonly nodeId: NodeId; readonly epoch: NodeEpoch };
  readonly start: Offset;
  readonly end: Offset;
  readonly ranges: readonly RangeRow[];
  /** Ids of its stream objects, in offset order. */
  readonly objects: readonly ObjectId[];
  /** Key of the partition that it belongs to; it is deleted with its topic. */
  readonly tag: string | null;
}

export interface ObjectRow extends ObjectChecksums {
  readonly objectId: ObjectId;
  readonly kind: "stream-set" | "stream" | "composite";
  readonly state: "committed" | "destroyed";
  readonly size: number;
  readonly attributes: number;
  readonly order: Position;
  /** Whose list a stream set object stands in; null for stream objects. */
  readonly nodeId: NodeId | null;
  /** The stream of a stream object, with what it covers; null for stream set objects. */
  readonly stream:
    | { readonly streamId: StreamId; readonly start: Offset; readonly end: Offset }
    | null;
  /** Digest of the sorted range list of a stream set object; empty otherwise. */
  readonly rangesDigest: string;
  /** Linked ids of a composite. */
  readonly links: readonly ObjectId[];
  /** The composite that links to this object; it lives and dies with it. */
  readonly linkedBy: ObjectId | null;
  /** Position of the entry that destroyed it; null while committed. */
  readonly destroyedAt: Position | null;
}

export interface IdBlock {
  readonly nodeId: NodeId;
  readonly epoch: NodeEpoch;
  readonly from: ObjectId;
  /** Exclusive. */
  readonly to: number;
  /** Spans of its ids that were used and are gone again: an id never comes back. */
  readonly purged: readonly { readonly start: number; readonly end: number }[];
  /** Position of the entry that swept its epoch: ids of it without a row are destroyed. */
  readonly sweptAt: Position | null;
}

export interface KvRow {
  readonly version: number;
  readonly value: string;
}

export interface Image {
  /** Position of the last applied entry. */
  readonly at: Position;
  readonly clusterId: string;
  /** What the log and all that it names is written for: a build that knows this level reads it. */
  readonly featureLevel: number;
  readonly nodes: Table<NodeId, NodeRow>;
  /** Key `${nodeId}/${epoch}`. */
  readonly wals: Table<string, WalRow>;
  readonly topics: Table<Uuid, TopicRow>;
  readonly topicIds: Table<string, Uuid>;
  /** Key `${topicId}/${partition}`. */
  readonly partitions: Table<string, PartitionRow>;
  readonly streams: Table<StreamId, StreamRow>;
  readonly objects: Table<ObjectId, ObjectRow>;
  /** Those of them that are destroyed. */
  readonly destroyed: ReadonlySet<ObjectId>;
  /** Committed stream set objects of a node, oldest first. */
  readonly streamSets: Table<NodeId, readonly ObjectId[]>;
  /** Key `${nodeId}/${epoch}/${from}`. */
  readonly idBlocks: Table<string, IdBlock>;
  readonly kv: Table<string, KvRow>;
  readonly nextProducerId: number;
  /** The first stream id that was never created. */
  readonly nextStreamId: number;
  /** The first object id that was never reserved. */
  readonly nextObjectId: number;
}

export function partitionKey(topicId: Uuid, partition: number): string {
  return `${topicId}/${partition}`;
}

export function walKey(node: NodeId, epoch: NodeEpoch): string {
  return `${node}/${epoch}`;
}

export function idBlockKey(node: NodeId, epoch: NodeEpoch, from: ObjectId): string {
  return `${node}/${epoch}/${from}`;
}
