/**
 * Create-if-absent with at most one hedge: when the first attempt is slow, the same bytes are sent to the
 * same name once more, and the first definite answer counts. Both are the same write: the one that comes
 * second finds its own bytes and says so, and a foreign object is foreign to both.
 */
import type { Cancel } from "../../env/clock.ts";
import { isFault } from "../../lib/errors.ts";
import { createExactly, type CreateOptions, type CreateOutcome } from "../../object/create.ts";
import type { ObjectStore } from "../../object/object_store.ts";

export interface HedgeOptions extends CreateOptions {
  /** After this time without an answer. */
  readonly hedgeAfterMs: number;
  /** Asked at that time; false forbids it. */
  readonly mayHedge: () => boolean;
}

export interface HedgedOutcome {
  readonly outcome: CreateOutcome;
  /** The answer came from the second attempt. */
  readonly byHedge: boolean;
  /** Resolves when the store is done with the body: the slower attempt may still read it. Never rejects. */
  readonly released: Promise<void>;
}

/** Throws what the first attempt throws; the store is done with the body by then. */
export function createHedged(
  store: ObjectStore,
  key: string,
  body: Uint8Array,
  options: HedgeOptions,
): Promise<HedgedOutcome> {
  return new HedgedCreate(store, key, body, options).run();
}

class HedgedCreate {
  readonly #store: ObjectStore;
  readonly #key: string;
  readonly #body: Uint8Array;
  readonly #options: HedgeOptions;
  readonly #first = new AbortController();
  readonly #hedge = new AbortController();
  #hedged: Promise<CreateOutcome | null> | null = null;

  constructor(store: ObjectStore, key: string, body: Uint8Array, options: HedgeOptions) {
    this.#store = store;
    this.#key = key;
    this.#body = body;
    this.#options = options;
  }

  async run(): Promise<HedgedOutcome> {
    const { clock, signal, hedgeAfterMs, mayHedge, onRetry } = this.#options;
    const onAbort = () => this.#end();
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    const first = this.#create(this.#first.signal, (error) => {
      // It is not slow but refused, and repeated with pauses: a hedge would only press the store.
      cancel();
      onRetry?.(error);
    });
    let cancel: Cancel = () => {};
    const byHedge = new Promise<CreateOutcome>((resolve, reject) => {
      cancel = clock.after(hedgeAfterMs, () => {
        if (this.#first.signal.aborted || !mayHedge()) return;
        this.#hedged = this.#once();
        this.#hedged.then((outcome) => outcome !== null && resolve(outcome), reject);
      });
    });
    try {
      const won = await Promise.race([
        first.then(
          (outcome) => ({ outcome, byHedge: false }),
          (error) => this.#unlessHedged(error),
        ),
        byHedge.then((outcome) => ({ outcome, byHedge: true })),
      ]);
      return { ...won, released: this.#released(first) };
    } finally {
      cancel();
      this.#end();
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** The first attempt gave up: what the other one knows by now decides. */
  async #unlessHedged(error: unknown): Promise<{ outcome: CreateOutcome; byHedge: boolean }> {
    this.#hedge.abort();
    const outcome = await this.#hedged;
    if (outcome === null) throw error;
    return { outcome, byHedge: true };
  }

  #create(signal: AbortSignal, onRetry: (error: unknown) => void): Promise<CreateOutcome> {
    const { clock, random, log } = this.#options;
    return createExactly(this.#store, this.#key, this.#body, {
      clock,
      random,
      log,
      signal,
      onRetry,
    });
  }

  /** One attempt, without repeats: those are the first one's. Null when it got no definite answer. */
  async #once(): Promise<CreateOutcome | null> {
    try {
      return await this.#create(this.#hedge.signal, () => this.#hedge.abort());
    } catch (error) {
      if (isFault(error)) return null;
      throw error;
    }
  }

  /** The slower attempt is of no use any more; what it sent may still arrive, and then finds the name taken. */
  #end(): void {
    this.#first.abort();
    this.#hedge.abort();
  }

  async #released(first: Promise<CreateOutcome>): Promise<void> {
    await Promise.allSettled([first, this.#hedged]);
  }
}
