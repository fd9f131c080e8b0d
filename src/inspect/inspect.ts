/** Decodes any object of ours, part by part. What does not decode is told last, in one sentence. */
import type { Codecs } from "../env/codecs.ts";
import { parseWalKey, type WalKey } from "../object/object_key.ts";
import type { ByteSource } from "./byte_source.ts";
import { inspectComposite } from "./inspect_composite.ts";
import { inspectData } from "./inspect_data.ts";
import { inspectCluster, inspectEntry, inspectSnapshot } from "./inspect_metadata.ts";
import { inspectProbe } from "./inspect_probe.ts";
import { inspectSparse } from "./inspect_sparse.ts";
import { inspectWal } from "./inspect_wal.ts";
import type { Item } from "./item.ts";
import { clusterOfSegment } from "./key_cluster.ts";
import type { ObjectKind } from "./kind.ts";

/** The last parts of a path or key as a WAL key; the cluster stands in it. */
function walPlace(name: string): WalKey | null {
  const parts = name.split("/").slice(-6);
  const cluster = clusterOfSegment(parts[1]);
  return cluster === null ? null : parseWalKey(cluster, parts.join("/"));
}

/** Items as they are decoded; the generator returns the damage, or null. Throws FaultError of the store. */
export function inspect(
  source: ByteSource,
  kind: ObjectKind,
  codecs: Codecs,
): AsyncGenerator<Item, string | null> {
  switch (kind) {
    case "wal":
      return inspectWal(source, walPlace(source.name));
    case "data":
      return inspectData(source);
    case "composite":
      return inspectComposite(source);
    case "entry":
      return inspectEntry(source);
    case "snapshot":
      return inspectSnapshot(source, codecs);
    case "cluster":
      return inspectCluster(source);
    case "sparse":
      return inspectSparse(source);
    case "probe":
      return inspectProbe(source);
  }
}
