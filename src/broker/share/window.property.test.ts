/** Share windows against a model that keeps each record by itself, and against what is stored of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { LogBatch } from "./acquire.ts";
import { overlay } from "./share_state.ts";
import {
  ACCEPT,
  type Begun,
  GAP,
  REJECT,
  RELEASE,
  RENEW,
  ShareWindow,
  type StateBatch,
} from "./window.ts";

const DELIVERIES_MAX = 3;
const RECORDS_MAX = 20;
const LOCK_MS = 10;
const MEMBERS = ["a", "b", "c"];

interface ModelRecord {
  state: "available" | "acquired" | "acknowledged" | "archived";
  count: number;
  member: string;
  lockUntilMs: number;
  pending: Begun["ticket"] | null;
  to: ModelRecord["state"];
}

type Step =
  | {
    readonly kind: "acquire";
    readonly member: number;
    readonly records: number;
    readonly batch: number;
    readonly limit: boolean;
    readonly read: number;
  }
  | {
    readonly kind: "ack";
    readonly member: number;
    readonly from: number;
    readonly length: number;
    readonly types: readonly number[];
  }
  | { readonly kind: "settle"; readonly which: number; readonly commit: boolean }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "leave"; readonly member: number }
  | { readonly kind: "trim"; readonly by: number }
  | { readonly kind: "reload" };

const member = fc.nat(MEMBERS.length - 1);
const types = fc.constantFrom(GAP, ACCEPT, RELEASE, RELEASE, RELEASE, REJECT, RENEW);
const acquireStep = fc.record({
  kind: fc.constant("acquire" as const),
  member,
  records: fc.integer({ min: 1, max: 12 }),
  batch: fc.integer({ min: 1, max: 8 }),
  limit: fc.boolean(),
  read: fc.integer({ min: 1, max: 6 }),
});
const ackStep = fc.record({
  kind: fc.constant("ack" as const),
  member,
  from: fc.oneof(fc.nat(4), fc.nat(30)),
  length: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 10 })),
  types: fc.oneof(
    fc.array(types, { minLength: 1, maxLength: 1 }),
    fc.array(types, { minLength: 2, maxLength: 5 }),
  ),
});
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: acquireStep },
    { weight: 6, arbitrary: ackStep },
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant("settle" as const),
        which: fc.nat(5),
        commit: fc.boolean(),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant("wait" as const),
        ms: fc.integer({ min: 1, max: 12 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("leave" as const), member }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("trim" as const),
        by: fc.integer({ min: 1, max: 8 }),
      }),
    },
    { weight: 2, arbitrary: fc.constant({ kind: "reload" as const }) },
  ),
  { minLength: 20, maxLength: 120, size: "max" },
);
/** Lengths of the log's batches, each with the records that compaction took before it. */
const log = fc.array(
  fc.record({
    gap: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat(3)),
    length: fc.integer({ min: 1, max: 7 }),
  }),
  { minLength: 1, maxLength: 30 },
);

/** A group at one partition: the window, the model, and what would be found after a crash. */
class World {
  readonly batches: LogBatch[] = [];
  readonly records = new Map<number, ModelRecord>();
  /** Offsets that compaction has taken: they are given out within ranges, or found to be missing. */
  readonly gaps = new Set<number>();
  window: ShareWindow;
  stored: StateBatch[] = [];
  storedStart = 0;
  logStart = 0;
  nowMs = 0;
  open: Begun[] = [];

  constructor(layout: readonly { readonly gap: number; readonly length: number }[]) {
    let at = 0;
    for (const { gap, length } of layout) {
      for (let i = 0; i < gap; i++) {
        this.#add(at + i, "archived");
        this.gaps.add(at + i);
      }
      at += gap;
      for (let i = 0; i < length; i++) this.#add(at + i, "available");
      this.batches.push({ first: at, last: at + length - 1 });
      at += length;
    }
    this.window = this.#load();
  }

  get end(): number {
    return this.batches.at(-1)!.last + 1;
  }

