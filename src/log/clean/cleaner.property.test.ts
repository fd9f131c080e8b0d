/**
 * Random keyed batches, codecs, producers, transactions, deletions, clock steps, passes with small and large maps,
 * and crashes at every call of the store, against a list of what was appended: readers find the newest record of
 * each key, never what was aborted, and only what is in the list; producers are known after any crash.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readRecords } from "../../protocol/record.ts";
import { readBatchHeader } from "../../protocol/record_batch.ts";
import { ALL, COMPACT, type Pair, pairs, text } from "../../../tests/support/compacted_log.ts";
import { loseSnapshots } from "../../../tests/support/log_damage.ts";
import {
  accepted,
  appendMarker,
  createHarness,
  DAY_MS,
  DEFAULT_LOG_CONFIG,
  type Harness,
  HOUR_MS,
} from "../../../tests/support/partition_harness.ts";
import { AbortedFilter } from "../aborted_filter.ts";
import { decodeLogMeta } from "../log_meta.ts";
import { decodeMetaKeyValue, encodeMetaKeyValue } from "../meta_codec.ts";
import { decodeSnapshots, encodeSnapshots } from "../producer_snapshot.ts";

const RETENTION_MS = 2 * HOUR_MS;

interface Kept {
  readonly offset: number;
  readonly key: string;
  readonly value: string;
  readonly atMs: number;
  /** Null outside of transactions. */
  readonly transaction: Transaction | null;
}

interface Transaction {
  readonly producerId: number;
  readonly first: number;
  outcome: "open" | "committed" | "aborted";
}

/** What happens while a pass is under way. */
type Beside = "nothing" | "writes" | "deletes";

type Op =
  | {
    readonly op: "put";
    readonly producer: number;
    readonly records: readonly (readonly [key: number, isDelete: boolean])[];
    readonly codec: "gzip" | "lz4" | null;
  }
  | { readonly op: "end"; readonly producer: number; readonly commit: boolean }
  | { readonly op: "clock"; readonly ms: number }
  | { readonly op: "clean"; readonly slots: number; readonly beside: Beside }
  | { readonly op: "close-in-clean"; readonly turns: number }
  | { readonly op: "crash-in-clean"; readonly slots: number; readonly calls: number }
  | { readonly op: "crash-in-tick"; readonly calls: number; readonly ends: boolean }
  | { readonly op: "tick" | "reopen" | "lose-snapshots" | "damage-snapshot" }
  | { readonly op: "delete"; readonly share: number };

