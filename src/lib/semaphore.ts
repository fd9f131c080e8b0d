/** At most `permits` holders at once; waiters are served in order. */
import { FaultError } from "./errors.ts";

interface Waiter {
  readonly count: number;
  readonly grant: () => void;
}

export class Semaphore {
  readonly #limit: number;
  #free: number;
  readonly #waiters: Waiter[] = [];

  constructor(permits: number) {
    this.#limit = permits;
    this.#free = permits;
  }

  get limit(): number {
    return this.#limit;
  }
  /** More than the limit while a request above it is served. */
  get used(): number {
    return this.#limit - this.#free;
  }
  get free(): number {
    return this.#free;
  }
  get waiting(): number {
    return this.#waiters.length;
  }

  /** Takes permits at once or not at all. A request above the limit is served when all permits are free. */
  tryAcquire(count = 1): boolean {
    if (this.#waiters.length > 0 || this.#free < Math.min(count, this.#limit)) return false;
    this.#free -= count;
    return true;
  }

  acquire(count = 1, signal?: AbortSignal): Promise<void> {
    if (this.tryAcquire(count)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        const at = this.#waiters.indexOf(waiter);
        if (at < 0) return;
        this.#waiters.splice(at, 1);
        reject(new FaultError("aborted", "Cannot acquire a permit: aborted", { retriable: true }));
        this.#serve();
      };
      const waiter: Waiter = {
        count,
        grant: () => {
          signal?.removeEventListener("abort", onAbort);
          resolve();
        },
      };
      if (signal?.aborted === true) {
        return reject(
          new FaultError("aborted", "Cannot acquire a permit: aborted", { retriable: true }),
        );
      }
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiters.push(waiter);
    });
  }

  release(count = 1): void {
    this.#free += count;
    this.#serve();
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    await this.acquire();
    try {
      return await work();
    } finally {
      this.release();
    }
  }

  #serve(): void {
    for (let next = this.#waiters[0]; next !== undefined; next = this.#waiters[0]) {
      if (this.#free < Math.min(next.count, this.#limit)) return;
      this.#waiters.shift();
      this.#free -= next.count;
      next.grant();
    }
  }
}
