/**
 * The store fails in all its ways for a minute, under a node with clients. They get errors that they try
 * again, hot reads go on, /readyz tells, and afterwards everything goes on by itself: nothing that was
 * acknowledged is lost, idempotent producers' records are there once.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Quirks } from "../quirks/quirks.ts";
import type { FaultPlan, StoreCall, StoreFault } from "../support/faulty_store.ts";
import {
  assertAll,
  assertOnce,
  committedOffset,
  Committer,
  drive,
  FaultWorld,
  HttpProducer,
  IdempotentProducer,
  readsAtOnce,
} from "./world.ts";

interface Trouble {
  readonly name: string;
  readonly plan: FaultPlan;
  /** Whether writes stand still for so long that clients and probes must hear of it. */
  readonly isLong: boolean;
}

const TROUBLE_MS = 60_000;
const STEP_MS = 500;

function isWrite({ op }: StoreCall): boolean {
  return op === "put" || op === "putParts" || op === "delete";
}

function onWrites(fault: (call: StoreCall) => StoreFault | undefined): FaultPlan {
  return (call) => isWrite(call) ? fault(call) : undefined;
}

const troubles: readonly Trouble[] = [
  { name: "503 to every request", plan: () => ({ kind: "fail" }), isLong: true },
  {
    name: "no space left",
    plan: onWrites(() => ({ kind: "fail", code: "store-full" })),
    isLong: true,
  },
  {
    name: "credentials taken away",
    plan: () => ({ kind: "fail", code: "store-denied" }),
    isLong: true,
  },
  {
    name: "a black hole",
    plan: ({ number }) => ({ kind: "silence", delayMs: 30_000, happens: number % 2 === 0 }),
    isLong: true,
  },
  {
    name: "every other answer lost",
    plan: ({ number }) => number % 2 === 0 ? { kind: "lose-answer" } : undefined,
    isLong: false,
  },
  {
    name: "puts that land seconds after they were refused",
    plan: onWrites(({ number }) => ({ kind: "late", delayMs: 1_000 * (1 + number % 7) })),
    isLong: true,
  },
  {
    name: "puts that land twice",
    plan: onWrites(() => ({ kind: "repeat", delayMs: 3_000 })),
    isLong: false,
  },
  { name: "seconds of latency", plan: () => ({ kind: "delay", delayMs: 2_500 }), isLong: false },
];

for (const { name, plan, isLong } of troubles) {
  test(`a minute of trouble: ${name}`, async () => {
    const world = new FaultWorld();
    const q = await world.start();
    await drive(world.clock, q.topic("t"));
    const producers = [
      await IdempotentProducer.connect(world, "t"),
      await IdempotentProducer.connect(world, "t"),
    ];
    const http = new HttpProducer(world, "t");
    const committer = new Committer(world, "t");
    const clients = [...producers, http, committer].map((client) => client.start());
    const reader = new Quirks(q.node);
    await world.clock.advance(2_000);
    assert.equal(await world.ready(), "");

    world.store.setPlan(plan);
    const reasons = new Set<string>();
    for (let passedMs = 0; passedMs < TROUBLE_MS; passedMs += STEP_MS) {
      await world.clock.advance(STEP_MS);
      await readsAtOnce(world, reader, "t");
      reasons.add(await world.ready());
    }
    assert.equal(reasons.size > 1, isLong, `readyz said: ${[...reasons].slice(0, 3).join("")}`);

    world.store.setPlan();
    const before = clients.map(({ acknowledged }) => acknowledged.length);
    await world.clock.advance(40_000);
    for (const [i, { acknowledged, constructor, failure }] of clients.entries()) {
      assert.equal(failure, null);
      assert.ok(acknowledged.length > before[i]! + 3, `${constructor.name} does not go on`);
    }
    assert.equal(await world.ready(), "", "ready again without a restart");
    for (const client of clients) await client.stop();
    if (isLong) {
      for (const client of [...producers, http]) {
        assert.ok(client.refused.size > 0, `${client.constructor.name} heard nothing`);
      }
    }

    await checkAll(world, producers, http, committer);
    world.kill();
    await world.start();
    await checkAll(world, producers, http, committer);
    await drive(world.clock, world.q.node.close());
  });
}

async function checkAll(
  world: FaultWorld,
  producers: readonly IdempotentProducer[],
  http: HttpProducer,
  committer: Committer,
): Promise<void> {
  const found = await world.values("t");
  for (const { acknowledged } of producers) assertOnce(found, acknowledged);
  assertAll(found, http.acknowledged);
  assert.equal(await committedOffset(world, "t"), Number(committer.acknowledged.at(-1)));
}
