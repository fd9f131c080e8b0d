/**
 * A durable stream that is created with a beginning, appended to and closed by a writer that repeats what it got no
 * answer to, while the node dies at any write to its store: all of it is in once, in order, and stays closed.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sleep } from "../../src/env/clock.ts";
import type { FaultPlan, StoreCall } from "../support/faulty_store.ts";
import { drive, FaultWorld } from "./world.ts";

interface Step {
  readonly method: "PUT" | "POST";
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

const TEXT = { "content-type": "text/plain" };

function numbered(sequence: number): Record<string, string> {
  return { ...TEXT, "producer-id": "w", "producer-epoch": "4", "producer-seq": `${sequence}` };
}

const STEPS: readonly Step[] = [
  { method: "PUT", body: "0;", headers: TEXT },
  { method: "POST", body: "1;", headers: numbered(0) },
  { method: "POST", body: "2;", headers: numbered(1) },
  { method: "POST", body: "3;", headers: { ...numbered(2), "stream-closed": "true" } },
];

/** A client's loop: the same until it is in. */
async function send(world: FaultWorld, { method, body, headers }: Step): Promise<number> {
  for (;;) {
    const { status } = await world.fetch("/streams/s", { method, body, headers });
    if (status < 300) return status;
    assert.ok(status === 503 || status === 504, `${method} ${body} is ${status}`);
    await sleep(world.clock, 100);
  }
}

async function scenario(world: FaultWorld, plan: FaultPlan, done: Step[]): Promise<void> {
  await world.begin(plan);
  for (const step of STEPS) {
    await send(world, step);
    done.push(step);
  }
  await world.q.node.close();
}

/** What was answered before the node died. */
async function run(world: FaultWorld, plan: FaultPlan, isDead: () => boolean): Promise<Step[]> {
  const done: Step[] = [];
  let ended = false;
  const running = scenario(world, plan, done).finally(() => void (ended = true));
  running.catch(() => {});
  await world.clock.settle();
  for (let i = 0; !ended && !isDead(); i++) {
    assert.ok(i < 400, "the scenario never ends");
    await world.clock.advance(250);
  }
  if (ended) await running;
  return done;
}

async function finish(world: FaultWorld, done: readonly Step[]): Promise<void> {
  const last = done.at(-1);
  if (last?.method === "POST") {
    assert.equal(await drive(world.clock, send(world, last)), 204, "it is known as a repeat");
  }
  for (const step of STEPS.slice(done.length)) await drive(world.clock, send(world, step));
  const read = await drive(world.clock, world.fetch("/streams/s"));
  assert.equal(await read.text(), "0;1;2;3;");
  assert.equal(read.headers.get("stream-closed"), "true");
  const more = world.fetch("/streams/s", { method: "POST", body: "4;", headers: TEXT });
  assert.equal((await drive(world.clock, more)).status, 409);
}

/** Before or after a read is the same as after the write before it. */
function isWrite({ op }: StoreCall): boolean {
  return op !== "get" && op !== "head" && op !== "list";
}

test("the node dies at any write to its store, and a stream is whole and closed once", async () => {
  const counted = new FaultWorld();
  let calls = 0;
  const whole = await run(counted, (call) => void (calls += isWrite(call) ? 1 : 0), () => false);
  assert.equal(whole.length, STEPS.length);
  assert.ok(calls > 10, `only ${calls} calls`);
  for (const happens of [false, true]) {
    for (let nth = 1; nth <= calls; nth++) {
      const world = new FaultWorld();
      let seen = 0;
      const isDead = () => seen >= nth;
      const done = await run(world, (call) => {
        if (isDead()) return { kind: "hang", happens: false };
        if (!isWrite(call)) return undefined;
        seen += 1;
        return isDead() ? { kind: "hang", happens } : undefined;
      }, isDead);
      await world.clock.settle();
      await world.start();
      await finish(world, done).catch((error: unknown) => {
        throw new Error(`call ${nth}, ${happens}: ${String(error)}`, { cause: error });
      });
      await drive(world.clock, world.q.node.close());
    }
  }
});
