/** What a command reads, writes and is told by: standard streams and Ctrl-C, or a test's own. */
import type { Env } from "../../env/env.ts";
import { EXIT } from "../exit.ts";
import { writeOut } from "../printer.ts";
import { toolEnv } from "../tool_store.ts";

export interface Io {
  readonly env: Env;
  /** Standard input. */
  readonly input: AsyncIterable<Uint8Array>;
  /** Standard output: resolves once it is taken. Rejects with PipeClosed when nobody will. */
  write(data: string | Uint8Array): Promise<void>;
  /** A line for whoever watches: standard error. */
  readonly note: (line: string) => void;
  /** Replaces the last line on the terminal that watches; null without one. */
  readonly progress: ((text: string) => void) | null;
  /** Aborts when the end is asked for: only for commands that end in an orderly way. */
  untilStop(): AbortSignal;
}

const CLEAR_LINE = "\r\u001b[K";
/** 128 and the number of SIGINT: the second one does not wait for anything. */
const CUT_OFF = 130;

function stopOnSignals(): AbortSignal {
  const stop = new AbortController();
  const listener = () => {
    if (stop.signal.aborted) process.exit(CUT_OFF);
    stop.abort();
  };
  process.on("SIGINT", listener);
  process.on("SIGTERM", listener);
  return stop.signal;
}

export function processIo(): Io {
  // The last word to a terminal that is gone.
  process.stderr.on("error", () => process.exit(EXIT.pipe));
  const isWatched = process.stderr.isTTY;
  return {
    env: toolEnv(),
    input: process.stdin,
    write: writeOut,
    note: (line) => void process.stderr.write(`${isWatched ? CLEAR_LINE : ""}${line}\n`),
    progress: isWatched ? (text) => void process.stderr.write(CLEAR_LINE + text) : null,
    untilStop: stopOnSignals,
  };
}