const slots = fc.constantFrom(16, 20, 4096);
const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      op: fc.constant("put" as const),
      // 0 has no id, 1 and 2 are idempotent, 3 and 4 transactional.
      producer: fc.nat(4),
      records: fc.array(fc.tuple(fc.oneof(fc.nat(3), fc.nat(40)), fc.boolean()), {
        minLength: 1,
        maxLength: 4,
      }),
      codec: fc.constantFrom("gzip" as const, "lz4" as const, null),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant("end" as const),
      producer: fc.integer({ min: 3, max: 4 }),
      commit: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant("clock" as const),
      ms: fc.constantFrom(1000, HOUR_MS, 3 * HOUR_MS),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant("clean" as const),
      slots,
      beside: fc.constantFrom("nothing" as const, "writes" as const, "deletes" as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant("crash-in-clean" as const), slots, calls: fc.nat(60) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ op: fc.constant("close-in-clean" as const), turns: fc.nat(80) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("crash-in-tick" as const),
      calls: fc.nat(12),
      ends: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constantFrom(
        "tick" as const,
        "reopen" as const,
        "lose-snapshots" as const,
        "damage-snapshot" as const,
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant("delete" as const),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
);

class Run {
  readonly h: Harness;
  kept: Kept[] = [];
  readonly open = new Map<number, Transaction>();
  readonly sequences = new Map<number, number>();
  readonly epochs = new Map<number, number>();
  /** Last data offset of each producer with an id. */
  readonly lastData = new Map<number, number>();
  end = 0;
  cleanedTo = 0;
  /** Nothing above was in any pass, not even in one that died. */
  triedTo = 0;
  values = 0;
  deaths = 0;

  constructor(h: Harness) {
    this.h = h;
  }

  #epochOf(producer: number): number {
    return this.epochs.get(producer) ?? 0;
  }

  /** The log alone does not know the last sequence of these any more: they go on with another epoch. */
  #forgetDeleted(): void {
    for (const [producer, offset] of this.lastData) {
      if (offset >= this.h.log.logStartOffset) continue;
      this.lastData.delete(producer);
      this.sequences.delete(producer);
      this.epochs.set(producer, this.#epochOf(producer) + 1);
    }
  }

  put({ producer, records, codec }: Op & { readonly op: "put" }): Promise<void> {
    const { h } = this;
    const content = records.map((
      [key, isDelete],
    ): Pair => [`k${key}`, isDelete ? null : `${this.values++}`]);
    const baseSequence = this.sequences.get(producer) ?? 0;
    const transactional = producer >= 3;
    const ids = { producerId: producer, producerEpoch: this.#epochOf(producer), baseSequence };
    const batch = pairs(h, content, { codec, transactional, ...(producer === 0 ? {} : ids) });
    const ask = { ...ids, isTransactionsV2: false };
    const verification = transactional ? h.log.verify(ask) : null;
    const { baseOffset, durable } = accepted(h.log.append(batch, verification ?? undefined));
    assert.equal(baseOffset, this.end);
    let transaction = transactional ? this.open.get(producer) ?? null : null;
    if (transactional && transaction === null) {
      transaction = { producerId: producer, first: baseOffset, outcome: "open" };
      this.open.set(producer, transaction);
    }
    for (const [i, [key, value]] of content.entries()) {
      const one = { offset: baseOffset + i, key: key!, value: value ?? "-" };
      this.kept.push({ ...one, atMs: h.nowMs, transaction });
    }
    this.end += content.length;
    if (producer !== 0) {
      this.sequences.set(producer, baseSequence + content.length);
      this.lastData.set(producer, this.end - 1);
    }
    return durable;
  }

  async endTransaction(producerId: number, commit: boolean): Promise<void> {
    const producerEpoch = this.#epochOf(producerId);
    await accepted(appendMarker(this.h, { producerId, producerEpoch, commit })).durable;
    this.end++;
    const transaction = this.open.get(producerId);
    if (transaction === undefined) return;
    transaction.outcome = commit ? "committed" : "aborted";
    this.open.delete(producerId);
  }

  #startCleaning(mapSlots: number) {
    this.triedTo = this.end;
    return this.h.log.clean({ ...ALL, mapBytesMax: 24 * mapSlots });
  }

  async clean(mapSlots: number, beside: Beside): Promise<void> {
    const cleaning = this.#startCleaning(mapSlots);
    if (beside === "deletes") {
      await this.#delete(0.5);
      await this.h.log.tick(this.h.nowMs);
    }
    if (beside === "writes") {
      for (const producer of [0, 1]) {
        await this.put({ op: "put", producer, records: [[producer, false]], codec: null });
        await this.check();
      }
    }
    const cleaned = await cleaning;
    if (cleaned !== null) this.cleanedTo = Math.max(this.cleanedTo, cleaned.cleanedTo);
  }

  async #delete(share: number): Promise<void> {
    // Past the start of an open transaction only a snapshot would know of it.
    const { log } = this.h;
    const span = log.lastStableOffset - log.logStartOffset;
    await log.deleteRecords(log.logStartOffset + Math.floor(span * share));
    this.#forgetDeleted();
  }

  async dies(work: () => Promise<unknown>, calls: number): Promise<void> {
    this.deaths++;
    let left = calls;
    this.h.streams.fail = () => left-- > 0 ? null : new Error("the process dies");
    await work().catch(() => {});
    this.h.streams.fail = null;
    await this.h.crash();
  }

  async step(one: Op): Promise<void> {
    const { h } = this;
    switch (one.op) {
      case "put":
        return await this.put(one);
      case "end":
        return await this.endTransaction(one.producer, one.commit);
      case "clock":
        h.nowMs += one.ms;
        return;
      case "clean":
        return await this.clean(one.slots, one.beside);
      case "close-in-clean": {
        const cleaning = this.#startCleaning(16);
        for (let i = 0; i < one.turns; i++) await Promise.resolve();
        await h.reopen();
        const cleaned = await cleaning;
        this.cleanedTo = Math.max(this.cleanedTo, cleaned?.cleanedTo ?? 0);
        return;
      }
      case "crash-in-clean":
        return await this.dies(
          () => this.#startCleaning(one.slots),
          one.calls,
        );
      case "crash-in-tick":
        return await this.dies(
          () => one.ends ? h.log.close() : h.log.tick(h.nowMs),
          one.calls,
        );
      case "tick":
        return await h.log.tick(h.nowMs);
      case "reopen":
        return void await h.reopen();
      case "lose-snapshots":
        loseSnapshots(h);
        return void await h.crash();
      case "damage-snapshot":
        damageNewestSnapshot(h);
        return void await h.crash();
      case "delete":
        return await this.#delete(one.share);
    }
  }

  get stable(): number {
    return Math.min(this.end, ...[...this.open.values()].map(({ first }) => first));
  }

  isVisible({ offset, transaction }: Kept): boolean {
    return offset < this.stable && transaction?.outcome !== "aborted";
  }

  /** What a consumer of committed records sees from an offset, in reads of some size. */
  async seen(from: number, bytesMax: number): Promise<{ offset: number; text: string }[]> {
    const { h } = this;
    const found: { offset: number; text: string }[] = [];
    for (let at = from; at < h.log.lastStableOffset;) {
      const read = await h.log.read(at, { bytesMax, isolation: "committed" });
      assert.ok(read !== null && read.ok && read.batches.length > 0, `nothing at ${at}`);
      const filter = new AbortedFilter(read.aborted);
      for (const batch of read.batches) {
        const header = readBatchHeader(batch);
        const next = header.baseOffset + header.lastOffsetDelta + 1;
        assert.ok(next > at, "a read goes on");
        const isHidden = filter.hides(header, batch);
        for (const record of isHidden ? [] : readRecords(batch, h.env.codecs)) {
          if (record.offset < at) continue;
          const { offset, key, value, timestamp } = record;
          found.push({ offset, text: `${text(key)}=${text(value)} @${timestamp}` });
        }
        at = next;
      }
    }
    return found;
  }

  async check(): Promise<void> {
    const { h } = this;
    const { logStartOffset } = h.log;
    assert.equal(h.log.highWatermark, this.end);
    assert.equal(h.log.lastStableOffset, Math.max(this.stable, logStartOffset));
    const seen = await this.seen(logStartOffset, 400);
    const offsets = new Set(seen.map(({ offset }) => offset));
    assert.equal(offsets.size, seen.length);
    const visible = this.kept.filter((one) => one.offset >= logStartOffset && this.isVisible(one));
    const model = new Map(
      visible.map((one) => [one.offset, `${one.key}=${one.value} @${one.atMs}`]),
    );
    for (const { offset, text: found } of seen) assert.equal(found, model.get(offset));
    const newest = new Map(visible.map((one) => [one.key, one]));
    const cleanNewest = new Map(
      visible.filter(({ offset }) => offset < this.cleanedTo).map((one) => [one.key, one]),
    );
    for (const one of visible) {
      const last = newest.get(one.key)!;
      const isGone = last.value === "-" && !offsets.has(last.offset);
      assert.ok(!isGone || !offsets.has(one.offset), `${one.key} is back after its deletion`);
      const isDeletion = one.value === "-" && h.nowMs >= one.atMs + RETENTION_MS;
      const mustStay = one.offset >= this.triedTo || newest.get(one.key) === one;
      if (mustStay && !isDeletion) assert.ok(offsets.has(one.offset), `${one.offset} is missing`);
      const mustGo = one.offset < this.cleanedTo && cleanNewest.get(one.key) !== one;
      if (mustGo) assert.ok(!offsets.has(one.offset), `${one.offset} is still there`);
    }
  }

  async checkEverywhere(): Promise<void> {
    const { h } = this;
    const all = await this.seen(h.log.logStartOffset, 2 ** 20);
    for (let from = h.log.logStartOffset; from < this.end; from++) {
      assert.deepEqual(await this.seen(from, 150), all.filter(({ offset }) => offset >= from));
    }
  }

  /** What no segment names is gone; a crash between making streams and naming them leaves two. */
  checkStreams(): void {
    const { streams, metaStream } = this.h;
    const stored = streams.records(metaStream!)
      .map(({ payload }) => decodeMetaKeyValue(payload))
      .findLast(({ key }) => key === "LOG");
    const named = decodeLogMeta(stored!.value).streams;
    const cleaned = [...named.keys()].filter((name) => name.startsWith("log.cleaned"));
    assert.ok(cleaned.length <= 1, `${cleaned.length} cleaned streams`);
    const known = new Set(named.values());
    const unnamed = streams.ids.filter((id) => id !== metaStream && !known.has(id));
    assert.ok(unnamed.length <= 2 * this.deaths, `${unnamed.length} streams have no name`);
  }

  checkProducers(): void {
    const known = new Map(this.h.log.activeProducers().map((one) => [one.producerId, one]));
    for (const producerId of this.lastData.keys()) {
      const last = this.sequences.get(producerId)! - 1;
      assert.equal(known.get(producerId)?.lastSequence, last, `producer ${producerId}`);
      const first = this.open.get(producerId)?.first ?? null;
      assert.equal(known.get(producerId)?.currentTxnFirstOffset ?? null, first);
    }
  }
}

