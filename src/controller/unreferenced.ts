/**
 * Which names of the store nobody can ever refer to again, by the metadata alone. What is said here stays true:
 * ids, epochs and positions only move forward. Age says nothing: an old object may be committed in a moment.
 */
import type { ObjectId, Position } from "../lib/brand.ts";
import { partitionPoint } from "../lib/partition_point.ts";
import {
  parseDataKey,
  parseLogKey,
  parseSnapshotKey,
  parseWalKey,
  PROBE_PREFIX,
  type WalKey,
} from "../object/object_key.ts";
import type { IdBlock, Image } from "./image.ts";
import { walKey } from "./image.ts";
import { spanContains } from "./ranges.ts";

export type NameKind = "data" | "wal" | "metadata" | "probe";

export type NameVerdict =
  /** Metadata needs it, may need it, or deletes it by itself; or it is not ours. */
  | { readonly kind: "kept" }
  /** Written by somebody who saw more metadata than this image has. */
  | { readonly kind: "ahead"; readonly detail: string }
  | { readonly kind: "unreferenced"; readonly what: NameKind; readonly detail: string };

export interface Judge {
  of(key: string): NameVerdict;
}

const KEPT: NameVerdict = { kind: "kept" };

function unreferenced(what: NameKind, detail: string): NameVerdict {
  return { kind: "unreferenced", what, detail };
}

/** Finds the block of an id without walking over all of them. */
export class IdBlocks {
  readonly #sorted: readonly IdBlock[];

  constructor(image: Pick<Image, "idBlocks">) {
    this.#sorted = [...image.idBlocks.values()].toSorted((a, b) => a.from - b.from);
  }

  of(id: ObjectId): IdBlock | null {
    const sorted = this.#sorted;
    const block = sorted[partitionPoint(sorted.length, (i) => sorted[i]!.to <= id)];
    return block !== undefined && block.from <= id ? block : null;
  }
}

export interface JudgeOptions {
  readonly clusterId: string;
  readonly image: Image;
  /** Everything in the metadata log up to here is in a snapshot that has stood long enough. */
  readonly boundary: Position;
}

/** The image must not change while the judge is used. */
export function createJudge(options: JudgeOptions): Judge {
  const { clusterId, image, boundary } = options;
  const blocks = new IdBlocks(image);
  return {
    of(key) {
      const id = parseDataKey(clusterId, key);
      if (id !== null) return dataVerdict(image, blocks, id);
      const wal = parseWalKey(clusterId, key);
      if (wal !== null) return walVerdict(image, wal);
      if (key.startsWith(PROBE_PREFIX)) return unreferenced("probe", "left by a probe at start");
      const entry = parseLogKey(clusterId, key);
      if (entry !== null) {
        return entry <= boundary ? unreferenced("metadata", "entry below the snapshots") : KEPT;
      }
      const snapshot = parseSnapshotKey(clusterId, key);
      return snapshot !== null && snapshot < boundary
        ? unreferenced("metadata", "snapshot older than those that are kept")
        : KEPT;
    },
  };
}

export function dataVerdict(
  image: Pick<Image, "objects" | "nextObjectId">,
  blocks: IdBlocks,
  id: ObjectId,
): NameVerdict {
  // A row is read, or is deleted by the collector.
  if (image.objects.has(id)) return KEPT;
  if (id >= image.nextObjectId) {
    return { kind: "ahead", detail: `object ${id} was never reserved` };
  }
  const block = blocks.of(id);
  if (block === null || spanContains(block.purged, id)) {
    return unreferenced("data", "deleted before, and written once more");
  }
  // May be committed yet, or is deleted by the collector once its epoch is swept.
  return KEPT;
}

export function walVerdict(
  image: Pick<Image, "wals" | "at">,
  { nodeId, nodeEpoch, slot }: WalKey,
): NameVerdict {
  const row = image.wals.get(walKey(nodeId, nodeEpoch));
  if (row === undefined) {
    return nodeEpoch <= image.at
      ? unreferenced("wal", "of a WAL that was recovered and forgotten")
      : { kind: "ahead", detail: `node ${nodeId} epoch ${nodeEpoch} never registered` };
  }
  if (row.state.kind === "sealed") {
    return slot === row.state.slot ? KEPT : unreferenced("wal", "a slot of a recovered WAL");
  }
  return slot < row.walTrim ? unreferenced("wal", "a slot that is uploaded") : KEPT;
}
