/** The store that a tool looks into: configured as for `serve`, opened for reading unless it shall repair. */
import { openStore } from "../adapters/open_store.ts";
import { createSystemEnv } from "../adapters/system_env.ts";
import { type Config, resolveConfig } from "../config/config.ts";
import type { Env } from "../env/env.ts";
import { FaultError, messageOf } from "../lib/errors.ts";
import { retryingStore } from "../object/retrying.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { type Arguments, TOOL_OPTIONS } from "./args.ts";
import { EXIT, exitCodeOf } from "./exit.ts";
import { PipeClosed } from "./printer.ts";
import { openReadOnlyDir } from "./read_only_dir.ts";
import { fail, readSources } from "./serve.ts";

/** Only what goes wrong is worth a line beside a tool's answer. */
export function toolEnv(): Env {
  return createSystemEnv({ logFormat: "text", logLevel: "warn" });
}

export function configFault(message: string): FaultError {
  return new FaultError("config", message, { retriable: false });
}

/** Whether an option that takes no value was given. */
export function isSet(args: Arguments, name: string): boolean {
  return args.flags[name] === "true";
}

/** From the options that `serve` knows; the command reads its own. */
export async function configOf(args: Arguments): Promise<Config> {
  const sources = await readSources(args);
  const resolved = resolveConfig({ ...sources, flags: serveFlags(args) });
  if (!resolved.ok) throw configFault(resolved.errors.join("\n"));
  return resolved.config;
}

function serveFlags({ flags }: Arguments): Record<string, string> {
  return Object.fromEntries(Object.entries(flags).filter(([name]) => !(name in TOOL_OPTIONS)));
}

export async function openToolStore(
  args: Arguments,
  env: Env,
  mode: "read" | "repair",
): Promise<ObjectStore> {
  const config = await configOf(args);
  if (config.store.kind === "memory") throw configFault("Cannot look into memory: it is empty");
  if (config.store.kind === "dir") {
    const reader = await openReadOnlyDir(config.store.path, env);
    if (mode === "read") return reader;
  }
  return retryingStore(await openStore(config, env), env);
}

/** Runs a tool; a fault becomes one line and an exit code. A reader that went away is no fault. */
export async function runTool(work: () => Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof PipeClosed) return EXIT.pipe;
    return fail([messageOf(error)], exitCodeOf(error));
  }
}
