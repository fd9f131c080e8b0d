/** What the shards of one kind hold in the memory of the node, and its bound. Sizes are estimates of their owners. */

export class ShardMemory {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** What already is in memory may always stay, and shrink. */
  hasRoom(more: number): boolean {
    return more <= 0 || this.#bytes + more <= this.#bytesMax;
  }

  change(by: number): void {
    this.#bytes += by;
  }
}
