/** One measurement: a fresh broker on a fresh store, filled if need be, under one workload. */
import { spawn } from "node:child_process";
import { type BrokerProcess, startBroker } from "../support/broker_process.ts";
import { type Measured, PARTITIONS } from "./load.ts";
import { openStore, type StoreName } from "./stores.ts";
import { usageOf } from "./usage.ts";
import { fillOf, type Workload } from "./workloads.ts";

const MESSAGE_BYTES_MAX = 8 << 20;

/** A broker to measure: another executable, another environment. */
export interface Variant {
  readonly name: string;
  readonly binary: string | null;
  readonly env: Readonly<Record<string, string>>;
}

/** Per second where it says so; bytes are those of batches over TCP, of bodies over HTTP. */
export interface Figures {
  readonly mbPerS: number;
  readonly requestsPerS: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMsPerGb: number;
  readonly faultsPerMb: number;
  readonly rssMib: number;
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
    child.on("close", (code) => {
      if (code === 0) resolve(JSON.parse(text) as Measured);
      else reject(new Error(`the load generator ended with ${code}`));
    });
  });
}

export async function createTopic(http: string): Promise<void> {
  const body = JSON.stringify({
    name: "bench",
    partitions: PARTITIONS,
    configs: { "max.message.bytes": MESSAGE_BYTES_MAX },
  });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${http}/v1/topics`, { method: "POST", body, headers });
  if (response.status !== 201) throw new Error(await response.text());
}

async function filled(broker: BrokerProcess, workload: Workload): Promise<BrokerProcess> {
  await createTopic(broker.http);
  const fill = fillOf(workload);
  if (fill !== null) await load(fill, broker);
  if (workload.warmUp !== undefined) await load({ ...workload, requests: workload.warmUp }, broker);
  if (workload.cold !== true) return broker;
  await broker.stop();
  return await broker.restart();
}

export async function measure(
  workload: Workload,
  storeName: StoreName,
  { binary, env }: Variant,
): Promise<Figures> {
  const store = await openStore(storeName);
  const options = { args: store.args, env: { ...store.env, ...env } };
  let broker = await startBroker(binary === null ? options : { ...options, binary });
  try {
    broker = await filled(broker, workload);
    const before = usageOf(broker.pid);
    const { bytes, seconds, requests, p50Ms, p99Ms } = await load(workload, broker);
    const after = usageOf(broker.pid);
    const mb = bytes / 1e6;
    return {
      mbPerS: mb / seconds,
      requestsPerS: requests / seconds,
      p50Ms,
      p99Ms,
      cpuMsPerGb: (after.cpuMs - before.cpuMs) / (mb / 1000),
      faultsPerMb: (after.minorFaults - before.minorFaults) / mb,
      rssMib: after.rssMib,
    };
  } finally {
    await broker.kill9();
    store.close();
  }
}

/** Value by value: the rounds disturb each other, and no single one is typical in everything. */
export function medians(rounds: readonly Figures[]): Figures {
  const median = (pick: (figures: Figures) => number) => {
    const sorted = rounds.map(pick).toSorted((a, b) => a - b);
    return sorted[sorted.length >> 1] ?? 0;
  };
  return {
    mbPerS: median((one) => one.mbPerS),
    requestsPerS: median((one) => one.requestsPerS),
    p50Ms: median((one) => one.p50Ms),
    p99Ms: median((one) => one.p99Ms),
    cpuMsPerGb: median((one) => one.cpuMsPerGb),
    faultsPerMb: median((one) => one.faultsPerMb),
    rssMib: median((one) => one.rssMib),
  };
}
