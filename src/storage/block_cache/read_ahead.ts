/**
 * How far to read beyond what was asked, for one sequential reader. A window follows the other, the next one
 * begins when the reader enters the last; it doubles up to the size of one range read, and each time that the
 * reader had to wait for the store it grows further. Pure: it decides, the prefetcher reads.
 */
import type { Offset } from "../../lib/brand.ts";
import {
  RANGE_READ_BYTES_MAX,
  READ_AHEAD_BYTES_MAX,
  READ_AHEAD_BYTES_MIN,
  READ_AHEAD_PAUSE_MS,
} from "../../lib/limits.ts";

export interface Window {
  readonly from: Offset;
  readonly bytes: number;
}

export class ReadAhead {
  readonly #doubledUpTo: number;
  #bytes = READ_AHEAD_BYTES_MIN;
  /** End of what was read ahead. */
  #next: Offset = 0;
  /** Begin of the last window: a reader behind it has enough before it. */
  #mark: Offset = 0;
  #misses = 0;
  #mustReset = false;
  #pausedUntilMs = 0;
  #isRunning = false;

  constructor(doubledUpTo = RANGE_READ_BYTES_MAX) {
    this.#doubledUpTo = doubledUpTo;
  }

  get next(): Offset {
    return this.#next;
  }
  get mark(): Offset {
    return this.#mark;
  }
  get bytes(): number {
    return this.#bytes;
  }

  /** The reader had to wait. */
  missed(): void {
    this.#misses += 1;
  }

  /** A block went before the reader came: it is too slow, or there is too little memory. Begins anew, later. */
  reset(nowMs: number): void {
    this.#mustReset = true;
    this.#pausedUntilMs = nowMs + READ_AHEAD_PAUSE_MS;
  }

  /** What to read ahead of a reader that has come to `at`; null for nothing now. Each window is ended. */
  begin(at: Offset, nowMs: number, roomBytes: number): Window | null {
    if (nowMs < this.#pausedUntilMs || this.#isRunning) return null;
    this.#bytes = Math.min(
      this.#bytes + this.#misses * READ_AHEAD_BYTES_MIN,
      READ_AHEAD_BYTES_MAX,
    );
    this.#misses = 0;
    if (this.#mustReset) {
      this.#mustReset = false;
      this.#bytes = READ_AHEAD_BYTES_MIN;
      this.#next = 0;
      this.#mark = 0;
    }
    if (at >= this.#next) this.#next = at;
    else if (at <= this.#mark) return null;
    if (roomBytes < READ_AHEAD_BYTES_MIN) return null;
    this.#mark = this.#next;
    this.#isRunning = true;
    return { from: this.#next, bytes: Math.min(this.#bytes, roomBytes) };
  }

  /** The window was read up to here; where it began when it failed. */
  end(at: Offset): void {
    this.#isRunning = false;
    if (at <= this.#next) return;
    this.#next = at;
    this.#bytes = Math.max(this.#bytes, Math.min(2 * this.#bytes, this.#doubledUpTo));
  }
}
