/** Hands parts from a writer to an upload that asks for them, one at a time. */

interface Turn {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

function turn(): Turn {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

export class PartChannel implements AsyncIterable<Uint8Array> {
  #waiting: Uint8Array | null = null;
  #ended = false;
  #failure: { readonly reason: unknown } | null = null;
  /** Resolves at the next change of any of the above. */
  #changed = turn();

  /** Resolves when the upload has taken the part. Rejects once the upload failed. */
  async push(part: Uint8Array): Promise<void> {
    this.#waiting = part;
    this.#signal();
    while (this.#waiting !== null) {
      this.#throwIfFailed();
      await this.#changed.promise;
    }
    this.#throwIfFailed();
  }

  end(): void {
    this.#ended = true;
    this.#signal();
  }

  /** Ends both sides; the first reason counts. */
  fail(reason: unknown): void {
    this.#failure ??= { reason };
    this.#signal();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      this.#throwIfFailed();
      const part = this.#waiting;
      if (part !== null) {
        this.#waiting = null;
        this.#signal();
        yield part;
      } else if (this.#ended) return;
      else await this.#changed.promise;
    }
  }

  #signal(): void {
    const { resolve } = this.#changed;
    this.#changed = turn();
    resolve();
  }

  #throwIfFailed(): void {
    if (this.#failure !== null) throw this.#failure.reason;
  }
}
