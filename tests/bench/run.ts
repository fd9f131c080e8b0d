/**
 * Measures a broker in its own process under the load generator in another.
 *
 *   bun tests/bench/run.ts            all workloads, on memory:, a directory and the fake S3
 *   bun tests/bench/run.ts start      time from exec to both ports open, and idle memory
 *   bun tests/bench/run.ts NAME       one workload
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { type BrokerProcess, startBroker, tempDir } from "../support/broker_process.ts";
import { startS3Server } from "../support/s3_server.ts";
import type { Measured, Workload } from "./load.ts";

export const WORKLOADS: Readonly<Record<string, Workload>> = {
  "produce-1MiB": {
    kind: "produce",
    connections: 4,
    inFlight: 4,
    records: 64,
    valueBytes: 16_384,
    requests: 2000,
  },
  "produce-16KiB": {
    kind: "produce",
    connections: 4,
    inFlight: 16,
    records: 16,
    valueBytes: 1024,
    requests: 20_000,
  },
  "produce-200B": {
    kind: "produce",
    connections: 1,
    inFlight: 1,
    records: 1,
    valueBytes: 200,
    requests: 2000,
  },
  "fetch-1MiB": {
    kind: "fetch",
    connections: 4,
    inFlight: 1,
    records: 64,
    valueBytes: 16_384,
    requests: 1600,
  },
  "http-1": {
    kind: "http-produce",
    connections: 8,
    inFlight: 1,
    records: 1,
    valueBytes: 200,
    requests: 4000,
  },
  "http-100": {
    kind: "http-produce",
    connections: 8,
    inFlight: 1,
    records: 100,
    valueBytes: 170,
    requests: 1000,
  },
  "http-read-100": {
    kind: "http-fetch",
    connections: 8,
    inFlight: 1,
    records: 100,
    valueBytes: 170,
    requests: 1000,
  },
};

/** What a fetch reads must have been written. */
const FILL: Readonly<Record<string, string>> = {
  "fetch-1MiB": "produce-1MiB",
  "http-read-100": "http-100",
};
const PARTITIONS = 8;
const TICKS_PER_S = 100;
const PAGE_BYTES = 4096;

interface Usage {
  readonly cpuMs: number;
  readonly minorFaults: number;
  readonly rssMib: number;
}

/** From /proc; zeros where there is none. */
function usageOf(pid: number): Usage {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
    const number = (at: number) => Number(fields[at]);
    return {
      minorFaults: number(7),
      cpuMs: (number(11) + number(12)) * 1000 / TICKS_PER_S,
      rssMib: number(21) * PAGE_BYTES / 2 ** 20,
    };
  } catch {
    return { cpuMs: 0, minorFaults: 0, rssMib: 0 };
  }
}

export function load(
  workload: Workload,
  broker: Pick<BrokerProcess, "kafka" | "http">,
): Promise<Measured> {
  return new Promise((resolve, reject) => {
    const args = ["tests/bench/load.ts", JSON.stringify(workload), broker.kafka, broker.http];
    const child = spawn("node_modules/.bin/bun", args, { stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    child.stdout.on("data", (chunk: { toString(): string }) => void (text += chunk.toString()));
    child.on("exit", (code) => {
      if (code === 0) resolve(JSON.parse(text) as Measured);
      else reject(new Error(`the load generator ended with ${code}`));
    });
  });
}

async function createTopic(broker: BrokerProcess): Promise<void> {
  const body = JSON.stringify({
    name: "bench",
    partitions: PARTITIONS,
    configs: { "max.message.bytes": 8 << 20 },
  });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${broker.http}/v1/topics`, { method: "POST", body, headers });
  if (response.status !== 201) throw new Error(await response.text());
}

function row(name: string, store: string, result: Measured, before: Usage, after: Usage): string {
  const mb = result.bytes / 1e6;
  const cells = [
    name,
    store,
    (mb / result.seconds).toFixed(0),
    (result.requests / result.seconds).toFixed(0),
    `${result.p50Ms.toFixed(1)} / ${result.p99Ms.toFixed(1)}`,
    ((after.cpuMs - before.cpuMs) / (mb / 1000)).toFixed(0),
    ((after.minorFaults - before.minorFaults) / mb).toFixed(0),
    after.rssMib.toFixed(0),
  ];
  return `| ${cells.join(" | ")} |`;
}

async function measure(
  name: string,
  store: string,
  options: Parameters<typeof startBroker>[0],
): Promise<string> {
  const broker = await startBroker(options);
  try {
    await createTopic(broker);
    const fill = FILL[name];
    if (fill !== undefined) await load(WORKLOADS[fill]!, broker);
    const before = usageOf(broker.pid);
    const result = await load(WORKLOADS[name]!, broker);
    return row(name, store, result, before, usageOf(broker.pid));
  } finally {
    await broker.kill9();
  }
}

async function onEveryStore(name: string): Promise<void> {
  console.log(await measure(name, "memory:", { args: ["--store", "memory:"] }));
  const dir = tempDir();
  console.log(await measure(name, "dir:", { args: ["--store", `dir:${dir.path}`] }));
  dir.remove();
  const s3 = await startS3Server({ latency: { baseMs: 10, perMibMs: 2 } });
  console.log(
    await measure(name, "S3, 10 ms + 2 ms/MiB", {
      args: ["--store", `s3://${s3.bucket}/bench`, "--s3-endpoint", s3.url, "--s3-path-style"],
      env: { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" },
    }),
  );
  await s3.close();
}

const STARTS = 15;

async function measureStart(): Promise<void> {
  const times: number[] = [];
  let rssMib = 0;
  for (let i = 0; i < STARTS; i++) {
    const dir = tempDir();
    const startedMs = performance.now();
    const broker = await startBroker({ args: ["--store", `dir:${dir.path}`] });
    times.push(performance.now() - startedMs);
    rssMib = usageOf(broker.pid).rssMib;
    await broker.kill9();
    dir.remove();
  }
  const sorted = times.toSorted((a, b) => a - b);
  console.log(
    `exec to ready, ms: median ${sorted[7]!.toFixed(0)}, min ${sorted[0]!.toFixed(0)}; RSS ${
      rssMib.toFixed(0)
    } MiB`,
  );
}

if (import.meta.main) {
  const [only] = process.argv.slice(2);
  if (only === "start") await measureStart();
  else {
    console.log(
      "| workload | store | MB/s | req/s | p50 / p99 ms | CPU ms/GB | faults/MB | RSS MiB |",
    );
    console.log("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (const name of only === undefined ? Object.keys(WORKLOADS) : [only]) {
      await onEveryStore(name);
    }
  }
}
