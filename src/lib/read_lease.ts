/**
 * Tells the owner of shared memory when a reader is done with its views. A reader collects what one
 * answer views in a lease; what is read without one is left to the garbage collector.
 */
export class ReadLease {
  readonly #ends: (() => void)[] = [];

  add(end: () => void): void {
    this.#ends.push(end);
  }

  /** Nothing of what was read is looked at any more. A lease that never ends only costs memory. */
  end(): void {
    for (const end of this.#ends.splice(0)) end();
  }
}
