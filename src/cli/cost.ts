/** `skerry cost`: what a node's requests to its store cost, by the counters of its metrics. */
import { readFile } from "node:fs/promises";
import { resolvePrices } from "../config/config.ts";
import type { StorePrices } from "../config/prices.ts";
import { sleep } from "../env/clock.ts";
import { costLines, costOf, readUsage, type Usage } from "../config/cost.ts";
import { FaultError, messageOf } from "../lib/errors.ts";
import type { Arguments } from "./args.ts";
import { EXIT } from "./exit.ts";
import { readSources } from "./serve.ts";
import { configFault, isSet, runTool, toolEnv } from "./tool_store.ts";

const SECONDS_DEFAULT = 10;
const SECONDS_MAX = 86_400;
const REQUEST_TIMEOUT_MS = 10_000;

async function textOf(place: string): Promise<string> {
  try {
    if (!/^https?:\/\//.test(place)) return await readFile(place, "utf8");
    const response = await fetch(place, { signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
    if (!response.ok) throw new Error(`HTTP status ${response.status}`);
    return await response.text();
  } catch (error) {
    throw new FaultError("config", `Cannot read metrics from ${place}: ${messageOf(error)}`, {
      retriable: false,
      cause: error,
    });
  }
}

async function look(place: string): Promise<Usage> {
  const usage = readUsage(await textOf(place));
  if (usage !== null) return usage;
  throw configFault(`Cannot read metrics from ${place}: no request of a store was counted there`);
}

function secondsOf(text: string | undefined): number {
  const seconds = text === undefined ? SECONDS_DEFAULT : Number(text);
  if (seconds > 0 && seconds <= SECONDS_MAX) return seconds;
  throw configFault(`Cannot use --seconds ${text}: allowed is a number up to ${SECONDS_MAX}`);
}

async function pricesOf(args: Arguments): Promise<readonly StorePrices[]> {
  const resolved = resolvePrices((await readSources(args)).file);
  if (!resolved.ok) throw configFault(resolved.errors.join("\n"));
  return resolved.prices;
}

export function costCommand(args: Arguments): Promise<number> {
  return runTool(async () => {
    const { metrics: place, seconds } = args.flags;
    if (place === undefined) throw configFault("Cannot tell the cost: give --metrics URL or FILE");
    const waitMs = secondsOf(seconds) * 1_000;
    const prices = await pricesOf(args);
    const { clock } = toolEnv();
    const startedMs = clock.monotonicMs();
    const first = await look(place);
    let before = null;
    let usage = first;
    if (/^https?:\/\//.test(place)) {
      await sleep(clock, waitMs);
      usage = await look(place);
      before = { usage: first, seconds: (clock.monotonicMs() - startedMs) / 1_000 };
    }
    const report = costOf({ before, usage, prices });
    const text = isSet(args, "json") ? JSON.stringify(report) : costLines(report).join("\n");
    process.stdout.write(`${text}\n`);
    return EXIT.ok;
  });
}
