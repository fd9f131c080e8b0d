/** The metadata objects one by one: checksums, positions, the chain of entries, and what may go. */
import { decodeEntry, entryHash } from "../controller/entry.ts";
import { listSnapshots, type SnapshotInfo } from "../controller/object_log.ts";
import { decodeSnapshot } from "../controller/snapshot.ts";
import { trimBoundary } from "../controller/snapshot_keeper.ts";
import { type Position, position } from "../lib/brand.ts";
import { equalBytes } from "../lib/bytes.ts";
import { isFault } from "../lib/errors.ts";
import { METADATA_SNAPSHOTS_KEPT } from "../lib/limits.ts";
import { CLUSTER_KEY, logKey, logPrefix, parseLogKey } from "../object/object_key.ts";
import type { ObjectInfo } from "../object/object_store.ts";
import { damage, type Report } from "./finding.ts";
import type { StoreAtRest } from "./load_metadata.ts";

interface SnapshotSeen extends SnapshotInfo {
  readonly lastHash: Uint8Array | null;
}

export interface MetadataCensus {
  readonly entries: number;
  readonly snapshots: number;
}

/** The damage that a decoder found; anything else, a newer build's bytes among it, is thrown on. */
function corruptionIn<T>(decode: () => T): { readonly value: T } | { readonly problem: string } {
  try {
    return { value: decode() };
  } catch (error) {
    if (isFault(error, "corrupt")) return { problem: error.message };
    throw error;
  }
}

async function readSnapshots(
  { store, clusterId, env }: StoreAtRest,
  report: Report,
): Promise<SnapshotSeen[]> {
  const found: SnapshotSeen[] = [];
  for (const info of await listSnapshots(store, clusterId)) {
    const { at } = info;
    const got = await store.get(info.key);
    const decoded = got === null
      ? { problem: "it vanished while it was read" }
      : corruptionIn(() => decodeSnapshot(got.bytes, at, env.codecs).lastHash);
    if ("problem" in decoded) await report(damage("metadata", info.key, decoded.problem));
    found.push({ ...info, lastHash: "value" in decoded ? decoded.value : null });
  }
  return found;
}

/** Where the next trim of the log will end, if the node keeps it as long as by default; 0 when nothing may go. */
async function nextBoundary(
  { store }: StoreAtRest,
  snapshots: readonly SnapshotSeen[],
): Promise<Position> {
  const cluster = await store.get(CLUSTER_KEY);
  if (cluster === null) return position(0);
  return trimBoundary(snapshots, cluster.storeNowMs) ?? position(0);
}

/** `end`: position that the log was replayed to. */
export async function checkMetadataObjects(
  rest: StoreAtRest,
  end: Position,
  report: Report,
): Promise<MetadataCensus> {
  const snapshots = await readSnapshots(rest, report);
  const boundary = await nextBoundary(rest, snapshots);
  for (const { at, key, size } of snapshots) {
    if (at >= boundary) continue;
    const detail = "snapshot older than those that are kept";
    await report({ severity: "reclaimable", kind: "garbage", key, detail, bytes: size });
  }
  // A trim may have been cut off anywhere below this; above, no entry is ever missing.
  const whole = snapshots[METADATA_SNAPSHOTS_KEPT - 1]?.at ?? position(0);
  const hashes = new Map(snapshots.map(({ at, lastHash }) => [at as number, lastHash]));
  const walk = new EntryWalk(rest, { whole, boundary, end, hashes, report });
  const infos: ObjectInfo[] = [];
  for await (const info of rest.store.list(logPrefix(rest.clusterId))) infos.push(info);
  // Not every store lists in order, whatever it promises.
  for (const info of infos.toSorted((a, b) => a.key < b.key ? -1 : 1)) await walk.entry(info);
  await walk.finish();
  return { entries: walk.count, snapshots: snapshots.length };
}

interface WalkOptions {
  readonly whole: Position;
  readonly boundary: Position;
  readonly end: Position;
  readonly hashes: ReadonlyMap<number, Uint8Array | null>;
  readonly report: Report;
}

/** Takes the entries in order. */
class EntryWalk {
  readonly #rest: StoreAtRest;
  readonly #options: WalkOptions;
  #previous: { readonly at: number; readonly hash: Uint8Array | null };
  #count = 0;

  constructor(rest: StoreAtRest, options: WalkOptions) {
    this.#rest = rest;
    this.#options = options;
    this.#previous = { at: options.whole, hash: options.hashes.get(options.whole) ?? null };
  }

  get count(): number {
    return this.#count;
  }

  async entry({ key, size }: ObjectInfo): Promise<void> {
    const { boundary, whole, report } = this.#options;
    const at = parseLogKey(this.#rest.clusterId, key);
    if (at === null) return;
    this.#count += 1;
    if (at <= boundary) {
      const detail = "metadata entry below the snapshots that are kept";
      return await report({ severity: "reclaimable", kind: "garbage", key, detail, bytes: size });
    }
    const got = await this.#rest.store.get(key);
    if (got === null) return await report(damage("metadata", key, "it vanished while it was read"));
    if (at > whole) await this.#reportMissing(at);
    const problem = this.#problem(at, got.bytes);
    if (problem !== null) await report(damage("metadata", key, problem));
    if (at > whole) this.#previous = { at, hash: problem === null ? entryHash(got.bytes) : null };
  }

  #problem(at: Position, bytes: Uint8Array): string | null {
    const decoded = corruptionIn(() => decodeEntry(bytes));
    if ("problem" in decoded) return decoded.problem;
    const { value } = decoded;
    if (value.at !== at) return `the entry says it is ${value.at}`;
    if (value.clusterId !== this.#rest.clusterId) return "the entry is of another cluster";
    if (at <= this.#options.whole) return null;
    const before = this.#previous;
    const follows = before.at !== at - 1 || before.hash === null ||
      equalBytes(value.previous, before.hash);
    if (!follows) return "the entry does not follow the one before";
    const known = this.#options.hashes.get(at) ?? null;
    return known === null || equalBytes(known, entryHash(bytes))
      ? null
      : "the snapshot of this position was made of another entry";
  }

  /** One finding, however many: a key far above the others would make them countless. */
  async #reportMissing(next: number): Promise<void> {
    const first = this.#previous.at + 1;
    if (first >= next) return;
    const last = next - 1;
    const detail = first === last
      ? "metadata entry is missing"
      : `metadata entries ${first} to ${last} are missing`;
    const key = logKey(this.#rest.clusterId, position(first));
    await this.#options.report(damage("metadata", key, detail));
  }

  async finish(): Promise<void> {
    await this.#reportMissing(this.#options.end + 1);
  }
}
