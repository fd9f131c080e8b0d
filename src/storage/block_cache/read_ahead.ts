/**
 * How far to read beyond what was asked. A reader that goes on where an earlier read of its stream ended is
 * sequential: its window doubles with each read. A first or random read fetches only what it needs.
 */
import type { Offset, StreamId } from "../../lib/brand.ts";
import {
  RANGE_READ_BYTES_MAX,
  READ_AHEAD_BYTES_MIN,
  READ_AHEAD_READERS_MAX,
} from "../../lib/limits.ts";
import { Lru } from "../../lib/lru.ts";

export class ReadAhead {
  /** Window of the reader that will come to this place next. */
  readonly #windows = new Lru<string, number>(READ_AHEAD_READERS_MAX, () => 1);

  /** Bytes to fetch beyond the request for a read that begins here. */
  windowBytes(stream: StreamId, start: Offset): number {
    return this.#windows.get(`${stream}/${start}`) ?? 0;
  }

  moved(stream: StreamId, start: Offset, next: Offset): void {
    const window = this.windowBytes(stream, start);
    this.#windows.delete(`${stream}/${start}`);
    const grown = Math.min(RANGE_READ_BYTES_MAX, Math.max(READ_AHEAD_BYTES_MIN, window * 2));
    this.#windows.set(`${stream}/${next}`, grown);
  }
}
