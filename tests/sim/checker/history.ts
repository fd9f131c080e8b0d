/**
 * What clients were told, per partition: acknowledged records, records that were read, high watermarks,
 * log starts. Whatever contradicts it later is a broken promise. Topics are known by id: a name may come back.
 */
import type { World } from "../world.ts";
import type { EpochSpan } from "./leader_epochs.ts";

export interface PartitionHistory {
  readonly topicId: string;
  readonly partition: number;
  /** Every offset that anybody was told of, with its value. */
  readonly known: Map<number, string>;
  readonly acknowledged: Map<number, string>;
  /** Timestamps, where a client was told of one. */
  readonly dates: Map<number, number>;
  /** Largest high watermark that a process of this number, or an older one, has shown. */
  readonly watermarks: Map<number, number>;
  /** Offsets at which a leader epoch was seen. */
  readonly epochs: Map<number, EpochSpan>;
  logStart: number;
}

export class History {
  readonly #world: World;
  readonly #partitions = new Map<string, PartitionHistory>();

  constructor(world: World) {
    this.#world = world;
  }

  of(topicId: string, partition: number): PartitionHistory {
    const key = `${topicId}/${partition}`;
    let found = this.#partitions.get(key);
    if (found === undefined) {
      found = {
        topicId,
        partition,
        known: new Map(),
        acknowledged: new Map(),
        dates: new Map(),
        watermarks: new Map(),
        epochs: new Map(),
        logStart: 0,
      };
      this.#partitions.set(key, found);
    }
    return found;
  }

  all(): IterableIterator<PartitionHistory> {
    return this.#partitions.values();
  }

  forget(topicId: string): void {
    for (const [key, history] of this.#partitions) {
      if (history.topicId === topicId) this.#partitions.delete(key);
    }
  }

  /** An offset holds one value for ever, whoever says so: a producer's answer or a fetch (I12, I7). */
  know(history: PartitionHistory, offset: number, value: string, how: string): void {
    const before = history.known.get(offset);
    if (before !== undefined && before !== value) {
      this.#world.violated(
        `I12: ${name(history)} offset ${offset} was ${before}, now ${value} (${how})`,
      );
    }
    history.known.set(offset, value);
  }

  /** A record has one timestamp: that of the answer to its producer is what a read shows. */
  date(history: PartitionHistory, offset: number, timestampMs: number): void {
    const before = history.dates.get(offset);
    if (before !== undefined && before !== timestampMs) {
      this.#world.violated(
        `${name(history)} offset ${offset} was of ${before}, now ${timestampMs}`,
      );
    }
    history.dates.set(offset, timestampMs);
  }

  acknowledge(history: PartitionHistory, base: number, values: readonly string[]): void {
    for (const [i, value] of values.entries()) {
      this.know(history, base + i, value, "acknowledged");
      history.acknowledged.set(base + i, value);
    }
  }

  get acknowledgedCount(): number {
    let count = 0;
    for (const { acknowledged } of this.all()) count += acknowledged.size;
    return count;
  }
}

export function name({ topicId, partition }: PartitionHistory): string {
  return `${topicId.slice(0, 8)}-${partition}`;
}

/** What a process of this number may not fall behind: what it or an older one has shown. */
export function watermarkSeen({ watermarks }: PartitionHistory, by: number): number {
  let seen = 0;
  for (const [index, watermark] of watermarks) if (index <= by) seen = Math.max(seen, watermark);
  return seen;
}