  #add(offset: number, state: ModelRecord["state"]): void {
    this.records.set(offset, {
      state,
      count: 0,
      member: "",
      lockUntilMs: 0,
      pending: null,
      to: state,
    });
  }

  #load(): ShareWindow {
    return new ShareWindow({
      startOffset: this.storedStart,
      batches: this.stored,
      deliveriesMax: DELIVERIES_MAX,
      recordsMax: RECORDS_MAX,
    });
  }

  store(changes: readonly StateBatch[]): void {
    this.storedStart = this.window.start;
    this.stored = overlay(this.stored, changes, this.storedStart);
  }

  released({ count }: ModelRecord): ModelRecord["state"] {
    return count >= DELIVERIES_MAX ? "archived" : "available";
  }

  acquire(step: Extract<Step, { kind: "acquire" }>): number {
    const name = MEMBERS[step.member]!;
    const fetchOffset = Math.max(this.window.nextFetchOffset, this.logStart);
    const from = this.batches.findIndex(({ last }) => last >= fetchOffset);
    if (from < 0) return 0;
    const sizeBefore = this.window.size;
    const ranges = this.window.acquire({
      member: name,
      isRecordLimit: step.limit,
      batchSize: step.batch,
      recordsMax: step.records,
      fetchOffset,
      batches: this.batches.slice(from, from + step.read),
      lockUntilMs: this.nowMs + LOCK_MS,
    });
    let taken = 0;
    let before = -1;
    for (const { first, last, count } of ranges) {
      assert.ok(first > before && last >= first, "ranges are in order");
      before = last;
      for (let offset = first; offset <= last; offset++) {
        taken += 1;
        const record = this.records.get(offset)!;
        // A gap of the log within a batch range is given out with it, as in Kafka.
        if (this.gaps.has(offset) && record.state === "archived") record.state = "available";
        assert.equal(record.state, "available", `record ${offset} was free`);
        assert.equal(record.pending, null);
        record.count += 1;
        assert.equal(record.count, count, `deliveries of ${offset}`);
        assert.ok(count <= DELIVERIES_MAX);
        record.state = "acquired";
        record.member = name;
        record.lockUntilMs = this.nowMs + LOCK_MS;
      }
    }
    if (step.limit) assert.ok(taken <= step.records, "no more than asked for");
    if (sizeBefore >= RECORDS_MAX) {
      assert.ok(this.window.size <= sizeBefore, "nothing new when full");
    }
    return taken;
  }

  acknowledge(step: Extract<Step, { kind: "ack" }>): void {
    const name = MEMBERS[step.member]!;
    const held = [...this.records].flatMap(([at, record]) =>
      record.state === "acquired" && record.member === name && record.pending === null ? [at] : []
    );
    // Mostly what the member has.
    const aim = held[step.from];
    const first = aim ?? this.window.start + step.from - 2;
    const last = first + (step.types.length === 1 ? step.length : step.types.length) - 1;
    const typeOf = (offset: number) => step.types[step.types.length === 1 ? 0 : offset - first]!;
    const begun = this.window.acknowledge(
      name,
      [{ first, last, types: step.types }],
      this.nowMs + LOCK_MS,
    );
    const touched = [];
    for (let at = Math.max(first, this.window.start); at <= last; at++) touched.push(at);
    const own = touched.every((at) => {
      const record = this.records.get(at);
      return at < this.window.next && record?.state === "acquired" && record.member === name &&
        record.pending === null;
    });
    if (last < this.window.start) {
      assert.ok(typeof begun !== "string", "what is done may be acknowledged");
    } else assert.equal(typeof begun !== "string", own, `${first} to ${last} by ${name}`);
    if (typeof begun === "string") return;
    for (const at of own && last >= this.window.start ? touched : []) {
      const record = this.records.get(at)!;
      if (typeOf(at) === RENEW) {
        record.lockUntilMs = this.nowMs + LOCK_MS;
        continue;
      }
      record.pending = begun.ticket;
      if (typeOf(at) === ACCEPT) record.to = "acknowledged";
      else record.to = typeOf(at) === RELEASE ? this.released(record) : "archived";
    }
    this.open.push(begun);
    this.store(begun.changes);
  }

  settle(which: number, commit: boolean): void {
    const begun = this.open.splice(which % Math.max(1, this.open.length), 1)[0];
    if (begun === undefined) return;
    if (commit) this.window.commit(begun);
    else {
      this.forget(begun);
      this.store(this.window.rollback(begun, this.nowMs));
    }
    for (const record of this.records.values()) {
      if (record.pending !== begun.ticket) continue;
      record.pending = null;
      if (!commit && record.lockUntilMs > this.nowMs) continue;
      record.state = commit ? record.to : this.released(record);
      record.member = "";
    }
  }

  /** The write failed: the log holds what it held before. */
  forget(begun: Begun): void {
    for (const { first, last } of begun.ticket.ranges) {
      const kept = this.stored.flatMap((batch) => {
        const parts: StateBatch[] = [];
        if (batch.first < first) parts.push({ ...batch, last: Math.min(batch.last, first - 1) });
        if (batch.last > last) parts.push({ ...batch, first: Math.max(batch.first, last + 1) });
        return parts;
      });
      this.stored = kept;
    }
  }

  wait(ms: number): void {
    this.nowMs += ms;
    const changes = this.window.expire(this.nowMs);
    this.store(changes);
    for (const record of this.records.values()) {
      if (record.state !== "acquired" || record.pending !== null) continue;
      if (record.lockUntilMs > this.nowMs) continue;
      record.state = this.released(record);
      record.member = "";
    }
  }

  leave(at: number): void {
    const begun = this.window.release(MEMBERS[at]!);
    for (const record of this.records.values()) {
      if (record.state !== "acquired" || record.member !== MEMBERS[at]) continue;
      if (record.pending !== null) continue;
      record.pending = begun.ticket;
      record.to = this.released(record);
    }
    this.open.push(begun);
    this.store(begun.changes);
  }

  trim(by: number): void {
    this.logStart = Math.min(this.end, this.window.start + by);
    for (let at = 0; at < this.logStart; at++) {
      const record = this.records.get(at);
      if (record !== undefined) {
        Object.assign(record, { state: "archived", member: "", pending: null });
      }
    }
    this.window.trimTo(this.logStart);
  }

  /** A restart: locks are lost, and with them deliveries that were never written. */
  reload(): void {
    while (this.open.length > 0) this.settle(0, true);
    this.window = this.#load();
    this.window.trimTo(this.logStart);
    for (const run of this.window.runs) {
      for (let at = run.first; at <= run.last; at++) {
        const record = this.records.get(at)!;
        const wasHeld = record.state === "acquired";
        if (wasHeld) assert.ok(run.state === "available" && run.count < record.count);
        else if (!this.gaps.has(at)) {
          assert.equal(run.state, record.state, `state of ${at} after a restart`);
          assert.equal(run.count, record.count, `deliveries of ${at} after a restart`);
        }
        Object.assign(record, { state: run.state, count: run.count, member: "", pending: null });
      }
    }
    // Behind what is stored nothing is known.
    for (let at = this.window.next; at < this.end; at++) {
      const record = this.records.get(at);
      if (record?.state === "acquired") {
        Object.assign(record, { state: "available", count: 0, member: "", pending: null });
      }
    }
  }

  check(): void {
    for (const at of this.gaps) {
      const record = this.records.get(at)!;
      if (record.state === "available") record.state = "archived";
    }
    let next = this.window.start;
    for (const run of this.window.runs) {
      assert.equal(run.first, next, "runs stand side by side");
      next = run.last + 1;
      for (let at = run.first; at <= run.last; at++) {
        const record = this.records.get(at)!;
        const isFound = this.gaps.has(at) && run.state === "available";
        if (!isFound) assert.equal(run.state, record.state, `state of ${at}`);
        assert.equal(run.pending?.ticket ?? null, record.pending, `pending of ${at}`);
        if (run.state === "acquired") assert.equal(run.member, record.member);
      }
    }
    assert.equal(next, this.window.next);
    for (let at = this.logStart; at < this.window.start; at++) {
      const { state } = this.records.get(at)!;
      assert.ok(state === "acknowledged" || state === "archived", `${at} is done: ${state}`);
    }
  }
}

