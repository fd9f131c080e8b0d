/**
 * The metadata ports in memory, with every check that the real control plane makes: epochs, ownership,
 * continuity, ids. One instance is the cluster; `register` gives the ports of one incarnation of a node.
 */
import {
  type NodeEpoch,
  nodeEpoch,
  type NodeId,
  type ObjectId,
  objectId,
  type Offset,
  position,
  type StreamEpoch,
  type StreamId,
  streamId,
} from "../../src/lib/brand.ts";
import type {
  ObjectManager,
  OwnedRange,
  RecoveryCommit,
  RecoveryManager,
  Refusal,
  StreamManager,
  StreamObjectRef,
  UploadCommit,
  WalToRecover,
} from "../../src/storage/ports.ts";
import {
  conflict,
  type Objects,
  objectsOf,
  type Owner,
  refuse,
  sortedRanges,
  streamObjectRef,
  type StreamSetState,
  type StreamState,
  viewOf,
  type WalState,
} from "./memory_metadata_rows.ts";

export interface NodePorts extends Owner {
  readonly streams: StreamManager;
  readonly objects: ObjectManager;
  readonly recovery: RecoveryManager;
}

export class MemoryMetadata {
  #position = 0;
  #nextStream = 0;
  #nextObject = 1;
  readonly #nodes = new Map<NodeId, NodeEpoch>();
  readonly #wals: WalState[] = [];
  readonly #streams = new Map<StreamId, StreamState>();
  readonly #streamSets = new Map<NodeId, StreamSetState[]>();
  readonly #blocks: { owner: Owner; from: number; to: number }[] = [];
  readonly #committed = new Set<ObjectId>();
  readonly #destroyed = new Set<ObjectId>();

  get destroyed(): ReadonlySet<ObjectId> {
    return this.#destroyed;
  }
  get committed(): ReadonlySet<ObjectId> {
    return this.#committed;
  }
  stream(id: StreamId): Readonly<StreamState> | undefined {
    return this.#streams.get(id);
  }
  walTrim(node: NodeId, epoch: NodeEpoch): number {
    return this.#wal({ nodeId: node, epoch })?.walTrim ?? -1;
  }

  /** A new incarnation of the node; older ones are fenced from now on. */
  register(node: NodeId): NodePorts {
    const owner: Owner = { nodeId: node, epoch: nodeEpoch(++this.#position) };
    this.#nodes.set(node, owner.epoch);
    this.#wals.push({ ...owner, walTrim: 0, recovery: 0, sealedSlot: null });
    return {
      ...owner,
      streams: this.#streamManager(owner),
      objects: this.#objectManager(owner),
      recovery: this.#recoveryManager(owner),
    };
  }

  /** What a compaction does: a stream set object gives way to stream objects, in one step. */
  replace(node: NodeId, id: ObjectId, by: readonly StreamObjectRef[], stream: StreamId): void {
    const sets = this.#streamSets.get(node) ?? [];
    this.#streamSets.set(node, sets.filter((set) => set.objectId !== id));
    this.#destroyed.add(id);
    const state = this.#streams.get(stream);
    state?.objects.push(...by);
    state?.objects.sort((a, b) => a.start - b.start);
  }

  #wal(owner: Owner): WalState | undefined {
    return this.#wals.find((wal) => wal.nodeId === owner.nodeId && wal.epoch === owner.epoch);
  }

  #isCurrent(owner: Owner): boolean {
    return this.#nodes.get(owner.nodeId) === owner.epoch && this.#wal(owner)?.recovery === 0;
  }

