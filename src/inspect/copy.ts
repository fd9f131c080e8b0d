/**
 * Copies a cluster into another store under another cluster id: metadata as one snapshot, the data objects that it
 * names, and the WAL slots that are not uploaded. The source is only read; a node may write to it all the while.
 *
 * Order, which makes the copy a state that the source has been in: WAL slots first, by their numbers; then the
 * metadata is read; then the objects that it names. So no slot of the copy is newer than its metadata, and what
 * the metadata names was there when it was read and stays for T_RETAIN. Whatever was trimmed or deleted in between
 * costs another round, with newer metadata. The cluster object comes last: half a copy cannot be started.
 */
import { createCluster, firstSegment, newClusterId, readCluster } from "../controller/cluster.ts";
import type { ObjectRow, WalRow } from "../controller/image.ts";
import { walKey as walRowKey } from "../controller/image.ts";
import { encodeEntry } from "../controller/entry.ts";
import { Replica } from "../controller/replica.ts";
import { encodeSnapshot } from "../controller/snapshot.ts";
import type { State } from "../controller/state.ts";
import type { Env } from "../env/env.ts";
import { randomUuid } from "../env/random.ts";
import { nodeEpoch, nodeId, position } from "../lib/brand.ts";
import { CLUSTER_ID_ALLOWED, clusterSegment, isClusterId } from "../lib/cluster_id.ts";
import { crc32c } from "../lib/crc32c.ts";
import { FaultError } from "../lib/errors.ts";
import {
  COPY_ROUNDS_MAX,
  FSCK_OBJECTS_AT_ONCE,
  METADATA_SNAPSHOTS_KEPT,
  PUT_PART_BYTES,
  SINGLE_PUT_BYTES_MAX,
  STORE_DELETE_BATCH_KEYS_MAX,
} from "../lib/limits.ts";
import { uuidOf } from "../lib/uuid.ts";
import {
  CLUSTER_KEY,
  dataKey,
  logKey,
  METADATA_PREFIX,
  snapshotKey,
} from "../object/object_key.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { slotKey } from "../storage/wal/wal_slots.ts";
import { clusterOfSegment } from "./key_cluster.ts";
import { loadMetadata, type StoreAtRest } from "./load_metadata.ts";

export interface CopyOptions {
  readonly from: ObjectStore;
  readonly to: ObjectStore;
  readonly env: Env;
  /** Of the copy; null draws one. */
  readonly clusterId: string | null;
  /** Objects above this are copied in parts; by default what one put may hold. */
  readonly putBytesMax?: number;
}

export interface CopySummary {
  readonly from: string;
  readonly clusterId: string;
  /** The metadata entry at which the copy stands. */
  readonly position: number;
  readonly dataObjects: number;
  readonly walSlots: number;
  /** Copied now; what an earlier attempt had copied is not in it. */
  readonly bytes: number;
}

function configFault(message: string): FaultError {
  return new FaultError("config", message, { retriable: false });
}

function damaged(key: string, detail: string): FaultError {
  return new FaultError("corrupt", `Cannot copy ${key}: ${detail}`, { retriable: false });
}

/** Throws FaultError: `config` when it may not be done, `corrupt` and `data-loss` on what the source lacks. */
export async function copyCluster(options: CopyOptions): Promise<CopySummary> {
  const { from, to, env } = options;
  const source = await sourceCluster(from);
  const clusterId = await targetCluster(options, source);
  const copy = new ClusterCopy({ store: from, env, clusterId: source }, to, clusterId, options);
  return await copy.run();
}

async function sourceCluster(from: ObjectStore): Promise<string> {
  const got = await from.get(CLUSTER_KEY);
  if (got !== null) return readCluster(got.bytes).clusterId;
  // A copy that somebody else made may lack it.
  const segment = await firstSegment(from);
  const found = segment === null ? null : clusterOfSegment(`_kafka_${segment}`);
  if (found !== null) return found;
  throw configFault(`Cannot copy: the source holds no cluster (${CLUSTER_KEY} is missing)`);
}

/** The new id, for a target that is empty or holds an earlier attempt of the same copy. */
async function targetCluster({ to, env, clusterId }: CopyOptions, source: string): Promise<string> {
  const id = clusterId ?? newClusterId(env.random);
  if (!isClusterId(id)) {
    throw configFault(
      `Cannot use cluster-id = ${JSON.stringify(id)}: allowed is ${CLUSTER_ID_ALLOWED}`,
    );
  }
  if (id === source) {
    throw configFault(
      `Cannot use cluster-id = ${id}: it is that of the source, and a copy needs its own`,
    );
  }
  const held = await to.get(CLUSTER_KEY);
  if (held !== null) {
    throw configFault(`Cannot copy: the target holds cluster ${readCluster(held.bytes).clusterId}`);
  }
  const segment = await firstSegment(to);
  if (segment !== null && segment !== clusterSegment(id)) {
    throw configFault(`Cannot copy: the target holds objects of cluster ${segment}`);
  }
  return id;
}

