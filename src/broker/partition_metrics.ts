/**
 * Rows of single partitions in the metrics: looked up when somebody asks, at most as many as the property says,
 * in order of topic and partition, so that a page has a bounded size and shows the same ones each time.
 */
import type { Env } from "../env/env.ts";
import type { Metrics } from "../env/metrics.ts";
import type { PartitionLog } from "../log/partition_log.ts";

export interface NamedLog {
  readonly topic: string;
  readonly partition: number;
  readonly log: PartitionLog;
}

function compare(a: NamedLog, b: NamedLog): number {
  if (a.topic !== b.topic) return a.topic < b.topic ? -1 : 1;
  return a.partition - b.partition;
}

function showLog(gauge: Metrics["gauge"], { topic, partition, log }: NamedLog): void {
  const labels = { topic, partition: String(partition) };
  gauge("skerry_partition_log_start_offset", log.logStartOffset, labels);
  gauge("skerry_partition_log_end_offset", log.logEndOffset, labels);
  gauge("skerry_partition_high_watermark", log.highWatermark, labels);
  gauge("skerry_partition_last_stable_offset", log.lastStableOffset, labels);
  gauge("skerry_partition_size_bytes", log.sizeBytes, labels);
}

/** Returns the end of it. */
export function showPartitions(
  { metrics }: Env,
  openLogs: () => readonly NamedLog[],
  rowsMax: number,
): () => void {
  return metrics.onRender((gauge) => {
    const logs = openLogs();
    const listed = rowsMax === 0 ? [] : logs.toSorted(compare).slice(0, rowsMax);
    for (const one of listed) showLog(gauge, one);
    gauge("skerry_partitions_unlisted", logs.length - listed.length);
  });
}
