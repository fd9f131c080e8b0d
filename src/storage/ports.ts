/**
 * The metadata that the storage engine needs from others. The controller implements these ports
 * (`controller/managers.ts`); tests use a small in-memory one.
 *
 * Every call is checked against the metadata log and applied atomically, or refused with an outcome.
 * `fenced` means that a newer node or stream epoch exists: this owner must stop.
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

/** A half-open range of one stream. */
export interface StreamRange {
  readonly streamId: StreamId;
  readonly start: Offset;
  readonly end: Offset;
}

export type Refusal =
  | { readonly ok: false; readonly reason: "fenced" | "not-found" | "not-open" | "not-closed" }
  | { readonly ok: false; readonly reason: "not-continuous"; readonly expected: Offset }
  | { readonly ok: false; readonly reason: "conflict"; readonly detail: string };

export type Outcome<T = unknown> = ({ readonly ok: true } & T) | Refusal;

export interface StreamView {
  readonly streamId: StreamId;
  readonly epoch: StreamEpoch;
  readonly open: boolean;
  /** First offset that still exists. */
  readonly start: Offset;
  /** End of what is committed to data objects; the WAL may hold more. */
  readonly end: Offset;
}

export interface StreamManager {
  /**
   * Creates a stream and opens it for this node with the given epoch, in one entry. The tag names the
   * partition that it belongs to: the stream is deleted with its topic.
   */
  createStream(
    epoch: StreamEpoch,
    tag?: string,
  ): Promise<Outcome<{ readonly streamId: StreamId }>>;
  /** Takes ownership with a higher epoch (or re-opens with the equal one by the same node). */
  openStream(
    stream: StreamId,
    epoch: StreamEpoch,
  ): Promise<Outcome<{ readonly start: Offset; readonly end: Offset }>>;
  closeStream(stream: StreamId, epoch: StreamEpoch, end: Offset): Promise<Outcome>;
  trimStream(stream: StreamId, epoch: StreamEpoch, start: Offset): Promise<Outcome>;
  /** The stream must be closed. */
  deleteStream(stream: StreamId): Promise<Outcome>;
  /** From the local replica; may be stale. */
  viewStream(stream: StreamId): StreamView | null;
}

/** CRC-32C of an object's bytes and of its index block, as kept in its metadata row. */
export interface ObjectChecksums {
  readonly bytesCrc: number;
  readonly indexCrc: number;
}

interface NewObject extends ObjectChecksums {
  readonly objectId: ObjectId;
  readonly size: number;
}

/** An object with many streams. Metadata checks the ranges and keeps only a digest of their sorted list. */
export interface NewStreamSetObject extends NewObject {
  readonly ranges: readonly StreamRange[];
}

export interface NewStreamObject extends NewObject {
  readonly range: StreamRange;
  /** AutoMQ's object attributes (type, bucket, deep-delete mark). */
  readonly attributes: number;
}

export interface UploadCommit {
  readonly streamSetObject: NewStreamSetObject | null;
  readonly streamObjects: readonly NewStreamObject[];
  /** First WAL slot that is still needed after this commit. */
  readonly walTrim: number;
}

/** Where data of a stream lies, in offset order without gaps. */
export interface ObjectRef {
  readonly objectId: ObjectId;
  readonly kind: "stream-set" | "stream";
  readonly size: number;
  readonly attributes: number;
  readonly checksums: ObjectChecksums;
}

/** A stream set object of one node, in order of commit. */
export interface StreamSetRef extends ObjectRef {
  readonly nodeId: NodeId;
  readonly order: Position;
}

/** A period of ownership: which node's stream set objects can hold these offsets. */
export interface OwnedRange {
  readonly nodeId: NodeId;
  readonly start: Offset;
  /** Null for the range that is still open. */
  readonly end: Offset | null;
}

export interface StreamObjectRef extends ObjectRef {
  readonly start: Offset;
  readonly end: Offset;
  /** Objects that a composite links to; absent when it holds its data itself. */
  readonly links?: number;
}

