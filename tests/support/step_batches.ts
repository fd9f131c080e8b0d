/** Batches of named writers. */
import type { Env } from "../../src/env/env.ts";
import { toUtf8 } from "../../src/lib/bytes.ts";
import { STEP_SEQUENCE, withStep, type WriterStep } from "../../src/log/writer_step.ts";
import { buildBatch } from "../../src/protocol/record_batch.ts";

export const NO_STEP: WriterStep = { closes: false, order: null, writer: null };

export function stepBatch(
  env: Env,
  timestampMs: number,
  step: Partial<WriterStep>,
  values: readonly (string | null)[],
): Uint8Array {
  const [first, ...rest] = values.map((value) => ({
    key: null,
    value: value === null ? null : toUtf8(value),
    headers: [],
    timestampMs,
  }));
  return buildBatch({
    records: [withStep(first!, { ...NO_STEP, ...step }), ...rest],
    codec: null,
    codecs: env.codecs,
    baseSequence: STEP_SEQUENCE,
  });
}
