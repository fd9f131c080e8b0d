/** The storage engine's metadata ports, on top of commands and the local replica. */
import { assert } from "../lib/assert.ts";
import type { NodeId, ObjectId, StreamId } from "../lib/brand.ts";
import type {
  CompactionManager,
  ObjectManager,
  ObjectRef,
  Outcome,
  RecoveryManager,
  Refusal,
  StreamManager,
  StreamObjectRef,
  StreamObjectsView,
  StreamSetRef,
  StreamView,
} from "../storage/ports.ts";
import type { Refused, Requester } from "./command.ts";
import { collectsFor } from "./gc.ts";
import { type Image, type ObjectRow, type StreamRow, walKey } from "./image.ts";
import { canHaveHeld } from "./metadata_end.ts";
import type { MetadataStore } from "./metadata_store.ts";

export interface Managers {
  readonly streams: StreamManager;
  readonly objects: ObjectManager;
  readonly recovery: RecoveryManager;
  readonly compaction: CompactionManager;
}

function refusal({ reason, detail, expected }: Refused): Refusal {
  switch (reason) {
    case "fenced":
    case "not-found":
    case "not-open":
    case "not-closed":
      return { ok: false, reason };
    case "not-continuous":
      return expected === undefined
        ? { ok: false, reason: "conflict", detail }
        : { ok: false, reason, expected };
    default:
      return { ok: false, reason: "conflict", detail };
  }
}

function outcome<T>(decided: ({ readonly ok: true } & T) | Refused): Outcome<T> {
  return decided.ok ? decided : refusal(decided);
}

function viewOf({ streamId, epoch, open, start, end }: StreamRow): StreamView {
  return { streamId, epoch, open, start, end };
}

function refOf(row: ObjectRow): ObjectRef {
  const { objectId, size, attributes, bytesCrc, indexCrc } = row;
  const kind = row.kind === "stream-set" ? "stream-set" : "stream";
  return { objectId, kind, size, attributes, checksums: { bytesCrc, indexCrc } };
}

function streamObjects(image: Image, row: StreamRow): StreamObjectRef[] {
  return row.objects.map((id) => {
    const object = image.objects.get(id)!;
    const { start, end } = object.stream!;
    const links = object.kind === "composite" ? { links: object.links.length } : {};
    return { ...refOf(object), start, end, ...links };
  });
}

/**
 * Rows never change, they are replaced: what was made of one is made once, however often it is read. A read
 * of one offset must not cost as much as all objects of its stream.
 */
function remembered<K extends object, V>(make: (image: Image, key: K) => V) {
  const made = new WeakMap<K, V>();
  return (image: Image, key: K): V => {
    let value = made.get(key);
    if (value === undefined) made.set(key, value = make(image, key));
    return value;
  };
}

function objectsViewOf(image: Image, row: StreamRow): StreamObjectsView {
  const ranges = row.ranges.map(({ nodeId, start, end }) => ({ nodeId, start, end }));
  return { ranges, streamObjects: streamObjects(image, row) };
}

function setRefsOf(image: Image, ids: readonly ObjectId[]): readonly StreamSetRef[] {
  return ids.map((id) => {
    const row = image.objects.get(id)!;
    assert(row.nodeId !== null, `Object ${id} stands in the list of a node, but names none`);
    return { ...refOf(row), nodeId: row.nodeId, order: row.order };
  });
}

/** `requester` is asked at each call: a node that registers again goes on with its new epoch. */
export function createManagers(metadata: MetadataStore, requester: () => Requester): Managers {
  return {
    streams: createStreamManager(metadata, requester),
    objects: createObjectManager(metadata, requester),
    recovery: createRecoveryManager(metadata, requester),
    compaction: createCompactionManager(metadata, requester),
  };
}

