/**
 * What random clients may expect of a partition: every batch that was admitted, and what the broker must still know
 * of each producer. A producer of which a restart may or may not know is asked nothing that depends on it.
 */
import assert from "node:assert/strict";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import { SEQUENCES } from "../../src/log/sequence.ts";
import { produceRequest } from "../quirks/quirks.ts";
import { type End, isWalKey, type RecoveryWorld, sequenced, X } from "./world.ts";

export const PRODUCERS = [11, 12, 13] as const;
/** Within reach of the wrap for one of them. */
const FIRST: Readonly<Record<number, number>> = { 11: 0, 12: SEQUENCES - 5, 13: 17871 };
/** What a producer's window keeps. */
const WINDOW = 5;

export type Step =
  | { readonly do: "send"; readonly producer: number; readonly size: number; readonly key: string }
  | { readonly do: "again"; readonly producer: number; readonly back: number }
  | { readonly do: "gap" | "raise" | "zombie"; readonly producer: number; readonly key: string }
  | {
    readonly do: "crash";
    readonly producer: number;
    readonly key: string;
    readonly stored: boolean;
  }
  | { readonly do: "restart"; readonly end: End }
  /** A close that dies at one of its writes. */
  | { readonly do: "die"; readonly writes: number; readonly happens: boolean }
  | { readonly do: "pass" | "expire" }
  | { readonly do: "delete"; readonly share: number }
  | { readonly do: "jump"; readonly hours: number };
export type Steps = readonly Step[];

interface Admitted {
  readonly producerId: number;
  readonly epoch: number;
  readonly first: number;
  readonly last: number;
  readonly offset: number;
  readonly key: string;
}

interface Known {
  epoch: number;
  /** Of the epoch; oldest first. */
  batches: readonly Admitted[];
  next: number;
  /** `maybe`: expired, and a replay may know it again. */
  certainty: "known" | "maybe";
  lastAppendMs: number;
}

function lengthOf({ first, last }: Pick<Admitted, "first" | "last">): number {
  return (last - first + SEQUENCES) % SEQUENCES + 1;
}

export class Model {
  readonly #w: RecoveryWorld;
  readonly #compacted: boolean;
  #admitted: Admitted[] = [];
  #known = new Map<number, Known>();
  #end = 0;
  #start = 0;
  #hasJumped = false;

  constructor(w: RecoveryWorld, compacted: boolean) {
    this.#w = w;
    this.#compacted = compacted;
  }

  fork(w: RecoveryWorld): Model {
    const copy = new Model(w, this.#compacted);
    copy.#admitted = [...this.#admitted];
    copy.#known = new Map([...this.#known].map(([id, one]) => [id, { ...one }]));
    copy.#end = this.#end;
    copy.#start = this.#start;
    return copy;
  }

  async play(step: Step): Promise<void> {
    this.#age();
    switch (step.do) {
      case "send":
        return await this.#send(step.producer, step.size, step.key);
      case "again":
        return await this.#again(step.producer, step.back);
      case "gap":
        return await this.#gap(step.producer, step.key);
      case "raise":
        return await this.#raise(step.producer, step.key);
      case "zombie":
        return await this.#zombie(step.producer, step.key);
      case "crash":
        return await this.#crash(step);
      case "restart":
        await this.#w.restart(step.end);
        this.onRestart();
        return await this.check(`after a ${step.end}`);
      case "die":
        await this.#w.dieInClose(step.writes, step.happens);
        await this.#w.start();
        this.onRestart();
        return await this.check("after a close that died");
      case "pass":
        // The partition must be open, or nothing looks at it.
        await this.#w.logEnd();
        return await this.#w.idle(0);
      case "expire":
        await this.#w.logEnd();
        await this.#w.idle();
        for (const one of this.#known.values()) one.certainty = "maybe";
        return assert.deepEqual(await this.#w.producers(), []);
      case "delete":
        return await this.#delete(step.share);
      case "jump":
        this.#w.clock.skewMs += step.hours * 3_600_000;
        this.#hasJumped = true;
        // Noticed at the next look, if there is one before the process ends.
        await this.#w.logEnd();
        return await this.#w.idle(0);
    }
  }

  /** Idle for nearly as long as it takes: nothing certain any more. */
  #age(): void {
    const nowMs = this.#w.clock.monotonicMs();
    for (const one of this.#known.values()) {
      if (nowMs - one.lastAppendMs > X / 2) one.certainty = "maybe";
    }
  }

  /** A replay takes append times from batches: where clocks jumped, they may lie. */
  onRestart(): void {
    if (this.#hasJumped) { for (const one of this.#known.values()) one.certainty = "maybe"; }
    this.#hasJumped = false;
  }

  /** What compaction or DeleteRecords took away is in no snapshot any more. */
  onLogAlone(): void {
    for (const one of this.#known.values()) {
      one.batches = one.batches.filter(({ offset }) => offset >= this.#start);
      if (one.batches.length === 0) one.certainty = "maybe";
      // Of compacted batches only the last one of a producer is kept for its sequence.
      if (this.#compacted) one.batches = one.batches.slice(-1);
    }
  }

  /** Lines of DescribeProducers that are told for sure. */
  certain(lines: readonly string[]): readonly string[] {
    return lines.filter((line) => {
      const [id] = line.split(" ");
      return this.#known.get(Number(id))?.certainty === "known";
    });
  }

  #nextOf(producerId: number): { readonly epoch: number; readonly first: number } {
    const one = this.#known.get(producerId);
    return one === undefined
      ? { epoch: 3, first: FIRST[producerId]! }
      : { epoch: one.epoch, first: one.next };
  }

  #admit(batch: Omit<Admitted, "offset">): Admitted {
    const admitted = { ...batch, offset: this.#end };
    this.#end += lengthOf(batch);
    this.#admitted.push(admitted);
    const before = this.#known.get(batch.producerId);
    const isSure = before?.certainty === "known" && before.epoch === batch.epoch;
    this.#known.set(batch.producerId, {
      epoch: batch.epoch,
      batches: [...isSure ? before.batches : [], admitted].slice(-WINDOW),
      next: (batch.last + 1) % SEQUENCES,
      certainty: "known",
      lastAppendMs: this.#w.clock.monotonicMs(),
    });
    return admitted;
  }

  #ask(batch: Pick<Admitted, "producerId" | "epoch" | "first" | "last" | "key">): Promise<string> {
    return this.#w.send(batch.first, batch.last, batch);
  }

  #batch(producerId: number, size: number, key: string): Omit<Admitted, "offset"> {
    const { epoch, first } = this.#nextOf(producerId);
    return { producerId, epoch, first, last: (first + size - 1) % SEQUENCES, key };
  }

