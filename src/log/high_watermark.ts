/** Waits for the high watermark, which is the stream's confirm offset, and tells listeners that it moved. */
import type { Offset } from "../lib/brand.ts";
import { FaultError } from "../lib/errors.ts";
import type { Stream } from "../stream/stream.ts";

interface InFlight {
  readonly lastOffset: Offset;
  readonly durable: Promise<void>;
}

export class HighWatermark {
  readonly #stream: Stream;
  /** In offset order; those before #head are done. */
  #inFlight: InFlight[] = [];
  #head = 0;
  readonly #listeners = new Set<() => void>();
  #failure: unknown = null;

  constructor(stream: Stream) {
    this.#stream = stream;
  }

  /** Why an append was lost: the log cannot go on after that, since later offsets build on it. */
  get failure(): unknown {
    return this.#failure;
  }

  onAdvance(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Follows one append; the promise may be ignored. */
  track(lastOffset: Offset, stored: Promise<void>): Promise<void> {
    const durable = stored.then(() => this.#advance(), (error: unknown) => this.#fail(error));
    durable.catch(() => {});
    this.#inFlight.push({ lastOffset, durable });
    return durable;
  }

  /** Resolves once the high watermark is at or past the offset; rejects when it never will be. */
  passed(offset: Offset): Promise<void> {
    if (this.#stream.confirmOffset >= offset) return Promise.resolve();
    for (let i = this.#head; i < this.#inFlight.length; i++) {
      const { lastOffset, durable } = this.#inFlight[i]!;
      if (lastOffset + 1 >= offset) return durable;
    }
    const lost = Promise.reject<void>(
      this.#failure ?? new FaultError("closed", "The append is gone", { retriable: true }),
    );
    lost.catch(() => {});
    return lost;
  }

  #advance(): void {
    while (
      this.#head < this.#inFlight.length &&
      this.#inFlight[this.#head]!.lastOffset < this.#stream.confirmOffset
    ) this.#head++;
    // Dropping one at a time would cost the length of the list for each append.
    if (this.#head * 2 > this.#inFlight.length) {
      this.#inFlight = this.#inFlight.slice(this.#head);
      this.#head = 0;
    }
    this.#tell();
  }

  #fail(error: unknown): never {
    this.#failure ??= error;
    this.#tell();
    throw error;
  }

  #tell(): void {
    // A copy: a listener may leave, or another may come, while they are called.
    const listeners = [...this.#listeners];
    for (const listener of listeners) listener();
  }

  close(): void {
    this.#tell();
    this.#listeners.clear();
  }
}
