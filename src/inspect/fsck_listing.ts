/** Every key of the bucket in one listing: whose it is, and what nobody needs any more. */
import { walKey as walRowKey } from "../controller/image.ts";
import { dataVerdict, IdBlocks, type NameVerdict, walVerdict } from "../controller/unreferenced.ts";
import type { State } from "../controller/state.ts";
import type { ObjectId } from "../lib/brand.ts";
import {
  CLUSTER_KEY,
  parseDataKey,
  parseLogKey,
  parseSnapshotKey,
  parseSparseIndexKey,
  parseWalKey,
  PROBE_PREFIX,
  type WalKey,
} from "../object/object_key.ts";
import type { ObjectInfo, ObjectStore } from "../object/object_store.ts";
import { damage, type Report } from "./finding.ts";

export interface Census {
  readonly keys: number;
  readonly bytes: number;
  /** Sizes of the objects that have a row. */
  readonly objects: ReadonlyMap<ObjectId, number>;
  /** Sizes of the slots of each WAL that has a row, by slot. */
  readonly wals: ReadonlyMap<string, ReadonlyMap<number, number>>;
}

class Listing {
  readonly #clusterId: string;
  readonly #state: State;
  readonly #report: Report;
  readonly #blocks: IdBlocks;
  readonly objects = new Map<ObjectId, number>();
  readonly wals = new Map<string, Map<number, number>>();
  keys = 0;
  bytes = 0;

  constructor(clusterId: string, state: State, report: Report) {
    this.#clusterId = clusterId;
    this.#state = state;
    this.#report = report;
    this.#blocks = new IdBlocks(state);
  }

  async take(info: ObjectInfo): Promise<void> {
    const { key } = info;
    this.keys += 1;
    this.bytes += info.size;
    const id = parseDataKey(this.#clusterId, key);
    if (id !== null) return await this.#object(info, id);
    const wal = parseWalKey(this.#clusterId, key);
    if (wal !== null) return await this.#slot(info, wal);
    if (key.startsWith(PROBE_PREFIX)) {
      return await this.#reclaimable("orphan", info, "left by a probe at start");
    }
    const isMetadata = key === CLUSTER_KEY || parseLogKey(this.#clusterId, key) !== null ||
      parseSnapshotKey(this.#clusterId, key) !== null;
    // A hint: whatever is in it, nothing is lost by it.
    if (!isMetadata && parseSparseIndexKey(this.#clusterId, key) === null) {
      const detail = "not a key of this cluster";
      await this.#report({ severity: "note", kind: "foreign", key, detail });
    }
  }

  async #object(info: ObjectInfo, id: ObjectId): Promise<void> {
    const row = this.#state.objects.get(id);
    if (row !== undefined) {
      this.objects.set(id, info.size);
      if (row.state === "committed") return;
      return await this.#reclaimable("garbage", info, "destroyed; the node deletes it in time");
    }
    const verdict = dataVerdict(this.#state, this.#blocks, id);
    if (verdict.kind !== "kept") return await this.#unnamed(info, verdict);
    const { nodeId, epoch, sweptAt } = this.#blocks.of(id)!;
    const when = sweptAt === null ? "a start of the node sweeps it" : "the node deletes it in time";
    const detail = `never committed by node ${nodeId} epoch ${epoch}; ${when}`;
    await this.#reclaimable("garbage", info, detail);
  }

  async #slot(info: ObjectInfo, wal: WalKey): Promise<void> {
    const { nodeId, nodeEpoch, slot } = wal;
    const name = walRowKey(nodeId, nodeEpoch);
    const row = this.#state.wals.get(name);
    if (row === undefined) return await this.#unnamed(info, walVerdict(this.#state, wal));
    const slots = this.wals.get(name) ?? new Map<number, number>();
    this.wals.set(name, slots);
    slots.set(slot, info.size);
    if (row.state.kind === "sealed") {
      const what = slot === row.state.slot ? "the seal" : "a slot";
      const detail = `${what} of a recovered WAL; the node deletes it in time`;
      return await this.#reclaimable("garbage", info, detail);
    }
    if (slot < row.walTrim) {
      await this.#reclaimable("garbage", info, "a WAL slot that is uploaded");
    }
  }

  /** What the metadata does not name, in the words of the audit. */
  async #unnamed(info: ObjectInfo, verdict: NameVerdict): Promise<void> {
    if (verdict.kind === "kept") return;
    if (verdict.kind === "unreferenced") {
      return await this.#reclaimable("orphan", info, verdict.detail);
    }
    const detail = `${verdict.detail}: the end of the metadata log is lost`;
    await this.#report(damage("ahead", info.key, detail));
  }

  async #reclaimable(
    kind: "orphan" | "garbage",
    { key, size }: ObjectInfo,
    detail: string,
  ): Promise<void> {
    await this.#report({ severity: "reclaimable", kind, key, detail, bytes: size });
  }
}

export async function listStore(
  store: ObjectStore,
  clusterId: string,
  state: State,
  report: Report,
): Promise<Census> {
  const listing = new Listing(clusterId, state, report);
  for await (const info of store.list("")) await listing.take(info);
  return listing;
}
