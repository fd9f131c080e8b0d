/**
 * A whole node on a store with faults and a clock that stands still, and the clients that keep using it:
 * they retry what is called retriable, note every refusal, and remember what was acknowledged.
 */
import assert from "node:assert/strict";
import { type ErrorName, errorName, isRetriable } from "../../src/protocol/error_code.ts";
import { sleep } from "../../src/env/clock.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { offsetFetchApi } from "../../src/protocol/message/09_offset_fetch.ts";
import { initProducerIdApi } from "../../src/protocol/message/22_init_producer_id.ts";
import { batch, batchesOf, Quirks, textOf } from "../quirks/quirks.ts";
import { startQuirkNode } from "../quirks/quirk_node.ts";
import { createFakeClock, type FakeClock } from "../support/fake_clock.ts";
import { type FaultPlan, type FaultyStore, faultyStore } from "../support/faulty_store.ts";

const DRIVE_STEP_MS = 250;
const DRIVE_STEPS_MAX = 2_000;

/** Moves time until the work has its outcome. */
export async function drive<T>(clock: FakeClock, work: Promise<T>, what = "the work"): Promise<T> {
  let isDone = false;
  const done = () => void (isDone = true);
  work.then(done, done);
  await clock.settle();
  for (let i = 0; !isDone; i++) {
    assert.ok(i < DRIVE_STEPS_MAX, `${what} never ends`);
    await clock.advance(DRIVE_STEP_MS);
  }
  return await work;
}

export interface WorldOptions {
  readonly clock?: FakeClock;
  /** What lies beneath the faults; memory by default. */
  readonly bucket?: ObjectStore;
  readonly kafka?: Readonly<Record<string, string>>;
  /** Another one for each world on one bucket: ids are drawn from it. */
  readonly seed?: number;
  readonly nodeId?: number;
  /** Absent: this build's. */
  readonly featureLevelMax?: number;
  readonly createCluster?: boolean;
  /** What the store is taken for: memory by default. */
  readonly storeKind?: "memory" | "s3";
}

export class FaultWorld {
  readonly clock: FakeClock;
  readonly bucket: ObjectStore;
  readonly #kafka: Readonly<Record<string, string>>;
  readonly #nodeId: number;
  readonly #build: Pick<WorldOptions, "featureLevelMax" | "createCluster" | "storeKind">;
  #seed: number;
  /** The newest incarnation, and the store as it sees it. */
  store!: FaultyStore;
  q!: Quirks;

  constructor(options: WorldOptions = {}) {
    const { clock = createFakeClock(), bucket, kafka = {}, seed = 0, nodeId = 1, ...build } =
      options;
    this.clock = clock;
    this.bucket = bucket ?? createMemoryStore(clock);
    this.#kafka = kafka;
    this.#seed = seed;
    this.#nodeId = nodeId;
    this.#build = build;
  }

  /** A process of its own: it shares nothing with the one before but the bucket. */
  async start(plan?: FaultPlan): Promise<Quirks> {
    return await drive(this.clock, this.begin(plan), "the start");
  }

