/** A clock that stands still until a test moves it; timers fire in order of their time. */
import type { Cancel, Clock } from "../../src/env/clock.ts";

interface Timer {
  readonly atMs: number;
  readonly work: () => void;
}

export interface FakeClock extends Clock {
  /** Moves time forward, firing timers on the way; lets pending microtasks and I/O run between them. */
  advance(ms: number): Promise<void>;
  /** Lets pending microtasks and I/O callbacks run without moving time. */
  settle(): Promise<void>;
  readonly timers: number;
}

const TURNS = 10;

/** `underWay` is what real I/O there is to wait for, null for none: no time passes before it is over. */
export function createFakeClock(
  startMs = 1_700_000_000_000,
  underWay: () => Promise<unknown> | null = () => null,
): FakeClock {
  let elapsedMs = 0;
  const timers = new Set<Timer>();

  async function settle(): Promise<void> {
    for (let quiet = 0; quiet < TURNS; quiet++) {
      await new Promise((resolve) => setImmediate(resolve));
      const busy = underWay();
      if (busy === null) continue;
      await busy;
      quiet = 0;
    }
  }

  function nextDue(untilMs: number): Timer | null {
    let due: Timer | null = null;
    for (const timer of timers) {
      if (timer.atMs <= untilMs && (due === null || timer.atMs < due.atMs)) due = timer;
    }
    return due;
  }

  return {
    // Whole milliseconds, as hosts have them; pauses with jitter end in between.
    nowMs: () => startMs + Math.floor(elapsedMs),
    monotonicMs: () => elapsedMs,
    after(delayMs, work): Cancel {
      const timer = { atMs: elapsedMs + Math.max(0, delayMs), work };
      timers.add(timer);
      // Due without any time passing: a pause that only lets others run must not wait for the test.
      if (delayMs <= 0) setImmediate(() => void (timers.delete(timer) && work()));
      return () => void timers.delete(timer);
    },
    settle,
    async advance(ms) {
      const untilMs = elapsedMs + ms;
      await settle();
      for (let due = nextDue(untilMs); due !== null; due = nextDue(untilMs)) {
        timers.delete(due);
        elapsedMs = Math.max(elapsedMs, due.atMs);
        due.work();
        await settle();
      }
      elapsedMs = untilMs;
    },
    get timers() {
      return timers.size;
    },
  };
}
