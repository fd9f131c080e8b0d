/**
 * TCP in the simulated world: two byte streams in order, with latency, cut into chunks anywhere, reset at any
 * moment. What was under way when a connection breaks is lost.
 */
import type { Connection } from "../../src/env/listener.ts";
import { FaultError } from "../../src/lib/errors.ts";
import { type Random, randomInt } from "../../src/env/random.ts";
import type { SimProcess } from "./process.ts";
import { chance, type World } from "./world.ts";

export interface NetFaults {
  /** Probability per message that the connection breaks. */
  readonly reset: number;
  /** Probability per message that it arrives in two pieces. */
  readonly split: number;
  readonly latencyMs: number;
}

/** The client's end. */
export interface ClientEnd {
  readonly process: SimProcess;
  send(bytes: Uint8Array): void;
  close(): void;
}

export interface ClientEvents {
  onBytes(bytes: Uint8Array): void;
  onClosed(): void;
}

export interface Pair {
  readonly client: ClientEnd;
  readonly server: Connection;
}

export function connect(
  world: World,
  process: SimProcess,
  random: Random,
  faults: NetFaults,
  events: ClientEvents,
): Pair {
  let isOpen = true;
  let toServerMs = 0;
  let toClientMs = 0;
  const inbox: Uint8Array[] = [];
  let waiting: ((chunk: Uint8Array | null) => void) | null = null;

  /** Both sides learn of the end after a trip; the side that closed knows at once. */
  function close(): void {
    if (!isOpen) return;
    isOpen = false;
    world.after(trip(), () => events.onClosed());
    world.after(trip(), () =>
      process.deliver(() => {
        waiting?.(null);
        waiting = null;
      }));
  }

  function trip(): number {
    return faults.latencyMs * (0.3 + random.float() * 1.4);
  }

  function pieces(bytes: Uint8Array): Uint8Array[] {
    const copy = bytes.slice();
    if (bytes.length < 2 || !chance(random, faults.split)) return [copy];
    const at = 1 + randomInt(random, bytes.length - 1);
    return [copy.subarray(0, at), copy.subarray(at)];
  }

  process.onDeath(close);
  const server: Connection = {
    remote: "192.0.2.7:40000",
    read() {
      const next = inbox.shift();
      if (next !== undefined) return Promise.resolve(next);
      if (!isOpen) return Promise.resolve(null);
      return new Promise((resolve) => void (waiting = resolve));
    },
    write(bytes) {
      if (!isOpen) {
        return Promise.reject(new FaultError("closed", "Peer is gone", { retriable: false }));
      }
      if (!process.alive) return new Promise(() => {});
      if (chance(random, faults.reset)) close();
      for (const piece of pieces(bytes)) {
        toClientMs = Math.max(toClientMs, world.nowMs + trip());
        world.after(toClientMs - world.nowMs, () => isOpen && events.onBytes(piece));
      }
      return Promise.resolve();
    },
    close,
  };
  const client: ClientEnd = {
    process,
    close,
    send(bytes) {
      for (const piece of pieces(bytes)) {
        toServerMs = Math.max(toServerMs, world.nowMs + trip());
        world.after(toServerMs - world.nowMs, () => {
          if (!isOpen) return;
          process.deliver(() => {
            if (waiting === null) return void inbox.push(piece);
            const deliver = waiting;
            waiting = null;
            deliver(piece);
          });
        });
      }
      if (chance(random, faults.reset)) close();
    },
  };
  return { client, server };
}
