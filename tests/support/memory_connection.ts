/** A Connection in memory: the test is the client. Reads and writes can be held up. */
import { concatBytes, viewOf } from "../../src/lib/bytes.ts";
import { FaultError } from "../../src/lib/errors.ts";
import type { Connection } from "../../src/env/listener.ts";

export interface MemoryConnection extends Connection {
  /** Bytes from the client; null ends its side. */
  push(bytes: Uint8Array | null): void;
  /** Chunks that were written, as they came. */
  readonly written: readonly Uint8Array[];
  readonly closed: boolean;
  /** Chunks that the server gave back. */
  readonly released: readonly Uint8Array[];
  /** How many reads the server has started. */
  readonly reads: number;
  /** While true, writes do not resolve. */
  stalled: boolean;
  /** Lets held writes go on. */
  resume(): void;
  /** Correlation ids of the whole frames that were written. */
  answers(): number[];
  /** Bodies of the whole frames, correlation id included. */
  frames(): Uint8Array[];
}

export function createMemoryConnection(): MemoryConnection {
  const inbox: (Uint8Array | null)[] = [];
  const written: Uint8Array[] = [];
  const released: Uint8Array[] = [];
  let waiting: ((chunk: Uint8Array | null) => void) | null = null;
  let held: { resolve: () => void; reject: (error: unknown) => void }[] = [];
  let reads = 0;
  const connection: MemoryConnection & { closed: boolean } = {
    remote: "192.0.2.1:40000",
    stalled: false,
    closed: false,
    get reads() {
      return reads;
    },
    written,
    released,
    release: (chunk) => void released.push(chunk),
    push(chunk) {
      if (waiting === null) inbox.push(chunk);
      else {
        const deliver = waiting;
        waiting = null;
        deliver(chunk);
      }
    },
    read() {
      reads += 1;
      if (connection.closed) return Promise.resolve(null);
      const next = inbox.shift();
      if (next !== undefined) return Promise.resolve(next);
      return new Promise((resolve) => {
        waiting = resolve;
      });
    },
    write(bytes) {
      if (connection.closed) {
        return Promise.reject(new FaultError("closed", "Cannot write", { retriable: false }));
      }
      written.push(bytes.slice());
      if (!connection.stalled) return Promise.resolve();
      return new Promise((resolve, reject) => held.push({ resolve, reject }));
    },
    close() {
      connection.closed = true;
      waiting?.(null);
      waiting = null;
      for (const { reject } of held) reject(new Error("closed"));
      held = [];
    },
    resume() {
      connection.stalled = false;
      for (const { resolve } of held) resolve();
      held = [];
    },
    frames() {
      const all = concatBytes(written.length === 0 ? [new Uint8Array(0)] : written);
      const found: Uint8Array[] = [];
      for (let at = 0; at + 4 <= all.length;) {
        const end = at + 4 + viewOf(all).getInt32(at);
        if (end > all.length) break;
        found.push(all.subarray(at + 4, end));
        at = end;
      }
      return found;
    },
    answers: () => connection.frames().map((frame) => viewOf(frame).getInt32(0)),
  };
  return connection;
}
