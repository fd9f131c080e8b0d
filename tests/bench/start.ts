/** Time from exec until both ports take connections and until the first answer, memory when idle, and requests to the store when idle. */
import { connect } from "node:net";
import { startBroker, tempDir } from "../support/broker_process.ts";
import { freePort } from "./free_port.ts";
import { openStore } from "./stores.ts";
import { usageOf } from "./usage.ts";
import type { Variant } from "./measure.ts";

const STARTS = 15;
const SETTLE_MS = 3_000;
const POLL_MS = 1;

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

async function untilOpen(ports: readonly number[]): Promise<void> {
  for (const port of ports) {
    while (!(await isOpen(port))) await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

const wait = (ms: number) => new Promise<void>((done) => void setTimeout(done, ms));

export async function measureStart({ binary, env }: Variant): Promise<string> {
  const opened: number[] = [];
  const answered: number[] = [];
  let rssMib = 0;
  for (let i = 0; i < STARTS; i++) {
    const dir = tempDir();
    const [kafka, http] = [await freePort(), await freePort()];
    const args = [
      "--store",
      `dir:${dir.path}`,
      "--kafka-listen",
      `127.0.0.1:${kafka}`,
      "--http-listen",
      `127.0.0.1:${http}`,
    ];
    const startedMs = performance.now();
    const starting = startBroker({ args, env, ...(binary === null ? {} : { binary }) });
    await untilOpen([kafka, http]);
    opened.push(performance.now() - startedMs);
    // Waits until the node is ready, which /readyz does not.
    const ready = await fetch(`http://127.0.0.1:${http}/v1/topics`);
    if (!ready.ok) throw new Error(await ready.text());
    answered.push(performance.now() - startedMs);
    const broker = await starting;
    if (i === STARTS - 1) await wait(SETTLE_MS);
    rssMib = usageOf(broker.pid).rssMib;
    await broker.kill9();
    dir.remove();
  }
  return `exec to both ports open: ${summary(opened)}; to the first answer: ${
    summary(answered)
  }; ` +
    `idle RSS ${rssMib.toFixed(0)} MiB`;
}

function summary(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  return `median ${sorted[STARTS >> 1]!.toFixed(0)} ms, best ${sorted[0]!.toFixed(0)} ms`;
}

/** Requests that change the store, as its own counters show them. */
async function writes(http: string): Promise<number> {
  const text = await (await fetch(`${http}/metrics`)).text();
  const lines = text.split("\n").filter((line) =>
    /^skerry_object_store_requests_total\{.*op="(put|put_parts|delete)"/.test(line)
  );
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

/** One record, then nobody writes: what remains is what timers do by themselves. */
export async function measureIdle({ binary, env }: Variant, seconds: number): Promise<string> {
  const store = await openStore("s3");
  const broker = await startBroker({
    args: store.args,
    env: { ...store.env, ...env },
    ...(binary === null ? {} : { binary }),
  });
  try {
    await fetch(`${broker.http}/v1/topics/bench/records`, { method: "POST", body: "hello" });
    await wait(SETTLE_MS);
    const [before, cpuBefore] = [await writes(broker.http), usageOf(broker.pid).cpuMs];
    await wait(seconds * 1_000);
    const after = await writes(broker.http);
    const cpu = usageOf(broker.pid).cpuMs - cpuBefore;
    return `idle for ${seconds} s: ${after - before} writes to the store, ${cpu} ms CPU`;
  } finally {
    await broker.kill9();
    store.close();
  }
}
