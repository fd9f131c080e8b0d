/**
 * Who reads a stream from front to back: known by the place at which a reader will go on, so that each of
 * several consumers has a read-ahead of its own. While it reads, nobody else finds it.
 */
import type { Clock } from "../../env/clock.ts";
import type { Offset, StreamId } from "../../lib/brand.ts";
import { READ_AHEAD_READERS_MAX, READER_IDLE_MS } from "../../lib/limits.ts";
import { ReadAhead } from "./read_ahead.ts";

export interface StreamReader {
  readonly stream: StreamId;
  readonly ahead: ReadAhead;
  /** It went on where an earlier read ended. */
  readonly isSequential: boolean;
}

interface Waiting {
  readonly ahead: ReadAhead;
  readonly sinceMs: number;
}

export class StreamReaders {
  readonly #clock: Clock;
  /** By stream and next offset, the longest idle first. */
  readonly #waiting = new Map<string, Waiting>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** The reader that goes on here, or a new one. */
  take(stream: StreamId, at: Offset): StreamReader {
    this.#forgetIdle();
    const key = `${stream}/${at}`;
    const waiting = this.#waiting.get(key);
    this.#waiting.delete(key);
    return {
      stream,
      ahead: waiting?.ahead ?? new ReadAhead(),
      isSequential: waiting !== undefined,
    };
  }

  /** Its read has ended here. A reader whose read failed is not given back. */
  give({ stream, ahead }: StreamReader, next: Offset): void {
    const key = `${stream}/${next}`;
    this.#waiting.delete(key);
    this.#waiting.set(key, { ahead, sinceMs: this.#clock.monotonicMs() });
    for (const oldest of this.#waiting.keys()) {
      if (this.#waiting.size <= READ_AHEAD_READERS_MAX) return;
      this.#waiting.delete(oldest);
    }
  }

  #forgetIdle(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [key, { sinceMs }] of this.#waiting) {
      if (nowMs - sinceMs <= READER_IDLE_MS) return;
      this.#waiting.delete(key);
    }
  }
}
