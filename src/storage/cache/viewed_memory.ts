/** Which buffers of the log cache somebody looks at: only the others may be used again. */
import type { ReadLease } from "../../lib/read_lease.ts";
import type { StreamRecord } from "../stream_record.ts";

export class ViewedMemory {
  /** Leases that run, by buffer. Weak: one that never ends must not keep the memory. */
  readonly #leases = new WeakMap<ArrayBufferLike, number>();
  /** Read without a lease: nobody knows for how long. */
  readonly #unknown = new WeakSet<ArrayBufferLike>();

  /** The caller is about to hand these records out. */
  view(records: readonly StreamRecord[], lease: ReadLease | undefined): void {
    const buffers = new Set(records.map(({ payload }) => payload.buffer));
    for (const buffer of buffers) {
      if (lease === undefined) this.#unknown.add(buffer);
      else this.#leases.set(buffer, (this.#leases.get(buffer) ?? 0) + 1);
    }
    lease?.add(() => {
      for (const buffer of buffers) this.#end(buffer);
    });
  }

  isViewed(buffer: ArrayBufferLike): boolean {
    return this.#unknown.has(buffer) || this.#leases.has(buffer);
  }

  #end(buffer: ArrayBufferLike): void {
    const count = this.#leases.get(buffer) ?? 0;
    if (count > 1) this.#leases.set(buffer, count - 1);
    else this.#leases.delete(buffer);
  }
}