export interface StreamObjectsView {
  readonly ranges: readonly OwnedRange[];
  readonly streamObjects: readonly StreamObjectRef[];
}

export interface ObjectManager {
  /** A block of never-used ids for this node epoch; returns the first. */
  reserveIds(count: number): Promise<Outcome<{ readonly first: ObjectId }>>;
  commitUpload(commit: UploadCommit): Promise<Outcome>;
  /** From the local replica: ranges by owner and the stream's own objects. Null for an unknown stream. */
  viewObjects(stream: StreamId): StreamObjectsView | null;
  /** A node's stream set objects, oldest first. */
  streamSetObjects(node: NodeId): readonly StreamSetRef[];
  /** Brings the local replica up to the end of the metadata log. */
  refresh(): Promise<void>;
}

/** New objects in place of old ones, in one step. What the new ones leave out must be dead. */
export interface CompactionCommit {
  readonly streamSetObject: NewStreamSetObject | null;
  readonly streamObjects: readonly NewStreamObject[];
  /** Which of the stream objects are composites, and what they link to. */
  readonly composites: readonly {
    readonly objectId: ObjectId;
    readonly links: readonly ObjectId[];
  }[];
  /** The old objects, with the ranges that their indexes name. */
  readonly replaces: readonly {
    readonly objectId: ObjectId;
    readonly ranges: readonly StreamRange[];
  }[];
}

export interface HeldStream {
  readonly streamId: StreamId;
  /** How many objects it has. */
  readonly objects: number;
  /** Another object whenever anything about the stream has changed. */
  readonly version: object;
}

/** What compaction needs of metadata beside the object manager. Views come from the local replica. */
export interface CompactionManager {
  /** Grows with every change of metadata: what was looked at here needs no second look. */
  position(): Position;
  /** Nodes whose stream set objects are for this one: its own, and those of nodes that are gone. */
  setOwners(): readonly NodeId[];
  /** Streams that this node holds or was the last to hold. */
  heldStreams(): Iterable<HeldStream>;
  /** Data objects of the whole cluster. */
  objectCount(): number;
  isCommitted(id: ObjectId): boolean;
  commitCompaction(commit: CompactionCommit): Promise<Outcome>;
}

/** A WAL of a dead incarnation, as the recoverer sees it after BeginRecovery. */
export interface WalToRecover {
  readonly nodeId: NodeId;
  readonly epoch: NodeEpoch;
  /** Position of the BeginRecovery entry: the recoverer's token R. */
  readonly recovery: Position;
  /** First slot that may hold records which are not committed. */
  readonly walTrim: number;
  /** Streams that this incarnation still owns. */
  readonly streams: readonly StreamView[];
}

export interface RecoveryCommit {
  readonly wal: Pick<WalToRecover, "nodeId" | "epoch" | "recovery">;
  /** Objects written from the WAL; null and empty when it held nothing new. */
  readonly streamSetObject: NewStreamSetObject | null;
  readonly streamObjects: readonly NewStreamObject[];
  /** Final end of every stream in `WalToRecover.streams`. */
  readonly ends: readonly { readonly streamId: StreamId; readonly end: Offset }[];
  /** The slot that holds the seal. */
  readonly sealedSlot: number;
}

/** Recovery of incarnations that are gone: this node's own before it opens any stream, others' at any time. */
export interface RecoveryManager {
  /** Unsealed WALs of this node id's earlier incarnations, oldest first. */
  pendingRecoveries(): readonly { readonly nodeId: NodeId; readonly epoch: NodeEpoch }[];
  /** Whether a WAL, of whichever node, still waits for its recovery. */
  isPending(node: NodeId, epoch: NodeEpoch): boolean;
  /** Whether an incarnation of this epoch can have written to the stream: who writes has opened it. */
  canHaveHeld(node: NodeId, epoch: NodeEpoch, stream: StreamId): boolean;
  beginRecovery(node: NodeId, epoch: NodeEpoch): Promise<Outcome<{ readonly wal: WalToRecover }>>;
  finishRecovery(commit: RecoveryCommit): Promise<Outcome>;
}
