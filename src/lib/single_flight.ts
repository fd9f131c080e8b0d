/** One load per key at a time: callers that come while a load runs share its outcome. */
export class SingleFlight<K, V> {
  readonly #running = new Map<K, Promise<V>>();

  run(key: K, load: () => Promise<V>): Promise<V> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const started = load().finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }

  /** Resolves when every load that runs now has ended, well or badly. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#running.values());
  }
}
