/**
 * The image's tables as they are written. `State` is the committed picture; a `Draft` lies over it and
 * takes changes until they are folded in or dropped: commands are decided on top of each other without
 * copying a table, and a lost race costs nothing.
 */
import type { NodeEpoch, NodeId, ObjectId, Position, StreamId } from "../lib/brand.ts";
import { position } from "../lib/brand.ts";
import type { Uuid } from "../lib/uuid.ts";
import { FEATURE_LEVEL_MIN } from "./entry.ts";
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
  featureLevel: number;
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
  /** Derived: what would else be looked for in all rows. Kept by `note*`, which see every change. */
  readonly destroyed = new Set<ObjectId>();
  readonly #tagged = new Map<Uuid, Set<StreamId>>();
  nextStreamId = 0;
  nextObjectId = 0;
  nextProducerId = 0;

  constructor(clusterId: string, featureLevel = FEATURE_LEVEL_MIN) {
    this.clusterId = clusterId;
    this.featureLevel = featureLevel;
  }

  /** The same under another name, for a copy of the cluster; tables are shared, so one of the two is given up. */
  renamed(clusterId: string): State {
    const state = Object.assign(new State(clusterId), this, { clusterId });
    for (const [id, row] of this.streams) state.noteStream(id, undefined, row);
    return state;
  }

  noteObject(id: ObjectId, after: ObjectRow | undefined): void {
    if (after?.state === "destroyed") this.destroyed.add(id);
    else this.destroyed.delete(id);
  }

  noteStream(id: StreamId, before: StreamRow | undefined, after: StreamRow | undefined): void {
    const [from, to] = [topicOfTag(before), topicOfTag(after)];
    if (from === to) return;
    if (from !== null) {
      this.#tagged.get(from)?.delete(id);
      if (this.#tagged.get(from)?.size === 0) this.#tagged.delete(from);
    }
    if (to === null) return;
    const known = this.#tagged.get(to);
    if (known === undefined) this.#tagged.set(to, new Set([id]));
    else known.add(id);
  }

  streamsOf(topicId: Uuid): Iterable<StreamId> {
    return this.#tagged.get(topicId) ?? [];
  }
}

/** The topic in the tag of a stream; the tag is the key of its partition. */
function topicOfTag(row: StreamRow | undefined): Uuid | null {
  const slash = row?.tag?.indexOf("/") ?? -1;
  return slash < 0 ? null : row!.tag!.slice(0, slash);
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

  fold(note?: (key: K, before: V | undefined, after: V | undefined) => void): void {
    for (const [key, value] of this.#changes) {
      note?.(key, this.#base.get(key), value);
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
  featureLevel: number;

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
    this.featureLevel = state.featureLevel;
  }

  /** The last entry below this draft. */
  get at(): Position {
    return this.#state.at;
  }
  get clusterId(): string {
    return this.#state.clusterId;
  }
  /** Below this draft. */
  get destroyed(): ReadonlySet<ObjectId> {
    return this.#state.destroyed;
  }

  /** Streams that go with a topic, in the order of their creation. */
  streamsOf(topicId: Uuid): StreamId[] {
    const ids = new Set(this.#state.streamsOf(topicId));
    for (const id of this.streams.changed) {
      if (topicOfTag(this.streams.get(id)) === topicId) ids.add(id);
      else ids.delete(id);
    }
    return [...ids].toSorted((a, b) => a - b);
  }

  /** Makes the draft the state after the entry at `at`. The draft is empty afterwards. */
  fold(at: Position): void {
    this.nodes.fold();
    this.wals.fold();
    this.topics.fold();
    this.topicIds.fold();
    this.partitions.fold();
    this.streams.fold((id, before, after) => this.#state.noteStream(id, before, after));
    this.objects.fold((id, _, after) => this.#state.noteObject(id, after));
    this.streamSets.fold();
    this.idBlocks.fold();
    this.kv.fold();
    this.writers.fold();
    this.#state.nextStreamId = this.nextStreamId;
    this.#state.nextObjectId = this.nextObjectId;
    this.#state.nextProducerId = this.nextProducerId;
    this.#state.featureLevel = this.featureLevel;
    this.#state.at = at;
  }
}
