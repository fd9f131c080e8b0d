/**
 * Reads byte ranges of objects; ranges that are asked for in the same turn and lie near each other share a
 * request, whoever asks: blocks of one reader, of several partitions of a fetch, of a read-ahead.
 */
import { RANGE_READ_HOLE_SHARE, RANGE_READ_SPAN_MAX } from "../../lib/limits.ts";
import type { ByteRange, ObjectStore } from "../../object/object_store.ts";
import { readRange } from "../format/object_reader.ts";
import { ByteGate } from "./byte_gate.ts";

/**
 * How long a range waits for others, in turns of the microtask queue: reads that begin together take a few
 * to get here. A timer would hold up every cold read, and nobody comes between two microtasks.
 */
const TURNS = 16;

export interface RangeGroup<T extends ByteRange> extends ByteRange {
  readonly ranges: readonly T[];
}

/** Groups ranges into reads: none spans more than `spanMax`, unless one range does, nor has more holes. */
export function groupRanges<T extends ByteRange>(
  ranges: readonly T[],
  spanMax = RANGE_READ_SPAN_MAX,
  holeShareMax = RANGE_READ_HOLE_SHARE,
): RangeGroup<T>[] {
  const groups: { start: number; end: number; holes: number; ranges: T[] }[] = [];
  for (const range of ranges.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    const open = groups.at(-1);
    if (open !== undefined) {
      const end = Math.max(open.end, range.end);
      const holes = open.holes + Math.max(0, range.start - open.end);
      const span = end - open.start;
      if (span <= spanMax && holes <= span * holeShareMax) {
        open.ranges.push(range);
        Object.assign(open, { end, holes });
        continue;
      }
    }
    groups.push({ start: range.start, end: range.end, holes: 0, ranges: [range] });
  }
  return groups.map(({ start, end, ranges: group }) => ({ start, end, ranges: group }));
}

interface Waiting extends ByteRange {
  readonly resolve: (bytes: Uint8Array | null) => void;
  readonly reject: (error: unknown) => void;
}

export class RangeReads {
  readonly #store: ObjectStore;
  readonly #gate: ByteGate;
  readonly #waiting = new Map<string, Waiting[]>();
  #isGathering = false;

  constructor(store: ObjectStore, bytesInFlightMax: number) {
    this.#store = store;
    this.#gate = new ByteGate(bytesInFlightMax);
  }

  /** Whether a read would begin at once. */
  get hasRoom(): boolean {
    return this.#gate.free > 0;
  }

  /** Exactly these bytes; null when the object is not there. */
  read(key: string, { start, end }: ByteRange): Promise<Uint8Array | null> {
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(key) ?? [];
      this.#waiting.set(key, waiting);
      waiting.push({ start, end, resolve, reject });
      if (this.#isGathering) return;
      this.#isGathering = true;
      void this.#gather();
    });
  }

  async #gather(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn++) await Promise.resolve();
    this.#isGathering = false;
    const asked = [...this.#waiting];
    this.#waiting.clear();
    for (const [key, waiting] of asked) {
      for (const group of groupRanges(waiting)) void this.#readGroup(key, group);
    }
  }

  async #readGroup(key: string, group: RangeGroup<Waiting>): Promise<void> {
    const { start, end, ranges } = group;
    try {
      const bytes = await this.#gate.run(
        end - start,
        () => readRange(this.#store, key, start, end),
      );
      for (const range of ranges) {
        const part = bytes?.subarray(range.start - start, range.end - start) ?? null;
        // A view would keep the bytes of holes and neighbours in memory as long as it lives: a block that stays
        // in the cache may be a hundredth of the read that brought it.
        range.resolve(ranges.length > 1 ? part?.slice() ?? null : part);
      }
    } catch (error) {
      for (const { reject } of ranges) reject(error);
    }
  }
}
