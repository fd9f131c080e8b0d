/** What is wrong with a node at the moment, part by part: the reason that `/readyz` gives. */

export type HealthPart = "upload" | "metadata" | "node";

/** Each part speaks for itself: one that is well again must not hide the trouble of another. */
export class Health {
  readonly #problems = new Map<string, string>();
  /** Asked at each look. */
  #waiting: () => string | null = () => null;

  set(part: HealthPart, problem: string | null): void {
    if (problem === null) this.#problems.delete(part);
    else this.#problems.set(part, problem);
  }

  has(part: HealthPart): boolean {
    return this.#problems.has(part);
  }

  watch(waiting: () => string | null): void {
    this.#waiting = waiting;
  }

  get problem(): string | null {
    const waiting = this.#waiting();
    const all = [...this.#problems.values(), ...(waiting === null ? [] : [waiting])];
    return all.length === 0 ? null : all.join("; ");
  }
}
