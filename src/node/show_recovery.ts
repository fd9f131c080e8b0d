/** What a recovery did, in the metrics of the node that did it: whoever's WALs they were. */
import type { Metrics } from "../env/metrics.ts";
import type { RecoveredNode } from "../storage/recover.ts";

export function showRecovery(metrics: Metrics, recovered: RecoveredNode, tookMs: number): void {
  metrics.observe("skerry_recovery_seconds", tookMs / 1_000);
  metrics.count("skerry_recovery_wals_total", {}, recovered.wals);
  metrics.count("skerry_recovery_slots_total", {}, recovered.slots);
  metrics.count("skerry_recovery_records_total", {}, recovered.records);
  metrics.count("skerry_recovery_objects_total", {}, recovered.objects);
}
