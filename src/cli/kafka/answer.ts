/** How commands answer: tables and JSON on standard output, failures on standard error, one exit code. */
import { CLIENT_EXIT, ClientFault } from "../client/fault.ts";
import type { Io } from "./io.ts";

/** Columns under each other; numbers stand right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, at) => Math.max(...all.map((row) => row[at]!.length)));
  const isNumber = head.map((_, at) => rows.every((row) => /^(-?\d+|-)$/.test(row[at]!)));
  return all.map((row) =>
    row.map((cell, at) =>
      isNumber[at] === true && rows.length > 0
        ? cell.padStart(widths[at]!)
        : cell.padEnd(widths[at]!)
    ).join("  ").trimEnd() + "\n"
  ).join("");
}

export async function writeJson(io: Io, value: object): Promise<void> {
  await io.write(`${JSON.stringify(value)}\n`);
}

/** What became of one of several things. */
export interface Outcome {
  readonly name: string;
  /** Null when it was done. */
  readonly fault: ClientFault | null;
  /** The line of what was done. */
  readonly said: string;
  readonly detail?: object;
}

/** Runs it; what the broker refuses becomes an outcome beside others. */
export async function outcomeOf(
  name: string,
  work: () => Promise<Pick<Outcome, "said" | "detail">>,
): Promise<Outcome> {
  try {
    return { name, fault: null, ...await work() };
  } catch (fault) {
    if (!(fault instanceof ClientFault)) throw fault;
    return { name, fault, said: "" };
  }
}

function outcomeJson({ name, fault, detail }: Outcome): object {
  if (fault === null) return { name, ok: true, ...detail };
  return { name, ok: false, error: fault.error, message: fault.message };
}

/** All failed for one reason: its code. Some did, or for several reasons: 1. */
function exitOf(outcomes: readonly Outcome[]): number {
  const exits = new Set(outcomes.map(({ fault }) => fault?.exit ?? CLIENT_EXIT.ok));
  const [only] = exits;
  return exits.size === 1 && only !== undefined
    ? only
    : exits.size === 0
    ? CLIENT_EXIT.ok
    : CLIENT_EXIT.failed;
}

export async function answerOutcomes(
  io: Io,
  json: boolean,
  outcomes: readonly Outcome[],
): Promise<number> {
  if (json) await writeJson(io, { results: outcomes.map(outcomeJson) });
  else {
    const lines = outcomes.filter(({ fault }) => fault === null).map(({ said }) => `${said}\n`);
    if (lines.length > 0) await io.write(lines.join(""));
  }
  for (const { fault } of outcomes) if (fault !== null) io.note(fault.message);
  return exitOf(outcomes);
}

export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
