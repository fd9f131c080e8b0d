/** One deadline for each of a group's members, by the monotonic clock. Not stored: after a load all begin anew. */
export class Deadlines {
  readonly #byMember = new Map<string, number>();

  set(memberId: string, atMs: number): void {
    this.#byMember.set(memberId, atMs);
  }

  has(memberId: string): boolean {
    return this.#byMember.has(memberId);
  }

  delete(memberId: string): void {
    this.#byMember.delete(memberId);
  }

  isPast(memberId: string, nowMs: number): boolean {
    return (this.#byMember.get(memberId) ?? Infinity) <= nowMs;
  }

  keepOnly(members: ReadonlyMap<string, unknown>): void {
    for (const memberId of this.#byMember.keys()) {
      if (!members.has(memberId)) this.#byMember.delete(memberId);
    }
  }

  /** Infinity when there is none. */
  get next(): number {
    let next = Infinity;
    for (const deadline of this.#byMember.values()) next = Math.min(next, deadline);
    return next;
  }
}
