/** What compaction tells of its rewrites. */
import type { Env } from "../../env/env.ts";
import type { CommitOutcome } from "./commit.ts";

export function countRun({ metrics }: Env, kind: string, outcome: string): void {
  metrics.count("skerry_compaction_runs_total", { kind, outcome });
}

export function showRun(
  { metrics, log }: Env,
  kind: string,
  { inputs, outputs, bytes }: Extract<CommitOutcome, { kind: "done" }>,
  tookMs: number,
): void {
  metrics.count("skerry_compaction_written_bytes_total", {}, bytes);
  metrics.observe("skerry_compaction_seconds", tookMs / 1_000);
  log.log("debug", "compacted", { kind, inputs, outputs, bytes, tookMs: Math.round(tookMs) });
}
