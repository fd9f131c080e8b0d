/**
 * Requests with an Idempotency-Key, sent again until they are answered, while the node dies at any call to its
 * store, while the store is silent, and while another node takes over: each record is stored once.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sleep } from "../../src/env/clock.ts";
import { ROLL_CALL_MS } from "../../src/lib/limits.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { createPartitionsApi } from "../../src/protocol/message/37_create_partitions.ts";
import type { FaultPlan, StoreCall } from "../support/faulty_store.ts";
import { drive, FaultWorld } from "./world.ts";

const PARTITIONS = 2;
const REQUESTS = 2;

interface Result {
  readonly partition: number;
  readonly offset: number;
  readonly duplicate?: boolean;
}

function recordsOf(request: number) {
  return Array.from({ length: 4 }, (_, i) => ({ key: `k${i}`, value: `${request}.${i}` }));
}

function post(world: FaultWorld, path: string, body: unknown, key?: string): Promise<Response> {
  const headers = {
    "content-type": "application/json",
    ...(key === undefined ? {} : { "idempotency-key": `"${key}"` }),
  };
  return world.fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
}

async function resultsOf(answer: Response): Promise<readonly Result[]> {
  return (await answer.json() as { results: readonly Result[] }).results;
}

const RETRIED: ReadonlySet<number> = new Set([207, 409, 503, 504]);

/** A client's loop: the same key until everything is in. */
async function send(world: FaultWorld, request: number): Promise<readonly Result[]> {
  for (;;) {
    const answer = await post(world, "/v1/topics/t/records", recordsOf(request), `r${request}`);
    if (answer.status === 200) return await resultsOf(answer);
    assert.ok(RETRIED.has(answer.status), `${answer.status} ${await answer.text()}`);
    await sleep(world.clock, 100);
  }
}

async function createTopic(world: FaultWorld): Promise<void> {
  for (;;) {
    const { status } = await post(world, "/v1/topics", { name: "t", partitions: PARTITIONS });
    if (status === 201 || status === 409) return;
    await sleep(world.clock, 100);
  }
}

/** Values with their places, over all partitions. */
async function stored(world: FaultWorld, partitions = PARTITIONS): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (let partition = 0; partition < partitions; partition++) {
    const path = `/v1/topics/t/partitions/${partition}/records?limit=1000`;
    const answer = await drive(world.clock, world.fetch(path));
    const { records } = await answer.json() as { records: { offset: number; value: string }[] };
    for (const { offset, value } of records) {
      assert.ok(!found.has(value), `${value} is stored twice`);
      found.set(value, `${partition}@${offset}`);
    }
  }
  return found;
}

type Acknowledged = Map<number, readonly Result[]>;

async function scenario(world: FaultWorld, plan: FaultPlan, done: Acknowledged): Promise<void> {
  await world.begin(plan);
  await createTopic(world);
  for (let request = 0; request < REQUESTS; request++) {
    done.set(request, await send(world, request));
    if (request !== 0) continue;
    await world.q.node.close();
    await world.begin(plan);
  }
  await world.q.node.close();
}

async function run(world: FaultWorld, plan: FaultPlan, isDead: () => boolean) {
  const done: Acknowledged = new Map();
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

/** All requests come once more: what was answered is answered the same, and everything is there once. */
async function retryAll(world: FaultWorld, done: Acknowledged): Promise<void> {
  const places = new Map<string, string>();
  for (let request = 0; request < REQUESTS; request++) {
    const results = await drive(world.clock, send(world, request));
    const first = done.get(request);
    if (first !== undefined) {
      const expected = first.map((result) => ({ ...result, duplicate: true }));
      assert.deepEqual(results, expected, `request ${request}`);
    }
    for (const [i, { value }] of recordsOf(request).entries()) {
      places.set(value, `${results[i]!.partition}@${results[i]!.offset}`);
    }
  }
  assert.deepEqual(await stored(world), places);
}

/** Before or after a read is the same as after the write before it. */
function isWrite({ op }: StoreCall): boolean {
  return op !== "get" && op !== "head" && op !== "list";
}

test("the node dies at any write to its store, and a retry stores nothing twice", async () => {
  const counted = new FaultWorld();
  let calls = 0;
  const whole = await run(counted, (call) => void (calls += isWrite(call) ? 1 : 0), () => false);
  assert.equal(whole.size, REQUESTS);
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
      await drive(world.clock, createTopic(world));
      await retryAll(world, done).catch((error: unknown) => {
        throw new Error(`call ${nth}, ${happens}: ${String(error)}`, { cause: error });
      });
      await drive(world.clock, world.q.node.close());
    }
  }
});

async function started(): Promise<{ world: FaultWorld; done: Acknowledged }> {
  const world = new FaultWorld();
  await world.start();
  await drive(world.clock, createTopic(world));
  const done: Acknowledged = new Map();
  for (let request = 0; request < REQUESTS; request++) {
    done.set(request, await drive(world.clock, send(world, request)));
  }
  return { world, done };
}

test("another node that takes over answers what the first one stored", async () => {
  const { world, done } = await started();
  world.kill();
  await drive(world.clock, world.q.node.close()).catch(() => {});
  const { clock, bucket } = world;
  const second = new FaultWorld({ clock, bucket, seed: 600, nodeId: 2 });
  await second.start();
  await clock.advance(ROLL_CALL_MS + 5_000);
  await retryAll(second, done);
  await drive(clock, second.q.node.close());
});

test("a retry finds its records also when the topic has grown", async () => {
  const { world, done } = await started();
  const grown = world.q.call(createPartitionsApi, 3, {
    topics: [{ name: "t", count: 7, assignments: null }],
    timeoutMs: 1_000,
    validateOnly: false,
  });
  const { results } = await drive(world.clock, grown);
  assert.equal(errorName(results[0]!.errorCode), "NONE");
  await retryAll(world, done);
  // A new one uses them all.
  const records = Array.from({ length: 40 }, (_, i) => ({ key: `n${i}`, value: `n${i}` }));
  await drive(world.clock, post(world, "/v1/topics/t/records", records, "new"));
  const places = new Set([...(await stored(world, 7)).values()].map((at) => at.split("@")[0]));
  assert.equal(places.size, 7);
  await drive(world.clock, world.q.node.close());
});

test("one at a time: a second one hears 409 while the first waits, and is a repeat after that", async () => {
  for (const happens of [false, true]) {
    const { world } = await started();
    const silent = { kind: "hang", happens } as const;
    world.store.setPlan(({ op }) => (op === "put" ? silent : undefined));
    const path = "/v1/topics/t/records";
    const first = post(world, path, { value: "late" }, "late");
    await world.clock.settle();
    const second = await drive(world.clock, post(world, path, { value: "late" }, "late"));
    assert.equal(second.status, 409);
    assert.equal(second.headers.get("retry-after"), "1");
    const other = await drive(world.clock, post(world, path, { value: "other" }, "late"));
    assert.equal(other.status, 422);
    assert.equal((await drive(world.clock, first)).status, 504);
    const late = await drive(world.clock, post(world, path, { value: "late" }, "late"));
    assert.equal(late.status, 504, "as little is known of the repeat");
    world.kill();
    await world.start();
    const again = await drive(world.clock, post(world, path, { value: "late" }, "late"));
    assert.equal(again.status, 200);
    assert.equal((await resultsOf(again))[0]!.duplicate ?? false, happens);
    await stored(world);
    await drive(world.clock, world.q.node.close());
  }
});
