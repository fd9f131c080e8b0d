/**
 * What a request to the store is for, by its key and by who asks: the label `class` of the store's metrics.
 * A key tells WAL, metadata and probes apart; data objects belong to whoever reads or writes them.
 */
import { CLUSTER_KEY, METADATA_PREFIX, PROBE_PREFIX } from "./object_key.ts";

export type RequestClass =
  | "wal"
  | "metadata"
  | "probe"
  | "upload"
  | "cold_read"
  | "open"
  | "compaction"
  | "recovery"
  | "garbage";

/** Who asks, where the key does not tell. */
export type Purpose = "serve" | "open" | "compaction" | "recovery";

const WRITES: ReadonlySet<string> = new Set(["put", "put_parts"]);

export function requestClass(purpose: Purpose): (op: string, key: string) => RequestClass {
  return (op, key) => {
    if (key.startsWith(PROBE_PREFIX)) return "probe";
    if (key === CLUSTER_KEY || key.startsWith(METADATA_PREFIX)) return "metadata";
    if (purpose !== "serve") return purpose;
    if (key.includes("/wal/")) return "wal";
    // Whole listings are looks for what nobody names.
    if (op === "delete" || op === "list") return "garbage";
    return WRITES.has(op) ? "upload" : "cold_read";
  };
}
