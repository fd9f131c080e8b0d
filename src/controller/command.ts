/**
 * What can be asked of the metadata. `decide` checks a command against the image it will be applied to
 * and answers with records and a result, or with a refusal; nothing is half done.
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
import type {
  NewStreamObject,
  NewStreamSetObject,
  StreamRange,
  UploadCommit,
} from "../storage/ports.ts";

/** Who asks: a node incarnation. Commands of a superseded incarnation are refused as `fenced`. */
export interface Requester {
  readonly nodeId: NodeId;
  readonly epoch: NodeEpoch;
}

export type Command =
  | {
    readonly type: "register-node";
    readonly nodeId: NodeId;
    readonly incarnation: Uuid;
    readonly host: string;
    readonly port: number;
    /** Go on after a recovery by others: `fenced` when another incarnation holds the node id by now. */
    readonly again?: boolean;
  }
  | {
    readonly type: "begin-recovery";
    readonly by: Requester;
    readonly nodeId: NodeId;
    readonly epoch: NodeEpoch;
  }
  | {
    readonly type: "finish-recovery";
    readonly by: Requester;
    readonly nodeId: NodeId;
    readonly epoch: NodeEpoch;
    readonly recovery: Position;
    readonly streamSetObject: NewStreamSetObject | null;
    readonly streamObjects: readonly NewStreamObject[];
    readonly ends: readonly { readonly streamId: StreamId; readonly end: Offset }[];
    readonly sealedSlot: number;
  }
  /** Makes the requester leader (epoch + 1) of every partition that has no live leader or that an earlier incarnation of it led. */
  | { readonly type: "assign-leaders"; readonly by: Requester }
  /** Gives a partition to a live node, with the next leader epoch; `conflict` when it was led anew meanwhile. */
  | {
    readonly type: "move-partition";
    readonly by: Requester;
    readonly topicId: Uuid;
    readonly partition: number;
    readonly to: NodeId;
    readonly expectedLeaderEpoch: StreamEpoch;
  }
  | {
    readonly type: "create-topic";
    readonly topicId: Uuid;
    readonly name: string;
    readonly partitions: number;
    readonly replicationFactor: number;
    readonly configs: Readonly<Record<string, string>>;
    readonly internal: boolean;
  }
  | { readonly type: "create-partitions"; readonly topicId: Uuid; readonly partitions: number }
  /** Removes the rows at once; closes and deletes the streams in the same entry. */
  | { readonly type: "delete-topic"; readonly topicId: Uuid }
  /** Null removes an override. */
  | {
    readonly type: "alter-topic-configs";
    readonly topicId: Uuid;
    /** All overrides as they were when the changes were made up; others in their place are a conflict. */
    readonly expected?: Readonly<Record<string, string>>;
    readonly changes: Readonly<Record<string, string | null>>;
  }
  | {
    readonly type: "set-meta-stream";
    readonly by: Requester;
    readonly topicId: Uuid;
    readonly partition: number;
    readonly leaderEpoch: StreamEpoch;
    readonly streamId: StreamId;
  }
  | {
    readonly type: "create-stream";
    readonly by: Requester;
    readonly epoch: StreamEpoch;
    /** Key of the partition that the stream belongs to (`partitionKey`): it is deleted with its topic. */
    readonly tag?: string;
  }
  | {
    readonly type: "open-stream";
    readonly by: Requester;
    readonly streamId: StreamId;
    readonly epoch: StreamEpoch;
  }
  | {
    readonly type: "close-stream";
    readonly by: Requester;
    readonly streamId: StreamId;
    readonly epoch: StreamEpoch;
    readonly end: Offset;
  }
  | {
    readonly type: "trim-stream";
    readonly by: Requester;
    readonly streamId: StreamId;
    readonly epoch: StreamEpoch;
    readonly start: Offset;
  }
  | { readonly type: "delete-stream"; readonly by: Requester; readonly streamId: StreamId }
  | { readonly type: "reserve-ids"; readonly by: Requester; readonly count: number }
  | { readonly type: "commit-upload"; readonly by: Requester; readonly commit: UploadCommit }
  | {
    readonly type: "commit-compaction";
    readonly by: Requester;
    readonly streamSetObject: NewStreamSetObject | null;
    readonly streamObjects: readonly NewStreamObject[];
    /** Which of the stream objects are composites, and what they link to: inputs, or links of inputs. */
    readonly composites?: readonly {
      readonly objectId: ObjectId;
      readonly links: readonly ObjectId[];
    }[];
    /** Inputs with the range lists read from their indexes; must match the digests in metadata. */
    readonly replaces: readonly {
      readonly objectId: ObjectId;
      readonly ranges: readonly StreamRange[];
    }[];
  }
  /** Every id of a dead epoch's blocks that was not committed becomes destroyed. */
  | {
    readonly type: "sweep-epoch";
    readonly by: Requester;
    readonly nodeId: NodeId;
    readonly epoch: NodeEpoch;
  }
  /**
   * The store confirmed that these objects are gone: destroyed ones, and never committed ones of the
   * requester itself. A swept block may go as a whole once every id of it without a row is gone.
   */
  | {
    readonly type: "purge";
    readonly by: Requester;
    readonly objectIds: readonly ObjectId[];
    readonly blocks?: readonly {
      readonly nodeId: NodeId;
      readonly epoch: NodeEpoch;
      readonly from: ObjectId;
    }[];
  }
  /** Removes the row of a sealed WAL whose objects, the seal included, are confirmed gone. */
  | {
    readonly type: "forget-wal";
    readonly by: Requester;
    readonly nodeId: NodeId;
    readonly epoch: NodeEpoch;
  }
  | {
    readonly type: "put-kv";
    readonly key: string;
    readonly value: string;
    readonly expectedVersion: number;
  }
  | { readonly type: "delete-kv"; readonly key: string; readonly expectedVersion: number }
  /** From this entry on, older builds are refused: it cannot be taken back. */
  | { readonly type: "raise-feature-level"; readonly by: Requester; readonly level: number }
  | { readonly type: "alloc-producer-ids"; readonly by: Requester; readonly count: number };

export type RefusalReason =
  | "fenced"
  | "not-found"
  | "exists"
  | "not-open"
  | "not-closed"
  | "not-continuous"
  | "invalid"
  | "conflict";

export interface Refused {
  readonly ok: false;
  readonly reason: RefusalReason;
  readonly detail: string;
  /** With `not-continuous`: the offset at which the stream really ends. */
  readonly expected?: Offset;
}

/** What a successful command tells its caller beyond having been applied. */
export interface Results {
  "register-node": { readonly epoch: NodeEpoch };
  "begin-recovery": {
    readonly recovery: Position;
    readonly walTrim: number;
    readonly streams: readonly StreamId[];
  };
  "create-stream": { readonly streamId: StreamId };
  "open-stream": { readonly start: Offset; readonly end: Offset };
  "reserve-ids": { readonly first: ObjectId };
  "alloc-producer-ids": { readonly first: number };
  "sweep-epoch": { readonly swept: number };
}

export type ResultOf<T extends Command["type"]> = T extends keyof Results ? Results[T] : object;

export type Decided<T extends Command["type"]> =
  | ({ readonly ok: true; readonly at: Position } & ResultOf<T>)
  | Refused;
