/**
 * The seed loop. `npm run sim -- --seeds 500 [--seed 1] [--steps 8] [--level broker|storage|both] [--jobs 2]` looks
 * for a seed that breaks a promise, `--seed N [--trace]` alone replays one, `--crashes` dies at every store call of
 * a small run. Prints what to type for a replay; exits 1 when something broke.
 */
import { spawn } from "node:child_process";
import process from "node:process";
import { parseArgs } from "node:util";
import { simulate } from "./scenario.ts";
import { simulateStorage } from "./storage/scenario.ts";
import type { World } from "./world.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    seeds: { type: "string" },
    level: { type: "string", default: "both" },
    steps: { type: "string" },
    jobs: { type: "string", default: "1" },
    /** Of those seeds every n-th: how jobs share them. */
    every: { type: "string", default: "1" },
    tail: { type: "string", default: "60" },
    calm: { type: "boolean", default: false },
    trace: { type: "boolean", default: false },
    quiet: { type: "boolean", default: false },
    "keep-going": { type: "boolean", default: false },
    crashes: { type: "boolean", default: false },
  },
});

const SEEDS = 100;

interface Ran {
  readonly world: World;
  readonly hash: string;
  readonly violation: string | null;
}

interface Level {
  readonly steps: number;
  readonly run: (seed: number, steps: number) => Promise<Ran>;
}

const LEVELS: Readonly<Record<string, Level>> = {
  broker: { steps: 5, run: (seed, steps) => simulate({ seed, steps, calm: values.calm }) },
  storage: {
    steps: 40,
    run: (seed, steps) => simulateStorage({ seed, steps, calm: values.calm }),
  },
};

const names = values.level === "both" ? Object.keys(LEVELS) : [values.level];
if (names.some((name) => LEVELS[name] === undefined)) {
  console.log(`--level is one of ${Object.keys(LEVELS).join(", ")}, both`);
  process.exit(2);
}
const first = Number(values.seed ?? 1);
const count = Number(values.seeds ?? (values.seed === undefined ? SEEDS : 1));
let current = "";

process.on("unhandledRejection", (error) => {
  console.log(`${current}: unhandled rejection`, error);
  process.exit(1);
});

function printTail({ lines }: World): void {
  for (const line of lines.slice(-Number(values.tail))) console.log(line);
}

interface Crash {
  readonly crashAtCall: number;
  readonly landsAfterDeath: number;
}

/** Of a small run, and how many requests of it are ones to die at. */
const CRASHES: Readonly<Record<string, (crash: Crash) => Promise<[Ran, number]>>> = {
  async broker(crash) {
    const ran = await simulate({ seed: first, steps: 0, calm: true, small: true, ...crash });
    return [ran, ran.requests];
  },
  async storage(crash) {
    const ran = await simulateStorage({ seed: first, steps: 6, calm: true, small: true, ...crash });
    return [ran, ran.stormRequests];
  },
};

/** Every request of a small run is one at which the process dies; what it asked for is lost, or lands. */
async function everyCrash(name: string): Promise<number> {
  let broken = 0;
  for (const landsAfterDeath of [0, 1]) {
    for (let n = 1, requests = n; n <= requests; n++) {
      const crash = { crashAtCall: n, landsAfterDeath };
      const [{ violation, world }, calls] = await CRASHES[name]!(crash);
      requests = calls;
      if (violation === null) continue;
      broken++;
      console.log(`${name} ${JSON.stringify(crash)}: ${violation}`);
      printTail(world);
    }
  }
  return broken;
}

/** True when every promise was kept. */
async function runSeed(name: string, seed: number): Promise<boolean> {
  const level = LEVELS[name]!;
  const steps = Number(values.steps ?? level.steps);
  current = `${name} seed ${seed}`;
  const startedMs = performance.now();
  const { world, hash, violation, ...counts } = await level.run(seed, steps);
  const figures = Object.entries({ events: world.events, ...counts })
    .filter(([, figure]) => typeof figure === "number")
    .map(([what, figure]) => `${what}=${figure}`).join(" ");
  const tookMs = Math.round(performance.now() - startedMs);
  if (!values.quiet || violation !== null) {
    const verdict = violation === null ? "ok" : "FAILED";
    console.log(`${current} ${verdict} hash=${hash} ${figures} ${tookMs} ms`);
  }
  if (values.trace) { for (const line of world.lines) console.log(line); }
  if (violation === null) return true;
  if (!values.trace) printTail(world);
  console.log(
    `\n${violation}\nreplay: bun tests/sim/run.ts --level ${name} --seed ${seed} --steps ${steps} --trace\n`,
  );
  return false;
}

async function runSeeds(): Promise<number> {
  let passed = 0;
  let failed = 0;
  for (const name of names) {
    for (let seed = first; seed < first + count; seed += Number(values.every)) {
      if (await runSeed(name, seed)) passed++;
      else failed++;
      if (failed > 0 && !values["keep-going"]) break;
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  return failed;
}

/** The same in several processes; each takes every n-th seed. The number of those that failed. */
async function spread(jobs: number): Promise<number> {
  const rest = process.argv.slice(2).filter((arg, i, all) =>
    !/^--(jobs|seed|seeds)$/.test(arg) && !/^--(jobs|seed|seeds)$/.test(all[i - 1] ?? "")
  );
  const codes = Array.from({ length: jobs }, (_, i) => {
    const own = [
      "--seed",
      String(first + i),
      "--seeds",
      String(count - i),
      "--every",
      String(jobs),
    ];
    const args = [...process.execArgv, process.argv[1]!, ...rest, ...own];
    const child = spawn(process.execPath, args, { stdio: "inherit" });
    return new Promise<number>((resolve) => child.on("exit", (code) => resolve(code ?? 1)));
  });
  return (await Promise.all(codes)).filter((code) => code !== 0).length;
}

async function main(): Promise<number> {
  if (values.crashes) {
    let broken = 0;
    for (const name of names) broken += await everyCrash(name);
    return broken;
  }
  const jobs = Number(values.jobs);
  return jobs > 1 ? await spread(jobs) : await runSeeds();
}

process.exit(await main() === 0 ? 0 : 1);
