/** A clock for hours of virtual time: timers in a heap, one turn of the event loop per moment. */
import type { Cancel, Clock } from "../../src/env/clock.ts";

interface Timer {
  readonly atMs: number;
  readonly order: number;
  work: (() => void) | null;
}

export interface VirtualClock extends Clock {
  /** Fires every timer up to then, each moment after all that the one before set off. */
  run(untilMs: number): Promise<void>;
}

function isBefore(a: Timer, b: Timer): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

class Heap {
  readonly #items: Timer[] = [];

  first(): Timer | undefined {
    return this.#items[0];
  }

  push(timer: Timer): void {
    const items = this.#items;
    let at = items.push(timer) - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (!isBefore(timer, items[up]!)) break;
      items[at] = items[up]!;
      at = up;
    }
    items[at] = timer;
  }

  pop(): void {
    const items = this.#items;
    const last = items.pop()!;
    if (items.length === 0) return;
    let at = 0;
    for (;;) {
      let down = 2 * at + 1;
      if (down >= items.length) break;
      if (down + 1 < items.length && isBefore(items[down + 1]!, items[down]!)) down++;
      if (!isBefore(items[down]!, last)) break;
      items[at] = items[down]!;
      at = down;
    }
    items[at] = last;
  }
}

/** Everything else resolves in microtasks, which have all run when a turn comes back. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export function createVirtualClock(startMs = 1_700_000_000_000): VirtualClock {
  const heap = new Heap();
  let nowMs = 0;
  let order = 0;
  return {
    nowMs: () => startMs + Math.floor(nowMs),
    monotonicMs: () => nowMs,
    after(delayMs, work): Cancel {
      const timer: Timer = { atMs: nowMs + Math.max(0, delayMs), order: order++, work };
      heap.push(timer);
      return () => void (timer.work = null);
    },
    async run(untilMs) {
      await turn();
      for (let due = heap.first(); due !== undefined && due.atMs <= untilMs; due = heap.first()) {
        heap.pop();
        if (due.work === null) continue;
        nowMs = Math.max(nowMs, due.atMs);
        due.work();
        // Whatever else is due at this moment comes first: it was set before this one had effects.
        if (heap.first()?.atMs !== nowMs) await turn();
      }
      nowMs = Math.max(nowMs, untilMs);
    },
  };
}
