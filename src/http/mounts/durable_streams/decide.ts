/**
 * Whether a step is appended, is in already, or is refused. Pure, and asked in the same stretch as the append. A
 * repeat is known before anything else is held against it, so that a lost answer can always be had again.
 */
import type { NamedWriter } from "../../../log/writer_step.ts";
import type { Writers } from "../../../log/writer_table.ts";
import type { StepAsk, StepRefusal } from "./port.ts";

export type Decision =
  | { readonly kind: "append" }
  | {
    readonly kind: "known";
    /** Durable once the high watermark is here. */
    readonly end: number;
    readonly writer: NamedWriter | null;
  }
  | { readonly kind: "refuse"; readonly refusal: StepRefusal };

const APPEND: Decision = { kind: "append" };

function refuse(refusal: StepRefusal): Decision {
  return { kind: "refuse", refusal };
}

/** Null where the writer's numbers go on. */
function judgeWriter(writers: Writers, writer: NamedWriter): Decision | null {
  const { epoch, sequence: received } = writer;
  const known = writers.writer(writer.name);
  if (known !== undefined && epoch < known.epoch) {
    return refuse({ reason: "stale-epoch", epoch: known.epoch });
  }
  if (known !== undefined && epoch > known.epoch) {
    return received === 0 ? null : refuse({ reason: "epoch-start" });
  }
  if (known !== undefined && received <= known.sequence) {
    return { kind: "known", end: known.end, writer: known };
  }
  const expected = known === undefined ? 0 : known.sequence + 1;
  return received === expected ? null : refuse({ reason: "gap", expected, received });
}

export function decideStep(writers: Writers, end: number, ask: StepAsk): Decision {
  const { writer, order, isFirst } = ask;
  if (isFirst && end > 0) return { kind: "known", end, writer: null };
  const judged = writer === null ? null : judgeWriter(writers, writer);
  if (judged?.kind === "known") return judged;
  const { closing } = writers;
  const isStale = judged?.kind === "refuse" && judged.refusal.reason === "stale-epoch";
  if (closing !== null && !isStale) {
    const onlyCloses = ask.closes && ask.values.length === 0 && writer === null;
    return onlyCloses
      ? { kind: "known", end: closing.end, writer: null }
      : refuse({ reason: "closed", next: closing.end });
  }
  if (judged !== null) return judged;
  return order !== null && writers.order !== null && order <= writers.order
    ? refuse({ reason: "order", last: writers.order })
    : APPEND;
}