  async #send(producerId: number, size: number, key: string): Promise<void> {
    const batch = this.#batch(producerId, size, key);
    const answer = await this.#ask(batch);
    assert.equal(answer, `@${this.#admit(batch).offset}`);
  }

  async #again(producerId: number, back: number): Promise<void> {
    const one = this.#known.get(producerId);
    const batch = one?.certainty === "known" ? one.batches.at(-1 - back) : undefined;
    if (batch === undefined) return;
    assert.equal(await this.#ask(batch), `@${batch.offset}`, "a duplicate");
  }

  async #gap(producerId: number, key: string): Promise<void> {
    if (this.#known.get(producerId)?.certainty !== "known") return;
    const batch = this.#batch(producerId, 1, key);
    const later = (batch.first + 7) % SEQUENCES;
    const answer = await this.#ask({ ...batch, first: later, last: later });
    assert.equal(answer, "OUT_OF_ORDER_SEQUENCE_NUMBER");
  }

  async #raise(producerId: number, key: string): Promise<void> {
    const batch = this.#batch(producerId, 2, key);
    if (!this.#known.has(producerId)) return;
    const next = { ...batch, epoch: batch.epoch + 1, first: 0, last: 1 };
    const answer = await this.#ask(next);
    assert.equal(answer, `@${this.#admit(next).offset}`);
  }

  async #zombie(producerId: number, key: string): Promise<void> {
    if (this.#known.get(producerId)?.certainty !== "known") return;
    const batch = this.#batch(producerId, 1, key);
    const answer = await this.#ask({ ...batch, epoch: batch.epoch - 1 });
    assert.equal(answer, "INVALID_PRODUCER_EPOCH");
  }

  /** kill -9 with a batch under way whose WAL object gets there, or not; then the client sends it again. */
  async #crash({ producer, key, stored }: Step & { readonly do: "crash" }): Promise<void> {
    const batch = this.#batch(producer, 2, key);
    // Opened before, so that nothing but the batch is written.
    await this.#w.logEnd();
    this.#w.setPlan(({ op, key: object }) =>
      op === "put" && isWalKey(object) ? { kind: "hang", happens: stored } : undefined
    );
    const records = sequenced(batch.first, batch.last, this.#w.clock.nowMs(), batch);
    const client = this.#w.connect();
    client.post(produceApi, 9, produceRequest("t", records));
    await this.#w.clock.settle();
    assert.equal(client.unread, 0);
    await this.#w.restart("kill");
    this.onRestart();
    assert.equal(await this.#w.logEnd(), this.#end + (stored ? 2 : 0));
    const answer = await this.#ask(batch);
    assert.equal(answer, `@${this.#admit(batch).offset}`, stored ? "a duplicate" : "new");
  }

  async #delete(share: number): Promise<void> {
    const before = this.#start + Math.floor((this.#end - this.#start) * share / 100);
    assert.equal(await this.#w.deleteRecords(before), before);
    this.#start = before;
  }

  /** What is there, against what was admitted. */
  async check(when: string): Promise<void> {
    assert.equal(await this.#w.logStart(), this.#start, when);
    assert.equal(await this.#w.logEnd(), this.#end, when);
    const all = this.#admitted.flatMap((batch) =>
      Array.from({ length: lengthOf(batch) }, (_, i) => ({
        key: batch.key,
        offset: batch.offset + i,
        text: `${batch.offset + i}:${(batch.first + i) % SEQUENCES}`,
      }))
    ).filter(({ offset }) => offset >= this.#start);
    const found = await this.#w.contents();
    if (!this.#compacted) return assert.deepEqual(found, all.map(({ text }) => text), when);
    const texts = new Set(all.map(({ text }) => text));
    assert.deepEqual(found.filter((one) => !texts.has(one)), [], `${when}: never admitted`);
    assert.equal(new Set(found).size, found.length, `${when}: twice`);
    const newest = new Map(all.map(({ key, text }) => [key, text]));
    const lost = [...newest.values()].filter((one) => !found.includes(one));
    assert.deepEqual(lost, [], `${when}: the newest of a key`);
  }

  /** Everything that is certain, asked of the broker. */
  async probe(): Promise<void> {
    for (const [producerId, one] of this.#known) {
      if (one.certainty === "known") {
        const line = `${producerId} e${one.epoch} s${one.batches.at(-1)!.last}`;
        assert.ok((await this.#w.producers()).includes(line), `${line} is known`);
      }
      for (let back = 0; back < one.batches.length; back++) await this.#again(producerId, back);
      await this.#gap(producerId, "a");
      await this.#zombie(producerId, "a");
      await this.#send(producerId, 1, "a");
    }
  }
}
