/** A command of the command line inside this process: its words in, everything it says out. */
import { createSystemEnv } from "../../src/adapters/system_env.ts";
import type { Env } from "../../src/env/env.ts";
import type { Io } from "../../src/cli/kafka/io.ts";
import { runKafka } from "../../src/cli/kafka/run.ts";
import { toUtf8, utf8 } from "../../src/lib/bytes.ts";

export interface CliOptions {
  /** Standard input. */
  readonly input?: string | AsyncIterable<Uint8Array>;
  readonly stop?: AbortSignal;
  readonly env?: Env;
  /** Told of each piece of standard output; its promise holds up the command. */
  readonly onWrite?: (text: string) => Promise<void> | void;
}

export interface CliResult {
  readonly code: number;
  readonly out: string;
  /** Standard error. */
  readonly err: string;
}

async function* once(text: string): AsyncGenerator<Uint8Array> {
  if (text !== "") yield toUtf8(text);
}

export async function runCli(
  words: readonly string[],
  { input = "", stop = new AbortController().signal, env, onWrite }: CliOptions = {},
): Promise<CliResult> {
  let out = "";
  let err = "";
  const io: Io = {
    env: env ?? createSystemEnv({ logFormat: "text", logLevel: "error" }),
    input: typeof input === "string" ? once(input) : input,
    async write(data) {
      const text = typeof data === "string" ? data : utf8(data);
      out += text;
      await onWrite?.(text);
    },
    note: (line) => void (err += `${line}\n`),
    progress: null,
    untilStop: () => stop,
  };
  const code = await runKafka(words, io);
  return { code, out, err };
}
