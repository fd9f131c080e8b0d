/** The records of one partition on their way out: gathered, cut into batches, one batch under way. */
import type { Clock } from "../../env/clock.ts";
import type { NewRecord } from "../../protocol/record_writer.ts";

/** Sequences of idempotent producers wrap here. */
const SEQUENCES = 2 ** 31;

export interface Batch {
  readonly records: readonly NewRecord[];
  /** Of its first record. */
  readonly sequence: number;
}

export interface LaneOptions {
  readonly partition: number;
  readonly clock: Clock;
  /** How long a batch waits for more records. */
  readonly lingerMs: number;
  /** A batch has at most so many bytes, but at least one record. */
  readonly batchBytes: number;
  /** The first offset of the batch, -1 if unknown; null when it was refused as too large. */
  readonly deliver: (batch: Batch) => Promise<number | null>;
  /** Records of so many bytes have their answer. */
  readonly release: (bytes: number) => void;
}

interface Queued {
  readonly record: NewRecord;
  readonly bytes: number;
}

export class Lane {
  readonly #options: LaneOptions;
  readonly acknowledged: {
    readonly partition: number;
    records: number;
    /** -1 when no answer said. */
    firstOffset: number;
    lastOffset: number;
  };
  #queue: Queued[] = [];
  #queuedBytes = 0;
  #batchBytes: number;
  #sequence = 0;
  /** Since when the oldest record waits. */
  #sinceMs = 0;
  #isEnding = false;
  #wake: (() => void) | null = null;

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#batchBytes = options.batchBytes;
    const { partition } = options;
    this.acknowledged = { partition, records: 0, firstOffset: -1, lastOffset: -1 };
  }

  add(record: NewRecord, bytes: number): void {
    if (this.#queue.length === 0) this.#sinceMs = this.#options.clock.monotonicMs();
    this.#queue.push({ record, bytes });
    this.#queuedBytes += bytes;
    if (this.#queue.length === 1 || this.#queuedBytes >= this.#batchBytes) this.#wake?.();
  }

  /** Sends what is there and no more. */
  end(): void {
    this.#isEnding = true;
    this.#wake?.();
  }

  /** Sends nothing any more. */
  abandon(): void {
    this.#queue = [];
    this.#queuedBytes = 0;
    this.end();
  }

  /** Until the end. Rejects with what a delivery failed of. */
  async run(): Promise<void> {
    for (;;) {
      await this.#untilDue();
      const taken = this.#take();
      if (taken.length === 0) return;
      await this.#deliver(taken);
    }
  }

  async #deliver(taken: readonly Queued[]): Promise<void> {
    const { deliver, release } = this.#options;
    const records = taken.map(({ record }) => record);
    const offset = await deliver({ records, sequence: this.#sequence });
    const bytes = taken.reduce((sum, one) => sum + one.bytes, 0);
    if (offset === null) {
      // Nothing of it was stored, so its sequences are free for its halves.
      this.#batchBytes = Math.max(1, Math.ceil(bytes / 2));
      this.#queue = [...taken, ...this.#queue];
      this.#queuedBytes += bytes;
      return;
    }
    this.#sequence = (this.#sequence + taken.length) % SEQUENCES;
    this.acknowledged.records += taken.length;
    if (offset >= 0) {
      if (this.acknowledged.firstOffset < 0) this.acknowledged.firstOffset = offset;
      this.acknowledged.lastOffset = offset + taken.length - 1;
    }
    release(bytes);
  }

  #isDue(): boolean {
    if (this.#isEnding) return true;
    if (this.#queue.length === 0) return false;
    const { clock, lingerMs } = this.#options;
    return this.#queuedBytes >= this.#batchBytes ||
      clock.monotonicMs() - this.#sinceMs >= lingerMs;
  }

  async #untilDue(): Promise<void> {
    const { clock, lingerMs } = this.#options;
    while (!this.#isDue()) {
      await new Promise<void>((resolve) => {
        const leftMs = lingerMs - (clock.monotonicMs() - this.#sinceMs);
        const cancel = this.#queue.length === 0 ? null : clock.after(leftMs, resolve);
        this.#wake = () => {
          cancel?.();
          resolve();
        };
      });
      this.#wake = null;
    }
  }

  #take(): Queued[] {
    let bytes = 0;
    let count = 0;
    for (const one of this.#queue) {
      if (count > 0 && bytes + one.bytes > this.#batchBytes) break;
      bytes += one.bytes;
      count += 1;
    }
    const taken = this.#queue.slice(0, count);
    this.#queue = this.#queue.slice(count);
    this.#queuedBytes -= bytes;
    return taken;
  }
}
