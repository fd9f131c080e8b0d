/** Decides which runs of a log cache block go into which object. Pure. */
import { STREAM_OBJECT_SPLIT_BYTES } from "../../lib/limits.ts";
import type { StreamRun } from "../cache/stream_run.ts";

export interface UploadPlan {
  /** Runs that share the stream set object, ascending by stream; empty when there is none. */
  readonly streamSet: readonly StreamRun[];
  /** Each of these gets a stream object of its own. */
  readonly streamObjects: readonly StreamRun[];
}

/** Large runs split off; a single run is always a stream object. `runs` ascend by stream. */
export function planUpload(
  runs: readonly StreamRun[],
  splitBytes = STREAM_OBJECT_SPLIT_BYTES,
): UploadPlan {
  if (runs.length === 1) return { streamSet: [], streamObjects: runs };
  return {
    streamSet: runs.filter((run) => run.bytes < splitBytes),
    streamObjects: runs.filter((run) => run.bytes >= splitBytes),
  };
}

/** Ids that the plan's objects need. */
export function objectCount(plan: UploadPlan): number {
  return plan.streamObjects.length + (plan.streamSet.length > 0 ? 1 : 0);
}