  /** The same for callers that move time themselves. */
  async begin(plan?: FaultPlan): Promise<Quirks> {
    this.#seed += 1;
    const { clock, bucket } = this;
    const store = faultyStore(bucket, clock, plan);
    this.store = store;
    const parts = { clock, store, seed: this.#seed, nodeId: this.#nodeId, ...this.#build };
    this.q = new Quirks(await startQuirkNode(this.#kafka, parts));
    return this.q;
  }

  /** kill -9: from now on nothing of it reaches the bucket. */
  kill(): void {
    this.store.setPlan(() => ({ kind: "hang", happens: false }));
  }

  fetch(path: string, init?: RequestInit): Promise<Response> {
    return this.q.node.node.fetch(new Request(`http://node${path}`, init));
  }

  async ready(): Promise<string> {
    const response = await this.fetch("/readyz");
    return response.status === 200 ? "" : await response.text();
  }

  async metric(name: string): Promise<number> {
    const text = await (await this.fetch("/metrics")).text();
    const line = text.split("\n").find((one) => one.startsWith(`${name} `));
    return line === undefined ? 0 : Number(line.slice(name.length + 1));
  }

  /** Values of a partition in order, read over the wire. */
  async values(topic: string, partition = 0): Promise<string[]> {
    const found: string[] = [];
    // A connection of its own: idle ones are closed after a while.
    const q = new Quirks(this.q.node);
    for (let at = 0;;) {
      const answer = await drive(this.clock, q.fetch(topic, at, { partition }));
      assert.equal(answer.error, "NONE");
      const batches = batchesOf(answer.records);
      if (batches.length === 0) return found;
      for (const { baseOffset, lastOffsetDelta, records } of batches) {
        if (baseOffset >= at) found.push(...records.map(({ value }) => textOf(value) ?? ""));
        at = Math.max(at, baseOffset + lastOffsetDelta + 1);
      }
    }
  }
}

const RETRY_MS = 100;

abstract class Client {
  readonly acknowledged: string[] = [];
  readonly refused = new Set<string>();
  readonly world: FaultWorld;
  #isStopped = false;
  #done: Promise<void> = Promise.resolve();
  /** A refusal that makes a client give up. */
  failure: unknown = null;

  constructor(world: FaultWorld) {
    this.world = world;
  }

  /** One attempt: null when acknowledged, else why not. A refusal that is final throws. */
  protected abstract attempt(i: number): Promise<string | null>;
  protected abstract nameOf(i: number): string;

  start(pauseMs = 200): this {
    this.#done = this.#run(pauseMs);
    this.#done.catch((error: unknown) => void (this.failure = error));
    return this;
  }

  async #run(pauseMs: number): Promise<void> {
    for (let i = 0; !this.#isStopped; i++) {
      await this.#once(i);
      await sleep(this.world.clock, pauseMs);
    }
  }

  async #once(i: number): Promise<void> {
    for (;;) {
      const problem = await this.attempt(i);
      if (problem === null) return void this.acknowledged.push(this.nameOf(i));
      this.refused.add(problem);
      await sleep(this.world.clock, RETRY_MS);
    }
  }

  /** Finishes what it is at. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await drive(this.world.clock, this.#done, this.constructor.name);
  }
}

function retriable(error: ErrorName): string | null {
  if (error === "NONE") return null;
  assert.ok(isRetriable(error), `${error} makes clients give up`);
  return error;
}

/** One record per batch with sequences, a connection of its own, and the same sequence until it is in. */
export class IdempotentProducer extends Client {
  readonly #q: Quirks;
  readonly #topic: string;
  readonly #producerId: number;
  readonly #timeoutMs: number;

  private constructor(world: FaultWorld, topic: string, producerId: number, timeoutMs: number) {
    super(world);
    this.#q = new Quirks(world.q.node);
    this.#topic = topic;
    this.#producerId = producerId;
    this.#timeoutMs = timeoutMs;
  }

  static async connect(world: FaultWorld, topic: string, timeoutMs = 3_000) {
    const asked = world.q.call(initProducerIdApi, 4, {
      transactionalId: null,
      transactionTimeoutMs: 60_000,
      producerId: -1,
      producerEpoch: -1,
    });
    const answer = await drive(world.clock, asked);
    assert.equal(errorName(answer.errorCode), "NONE");
    return new IdempotentProducer(world, topic, answer.producerId, timeoutMs);
  }

  protected nameOf(i: number): string {
    return `idempotent-${this.#producerId}-${i}`;
  }

  protected async attempt(i: number): Promise<string | null> {
    const records = batch([this.nameOf(i)], { producer: [this.#producerId, 0, i] });
    const answer = await this.#q.produce(this.#topic, records, { timeoutMs: this.#timeoutMs });
    return retriable(answer.error);
  }
}

interface Problem {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly kafka: { readonly name: string; readonly retriable: boolean };
}

export class HttpProducer extends Client {
  readonly #path: string;

  constructor(world: FaultWorld, topic: string) {
    super(world);
    this.#path = `/v1/topics/${topic}/records`;
  }

  protected nameOf(i: number): string {
    return `http-${i}`;
  }

  protected async attempt(i: number): Promise<string | null> {
    const response = await this.world.fetch(this.#path, { method: "POST", body: this.nameOf(i) });
    if (response.status === 200) return null;
    const problem = await response.json() as Problem;
    assert.ok(problem.kafka !== undefined, JSON.stringify(problem));
    assert.equal(response.headers.get("content-type"), "application/problem+json");
    assert.equal(problem.kafka.retriable, true, JSON.stringify(problem));
    assert.ok(
      Number(response.headers.get("retry-after")) >= 1,
      `no Retry-After at ${problem.status}`,
    );
    return `${response.status} ${problem.kafka.name}`;
  }
}

/** Commits growing offsets without being a member. */
export class Committer extends Client {
  readonly #q: Quirks;
  readonly #topic: string;

  constructor(world: FaultWorld, topic: string) {
    super(world);
    this.#q = new Quirks(world.q.node);
    this.#topic = topic;
  }

  protected nameOf(i: number): string {
    return String(i);
  }

  protected async attempt(i: number): Promise<string | null> {
    return retriable(await this.#q.commit("faults", this.#topic, i));
  }
}

/** The committed offset; -1 when there is none. */
export async function committedOffset(world: FaultWorld, topic: string): Promise<number> {
  for (;;) {
    const asked = world.q.call(offsetFetchApi, 7, {
      groupId: "faults",
      topics: [{ name: topic, partitionIndexes: [0] }],
    });
    const answer = await drive(world.clock, asked);
    const group = errorName(answer.errorCode);
    const one = answer.topics[0]?.partitions[0];
    const error = group === "NONE" ? errorName(one!.errorCode) : group;
    if (error === "NONE") return one!.committedOffset;
    assert.ok(isRetriable(error), error);
    await world.clock.advance(RETRY_MS);
  }
}

/** Counts of answers that came without any time passing: fresh data does not depend on the store. */
export async function readsAtOnce(world: FaultWorld, reader: Quirks, topic: string): Promise<void> {
  let error: string | null = null;
  reader.fetch(topic, 0).then((answer) => void (error = answer.error), (failed: unknown) => {
    error = String(failed);
  });
  await world.clock.settle();
  assert.equal(error, "NONE", "a hot read waits for the store");
}

export function assertOnce(found: readonly string[], wanted: readonly string[]): void {
  const counts = new Map<string, number>();
  for (const value of found) counts.set(value, (counts.get(value) ?? 0) + 1);
  const lost = wanted.filter((value) => !counts.has(value));
  const twice = wanted.filter((value) => (counts.get(value) ?? 0) > 1);
  assert.deepEqual({ lost, twice }, { lost: [], twice: [] });
  const order = found.filter((value) => wanted.includes(value));
  assert.deepEqual(order, wanted, "out of order");
}

export function assertAll(found: readonly string[], wanted: readonly string[]): void {
  assert.deepEqual(wanted.filter((value) => !found.includes(value)), [], "acknowledged and lost");
}
