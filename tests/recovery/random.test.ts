/**
 * Recovery scenario 56: random producers on a broker that ends and starts again, against a list of what was
 * admitted. A start never fails; nothing that was admitted is lost or there twice; the log alone, a snapshot and the
 * log, and a second recovery of the same bytes know the same.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Model, PRODUCERS, type Steps } from "./model.ts";
import { loseSnapshots, operate } from "./surgery.ts";
import { RecoveryWorld } from "./world.ts";

const RUNS = 3;
const KAFKA = { "log.retention.ms": "-1" };
const KEYS = ["a", "b", "c"];

const producer = fc.constantFrom(...PRODUCERS);
const key = fc.constantFrom(...KEYS);
const end = fc.constantFrom("close" as const, "kill" as const);
const size = fc.integer({ min: 1, max: 4 });

const steps: fc.Arbitrary<Steps> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ do: fc.constant("send" as const), producer, size, key }) },
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant("again" as const), producer, back: fc.nat(4) }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("gap" as const), producer, key }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("raise" as const), producer, key }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("zombie" as const), producer, key }) },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant("crash" as const),
        producer,
        key,
        stored: fc.boolean(),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("restart" as const), end }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant("die" as const),
        writes: fc.nat(5),
        happens: fc.boolean(),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("pass" as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("expire" as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("delete" as const), share: fc.nat(100) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant("jump" as const),
        hours: fc.integer({ min: -48, max: 48 }),
      }),
    },
  ),
  { minLength: 15, maxLength: 40, size: "max" },
);

/** Four futures of the same bytes. */
async function futures(w: RecoveryWorld, model: Model): Promise<void> {
  const known: (readonly string[])[] = [];
  for (const future of ["snapshot and log", "twice", "the log alone"]) {
    const fork = await w.fork();
    const copy = model.fork(fork);
    if (future === "twice") {
      await fork.start();
      await fork.producers();
      await fork.kill();
    }
    if (future === "the log alone") {
      await operate(fork, loseSnapshots);
      copy.onLogAlone();
    }
    await fork.start();
    await copy.check(future);
    known.push(copy.certain(await fork.producers()));
    await copy.probe();
    await fork.kill();
  }
  assert.deepEqual(known[1], known[0], "a second recovery finds what the first one found");
}

async function run(list: Steps, compacted: boolean): Promise<void> {
  const w = RecoveryWorld.memory(KAFKA);
  await w.start();
  const configs = compacted
    ? { "cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0" }
    : { "cleanup.policy": "delete" };
  await w.topic("t", 1, { ...configs, "segment.ms": "50000" });
  const model = new Model(w, compacted);
  for (const [at, step] of list.entries()) {
    try {
      await model.play(step);
    } catch (error) {
      throw new Error(`step ${at}, ${JSON.stringify(step)}: ${String(error)}`, { cause: error });
    }
  }
  await model.check("before the end");
  await w.kill();
  model.onRestart();
  await futures(w, model);
}

for (const compacted of [false, true]) {
  const topic = compacted ? "a compacted topic" : "a topic that keeps all";
  test(`56: random lives of a broker, ${topic}`, async () => {
    await fc.assert(fc.asyncProperty(steps, (list) => run(list, compacted)), {
      numRuns: Number(RUNS),
      endOnFailure: false,
      interruptAfterTimeLimit: 60_000,
    });
  });
}
