import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EngineWorld, type RunningEngine } from "../../tests/support/engine_world.ts";
import type { Verdict } from "../../tests/support/faulty.ts";
import type { StreamId } from "../lib/brand.ts";
import { toHex } from "../lib/bytes.ts";
import { isFault } from "../lib/errors.ts";
import type { StreamRecord } from "../storage/stream_record.ts";
import type { Stream } from "./stream.ts";

/** What a user of streams may expect: acknowledged records once, in order, until trimmed. */
interface Model {
  stream: Stream;
  readonly id: StreamId;
  /** Everything appended; a crash may keep some of the tail that was not acknowledged. */
  appended: { readonly base: number; readonly count: number; readonly payload: string }[];
  acknowledged: number;
  start: number;
}

type Step =
  | { readonly kind: "append"; readonly at: number; readonly count: number; readonly bytes: number }
  | { readonly kind: "read"; readonly at: number; readonly from: number; readonly bytesMax: number }
  | { readonly kind: "trim"; readonly at: number; readonly share: number }
  | { readonly kind: "reopen"; readonly at: number }
  | { readonly kind: "upload"; readonly at: number }
  | { readonly kind: "settle" | "outage" | "create" | "crash" };

const at = fc.nat(7);
const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant("append" as const),
      at,
      count: fc.integer({ min: 1, max: 5 }),
      bytes: fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 300, max: 1500 })),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("read" as const),
      at,
      from: fc.double({ min: 0, max: 1, noNaN: true }),
      bytesMax: fc.integer({ min: 0, max: 4000 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("trim" as const),
      at,
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reopen" as const), at }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("upload" as const), at }) },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      "settle" as const,
      "outage" as const,
      "create" as const,
      "crash" as const,
    )
      .map((kind) => ({ kind })),
  },
);

class Run {
  readonly #world = new EngineWorld();
  readonly #models: Model[] = [];
  #engine!: RunningEngine;
  #verdict: Verdict = "ok";

  async start(): Promise<void> {
    this.#engine = await this.#world.drive(this.#world.start({
      options: {
        logCacheBytesMax: 9_000,
        uploadBytes: 2_500,
        splitBytes: 1_200,
        blockCacheBytesMax: 4_000,
        indexCacheBytesMax: 300,
        rangeIndexBytesMax: 400,
        idBlock: 3,
      },
      judge: (method) =>
        method === "commitUpload" || method === "reserveIds" ? this.#verdict : "ok",
      recoveryBytesMax: 3_000,
    }));
    for (const model of this.#models) await this.#open(model);
  }

  async #open(model: Model): Promise<void> {
    model.stream = await this.#engine.streams.open(model.id, this.#world.nextEpoch());
    const { confirmOffset, startOffset } = model.stream;
    assert.ok(confirmOffset >= model.acknowledged, `stream ${model.id} lost acknowledged records`);
    assert.equal(startOffset, model.start);
    model.appended = model.appended.filter(({ base }) => base < confirmOffset);
    const last = model.appended.at(-1);
    assert.equal(confirmOffset, last === undefined ? 0 : last.base + last.count);
    model.acknowledged = confirmOffset;
  }

  async step(step: Step): Promise<void> {
    switch (step.kind) {
      case "create": {
        if (this.#models.length >= 8) return;
        const stream = await this.#engine.streams.create(this.#world.nextEpoch());
        this.#models.push({ stream, id: stream.streamId, appended: [], acknowledged: 0, start: 0 });
        return;
      }
      case "settle":
        return await this.#settle();
      case "outage":
        this.#verdict = this.#verdict === "ok" ? "fail" : "ok";
        return;
      case "crash":
        this.#engine.kill();
        this.#verdict = "ok";
        return await this.start();
    }
    const model = this.#models[step.at % Math.max(1, this.#models.length)];
    if (model !== undefined) await this.#onStream(model, step);
  }

  async #settle(): Promise<void> {
    this.#verdict = "ok";
    await this.#world.clock.advance(15_000);
  }

  async #onStream(
    model: Model,
    step: Exclude<Step, { kind: "create" | "settle" | "outage" | "crash" }>,
  ) {
    const { stream } = model;
    switch (step.kind) {
      case "append":
        return this.#append(model, step.count, step.bytes);
      case "read": {
        const length = stream.confirmOffset - stream.startOffset;
        const from = stream.startOffset + Math.floor(step.from * length);
        return await this.#read(model, from, step.bytesMax);
      }
      case "trim": {
        const length = stream.confirmOffset - stream.startOffset;
        model.start = stream.startOffset + Math.floor(step.share * length);
        return await stream.trim(model.start);
      }
      case "upload":
        await this.#settle();
        return await this.#world.drive(this.#engine.storage.forceUpload(model.id));
      case "reopen":
        await this.#settle();
        await this.#world.drive(stream.close());
        return await this.#open(model);
    }
  }

  #append(model: Model, count: number, bytes: number): void {
    const payload = this.#world.env.random.bytes(bytes);
    const base = model.stream.nextOffset;
    try {
      const { durable } = model.stream.append(count, payload);
      model.appended.push({ base, count, payload: toHex(payload) });
      const { stream } = model;
      durable.then(() => {
        if (model.stream === stream) {
          model.acknowledged = Math.max(model.acknowledged, base + count);
        }
      }, () => {});
    } catch (error) {
      assert.ok(isFault(error, "overloaded"), String(error));
    }
  }

  async #read(model: Model, from: number, bytesMax: number): Promise<number> {
    const end = model.stream.confirmOffset;
    const records = await model.stream.fetch(from, end, { bytesMax });
    if (from === end) {
      assert.deepEqual(records, []);
      return end;
    }
    assert.ok(records !== null && records.length > 0);
    const first = model.appended.findIndex(({ base, count }) => base + count > from);
    assert.deepEqual(records.map(plain), model.appended.slice(first, first + records.length));
    const bytes = records.reduce((sum, { payload }) => sum + payload.length, 0);
    assert.ok(records.length === 1 || bytes <= bytesMax);
    const last = records.at(-1)!;
    return last.baseOffset + last.count;
  }

  /** Sequentially from start to end, as a consumer does. */
  async readAll(): Promise<void> {
    await this.#settle();
    for (const model of this.#models) {
      let next = model.stream.startOffset;
      while (next < model.stream.confirmOffset) next = await this.#read(model, next, 700);
    }
  }

  async finish(): Promise<void> {
    await this.readAll();
    await this.#world.drive(this.#engine.streams.close());
    await this.#world.drive(this.#engine.storage.close());
    assert.deepEqual(this.#engine.fatal, []);
    await this.start();
    await this.readAll();
  }
}

function plain({ baseOffset, count, payload }: StreamRecord) {
  return { base: baseOffset, count, payload: toHex(payload) };
}

test("everything durable is read back once and in order, over uploads, evictions, trims and crashes", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(stepArbitrary, { minLength: 5, maxLength: 120, size: "max" }),
      async (steps) => {
        const run = new Run();
        await run.start();
        await run.step({ kind: "create" });
        await run.step({ kind: "create" });
        for (const step of steps) await run.step(step);
        await run.finish();
      },
    ),
    { numRuns: 15 },
  );
});
