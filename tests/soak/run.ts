/**
 * The compiled broker under load for minutes, on a store that fails, killed again and again:
 *   npm run soak -- --minutes 30 --store s3 --seed 1
 * Ends with a table of figures and "N passed, N failed"; exit code 1 after any violation.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { seededRandom } from "../../src/env/random.ts";
import { freePort } from "../bench/free_port.ts";
import { Broker } from "./broker.ts";
import { pause, Soak } from "./cluster.ts";
import { Gauges, type StoreSample } from "./gauges.ts";
import type { GroupBook } from "./groups.ts";
import { Nemesis } from "./nemesis.ts";
import { parseSoakOptions, type SoakOptions } from "./options.ts";
import { type S3Proxy, startProxy } from "./s3_proxy.ts";
import { PARTITIONS, propertyWords } from "./settings.ts";
import {
  listDirectory,
  listS3,
  removeStore,
  S3_ENV,
  S3_STORE,
  StoreServer,
} from "./store_server.ts";
import {
  checkDelivered,
  checkWhole,
  type Growth,
  growth,
  objectsBound,
  settledObjects,
  table,
} from "./verdict.ts";
import { startWorkload } from "./workload.ts";

/** Shares of the time: with restarts, and then without any. */
const STORM = 0.45;
const WRITERS_MS_MAX = 60_000;
const MIB = 1024 * 1024;

interface World {
  readonly soak: Soak;
  readonly broker: Broker;
  readonly gauges: Gauges;
  readonly nemesis: Nemesis;
  readonly proxy: S3Proxy | null;
  /** `skerry fsck` on the store at rest; its exit code. */
  fsck(name: string): number | null;
  close(): Promise<void>;
}

/** The compiled file; SKERRY_BINARY names one that is there already. */
function binaryIn(out: string): string {
  const named = process.env["SKERRY_BINARY"];
  if (named !== undefined) return resolve(named);
  const path = join(out, "skerry");
  execFileSync("./compile.sh", ["--out", path], { stdio: "inherit" });
  return path;
}

async function buildWorld({ store, seed, cache }: SoakOptions, out: string): Promise<World> {
  const random = seededRandom(seed);
  const binary = binaryIn(out);
  const server = store === "dir" ? null : await StoreServer.start(store, { cache, out });
  const proxy = server === null ? null : await startProxy(server.url, random);
  const directory = join(out, "store");
  const place = proxy === null
    ? ["--store", `dir:${directory}`]
    : ["--store", S3_STORE, "--s3-endpoint", proxy.url, "--s3-path-style"];
  const broker = new Broker({
    binary,
    args: [...place, ...propertyWords()],
    env: S3_ENV,
    kafka: `127.0.0.1:${await freePort()}`,
    http: `127.0.0.1:${await freePort()}`,
    logs: join(out, "logs"),
  });
  const soak = new Soak(broker.kafka);
  broker.watchedBy(soak);
  await broker.start();
  const gauges = new Gauges(
    broker,
    async () => server === null ? listDirectory(directory) : await listS3(server),
  );
  const serverMayDie = store === "versitygw";
  return {
    soak,
    broker,
    gauges,
    proxy,
    nemesis: new Nemesis(soak, { broker, proxy, server, serverMayDie, random }),
    fsck(name) {
      // Past the proxy, which this process would have to serve meanwhile.
      const words = place.map((word) => word === proxy?.url ? server!.url.origin : word);
      const told = spawnSync(binary, ["fsck", ...words], {
        env: { ...process.env, ...S3_ENV },
        encoding: "utf8",
        maxBuffer: 64 * MIB,
      });
      writeFileSync(join(out, "logs", `fsck-${name}.log`), told.stdout + told.stderr);
      console.log(
        `fsck ${name}: ${told.stdout.trim().split("\n").at(-1)}, exit code ${told.status}`,
      );
      return told.status;
    },
    async close() {
      proxy?.close();
      await server?.stop();
    },
  };
}

function checkStore({ soak, fsck }: World, name: string): void {
  const code = fsck(name);
  if (code !== 0) soak.violation(`fsck ${name}: exit code ${code}, see logs/fsck-${name}.log`);
  else soak.count("stores proven");
}

async function bounded(soak: Soak, what: string, done: Promise<unknown>): Promise<void> {
  const late = pause(WRITERS_MS_MAX).then(() => "late" as const);
  if (await Promise.race([done, late]) === "late") {
    soak.violation(`${what} did not end within ${WRITERS_MS_MAX} ms`);
  }
}

