/** Two transcripts side by side: what differs, where, and whether that is allowed. */
import type { Json } from "./normal.ts";

export interface Difference {
  /** Scenario and label of the request. */
  readonly step: string;
  /** Where in the answer: `topics.foo.errorCode`. */
  readonly path: string;
  readonly ours: Json | undefined;
  readonly theirs: Json | undefined;
}

/** A difference that we want. A stale one is a failure: it must be seen in every run. */
export interface Allowance {
  /** Of `step: path`, as shown in the report. */
  readonly at: RegExp;
  readonly reason: string;
  /** When given, only this answer of ours or of Kafka. */
  readonly ours?: Json | undefined;
  readonly theirs?: Json | undefined;
}

function isRow(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null;
}

function* diff(
  path: string,
  ours: Json | undefined,
  theirs: Json | undefined,
): Generator<Pick<Difference, "path" | "ours" | "theirs">> {
  if (same(ours, theirs)) return;
  if (!isRow(ours) || !isRow(theirs) || Array.isArray(ours) !== Array.isArray(theirs)) {
    yield { path, ours, theirs };
    return;
  }
  // Where the outcome differs, the rest of the row follows from it.
  if ("errorCode" in ours && "errorCode" in theirs && ours["errorCode"] !== theirs["errorCode"]) {
    yield {
      path: path === "" ? "errorCode" : `${path}.errorCode`,
      ours: ours["errorCode"]!,
      theirs: theirs["errorCode"]!,
    };
    return;
  }
  for (const key of new Set([...Object.keys(theirs), ...Object.keys(ours)])) {
    yield* diff(path === "" ? key : `${path}.${key}`, ours[key], theirs[key]);
  }
}

export function compare(
  scenario: string,
  ours: ReadonlyMap<string, Json>,
  theirs: ReadonlyMap<string, Json>,
): Difference[] {
  const found: Difference[] = [];
  for (const label of new Set([...theirs.keys(), ...ours.keys()])) {
    const step = `${scenario} / ${label}`;
    for (const one of diff("", ours.get(label), theirs.get(label))) found.push({ step, ...one });
  }
  return found;
}

export function whereOf({ step, path }: Difference): string {
  return `${step}: ${path}`;
}

export function allows(allowance: Allowance, difference: Difference): boolean {
  return allowance.at.test(whereOf(difference)) &&
    (!("ours" in allowance) || same(allowance.ours, difference.ours)) &&
    (!("theirs" in allowance) || same(allowance.theirs, difference.theirs));
}

function same(a: Json | undefined, b: Json | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

export interface Verdict {
  readonly refused: readonly Difference[];
  readonly allowed: number;
  readonly stale: readonly Allowance[];
}

export function judge(differences: readonly Difference[], table: readonly Allowance[]): Verdict {
  const used = new Set<Allowance>();
  const refused = differences.filter((difference) => {
    const fitting = table.filter((allowance) => allows(allowance, difference));
    for (const allowance of fitting) used.add(allowance);
    return fitting.length === 0;
  });
  return {
    refused,
    allowed: differences.length - refused.length,
    stale: table.filter((allowance) => !used.has(allowance)),
  };
}
