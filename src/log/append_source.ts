/** Who wrote a batch. Those of requests and of named writers have base sequences that clients may not use. */
import type { BatchHeader } from "../protocol/record_batch.ts";
import { isRequestBatch } from "./request_part.ts";
import { isStepBatch } from "./writer_step.ts";

export type Source = "client" | "request" | "step";

export function sourceOf(header: BatchHeader): Source {
  return isRequestBatch(header) ? "request" : isStepBatch(header) ? "step" : "client";
}
