/**
 * What streams must look like from outside: an acknowledged or once read append stays at its offsets with its
 * bytes, for ever, in order and once (I7, I12); what was never acknowledged may be there or not, but nowhere else.
 */
import type { StreamId } from "../../../src/lib/brand.ts";
import { keyOf } from "./payload.ts";
import type { StreamRecord } from "../../../src/storage/stream_record.ts";
import type { World } from "../world.ts";

export interface Attempt {
  readonly text: string;
  /** `keyOf` the bytes. */
  readonly key: string;
  readonly base: number;
  readonly count: number;
  readonly epoch: number;
  readonly by: string;
}

interface Opening {
  readonly epoch: number;
  readonly start: number;
}

export class StreamModel {
  readonly id: StreamId;
  readonly #world: World;
  readonly #attempts = new Map<string, Attempt>();
  /** By offset: what somebody was told of. */
  readonly #known = new Map<number, Attempt>();
  readonly #openings: Opening[] = [];
  /** End of what somebody was told of. */
  knownEnd = 0;
  acknowledged = 0;
  /** Where a trim was asked for, whether or not it came through. */
  trimAsked = 0;
  /** Where a trim was confirmed. */
  trimmed = 0;
  trimming = false;
  deleteAsked = false;
  deleted = false;

  constructor(world: World, id: StreamId) {
    this.#world = world;
    this.id = id;
  }

  attempt(attempt: Attempt): void {
    this.#attempts.set(attempt.key, attempt);
  }

  /** The writer was told that it is durable. */
  acknowledge(attempt: Attempt): void {
    this.acknowledged++;
    const end = attempt.base + attempt.count;
    const later = this.#openings.find(({ epoch, start }) => epoch > attempt.epoch && end > start);
    if (later !== undefined) {
      this.#violated(
        `I7: epoch ${attempt.epoch} acknowledges up to ${end}, epoch ${later.epoch} began at ${later.start}`,
      );
    }
    this.#learn(attempt, "acknowledged");
  }

  /**
   * A process that stood still may hear of its opening when later epochs have written and trimmed: it is judged by
   * what was before its own, which is all that it promises.
   */
  opened(epoch: number, start: number, next: number): void {
    const isNewest = this.#openings.every((one) => one.epoch <= epoch);
    const knownEnd = isNewest ? this.knownEnd : this.#knownEndOf(epoch);
    if (next < knownEnd && next < this.trimAsked) {
      return this.#violated(`I7: opened at ${next}, although trimmed to ${this.trimAsked}`);
    }
    if (next < knownEnd) {
      return this.#violated(`I12: opened at ${next}, known up to ${knownEnd}`);
    }
    this.#openings.push({ epoch, start: next });
    if (isNewest) this.#checkStart(start);
  }

  /** End of what somebody was told of that was written by an epoch or one before it. */
  #knownEndOf(epoch: number): number {
    let end = 0;
    for (const attempt of this.#known.values()) {
      if (attempt.epoch <= epoch) end = Math.max(end, attempt.base + attempt.count);
    }
    return end;
  }

  #checkStart(start: number): void {
    if (start < this.trimmed) {
      this.#violated(`starts at ${start}, although ${this.trimmed} was confirmed`);
    }
    if (start > this.trimAsked) this.#violated(`I12: starts at ${start}, nobody trimmed so far`);
  }

  /** Records of one answer that was asked to begin at `start`. Returns the offset that follows. */
  observe(records: readonly StreamRecord[], start: number, by: string): number {
    let next = records[0]?.baseOffset ?? start;
    if (next > start) this.#violated(`${by} asks for ${start} and gets ${next}: a hole`);
    for (const { baseOffset, count, epoch, payload } of records) {
      if (baseOffset !== next) this.#violated(`${by} reads ${baseOffset} where ${next} should be`);
      const attempt = this.#attempts.get(keyOf(payload));
      if (attempt === undefined) {
        this.#violated(`${by} reads at ${baseOffset} what nobody appended`);
        return next;
      }
      if (attempt.base !== baseOffset || attempt.count !== count || attempt.epoch !== epoch) {
        this.#violated(`${by} reads ${attempt.text} at ${baseOffset} of epoch ${epoch}`);
      }
      this.#learn(attempt, `read by ${by}`);
      next = baseOffset + count;
    }
    return next;
  }

  /** The whole stream was read from start to end. */
  checkWhole(start: number, end: number): void {
    this.#checkStart(start);
    if (end < this.knownEnd) this.#violated(`I12: ends at ${end}, known up to ${this.knownEnd}`);
  }

  #learn(attempt: Attempt, how: string): void {
    for (let i = 0; i < attempt.count; i++) {
      const offset = attempt.base + i;
      const before = this.#known.get(offset);
      if (before !== undefined && before !== attempt) {
        this.#violated(`I12: offset ${offset} held ${before.text}, now ${attempt.text} (${how})`);
      }
      this.#known.set(offset, attempt);
    }
    this.knownEnd = Math.max(this.knownEnd, attempt.base + attempt.count);
  }

  #violated(what: string): void {
    this.#world.violated(`stream ${this.id}: ${what}`);
  }
}