function createStreamManager(metadata: MetadataStore, requester: () => Requester): StreamManager {
  return {
    async createStream(epoch, tag) {
      const base = { type: "create-stream", by: requester(), epoch } as const;
      return outcome(await metadata.submit(tag === undefined ? base : { ...base, tag }));
    },
    async openStream(streamId, epoch) {
      const by = requester();
      return outcome(await metadata.submit({ type: "open-stream", by, streamId, epoch }));
    },
    async closeStream(streamId, epoch, end) {
      const by = requester();
      return outcome(await metadata.submit({ type: "close-stream", by, streamId, epoch, end }));
    },
    async trimStream(streamId, epoch, start) {
      const by = requester();
      return outcome(await metadata.submit({ type: "trim-stream", by, streamId, epoch, start }));
    },
    async deleteStream(streamId) {
      const by = requester();
      return outcome(await metadata.submit({ type: "delete-stream", by, streamId }));
    },
    viewStream(streamId) {
      const row = metadata.view().streams.get(streamId);
      return row === undefined ? null : viewOf(row);
    },
  };
}

function createObjectManager(metadata: MetadataStore, requester: () => Requester): ObjectManager {
  const objectsView = remembered(objectsViewOf);
  const setRefs = remembered(setRefsOf);
  return {
    async reserveIds(count) {
      return outcome(await metadata.submit({ type: "reserve-ids", by: requester(), count }));
    },
    async commitUpload(commit) {
      return outcome(await metadata.submit({ type: "commit-upload", by: requester(), commit }));
    },
    viewObjects(stream: StreamId) {
      const image = metadata.view();
      const row = image.streams.get(stream);
      return row === undefined ? null : objectsView(image, row);
    },
    streamSetObjects(node: NodeId) {
      const image = metadata.view();
      const ids = image.streamSets.get(node);
      return ids === undefined ? [] : setRefs(image, ids);
    },
    async refresh() {
      await metadata.fresh();
    },
  };
}

function createCompactionManager(
  metadata: MetadataStore,
  requester: () => Requester,
): CompactionManager {
  return {
    position: () => metadata.view().at,
    setOwners() {
      const image = metadata.view();
      const { nodeId } = requester();
      const gone = [...image.streamSets.entries()]
        .filter(([node, ids]) => node !== nodeId && ids.length > 0)
        .map(([node]) => node).filter((node) => collectsFor(image, nodeId, node));
      return [nodeId, ...gone.toSorted((a, b) => a - b)];
    },
    *heldStreams() {
      const { nodeId } = requester();
      for (const row of metadata.view().streams.values()) {
        const { streamId, owner, objects } = row;
        if (owner.nodeId === nodeId) yield { streamId, objects: objects.length, version: row };
      }
    },
    objectCount: () => metadata.view().objects.size,
    isCommitted: (id) => metadata.view().objects.has(id),
    async commitCompaction(commit) {
      const by = requester();
      return outcome(await metadata.submit({ type: "commit-compaction", by, ...commit }));
    },
  };
}

function createRecoveryManager(
  metadata: MetadataStore,
  requester: () => Requester,
): RecoveryManager {
  return {
    pendingRecoveries() {
      const { nodeId, epoch: current } = requester();
      return [...metadata.view().wals.values()]
        .filter((wal) =>
          wal.nodeId === nodeId && wal.epoch !== current && wal.state.kind !== "sealed"
        )
        .map(({ nodeId: node, epoch }) => ({ nodeId: node, epoch }))
        .toSorted((a, b) => a.epoch - b.epoch);
    },
    isPending(node, epoch) {
      const wal = metadata.view().wals.get(walKey(node, epoch));
      return wal !== undefined && wal.state.kind !== "sealed";
    },
    canHaveHeld: (node, epoch, stream) => canHaveHeld(metadata.view(), node, epoch, stream),
    async beginRecovery(nodeId, epoch) {
      const by = requester();
      const decided = await metadata.submit({ type: "begin-recovery", by, nodeId, epoch });
      if (!decided.ok) return refusal(decided);
      const { streams: table } = metadata.view();
      const { recovery, walTrim } = decided;
      const streams = decided.streams.flatMap((id) => {
        const row = table.get(id);
        return row === undefined ? [] : [viewOf(row)];
      });
      return { ok: true, wal: { nodeId, epoch, recovery, walTrim, streams } };
    },
    async finishRecovery({ wal: { nodeId, epoch, recovery }, ...commit }) {
      const by = requester();
      const type = "finish-recovery";
      return outcome(
        await metadata.submit({ type, by, nodeId, epoch, recovery, ...commit }),
      );
    },
  };
}
