/**
 * What the programs of Connect and of the registry have in common: services with an HTTP interface, as processes of
 * their own, beside a broker that the program itself kills. All are in the program's process group, which run.ts ends.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import process from "node:process";
import { type BrokerProcess, startBroker, tempDir } from "../support/broker_process.ts";
import { behaviour, same } from "./program.ts";

const LOG_CHARS_MAX = 200_000;
const REQUEST_MS_MAX = 20_000;
const START_MS_MAX = 60_000;
/** A handler that threw: a bug, even when the client went on after a retry. */
const BUG = /"event":"request-failed".*/;

export interface OwnBroker {
  readonly kafka: string;
  readonly http: string;
  killAndStart(): Promise<void>;
  /** A behaviour that fails when the broker's log tells of a bug, too. */
  behaviour(name: string, body: () => Promise<void>): Promise<void>;
  end(): Promise<void>;
}

export async function ownBroker(settings: readonly string[]): Promise<OwnBroker> {
  const data = tempDir();
  const set = settings.flatMap((each) => ["--set", each]);
  let running: BrokerProcess = await startBroker({ args: ["--store", `dir:${data.path}`, ...set] });
  const { kafka, http } = running;
  let before = "";
  function check(): void {
    const [bug] = BUG.exec(before + running.output()) ?? [];
    if (bug !== undefined) throw new Error(`the broker: ${bug}`);
  }
  return {
    kafka,
    http,
    async killAndStart() {
      await running.kill9();
      before += running.output();
      running = await running.restart();
    },
    behaviour: (name, body) => behaviour(name, () => body().then(check)),
    async end() {
      const code = await running.stop();
      data.remove();
      same(code, 0, "the broker's exit code");
    },
  };
}

export interface Service {
  readonly url: string;
  /** SIGKILL, and wait until it is gone. */
  kill9(): Promise<void>;
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((done) => {
    child.once("close", () => done());
    child.once("error", () => done());
  });
}

/** Begins to answer `path` with 200 within a minute, or it has failed: its last words are in the error. */
export async function startService(
  words: readonly string[],
  url: string,
  path: string,
): Promise<Service> {
  const [command, ...args] = words;
  const child = spawn(command!, args, { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  let isOver = false;
  const collect = (chunk: unknown) => void (log = (log + String(chunk)).slice(-LOG_CHARS_MAX));
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  const over = ended(child).then(() => void (isOver = true));
  const endMs = performance.now() + START_MS_MAX;
  for (;;) {
    if (await statusOf(`${url}${path}`) === 200) break;
    if (isOver || performance.now() > endMs) {
      child.kill("SIGKILL");
      throw new Error(`${command} did not begin to answer: ${problems(log)}`);
    }
    await new Promise((done) => setTimeout(done, 100));
  }
  // Whoever runs it with --verbose sees why something took long or failed.
  process.on("exit", () => process.stderr.write(`${problems(log)}\n`));
  return {
    url,
    async kill9() {
      child.kill("SIGKILL");
      await over;
    },
  };
}

/** The lines of a log that tell of trouble. */
function problems(log: string): string {
  return log.split("\n").filter((line) => /\b(ERROR|FATAL|Caused by)\b/.test(line)).slice(-20).join(
    "\n",
  );
}

async function statusOf(url: string): Promise<number> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    await answer.body?.cancel();
    return answer.status;
  } catch {
    return 0;
  }
}

export interface Answer<T> {
  readonly status: number;
  readonly body: T;
}

/** A request with a body of JSON; the caller says what the answer is, and would fail at what it is not. */
export async function ask<T>(
  method: string,
  url: string,
  body?: unknown,
): Promise<Answer<T>> {
  const answer = await fetch(url, {
    method,
    signal: AbortSignal.timeout(REQUEST_MS_MAX),
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, body: JSON.parse(text === "" ? "null" : text) as T };
}

/** As `ask`, for what must not fail. */
export async function get<T>(url: string): Promise<T> {
  const { status, body } = await ask<T>("GET", url);
  same(status, 200, `GET ${url}`);
  return body;
}

/** A port that nobody listens at. */
export function freePort(): Promise<number> {
  return new Promise((done, failed) => {
    const server = createServer();
    server.once("error", failed);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => done(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

/** The value of a counter of the broker, over all of its labels. */
async function counter(http: string, name: string): Promise<number> {
  const text = await (await fetch(`${http}/metrics`)).text();
  const lines = text.split("\n").filter((line) => line.startsWith(name));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

/** How many of the bytes that compaction has read are gone. */
export async function bytesCompactedAway(http: string): Promise<number> {
  const read = await counter(http, "skerry_log_cleaner_read_bytes_total");
  return read - await counter(http, "skerry_log_cleaner_written_bytes_total");
}

/** Passes of topic compaction that this run of the broker has done. */
export function compactions(http: string): Promise<number> {
  return counter(http, 'skerry_log_cleaner_runs_total{outcome="done"}');
}
