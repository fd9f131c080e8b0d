/**
 * Measures a broker in its own process under the load generator in another; rows of a Markdown table.
 *
 *   bun tests/bench/run.ts                          all workloads on all stores
 *   bun tests/bench/run.ts produce-1MiB fetch-hot   some of them
 *   bun tests/bench/run.ts start | idle             start-up time and idle memory | writes when idle
 *   bun tests/bench/run.ts streams --readers 5000   live readers: what each costs idle, and a record to all of them
 *   bun tests/bench/run.ts cost ["1 MiB/s"]         requests in virtual time | growth: large metadata
 *     --stores memory,dir,s3,sink  --rounds 3  --requests 500  --seconds 60
 *     --tuned                                       beside the default allocator, one that keeps memory
 *     --binary old=PATH --binary new=PATH           compares executables; rounds alternate
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { compiledBinary } from "../support/broker_process.ts";
import { printCost } from "./cost.ts";
import { printGrowth } from "./growth.ts";
import { type Figures, measure, medians, type Variant } from "./measure.ts";
import { measureIdle, measureStart } from "./start.ts";
import { measureStreams } from "./streams.ts";
import { STORE_TITLES, type StoreName, STORES } from "./stores.ts";
import { type Workload, WORKLOADS } from "./workloads.ts";

const TUNED = { MIMALLOC_PURGE_DELAY: "10000" };
/** A sink has nothing to read from, and small writes are not what it is for. */
const SINK_WORKLOADS: ReadonlySet<string> = new Set([
  "produce-1MiB",
  "produce-16KiB",
  "produce-16KiB-wide",
]);

const HEAD = [
  "| workload | store | broker | MB/s | req/s | p50 / p99 ms | CPU ms/GB | faults/MB | RSS MiB |",
  "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
];

function row(workload: string, store: StoreName, variant: Variant, figures: Figures): string {
  const cells = [
    workload,
    STORE_TITLES[store],
    variant.name,
    figures.mbPerS.toFixed(figures.mbPerS < 10 ? 1 : 0),
    figures.requestsPerS.toFixed(0),
    `${figures.p50Ms.toFixed(1)} / ${figures.p99Ms.toFixed(1)}`,
    figures.cpuMsPerGb.toFixed(0),
    figures.faultsPerMb.toFixed(0),
    figures.rssMib.toFixed(0),
  ];
  return `| ${cells.join(" | ")} |`;
}

function variantsOf(binaries: readonly string[], tuned: boolean): Variant[] {
  const plain = binaries.length === 0
    ? [{ name: "default", binary: compiledBinary(), env: {} }]
    : binaries.map((text): Variant => {
      const at = text.indexOf("=");
      return { name: text.slice(0, at), binary: text.slice(at + 1), env: {} };
    });
  const kept = plain.map(({ name, binary }): Variant => ({
    name: name === "default" ? "tuned" : `${name}, tuned`,
    binary,
    env: TUNED,
  }));
  return tuned ? [...plain, ...kept] : plain;
}

/** Alternating rounds: the machine's mood is shared by all variants. */
async function compare(
  name: string,
  store: StoreName,
  workload: Workload,
  variants: readonly Variant[],
  rounds: number,
): Promise<void> {
  const found = variants.map((): Figures[] => []);
  for (let round = 0; round < rounds; round++) {
    for (const [i, variant] of variants.entries()) {
      found[i]!.push(await measure(workload, store, variant));
    }
  }
  for (const [i, variant] of variants.entries()) {
    console.log(row(name, store, variant, medians(found[i]!)));
  }
}

function storesFor(name: string, asked: readonly StoreName[]): readonly StoreName[] {
  return asked.filter((store) =>
    (store !== "sink" || SINK_WORKLOADS.has(name)) &&
    (store !== "memory" || WORKLOADS[name]?.cold !== true)
  );
}

function workloadOf(name: string, requests: string | undefined): Workload {
  const found = WORKLOADS[name];
  if (found === undefined) {
    throw new Error(`no workload ${name}: there are ${Object.keys(WORKLOADS).join(", ")}`);
  }
  return requests === undefined ? found : { ...found, requests: Number(requests) };
}

async function main(words: readonly string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: {
      stores: { type: "string", default: STORES.join(",") },
      rounds: { type: "string", default: "1" },
      requests: { type: "string" },
      seconds: { type: "string", default: "60" },
      readers: { type: "string", default: "5000" },
      tuned: { type: "boolean", default: false },
      binary: { type: "string", multiple: true, default: [] },
    },
  });
  if (positionals[0] === "cost") return await printCost(positionals.slice(1));
  if (positionals[0] === "growth") return await printGrowth();
  const variants = variantsOf(values.binary, values.tuned);
  if (positionals[0] === "streams") {
    for (const variant of variants) {
      console.log(`${variant.name}: ${await measureStreams(variant, Number(values.readers))}`);
    }
    return;
  }
  if (positionals[0] === "start" || positionals[0] === "idle") {
    for (const variant of variants) {
      const line = positionals[0] === "start"
        ? await measureStart(variant)
        : await measureIdle(variant, Number(values.seconds));
      console.log(`${variant.name}: ${line}`);
    }
    return;
  }
  const asked = STORES.filter((store) => values.stores.split(",").includes(store));
  for (const line of HEAD) console.log(line);
  for (const name of positionals.length === 0 ? Object.keys(WORKLOADS) : positionals) {
    const workload = workloadOf(name, values.requests);
    for (const store of storesFor(name, asked)) {
      await compare(name, store, workload, variants, Number(values.rounds));
    }
  }
}

if (import.meta.main) await main(process.argv.slice(2));
