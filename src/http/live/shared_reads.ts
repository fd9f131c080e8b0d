/**
 * One read for all streams that stand at the same place: when a record wakes thousands of readers, its batch is
 * fetched, checked, inflated and held once for each turn of them. A page goes back when the last one is done.
 */
import type { ReadAnswer, ReadQuery } from "../port.ts";
import type { Found } from "../read/page.ts";
import type { ReadGateway } from "../read_port.ts";

interface Shared {
  readonly answer: Promise<ReadAnswer>;
  users: number;
}

/** A reader that has gone leaves the others their read, so it ends with none of them. */
export type SharedQuery = Omit<ReadQuery, "signal" | "filter" | "waitMs"> & {
  readonly topicId: string;
};

export class SharedReads {
  readonly #reads = new Map<string, Shared>();
  readonly #signal = new AbortController().signal;

  /** Pages that somebody waits for or holds. */
  get size(): number {
    return this.#reads.size;
  }

  async read(
    gateway: ReadGateway,
    topic: string,
    partition: number,
    query: SharedQuery,
  ): Promise<ReadAnswer> {
    const { topicId, offset, isolation } = query;
    const key = `${topicId}/${partition}/${JSON.stringify(offset)}/${isolation}`;
    let shared = this.#reads.get(key);
    if (shared === undefined) {
      const answer = gateway.read(topic, partition, { ...query, waitMs: 0, signal: this.#signal });
      shared = { answer, users: 0 };
      this.#reads.set(key, shared);
    }
    shared.users += 1;
    try {
      const answer = await shared.answer;
      if (answer.ok) return { ...answer, release: this.#releaseOf(key, shared, answer) };
      this.#leave(key, shared);
      return answer;
    } catch (error) {
      this.#leave(key, shared);
      throw error;
    }
  }

  #releaseOf(key: string, shared: Shared, page: Found): () => void {
    let isDone = false;
    return () => {
      if (isDone) return;
      isDone = true;
      if (this.#leave(key, shared)) page.release();
    };
  }

  /** Whether that was the last one. */
  #leave(key: string, shared: Shared): boolean {
    shared.users -= 1;
    if (shared.users > 0) return false;
    if (this.#reads.get(key) === shared) this.#reads.delete(key);
    return true;
  }
}
