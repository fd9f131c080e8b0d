/** What the programs in TypeScript have in common: a line per behaviour, as results.ts reads them. */
import assert from "node:assert/strict";
import process from "node:process";

const WAIT_MS_MAX = 30_000;
const BEHAVIOUR_MS_MAX = 60_000;

function print(name: string, verdict: string, detail: string): void {
  process.stdout.write(`${name}\t${verdict}\t${detail.replaceAll(/\s+/g, " ")}\n`);
}

export function version(text: string): void {
  process.stdout.write(`version\t${text}\n`);
}

function detailOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const causes = "errors" in error && Array.isArray(error.errors) ? error.errors.map(String) : [];
  const at = /compat\.ts:\d+/.exec(error.stack ?? "")?.[0];
  return [error.message, ...causes, at === undefined ? "" : `at ${at}`].join(" ");
}

export async function behaviour(name: string, body: () => Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(new Error("not done in time")), BEHAVIOUR_MS_MAX);
  });
  try {
    await Promise.race([body(), late]);
    print(name, "pass", "");
  } catch (error) {
    print(name, "fail", detailOf(error));
  } finally {
    clearTimeout(timer);
  }
}

export function skip(why: string, ...names: readonly string[]): void {
  for (const name of names) print(name, "skip", why);
}

export const same: typeof assert.deepEqual = assert.deepEqual;

export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
): Promise<void> {
  const endMs = performance.now() + WAIT_MS_MAX;
  while (!await condition()) {
    if (performance.now() > endMs) throw new Error(`not in time: ${what}`);
    await pause(20);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((done) => void setTimeout(done, ms));
}

export function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `v${i}`);
}

/** The address of the broker. */
export const BOOTSTRAP = process.argv[2] ?? "127.0.0.1:9092";
/** Names of topics and groups begin with it, so that no run meets another. */
export const RUN = `${process.argv[1]!.split("/").at(-2)}-${Date.now()}`;
export const RECORDS = 500;

export const TRANSFORMED = numbered(6).map((value) => `${value}!`);