async function run(options: SoakOptions, out: string): Promise<number> {
  const world = await buildWorld(options, out);
  const { soak, broker, gauges, nemesis } = world;
  const totalMs = options.minutes * 60_000;
  const workload = await startWorkload(soak, options.seed);
  const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${text}`);
  say(`storm: ${Math.round(totalMs * STORM / 1000)} s with restarts`);
  await nemesis.run(totalMs * STORM, { everyMs: 6_000, mayRestart: true });
  await broker.kill9();
  checkStore(world, "after-the-storm");
  await broker.start();
  say(`life: ${Math.round(totalMs * (1 - STORM) / 1000)} s without a restart`);
  const fromMs = performance.now();
  await nemesis.run(totalMs * (1 - STORM), { everyMs: 12_000, mayRestart: false });
  const life = { fromMs, toMs: performance.now() };
  say("the writers end");
  soak.writing = false;
  await bounded(soak, "the writers", workload.written);
  await broker.kill9();
  await broker.start();
  say("the readers catch up");
  await checkDelivered(soak, workload);
  soak.reading = false;
  await bounded(soak, "the readers", workload.read);
  say("a last look at everything");
  const liveBytes = await checkWhole(soak);
  const bound = objectsBound(PARTITIONS, liveBytes);
  const settled = await settledObjects(gauges, () => bound);
  await gauges.stop();
  const code = await broker.stop();
  if (code !== 0) soak.violation(`the broker stopped with ${code}`);
  checkStore(world, "at-the-end");
  await world.close();
  writeFileSync(join(out, "logs", "samples.json"), gauges.json(life.fromMs));
  const grown = growth(gauges, life);
  for (const { what, second, last, most } of grown) {
    if (!(last <= most)) {
      soak.violation(`${what} grew from ${second} to ${last}; ${most} are allowed`);
    }
  }
  if (settled === null || settled.data > bound) {
    soak.violation(`${settled?.data} data objects at rest; ${bound} are allowed`);
  }
  return summary(world, { options, liveBytes, bound, settled, grown, groups: workload.groups });
}

interface Figures {
  readonly options: SoakOptions;
  readonly liveBytes: number;
  readonly bound: number;
  readonly settled: StoreSample | null;
  readonly grown: readonly Growth[];
  readonly groups: readonly GroupBook[];
}

/** The closing table; the number of violations. */
function summary({ soak, gauges, proxy }: World, figures: Figures): number {
  const { options, liveBytes, bound, settled, grown, groups } = figures;
  const counts = [...soak.counts].toSorted(([a], [b]) => a < b ? -1 : 1);
  const peak = Math.max(...gauges.process.map(({ residentBytes }) => residentBytes));
  console.log(
    table(`\nsoak: ${options.minutes} minutes on ${options.store}, seed ${options.seed}`, [
      ...counts,
      ...[...proxy?.counts ?? []].toSorted().map(([what, count]) => [`requests: ${what}`, count]),
      ...groups.map(({ name, seen, repeated }) => [`${name}: records, repeated ${repeated}`, seen]),
      ["partitions", soak.books.size],
      ["live MiB", Math.round(liveBytes / MIB)],
      ["data objects at rest", settled?.data ?? Number.NaN],
      ["data objects allowed at rest", bound],
      ["most data objects", Math.max(...gauges.store.map(({ data }) => data))],
      ["metadata entries and snapshots", `${settled?.entries} ${settled?.snapshots}`],
      ["peak of resident memory, MiB", Math.round(peak / MIB)],
    ]),
  );
  console.log(table("\nnot growing:", [
    ["", "2nd quarter", "last quarter", "allowed"],
    ...grown.map(({ what, second, last, most }) => [what, second, last, most]),
  ]));
  const { length } = soak.violations;
  console.log(length === 0 ? "\nno violations" : `\n${soak.violations.join("\n")}`);
  return length;
}

const options = parseSoakOptions(process.argv.slice(2), tmpdir());
const out = options.out === null
  ? mkdtempSync(join(tmpdir(), "skerry-soak-"))
  : resolve(options.out);
mkdirSync(out, { recursive: true });
removeStore(out);
mkdirSync(options.cache, { recursive: true });
console.log(`logs and the store: ${out}`);
const violations = await run(options, out);
if (violations === 0) removeStore(out);
if (violations === 0 && options.out === null) rmSync(out, { recursive: true });
if (violations > 0) console.log(`the store, logs of the broker and of fsck: ${out}`);
console.log(violations === 0 ? "1 passed, 0 failed" : "0 passed, 1 failed");
process.exit(violations === 0 ? 0 : 1);
