/**
 * Bounds bytes that are on their way. Whoever comes is let in while less than the limit is, and may bring
 * the sum above it: so a read larger than the limit is served too. Others wait, in their order.
 */
export class ByteGate {
  readonly #bytesMax: number;
  readonly #waiting: { readonly bytes: number; readonly enter: () => void }[] = [];
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Left below the limit; below zero above it. */
  get free(): number {
    return this.#bytesMax - this.#bytes;
  }
  get waiting(): number {
    return this.#waiting.length;
  }

  async run<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    await this.#enter(bytes);
    try {
      return await work();
    } finally {
      this.#bytes -= bytes;
      this.#serve();
    }
  }

  #enter(bytes: number): Promise<void> {
    if (this.#waiting.length === 0 && this.free > 0) {
      this.#bytes += bytes;
      return Promise.resolve();
    }
    return new Promise((enter) => this.#waiting.push({ bytes, enter }));
  }

  #serve(): void {
    while (this.free > 0) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#bytes += next.bytes;
      next.enter();
    }
  }
}
