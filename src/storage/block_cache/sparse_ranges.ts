/** Ranges of one stream in stream set objects of one node, sorted; some of them when there is no room for all. */
import type { ObjectId, Offset } from "../../lib/brand.ts";
import { SPARSE_RANGES_KEPT } from "../../lib/limits.ts";
import { partitionPoint } from "../../lib/partition_point.ts";
import type { SparseRange } from "../format/sparse_index.ts";

export class SparseRanges {
  readonly #kept: number;
  #ranges: SparseRange[] = [];
  /** Where the next range is taken out. */
  #at = 1;

  constructor(ranges: readonly SparseRange[] = [], kept = SPARSE_RANGES_KEPT) {
    this.#ranges = [...ranges];
    this.#kept = kept;
  }

  get ranges(): readonly SparseRange[] {
    return this.#ranges;
  }

  /** How many begin at or before the offset. */
  #countUpTo(offset: Offset): number {
    return partitionPoint(this.#ranges.length, (i) => this.#ranges[i]!.start <= offset);
  }

  /** The last range that begins at or before the offset. It may end before it: what follows is missing then. */
  floor(offset: Offset): SparseRange | null {
    return this.#ranges[this.#countUpTo(offset) - 1] ?? null;
  }

  /** In its place. What it overlaps is older knowledge, which it replaces. */
  add(range: SparseRange): void {
    const last = this.#ranges.at(-1);
    if (last === undefined || last.end <= range.start) {
      this.#ranges.push(range);
      return;
    }
    const apart = this.#ranges.filter(({ start, end }) => end <= range.start || start >= range.end);
    const at = apart.findIndex(({ start }) => start >= range.end);
    this.#ranges = at < 0 ? [...apart, range] : apart.toSpliced(at, 0, range);
  }

  keepOnly(live: ReadonlySet<ObjectId>): void {
    if (this.#ranges.every(({ objectId }) => live.has(objectId))) return;
    this.#ranges = this.#ranges.filter(({ objectId }) => live.has(objectId));
  }

  /**
   * Takes out one range: every other one of the middle, round after round. The first one stays to the end,
   * and before it the newest ones, which most readers want.
   */
  thin(): void {
    const { length } = this.#ranges;
    if (length <= 1) {
      this.#ranges = [];
      return;
    }
    if (length <= this.#kept + 1 || this.#at >= length - this.#kept) this.#at = 1;
    this.#ranges.splice(this.#at, 1);
    this.#at += 1;
  }
}
