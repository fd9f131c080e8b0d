/**
 * Proves a store at rest: metadata is read as a node reads it, then every object that it names. Reads only.
 * A store that somebody writes to meanwhile is not judged: the summary says so.
 */
import type { ObjectRow } from "../controller/image.ts";
import { readCluster } from "../controller/cluster.ts";
import type { State } from "../controller/state.ts";
import type { Env } from "../env/env.ts";
import { type Position, position, type StreamId } from "../lib/brand.ts";
import { isFault } from "../lib/errors.ts";
import { FSCK_OBJECTS_AT_ONCE } from "../lib/limits.ts";
import { CLUSTER_KEY, dataKey, logPrefix, snapshotPrefix } from "../object/object_key.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { Coverage } from "./coverage.ts";
import { damage, type Finding, type Report } from "./finding.ts";
import { type Census, listStore } from "./fsck_listing.ts";
import { checkMetadataObjects } from "./fsck_metadata.ts";
import { checkObject, metaStreamsOf } from "./fsck_object.ts";
import { checkRows } from "./fsck_rows.ts";
import { type BrokenWal, checkWal } from "./fsck_wal.ts";
import { clusterOfSegment } from "./key_cluster.ts";
import { hasMovedOn, loadMetadata, type StoreAtRest } from "./load_metadata.ts";

export interface FsckOptions {
  readonly store: ObjectStore;
  readonly env: Env;
  readonly report: Report;
}

export interface FsckSummary {
  /** `empty`: no object of ours at all. `changed`: somebody wrote meanwhile, so the findings prove nothing. */
  readonly verdict: "clean" | "damaged" | "changed" | "empty";
  readonly clusterId: string | null;
  /** Position that the metadata was read to. */
  readonly position: number;
  readonly keys: number;
  readonly bytes: number;
  readonly dataObjects: number;
  readonly walObjects: number;
  readonly metadataEntries: number;
  readonly streams: number;
  readonly damages: number;
  readonly orphanBytes: number;
  readonly garbageBytes: number;
}

export interface FsckResult {
  readonly summary: FsckSummary;
  /** None without `rest`. */
  readonly brokenWals: readonly BrokenWal[];
  /** Null when the metadata is damaged or its end is lost: nothing may be repaired by it. */
  readonly rest: StoreAtRest | null;
}

class Tally {
  damages = 0;
  /** Whether the metadata is whole and as new as the rest: only then its rows say what may go. */
  metadataHolds = true;
  orphanBytes = 0;
  garbageBytes = 0;
  readonly #report: Report;

  constructor(report: Report) {
    this.#report = report;
  }

  readonly report = async (finding: Finding): Promise<void> => {
    if (finding.severity === "damage") {
      this.damages += 1;
      if (finding.kind === "metadata" || finding.kind === "ahead") this.metadataHolds = false;
    } else if (finding.kind === "orphan") this.orphanBytes += finding.bytes;
    else if (finding.kind === "garbage") this.garbageBytes += finding.bytes;
    await this.#report(finding);
  };
}

/** Throws what the store throws, and FaultError `config` on what a newer build wrote. */
export async function fsck({ store, env, report }: FsckOptions): Promise<FsckResult> {
  const tally = new Tally(report);
  const clusterId = await findCluster(store, tally.report);
  if (clusterId === null) return emptyResult(tally);
  const rest = { store, env, clusterId };
  const loaded = await loadMetadata(rest);
  if (!loaded.ok) {
    const detail = `${loaded.detail}; objects and WALs were not checked`;
    await tally.report(damage("metadata", loaded.key, detail));
    const { entries } = await checkMetadataObjects(rest, position(0), tally.report);
    return emptyResult(tally, clusterId, entries);
  }
  const { state } = loaded;
  const at = state.at;
  const { entries } = await checkMetadataObjects(rest, at, tally.report);
  await checkRows(state, clusterId, tally.report);
  const census = await listStore(store, clusterId, state, tally.report);
  await checkObjects(rest, state, census, tally.report);
  const brokenWals = await checkWals(rest, state, census, tally.report);
  const summary = {
    ...(await summaryOf(rest, at, census, tally)),
    metadataEntries: entries,
    streams: state.streams.size,
  };
  return tally.metadataHolds
    ? { summary, brokenWals, rest }
    : { summary, brokenWals: [], rest: null };
}

