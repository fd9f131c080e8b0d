/**
 * The image's tables as they are written. `State` is the committed picture; a `Draft` lies over it and
 * takes changes until they are folded in or dropped: commands are decided on top of each other without
 * copying a table, and a lost race costs nothing.
 */
import type { NodeEpoch, NodeId, ObjectId, Position, StreamId } from "../lib/brand.ts";
import { position } from "../lib/brand.ts";
import type { Uuid } from "../lib/uuid.ts";
import type {
  IdBlock,
  Image,
  KvRow,
  NodeRow,
  ObjectRow,
  PartitionRow,
  StreamRow,
  Table,
  TopicRow,
  WalRow,
} from "./image.ts";

/** The last command that a node's incarnation got into the log: exactly-once across a lost answer. */
export interface WriterRow {
  readonly nodeId: NodeId;
  readonly epoch: NodeEpoch;
  readonly incarnation: Uuid;
  readonly lastCommand: number;
}

interface Counters {
  readonly nextStreamId: number;
  readonly nextObjectId: number;
  readonly nextProducerId: number;
}

/** The image with what only the controller needs. */
export interface StateImage extends Image, Counters {
  readonly writers: Table<NodeId, WriterRow>;
}

export class State implements StateImage {
  at: Position = position(0);
  readonly clusterId: string;
  readonly nodes = new Map<NodeId, NodeRow>();
  readonly wals = new Map<string, WalRow>();
  readonly topics = new Map<Uuid, TopicRow>();
  readonly topicIds = new Map<string, Uuid>();
  readonly partitions = new Map<string, PartitionRow>();
  readonly streams = new Map<StreamId, StreamRow>();
  readonly objects = new Map<ObjectId, ObjectRow>();
  readonly streamSets = new Map<NodeId, readonly ObjectId[]>();
  readonly idBlocks = new Map<string, IdBlock>();
  readonly kv = new Map<string, KvRow>();
  readonly writers = new Map<NodeId, WriterRow>();
  nextStreamId = 0;
  nextObjectId = 0;
  nextProducerId = 0;

  constructor(clusterId: string) {
    this.clusterId = clusterId;
  }
}

export class DraftTable<K, V> implements Table<K, V> {
  readonly #base: Map<K, V>;
  /** Undefined marks a removed row. */
  readonly #changes = new Map<K, V | undefined>();
  #size: number;

  constructor(base: Map<K, V>) {
    this.#base = base;
    this.#size = base.size;
  }

  get size(): number {
    return this.#size;
  }
  /** Keys that were written or removed. */
  get changed(): ReadonlySet<K> {
    return new Set(this.#changes.keys());
  }

  get(key: K): V | undefined {
    return this.#changes.has(key) ? this.#changes.get(key) : this.#base.get(key);
  }
  has(key: K): boolean {
    return this.get(key) !== undefined;
  }
  set(key: K, value: V): void {
    if (!this.has(key)) this.#size++;
    this.#changes.set(key, value);
  }
  delete(key: K): void {
    if (this.has(key)) this.#size--;
    this.#changes.set(key, undefined);
  }

  /** Rows may be set or removed while this runs: each is seen once. */
  *entries(): IterableIterator<[K, V]> {
    for (const [key, base] of this.#base) {
      const value = this.#changes.has(key) ? this.#changes.get(key) : base;
      if (value !== undefined) yield [key, value];
    }
    for (const [key, value] of this.#changes) {
      if (value !== undefined && !this.#base.has(key)) yield [key, value];
    }
  }
  *values(): IterableIterator<V> {
    for (const [, value] of this.entries()) yield value;
  }

  fold(): void {
    for (const [key, value] of this.#changes) {
      if (value === undefined) this.#base.delete(key);
      else this.#base.set(key, value);
    }
    this.#changes.clear();
  }
}

export class Draft implements StateImage {
  readonly #state: State;
  readonly nodes: DraftTable<NodeId, NodeRow>;
  readonly wals: DraftTable<string, WalRow>;
  readonly topics: DraftTable<Uuid, TopicRow>;
  readonly topicIds: DraftTable<string, Uuid>;
  readonly partitions: DraftTable<string, PartitionRow>;
  readonly streams: DraftTable<StreamId, StreamRow>;
  readonly objects: DraftTable<ObjectId, ObjectRow>;
  readonly streamSets: DraftTable<NodeId, readonly ObjectId[]>;
  readonly idBlocks: DraftTable<string, IdBlock>;
  readonly kv: DraftTable<string, KvRow>;
  readonly writers: DraftTable<NodeId, WriterRow>;
  nextStreamId: number;
  nextObjectId: number;
  nextProducerId: number;

  constructor(state: State) {
    this.#state = state;
    this.nodes = new DraftTable(state.nodes);
    this.wals = new DraftTable(state.wals);
    this.topics = new DraftTable(state.topics);
    this.topicIds = new DraftTable(state.topicIds);
    this.partitions = new DraftTable(state.partitions);
    this.streams = new DraftTable(state.streams);
    this.objects = new DraftTable(state.objects);
    this.streamSets = new DraftTable(state.streamSets);
    this.idBlocks = new DraftTable(state.idBlocks);
    this.kv = new DraftTable(state.kv);
    this.writers = new DraftTable(state.writers);
    this.nextStreamId = state.nextStreamId;
    this.nextObjectId = state.nextObjectId;
    this.nextProducerId = state.nextProducerId;
  }

  /** The last entry below this draft. */
  get at(): Position {
    return this.#state.at;
  }
  get clusterId(): string {
    return this.#state.clusterId;
  }

  /** Makes the draft the state after the entry at `at`. The draft is empty afterwards. */
  fold(at: Position): void {
    this.nodes.fold();
    this.wals.fold();
    this.topics.fold();
    this.topicIds.fold();
    this.partitions.fold();
    this.streams.fold();
    this.objects.fold();
    this.streamSets.fold();
    this.idBlocks.fold();
    this.kv.fold();
    this.writers.fold();
    this.#state.nextStreamId = this.nextStreamId;
    this.#state.nextObjectId = this.nextObjectId;
    this.#state.nextProducerId = this.nextProducerId;
    this.#state.at = at;
  }
}