  #isOwner(stream: StreamState, owner: Owner): boolean {
    return stream.owner.nodeId === owner.nodeId && stream.owner.epoch === owner.epoch;
  }

  // --- streams --------------------------------------------------------------------------------

  #streamManager(owner: Owner): StreamManager {
    const held = (id: StreamId, epoch: StreamEpoch): StreamState | Refusal => {
      const stream = this.#streams.get(id);
      if (stream === undefined) return refuse("not-found");
      if (!this.#isCurrent(owner) || stream.epoch !== epoch) return refuse("fenced");
      if (!this.#isOwner(stream, owner)) return refuse("fenced");
      return stream.open ? stream : refuse("not-open");
    };
    return {
      createStream: async (epoch) => {
        if (!this.#isCurrent(owner)) return refuse("fenced");
        const id = streamId(this.#nextStream++);
        this.#streams.set(id, {
          streamId: id,
          epoch,
          owner,
          open: true,
          start: 0,
          end: 0,
          ranges: [{ nodeId: owner.nodeId, start: 0, end: null }],
          objects: [],
        });
        return { ok: true, streamId: id };
      },
      openStream: async (id, epoch) => this.#openStream(owner, id, epoch),
      closeStream: async (id, epoch, end) => {
        const stream = held(id, epoch);
        if ("ok" in stream) return stream;
        const expected = Math.max(stream.start, stream.end);
        if (end !== expected) return { ok: false, reason: "not-continuous", expected };
        this.#close(stream, end);
        return { ok: true };
      },
      trimStream: async (id, epoch, start) => {
        const stream = held(id, epoch);
        if ("ok" in stream) return stream;
        this.#trim(stream, start);
        return { ok: true };
      },
      deleteStream: async (id) => {
        const stream = this.#streams.get(id);
        if (stream === undefined) return refuse("not-found");
        if (stream.open) return refuse("not-closed");
        for (const object of stream.objects) this.#destroyed.add(object.objectId);
        this.#streams.delete(id);
        return { ok: true };
      },
      viewStream: (id) => {
        const stream = this.#streams.get(id);
        return stream === undefined ? null : viewOf(stream);
      },
    };
  }

  #openStream(owner: Owner, id: StreamId, epoch: StreamEpoch) {
    const stream = this.#streams.get(id);
    if (stream === undefined) return refuse("not-found");
    if (!this.#isCurrent(owner) || epoch < stream.epoch) return refuse("fenced");
    if (stream.open && !this.#isOwner(stream, owner)) return refuse("not-closed");
    if (!stream.open) {
      if (epoch === stream.epoch && stream.owner.nodeId !== owner.nodeId) return refuse("fenced");
      const start = Math.max(stream.start, stream.end);
      stream.ranges.push({ nodeId: owner.nodeId, start, end: null });
    }
    Object.assign(stream, { epoch, owner, open: true });
    return { ok: true as const, start: stream.start, end: stream.end };
  }

  #close(stream: StreamState, end: Offset): void {
    stream.open = false;
    stream.end = end;
    const last = stream.ranges.at(-1);
    if (last === undefined) return;
    last.end = end;
    if (last.start >= end) stream.ranges.pop();
  }

  #trim(stream: StreamState, start: Offset): void {
    if (start <= stream.start) return;
    stream.start = start;
    for (const { objectId: id, end } of stream.objects) if (end <= start) this.#destroyed.add(id);
    stream.objects = stream.objects.filter(({ end }) => end > start);
    stream.ranges = stream.ranges.filter(({ end }) => end === null || end > start);
  }

  // --- objects --------------------------------------------------------------------------------

  #objectManager(owner: Owner): ObjectManager {
    return {
      reserveIds: async (count) => {
        if (!this.#isCurrent(owner)) return refuse("fenced");
        const from = this.#nextObject;
        this.#nextObject += count;
        this.#blocks.push({ owner, from, to: this.#nextObject });
        return { ok: true, first: objectId(from) };
      },
      commitUpload: async (commit) => this.#commitUpload(owner, commit),
      viewObjects: (id) => {
        const stream = this.#streams.get(id);
        if (stream === undefined) return null;
        const ranges: OwnedRange[] = stream.ranges.map((range) => ({ ...range }));
        return { ranges, streamObjects: [...stream.objects] };
      },
      streamSetObjects: (node) => this.#streamSets.get(node) ?? [],
      refresh: async () => {},
    };
  }

  #commitUpload(owner: Owner, commit: UploadCommit) {
    const wal = this.#wal(owner);
    if (wal === undefined || !this.#isCurrent(owner)) return refuse("fenced");
    const problem = this.#checkIds(owner, commit) ?? this.#checkRanges(owner, commit);
    if (problem !== null) return problem;
    if (commit.walTrim < wal.walTrim) return conflict(`WAL trim goes back to ${commit.walTrim}`);
    wal.walTrim = commit.walTrim;
    this.#addObjects(owner.nodeId, commit);
    return { ok: true as const };
  }

  #checkIds(owner: Owner, commit: Objects): Refusal | null {
    for (const { objectId: id } of objectsOf(commit)) {
      const isOurs = this.#blocks.some((block) =>
        block.owner.nodeId === owner.nodeId && block.owner.epoch === owner.epoch &&
        block.from <= id && id < block.to
      );
      if (!isOurs) return conflict(`id ${id} was not reserved`);
      if (this.#committed.has(id) || this.#destroyed.has(id)) return conflict(`id ${id} is used`);
    }
    return null;
  }

  #checkRanges(owner: Owner, commit: Objects): Refusal | null {
    const next = new Map<StreamId, Offset>();
    for (const { streamId: id, start, end } of sortedRanges(commit)) {
      const stream = this.#streams.get(id);
      if (stream === undefined) return refuse("not-found");
      if (!this.#isOwner(stream, owner)) return refuse("fenced");
      if (!stream.open) return refuse("not-open");
      const expected = next.get(id) ?? stream.end;
      const isTrimmed = expected < start && start <= stream.start && !next.has(id);
      if (end <= start) return conflict(`empty range of stream ${id}`);
      if (start !== expected && !isTrimmed) {
        return { ok: false, reason: "not-continuous", expected };
      }
      next.set(id, end);
    }
    return null;
  }

  #addObjects(node: NodeId, { streamSetObject, streamObjects }: Objects): void {
    const order = position(++this.#position);
    for (const { objectId: id } of objectsOf({ streamSetObject, streamObjects })) {
      this.#committed.add(id);
    }
    if (streamSetObject !== null) {
      const { objectId: id, size, bytesCrc, indexCrc, ranges } = streamSetObject;
      const checksums = { bytesCrc, indexCrc };
      const set: StreamSetState = {
        objectId: id,
        kind: "stream-set",
        size,
        attributes: 0,
        checksums,
        nodeId: node,
        order,
        ranges,
      };
      this.#streamSets.set(node, [...this.#streamSets.get(node) ?? [], set]);
    }
    for (const object of streamObjects) {
      this.#streams.get(object.range.streamId)?.objects.push(streamObjectRef(object));
    }
    for (const { streamId: id, end } of sortedRanges({ streamSetObject, streamObjects })) {
      const stream = this.#streams.get(id);
      if (stream !== undefined) stream.end = Math.max(stream.end, end);
    }
  }

  // --- recovery -------------------------------------------------------------------------------

  #recoveryManager(owner: Owner): RecoveryManager {
    return {
      pendingRecoveries: () =>
        this.#wals.filter((wal) =>
          wal.nodeId === owner.nodeId && wal.epoch < owner.epoch && wal.sealedSlot === null
        ).map(({ nodeId: id, epoch }) => ({ nodeId: id, epoch })),
      isPending: (node, epoch) => this.#wal({ nodeId: node, epoch })?.sealedSlot === null,
      canHaveHeld: () => true,
      beginRecovery: async (node, epoch) => {
        const wal = this.#wal({ nodeId: node, epoch });
        if (wal === undefined) return refuse("not-found");
        if (!this.#isCurrent(owner)) return refuse("fenced");
        if (wal.sealedSlot !== null) return conflict("already recovered");
        wal.recovery = ++this.#position;
        return { ok: true, wal: this.#toRecover(wal) };
      },
      finishRecovery: async (commit) => this.#finishRecovery(owner, commit),
    };
  }

  #toRecover(wal: WalState): WalToRecover {
    return {
      nodeId: wal.nodeId,
      epoch: wal.epoch,
      recovery: position(wal.recovery),
      walTrim: wal.walTrim,
      streams: this.#ownedBy(wal).map(viewOf),
    };
  }

  #ownedBy(owner: Owner): StreamState[] {
    return [...this.#streams.values()].filter((s) => s.open && this.#isOwner(s, owner));
  }

  #finishRecovery(recoverer: Owner, commit: RecoveryCommit) {
    const dead: Owner = { nodeId: commit.wal.nodeId, epoch: commit.wal.epoch };
    const wal = this.#wal(dead);
    if (wal === undefined || wal.sealedSlot !== null || !this.#isCurrent(recoverer)) {
      return refuse("fenced");
    }
    if (wal.recovery !== commit.wal.recovery) return refuse("fenced");
    const problem = this.#checkIds(recoverer, commit) ?? this.#checkRanges(dead, commit);
    if (problem !== null) return problem;
    const owned = this.#ownedBy(dead);
    const recovered = new Map(sortedRanges(commit).map(({ streamId: id, end }) => [id, end]));
    for (const stream of owned) {
      const end = commit.ends.find((e) => e.streamId === stream.streamId)?.end;
      const expected = Math.max(stream.start, recovered.get(stream.streamId) ?? stream.end);
      if (end !== expected) {
        return { ok: false as const, reason: "not-continuous" as const, expected };
      }
    }
    this.#addObjects(dead.nodeId, commit);
    for (const stream of owned) {
      this.#close(stream, commit.ends.find((e) => e.streamId === stream.streamId)!.end);
    }
    wal.sealedSlot = commit.sealedSlot;
    wal.walTrim = commit.sealedSlot;
    return { ok: true as const };
  }
}
