/** A map that keeps the most recently used entries within a total weight (usually bytes). */
export class Lru<K, V> {
  readonly #weightMax: number;
  readonly #weigh: (value: V) => number;
  readonly #entries = new Map<K, { readonly value: V; readonly weight: number }>();
  #weight = 0;

  constructor(weightMax: number, weigh: (value: V) => number) {
    this.#weightMax = weightMax;
    this.#weigh = weigh;
  }

  get size(): number {
    return this.#entries.size;
  }
  get weight(): number {
    return this.#weight;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** Without counting as a use. */
  peek(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  /** Adds or replaces; evicts the least recently used. A value heavier than the whole map is not kept. */
  set(key: K, value: V): void {
    this.delete(key);
    const weight = this.#weigh(value);
    if (weight > this.#weightMax) return;
    this.#entries.set(key, { value, weight });
    this.#weight += weight;
    for (const oldest of this.#entries.keys()) {
      if (this.#weight <= this.#weightMax) return;
      this.delete(oldest);
    }
  }

  delete(key: K): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#weight -= entry.weight;
    return this.#entries.delete(key);
  }

  values(): V[] {
    return [...this.#entries.values()].map(({ value }) => value);
  }

  clear(): void {
    this.#entries.clear();
    this.#weight = 0;
  }
}
