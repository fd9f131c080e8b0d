/** What a node has opened, so that it can be closed in reverse. */

/** What is open so far, in order of opening. */
export class Opened {
  readonly #closers: (() => Promise<void> | void)[] = [];
  #closing: Promise<void> | null = null;

  add(close: () => Promise<void> | void): void {
    this.#closers.push(close);
  }

  /** In reverse order, once; the first error is thrown after all had their turn. */
  close(): Promise<void> {
    return this.#closing ??= this.#closeAll();
  }

  /** All that is left, without waiting for one after the other. */
  async closeAtOnce(): Promise<void> {
    await Promise.allSettled(this.#closers.splice(0).map(async (close) => await close()));
  }

  async #closeAll(): Promise<void> {
    const errors: unknown[] = [];
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) {
      try {
        await close();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