/** The older one counts then. */
function damageNewestSnapshot(h: Harness): void {
  h.streams.tamper(h.metaStream!, (record) => {
    const { key, value } = decodeMetaKeyValue(record.payload);
    if (key !== "PRODUCER_SNAPSHOTS") return record;
    const list = decodeSnapshots(value).map(({ offset, bytes }) => ({
      offset,
      bytes: bytes.slice(),
    }));
    list.at(-1)?.bytes.fill(0xff);
    return { ...record, payload: encodeMetaKeyValue(key, encodeSnapshots(list)) };
  });
}

test("whatever happens, readers find what they must and nothing else", async () => {
  const property = fc.asyncProperty(fc.array(op, { minLength: 10, maxLength: 60 }), async (ops) => {
    const h = await createHarness({
      ...COMPACT,
      segmentBytes: 400,
      producerExpirationMs: 1000 * DAY_MS,
      cleaning: { ...DEFAULT_LOG_CONFIG.cleaning, deleteRetentionMs: RETENTION_MS },
    });
    const run = new Run(h);
    for (const one of ops) {
      await run.step(one);
      await run.check();
      if (one.op !== "put") run.checkProducers();
    }
    await run.checkEverywhere();
    await h.log.tick(h.nowMs);
    run.checkStreams();
  });
  await fc.assert(property, { numRuns: 30 });
});