interface Round {
  readonly state: State;
  readonly lastHash: Uint8Array;
}

class ClusterCopy {
  readonly #source: StoreAtRest;
  readonly #to: ObjectStore;
  readonly #clusterId: string;
  readonly #putBytesMax: number;
  /** What the target holds, with sizes: objects never change, and appear whole. */
  readonly #held = new Map<string, number>();
  /** The first slot that was not there, by WAL. */
  readonly #walEnds = new Map<string, number>();
  #bytes = 0;
  #walSlots = 0;

  constructor(
    source: StoreAtRest,
    to: ObjectStore,
    clusterId: string,
    { putBytesMax = SINGLE_PUT_BYTES_MAX }: Pick<CopyOptions, "putBytesMax">,
  ) {
    this.#putBytesMax = putBytesMax;
    this.#source = source;
    this.#to = to;
    this.#clusterId = clusterId;
  }

  async run(): Promise<CopySummary> {
    for await (const { key, size } of this.#to.list("")) this.#held.set(key, size);
    let missing = "";
    for (let round = 1; round <= COPY_ROUNDS_MAX; round++) {
      const first = await this.#load();
      if (first === null) continue;
      await this.#copyWals(first.state);
      const now = await this.#load();
      if (now === null || this.#isWalBehind(now.state)) continue;
      const lost = await this.#copyObjects(now.state);
      if (lost === null) return await this.#finish(now);
      missing = lost;
    }
    throw missing === ""
      ? new FaultError("timeout", "Cannot copy: the source changes faster than it can be read", {
        retriable: true,
      })
      : new FaultError(
        "data-loss",
        `Cannot copy: ${missing} is named by the metadata, and missing`,
        {
          retriable: false,
        },
      );
  }

  /** Null when the log was trimmed under our hands. */
  async #load(): Promise<Round | null> {
    const loaded = await loadMetadata(this.#source);
    if (loaded.ok) return loaded;
    if (loaded.isPassing === true) return null;
    throw damaged(loaded.key, loaded.detail);
  }

  // --- WAL ------------------------------------------------------------------------------------

  async #copyWals(state: State): Promise<void> {
    for (const row of state.wals.values()) {
      if (row.state.kind !== "sealed") await this.#copyWal(row);
    }
  }

  /** Without a gap, as recovery reads them. */
  async #copyWal(row: WalRow): Promise<void> {
    const { store, clusterId } = this.#source;
    const name = walRowKey(row.nodeId, row.epoch);
    const known = this.#walEnds.get(name) ?? 0;
    for (let slot = Math.max(row.walTrim, known);; slot++) {
      this.#walEnds.set(name, slot);
      const got = await store.get(slotKey(clusterId, row, slot));
      if (got === null) return;
      this.#walSlots += 1;
      const key = slotKey(this.#clusterId, row, slot);
      // Even if an earlier attempt has put it: unlike data objects, nothing in the metadata proves its bytes.
      this.#held.delete(key);
      await this.#put(key, got.bytes);
    }
  }

  /** Whether slots were uploaded and deleted before they were copied: those above them may be acknowledged. */
  #isWalBehind(state: State): boolean {
    for (const row of state.wals.values()) {
      const end = this.#walEnds.get(walRowKey(row.nodeId, row.epoch)) ?? -1;
      if (row.state.kind !== "sealed" && end < row.walTrim) return true;
    }
    return false;
  }

  // --- data -----------------------------------------------------------------------------------

  /** The key of one that is missing; null when all are there. */
  async #copyObjects(state: State): Promise<string | null> {
    const rows = state.objects.values();
    let missing: string | null = null;
    // They share one iterator: each takes the next row when it is done with its last.
    const workers = Array.from({ length: FSCK_OBJECTS_AT_ONCE }, async () => {
      for (const row of rows) {
        if (row.state === "committed" && !await this.#copyObject(row)) {
          missing = dataKey(this.#source.clusterId, row.objectId);
        }
      }
    });
    await Promise.all(workers);
    return missing;
  }

