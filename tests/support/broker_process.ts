/** A broker as a process of its own: the compiled file when there is one, else the source under Bun. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
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
  /** The exit code, once it has ended by itself. */
  readonly exited: Promise<number | null>;
}

export interface BrokerProcessOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Path of another executable than the usual one. */
  readonly binary?: string;
}

const READY_MS_MAX = 30_000;
const BINARY = resolve("dist/skerry");

/** The compiled file when it exists: `npm test` compiles before the tests. */
export function compiledBinary(): string | null {
  const named = process.env["SKERRY_BINARY"];
  if (named !== undefined) return resolve(named);
  return existsSync(BINARY) ? BINARY : null;
}

export function tempDir(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "skerry-test-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

interface Spawned {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  output(): string;
}

function start(words: readonly string[], options: BrokerProcessOptions): Spawned {
  const binary = options.binary ?? compiledBinary();
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
  const exited = new Promise<number | null>((done) => void child.on("exit", (code) => done(code)));
  return { child, exited, output: () => text };
}

/** Runs to the end: for --help, --version and configurations that are refused. */
export async function runBroker(
  words: readonly string[],
  options: BrokerProcessOptions = {},
): Promise<{ readonly code: number | null; readonly output: string }> {
  const spawned = start(words, options);
  const code = await spawned.exited;
  return { code, output: spawned.output() };
}

function readyLine(text: string): { readonly kafka: string; readonly http: string } | null {
  for (const line of text.split("\n")) {
    if (line.includes('"event":"ready"')) {
      return JSON.parse(line) as { kafka: string; http: string };
    }
  }
  return null;
}

async function untilReady({ exited, output }: Spawned): Promise<{ kafka: string; http: string }> {
  let ended = false;
  void exited.then(() => void (ended = true));
  const endMs = performance.now() + READY_MS_MAX;
  while (performance.now() < endMs && !ended) {
    const ready = readyLine(output());
    if (ready !== null) return ready;
    await new Promise((done) => setTimeout(done, 20));
  }
  throw new Error(`the broker did not get ready: ${output()}`);
}

/** Ports are picked freely unless `args` name them. */
export async function startBroker(options: BrokerProcessOptions = {}): Promise<BrokerProcess> {
  const args = options.args ?? [];
  const words = ["serve", "--log-format", "json", ...args];
  if (!args.includes("--kafka-listen")) words.push("--kafka-listen", "127.0.0.1:0");
  if (!args.includes("--http-listen")) words.push("--http-listen", "127.0.0.1:0");
  const spawned = start(words, options);
  const { child, exited, output } = spawned;
  const pid = child.pid!;
  try {
    const { kafka, http } = await untilReady(spawned);
    return {
      pid,
      kafka,
      http,
      output,
      exited,
      async kill9() {
        process.kill(pid, "SIGKILL");
        await exited;
      },
      async stop() {
        // child.kill() would hide the exit code on Deno.
        process.kill(pid, "SIGTERM");
        return await exited;
      },
    };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}
