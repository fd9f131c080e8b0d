/**
 * A broker as a process of its own: SKERRY_BINARY, else the compiled file when it is as new as the
 * source, else the source under Bun. Every wait is bounded, and only processes started here are ended.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";

export interface BrokerProcess {
  readonly pid: number;
  readonly kafka: string;
  readonly http: string;
  /** Everything it has printed so far. */
  output(): string;
  /** SIGKILL, and wait until it is gone. */
  kill9(): Promise<void>;
  /** SIGTERM; the exit code. */
  stop(): Promise<number | null>;
  /** The same command once more, on the same addresses; the process must have ended. */
  restart(): Promise<BrokerProcess>;
  /** Resident bytes, from /proc; null where there is none. */
  residentBytes(): number | null;
  /** The exit code, once it has ended by itself. */
  readonly exited: Promise<number | null>;
}

export interface BrokerProcessOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Path of another executable than the usual one. */
  readonly binary?: string;
  /** Told the process id as soon as there is one. */
  readonly onStart?: (pid: number) => void;
}

const READY_MS_MAX = 30_000;
/** A broker that does not end within this is a failure of its own: 30 s are the limit of its shutdown. */
const END_MS_MAX = 35_000;
const BINARY = resolve("dist/skerry");

function newestMs(directory: string): number {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((newest, entry) => {
      return Math.max(newest, statSync(join(entry.parentPath, entry.name)).mtimeMs);
    }, 0);
}

let fresh: boolean | null = null;

/** The compiled file, whatever its age; null when there is none. */
export function compiledBinary(): string | null {
  const named = process.env["SKERRY_BINARY"];
  if (named !== undefined) return resolve(named);
  return existsSync(BINARY) ? BINARY : null;
}

/** What tests start: the compiled file unless the source has changed since. */
export function usualBinary(): string | null {
  const binary = compiledBinary();
  if (binary === null || process.env["SKERRY_BINARY"] !== undefined) return binary;
  fresh ??= statSync(binary).mtimeMs >= newestMs(resolve("src"));
  return fresh ? binary : null;
}

export function tempDir(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "skerry-test-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Resolves with null when `promise` takes longer. */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<null>((done) => void (timer = setTimeout(() => done(null), ms)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

interface Spawned {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  output(): string;
}

/** What a test that failed in its middle has left behind. */
const running = new Set<number>();
process.on("exit", () => running.forEach(killIfThere));

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended in the meantime.
  }
}

function spawnBroker(words: readonly string[], options: BrokerProcessOptions): Spawned {
  const binary = options.binary ?? usualBinary();
  const [command, first] = binary === null
    ? [resolve("node_modules/.bin/bun"), [resolve("src/cli/main.ts")]]
    : [binary, []];
  const child = spawn(command, [...first, ...words], {
    cwd: options.cwd ?? process.cwd(),
    env: { ...process.env, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  const collect = (chunk: { toString(): string }) => void (text += chunk.toString());
  child.stdout!.on("data", collect);
  child.stderr!.on("data", collect);
  const { pid } = child;
  if (pid !== undefined) {
    running.add(pid);
    options.onStart?.(pid);
  }
  const exited = new Promise<number | null>((done, failed) => {
    child.on("error", failed);
    // "close", not "exit": then all of the output is there.
    child.on("close", (code) => {
      if (pid !== undefined) running.delete(pid);
      done(code);
    });
  });
  return { child, exited, output: () => text };
}

/** Runs to the end: for --help, --version and configurations that are refused. */
export async function runBroker(
  words: readonly string[],
  options: BrokerProcessOptions = {},
): Promise<{ readonly code: number | null; readonly output: string }> {
  const { child, exited, output } = spawnBroker(words, options);
  const code = await within(exited.then((value) => ({ value })), END_MS_MAX);
  if (code !== null) return { code: code.value, output: output() };
  child.kill("SIGKILL");
  throw new Error(`the broker did not end: ${output()}`);
}

/** Starts one and kills it `ms` later, ready or not: a crash in the middle of recovery. */
export async function crashStart(options: BrokerProcessOptions, ms: number): Promise<void> {
  const { child, exited } = spawnBroker(["serve", ...(options.args ?? [])], options);
  await within(exited, ms);
  child.kill("SIGKILL");
  await exited;
}

interface Ready {
  readonly kafka: string;
  readonly http: string;
}

/** The line of the JSON format, or the lines of the text format. */
function readyLine(text: string): Ready | null {
  const lines = text.split("\n").slice(0, -1);
  const json = lines.find((each) => each.includes('"event":"ready"'));
  if (json !== undefined) return JSON.parse(json) as Ready;
  const [kafka, http] = ["Kafka", "HTTP"].map((name) =>
    lines.find((line) => line.startsWith(`  ${name} `))?.slice(name.length + 3).trim()
  );
  return kafka === undefined || http === undefined ? null : { kafka, http };
}

async function untilReady({ exited, output }: Spawned): Promise<Ready> {
  let ended = false;
  void exited.then(() => void (ended = true), () => void (ended = true));
  const endMs = performance.now() + READY_MS_MAX;
  while (performance.now() < endMs && !ended) {
    const ready = readyLine(output());
    if (ready !== null) return ready;
    await new Promise((done) => setTimeout(done, 10));
  }
  throw new Error(`the broker did not get ready: ${output()}`);
}

function withPorts(args: readonly string[], kafka: string, http: string): string[] {
  const words = [...args];
  if (!args.includes("--kafka-listen")) words.push("--kafka-listen", kafka);
  if (!args.includes("--http-listen")) words.push("--http-listen", http);
  return words;
}

function residentBytes(pid: number): number | null {
  try {
    const found = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    return found === null ? null : Number(found[1]) * 1024;
  } catch {
    return null;
  }
}

function handle(spawned: Spawned, { kafka, http }: Ready, options: BrokerProcessOptions) {
  const { child, exited, output } = spawned;
  const pid = child.pid!;
  async function end(signal: "SIGKILL" | "SIGTERM"): Promise<number | null> {
    // child.kill() would hide the exit code on Deno.
    if (running.has(pid)) process.kill(pid, signal);
    const code = await within(exited.then((value) => ({ value })), END_MS_MAX);
    if (code !== null) return code.value;
    killIfThere(pid);
    throw new Error(`the broker did not end after ${signal}: ${output()}`);
  }
  const broker: BrokerProcess = {
    pid,
    kafka,
    http,
    output,
    exited,
    residentBytes: () => residentBytes(pid),
    kill9: async () => void await end("SIGKILL"),
    stop: () => end("SIGTERM"),
    restart() {
      // A broker whose HTTP is off has no address to keep.
      const place = http === null ? "off" : new URL(http).host;
      const args = (options.args ?? []).filter((word, i, all) =>
        ![word, all[i - 1]].some((each) => each === "--kafka-listen" || each === "--http-listen")
      );
      return startBroker({ ...options, args: withPorts(args, kafka, place) });
    },
  };
  return broker;
}

/** Ports are picked freely unless `args` name them. */
export async function startBroker(options: BrokerProcessOptions = {}): Promise<BrokerProcess> {
  const args = withPorts(options.args ?? [], "127.0.0.1:0", "127.0.0.1:0");
  const format = args.includes("--log-format") ? [] : ["--log-format", "json"];
  const spawned = spawnBroker(["serve", ...format, ...args], options);
  try {
    return handle(spawned, await untilReady(spawned), options);
  } catch (error) {
    spawned.child.kill("SIGKILL");
    throw error;
  }
}