  async #copyObject(row: ObjectRow): Promise<boolean> {
    const key = dataKey(this.#source.clusterId, row.objectId);
    const target = dataKey(this.#clusterId, row.objectId);
    if (this.#held.get(target) === row.size) return true;
    if (row.size > this.#putBytesMax) return await this.#copyLarge(key, target, row);
    const got = await this.#source.store.get(key);
    if (got === null) return false;
    checkCrc(key, row, got.bytes.length, crc32c(got.bytes));
    await this.#put(target, got.bytes);
    return true;
  }

  async #copyLarge(key: string, target: string, row: ObjectRow): Promise<boolean> {
    const { store } = this.#source;
    const partBytes = Math.min(PUT_PART_BYTES, this.#putBytesMax);
    if (await store.head(key) === null) return false;
    async function* parts(): AsyncGenerator<Uint8Array> {
      let crc = 0;
      for (let start = 0; start < row.size; start += partBytes) {
        const end = Math.min(start + partBytes, row.size);
        const got = await store.get(key, { range: { start, end } });
        if (got?.bytes.length !== end - start) throw damaged(key, `it ended while it was read`);
        crc = crc32c(got.bytes, crc);
        // Before the last part is handed on: nothing is completed with wrong bytes.
        if (end === row.size) checkCrc(key, row, end, crc);
        yield got.bytes;
      }
    }
    await this.#to.putParts(target, parts());
    this.#held.set(target, row.size);
    this.#bytes += row.size;
    return true;
  }

  async #put(key: string, bytes: Uint8Array): Promise<void> {
    if (this.#held.get(key) === bytes.length) return;
    await this.#to.put(key, bytes);
    this.#held.set(key, bytes.length);
    this.#bytes += bytes.length;
  }

  // --- metadata -------------------------------------------------------------------------------

  async #finish({ state, lastHash }: Round): Promise<CopySummary> {
    const { env, clusterId: from } = this.#source;
    const { clock, random, log } = env;
    const clusterId = this.#clusterId;
    const { at, featureLevel } = state;
    const meanwhile = await this.#to.get(CLUSTER_KEY);
    if (meanwhile !== null) {
      const { clusterId: made } = readCluster(meanwhile.bytes);
      throw configFault(`Cannot copy: cluster ${made} was made in the target meanwhile`);
    }
    await this.#dropMetadata();
    const replica = new Replica(clusterId);
    replica.adopt({ state: asCopy(state, clusterId), lastHash });
    await this.#writeMetadata(replica);
    const made = await createCluster(this.#to, clusterId, { clock, random, log, featureLevel });
    if (made.clusterId !== clusterId) {
      throw configFault(`Cannot copy: cluster ${made.clusterId} was made in the target meanwhile`);
    }
    const committed = [...state.objects.values()].filter(({ state: now }) => now === "committed");
    return {
      from,
      clusterId,
      position: at,
      dataObjects: committed.length,
      walSlots: this.#walSlots,
      bytes: this.#bytes,
    };
  }

  /** Of an earlier attempt, which may have stood at any position; without a cluster object nobody reads it. */
  async #dropMetadata(): Promise<void> {
    const keys = [...this.#held.keys()].filter((key) => key.startsWith(METADATA_PREFIX));
    for (let at = 0; at < keys.length; at += STORE_DELETE_BATCH_KEYS_MAX) {
      const { failed } = await this.#to.delete(keys.slice(at, at + STORE_DELETE_BATCH_KEYS_MAX));
      if (failed.length > 0) throw configFault(`Cannot copy: ${failed[0]} cannot be deleted`);
    }
    for (const key of keys) this.#held.delete(key);
  }

  /**
   * As many snapshots as a node keeps, with an empty entry between two of them: one damaged object must not be the
   * end of a cluster, and a log that begins behind so many is a trimmed one.
   */
  async #writeMetadata(replica: Replica): Promise<void> {
    const { codecs, random } = this.#source.env;
    const clusterId = this.#clusterId;
    const writer = {
      nodeId: replica.state.nodes.keys().next().value ?? nodeId(0),
      epoch: nodeEpoch(0),
      incarnation: uuidOf(randomUuid(random)),
      firstCommand: 1,
      lastCommand: 1,
    };
    for (let count = 1; count <= METADATA_SNAPSHOTS_KEPT; count++) {
      const { at, featureLevel } = replica.state;
      await this.#put(snapshotKey(clusterId, at), encodeSnapshot(replica, codecs));
      if (count === METADATA_SNAPSHOTS_KEPT) return;
      const next = position(at + 1);
      const previous = replica.lastHash;
      const entry = encodeEntry({ at: next, previous, clusterId, writer, featureLevel }, []);
      await this.#put(logKey(clusterId, next), entry);
      replica.take(entry);
    }
  }
}

/** Nodes of the source do not live here: clients must not be sent to them, and nobody waits for them to lead. */
function asCopy(state: State, clusterId: string): State {
  const copy = state.renamed(clusterId);
  for (const [id, row] of copy.nodes) copy.nodes.set(id, { ...row, state: "gone" });
  for (const [key, row] of copy.partitions) copy.partitions.set(key, { ...row, leader: null });
  return copy;
}

function checkCrc(key: string, row: ObjectRow, size: number, crc: number): void {
  if (size !== row.size) throw damaged(key, `it has ${size} bytes, metadata says ${row.size}`);
  if (crc !== row.bytesCrc) throw damaged(key, "its bytes are not those that were written");
}