/** The id that the cluster object names; if it cannot be right, the one in the metadata's keys. */
async function findCluster(store: ObjectStore, report: Report): Promise<string | null> {
  const got = await store.get(CLUSTER_KEY);
  const named = got === null ? { problem: "it is missing" } : clusterIdIn(got.bytes);
  const stored = await firstNamespace(store);
  if ("id" in named) {
    if (stored === null || named.id === stored) return named.id;
    if (await holdsMetadata(store, named.id)) return named.id;
  } else if (stored === null && got === null) return null;
  const problem = "id" in named ? `it names cluster ${named.id}` : named.problem;
  const whose = stored === null
    ? "there is no metadata"
    : `the metadata is that of cluster ${stored}`;
  await report(damage("metadata", CLUSTER_KEY, `${problem}; ${whose}`));
  return stored;
}

function clusterIdIn(bytes: Uint8Array): { readonly id: string } | { readonly problem: string } {
  try {
    return { id: readCluster(bytes).clusterId };
  } catch (error) {
    if (isFault(error, "corrupt")) return { problem: error.message };
    throw error;
  }
}

async function firstNamespace(store: ObjectStore): Promise<string | null> {
  for await (const { key } of store.list("meta/_kafka_")) {
    const named = clusterOfSegment(key.split("/")[1]);
    if (named !== null) return named;
  }
  return null;
}

async function holdsMetadata(store: ObjectStore, clusterId: string): Promise<boolean> {
  for (const prefix of [logPrefix(clusterId), snapshotPrefix(clusterId)]) {
    for await (const _ of store.list(prefix)) return true;
  }
  return false;
}

function emptyResult(tally: Tally, clusterId: string | null = null, entries = 0): FsckResult {
  const { damages, orphanBytes, garbageBytes } = tally;
  const summary: FsckSummary = {
    verdict: damages > 0 ? "damaged" : "empty",
    clusterId,
    position: 0,
    keys: 0,
    bytes: 0,
    dataObjects: 0,
    walObjects: 0,
    metadataEntries: entries,
    streams: 0,
    damages,
    orphanBytes,
    garbageBytes,
  };
  return { summary, brokenWals: [], rest: null };
}

async function summaryOf(
  rest: StoreAtRest,
  at: Position,
  { keys, bytes, objects, wals }: Census,
  { damages, orphanBytes, garbageBytes }: Tally,
): Promise<Omit<FsckSummary, "metadataEntries" | "streams">> {
  const changed = await hasMovedOn(rest, at);
  const walObjects = [...wals.values()].reduce((sum, slots) => sum + slots.size, 0);
  return {
    verdict: changed ? "changed" : damages > 0 ? "damaged" : "clean",
    clusterId: rest.clusterId,
    position: at,
    keys,
    bytes,
    dataObjects: objects.size,
    walObjects,
    damages,
    orphanBytes,
    garbageBytes,
  };
}

async function checkObjects(
  { store, clusterId }: StoreAtRest,
  state: State,
  { objects: sizes }: Census,
  report: Report,
): Promise<void> {
  const about = { metaStreams: metaStreamsOf(state), shifts: new Map<StreamId, number>() };
  const options = { store, clusterId, state, sizes, ...about, report };
  const coverage = new Coverage(state, report);
  const rows = state.objects.values();
  const unlessVanished = async <T>({ objectId }: ObjectRow, work: () => Promise<T>) => {
    try {
      return await work();
    } catch (error) {
      if (!isFault(error, "object-missing")) throw error;
      await report(damage("missing", dataKey(clusterId, objectId), error.message));
      return null;
    }
  };
  const check = async (row: ObjectRow) => {
    if (row.state !== "committed") return;
    const ranges = await unlessVanished(row, () => checkObject(options, row));
    // A composite stands for its links.
    if (ranges !== null && row.linkedBy === null) {
      await coverage.add(dataKey(clusterId, row.objectId), ranges);
    }
  };
  // They share one iterator: each takes the next row when it is done with its last.
  const workers = Array.from({ length: FSCK_OBJECTS_AT_ONCE }, async () => {
    for (const row of rows) await check(row);
  });
  await Promise.all(workers);
  await coverage.finish();
}

async function checkWals(
  { store, clusterId }: StoreAtRest,
  state: State,
  { objects: sizes, wals }: Census,
  report: Report,
): Promise<BrokenWal[]> {
  const about = { metaStreams: metaStreamsOf(state), shifts: new Map<StreamId, number>() };
  const options = { store, clusterId, state, sizes, ...about, report };
  const broken: BrokenWal[] = [];
  for (const [name, row] of state.wals) {
    const slots = wals.get(name) ?? new Map<number, number>();
    const found = await checkWal({ ...options, row, slots });
    if (found !== null) broken.push(found);
  }
  return broken;
}
