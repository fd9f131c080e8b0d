/** Which rewrites of single streams share a metadata entry. Pure. */
import type { StreamId } from "../../lib/brand.ts";
import { COMPACTION_BATCH_RUNS_MAX } from "../../lib/limits.ts";
import type { CompactionOptions } from "./options.ts";
import type { StreamJob } from "./stream_plan.ts";

export interface StreamWork {
  readonly streamId: StreamId;
  readonly job: StreamJob;
}

type BatchOptions = Pick<CompactionOptions, "memoryBytes" | "linksMax" | "streamObjectsMax">;

export function bytesOf({ objects }: StreamJob): number {
  return objects.reduce((sum, { size }) => sum + size, 0);
}

/** Bytes are work that waits for its commit; inputs and outputs must fit one entry. Links copy nothing. */
export function fitsBatch(
  batch: readonly StreamWork[],
  next: StreamWork,
  { memoryBytes, linksMax, streamObjectsMax }: BatchOptions,
): boolean {
  const jobs = [...batch, next].map(({ job }) => job);
  const copied = jobs.reduce((sum, job) => sum + (job.kind === "merge" ? bytesOf(job) : 0), 0);
  const inputs = jobs.reduce((sum, { objects }) => sum + objects.length, 0);
  const outputs = Math.min(COMPACTION_BATCH_RUNS_MAX, streamObjectsMax);
  return copied <= memoryBytes && inputs <= linksMax && jobs.length <= outputs;
}
