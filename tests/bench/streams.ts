/** Many live readers of one topic: what each costs while nothing comes, and how long one record takes to reach them. */
import { connect, type Socket } from "node:net";
import { startBroker } from "../support/broker_process.ts";
import type { Variant } from "./measure.ts";
import { usageOf } from "./usage.ts";

const TOGETHER = 100;
const SETTLE_MS = 3_000;
const IDLE_S = 30;
const RECORDS = 20;
const DEADLINE_MS = 30_000;
const POLL_MS = 1;

const wait = (ms: number) => new Promise<void>((done) => void setTimeout(done, ms));

/** Counts what it sees of the mark that each record carries; keeps nothing else. */
class Reader {
  readonly #socket: Socket;
  isOpen = false;
  seen = 0;

  constructor(port: number) {
    this.#socket = connect({ host: "127.0.0.1", port });
    this.#socket.on("error", () => {});
    this.#socket.on("data", (part) => {
      const text = String(part);
      this.isOpen ||= text.includes("retry:");
      this.seen += text.split("#mark#").length - 1;
    });
    this.#socket.write("GET /v1/topics/bench/stream?from=latest HTTP/1.1\r\nHost: x\r\n\r\n");
  }

  close(): void {
    this.#socket.destroy();
  }
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const endMs = performance.now() + DEADLINE_MS;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`${what} took more than ${DEADLINE_MS} ms`);
    await wait(POLL_MS);
  }
}

async function openAll(port: number, count: number): Promise<Reader[]> {
  const readers: Reader[] = [];
  while (readers.length < count) {
    const more = Math.min(TOGETHER, count - readers.length);
    readers.push(...Array.from({ length: more }, () => new Reader(port)));
    await until(() => readers.every(({ isOpen }) => isOpen), "opening");
  }
  return readers;
}

async function post(http: string, value: string): Promise<void> {
  const answer = await fetch(`${http}/v1/topics/bench/records`, { method: "POST", body: value });
  if (!answer.ok) throw new Error(await answer.text());
}

async function fanOut(http: string, readers: readonly Reader[]): Promise<number[]> {
  const times: number[] = [];
  for (let i = 1; i <= RECORDS; i++) {
    const startedMs = performance.now();
    await post(http, `#mark#${"x".repeat(200)}`);
    await until(() => readers.every(({ seen }) => seen >= i), "a record");
    times.push(performance.now() - startedMs);
  }
  return times.toSorted((a, b) => a - b);
}

/** Each reader is a socket here and one there: `ulimit -n` must allow for that. */
export async function measureStreams({ binary, env }: Variant, count: number): Promise<string> {
  const args = ["--store", "memory:"];
  const broker = await startBroker({ args, env, ...(binary === null ? {} : { binary }) });
  try {
    await post(broker.http, "first");
    await wait(SETTLE_MS);
    const before = usageOf(broker.pid);
    const readers = await openAll(Number(new URL(broker.http).port), count);
    await wait(SETTLE_MS);
    const open = usageOf(broker.pid);
    await wait(IDLE_S * 1000);
    const idle = usageOf(broker.pid);
    const times = await fanOut(broker.http, readers);
    const after = usageOf(broker.pid);
    for (const reader of readers) reader.close();
    await wait(SETTLE_MS);
    const gone = usageOf(broker.pid);
    const kib = (open.rssMib - before.rssMib) * 1024 / count;
    const idleShare = (idle.cpuMs - open.cpuMs) / (IDLE_S * 10);
    const perRecordMs = (after.cpuMs - idle.cpuMs) / RECORDS;
    return `${count} readers: ${kib.toFixed(1)} KiB each (RSS ${before.rssMib.toFixed(0)} to ` +
      `${open.rssMib.toFixed(0)} MiB, ${gone.rssMib.toFixed(0)} after they left), idle ` +
      `${idleShare.toFixed(1)} % of a core; a record reaches all in ${
        times[times.length >> 1]!.toFixed(0)
      } ms (median), ${times.at(-1)!.toFixed(0)} ms (worst), ` +
      `${(perRecordMs * 1000 / count).toFixed(0)} µs CPU per reader and record`;
  } finally {
    await broker.kill9();
  }
}