function play(world: World, step: Step): void {
  if (step.kind === "acquire") world.acquire(step);
  else if (step.kind === "ack") world.acknowledge(step);
  else if (step.kind === "settle") world.settle(step.which, step.commit);
  else if (step.kind === "wait") world.wait(step.ms);
  else if (step.kind === "leave") world.leave(step.member);
  else if (step.kind === "trim") world.trim(step.by);
  else world.reload();
}

/** Whoever is left takes and accepts all. */
function drain(world: World): void {
  while (world.open.length > 0) world.settle(0, true);
  world.wait(10 * LOCK_MS);
  const ask = {
    kind: "acquire",
    member: 0,
    records: 10,
    batch: 10,
    limit: false,
    read: 4,
  } as const;
  for (let i = 0; i < 500 && world.window.start < world.end; i++) {
    world.acquire(ask);
    for (const run of Array.from(world.window.runs)) {
      if (run.state !== "acquired") continue;
      const begun = world.window.acknowledge("a", [{ ...run, types: [ACCEPT] }], 0);
      assert.ok(typeof begun !== "string");
      world.window.commit(begun);
      for (let at = run.first; at <= run.last; at++) world.records.get(at)!.state = "acknowledged";
    }
  }
  assert.equal(world.window.start, world.end, "every record is delivered until it is done");
}

test("a window is what a model of single records is, survives restarts, and ends", () => {
  fc.assert(
    fc.property(log, steps, (layout, all) => {
      const world = new World(layout);
      for (const step of all) {
        play(world, step);
        world.check();
      }
      drain(world);
    }),
    { numRuns: 100 },
  );
});
