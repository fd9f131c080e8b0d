/**
 * The seed loop: `bun tests/sim/run.ts [--seeds 100] [--from 1] [--steps 10]` looks for a seed that breaks a
 * promise, `--seed N [--trace]` replays one, `--crashes` dies at every store call of a small run. Prints what to type for a replay; exits 1 when something broke.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { simulate } from "./scenario.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    from: { type: "string", default: "1" },
    seeds: { type: "string", default: "100" },
    steps: { type: "string", default: "8" },
    tail: { type: "string", default: "60" },
    calm: { type: "boolean", default: false },
    trace: { type: "boolean", default: false },
    "keep-going": { type: "boolean", default: false },
    crashes: { type: "boolean", default: false },
  },
});

const steps = Number(values.steps);
const first = Number(values.seed ?? values.from);
const count = values.seed === undefined ? Number(values.seeds) : 1;
let current = first;
let failures = 0;

process.on("unhandledRejection", (error) => {
  console.log(`seed ${current}: unhandled rejection`, error);
  process.exit(1);
});

/** Every request of a small run is one at which the process dies; what it asked for is lost, or lands. */
async function everyCrash(): Promise<number> {
  let broken = 0;
  for (const landsAfterDeath of [0, 1]) {
    for (let n = 1, requests = n; n <= requests; n++) {
      const small = { seed: first, steps: 0, calm: true, small: true };
      const result = await simulate({ ...small, crashAtCall: n, landsAfterDeath });
      requests = result.requests;
      if (result.violation === null) continue;
      broken++;
      console.log(`crash at call ${n}, landsAfterDeath ${landsAfterDeath}: ${result.violation}`);
      for (const line of result.world.lines.slice(-Number(values.tail))) console.log(line);
    }
  }
  return broken;
}

if (values.crashes) process.exit(await everyCrash() === 0 ? 0 : 1);

for (current = first; current < first + count; current++) {
  const startedMs = performance.now();
  const result = await simulate({ seed: current, steps, calm: values.calm });
  const { world, acknowledged, starts, fenced, requests, violation } = result;
  const tookMs = Math.round(performance.now() - startedMs);
  console.log(
    `seed ${current} ${
      violation === null ? "ok" : "FAILED"
    } hash=${result.hash} events=${world.events}` +
      ` requests=${requests} acknowledged=${acknowledged} starts=${starts} fenced=${fenced} ${tookMs} ms`,
  );
  if (values.trace) { for (const line of world.lines) console.log(line); }
  if (violation === null) continue;
  failures++;
  if (!values.trace) {
    for (const line of world.lines.slice(-Number(values.tail))) console.log(line);
  }
  console.log(
    `\n${violation}\nreplay: bun tests/sim/run.ts --seed ${current} --steps ${steps} --trace\n`,
  );
  if (!values["keep-going"]) break;
}
process.exit(failures === 0 ? 0 : 1);
