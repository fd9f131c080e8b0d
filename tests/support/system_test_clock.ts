/** The host's clock, for tests against real servers and file systems, which cannot be stopped. */
import type { Clock } from "../../src/env/clock.ts";

export const systemTestClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, work) {
    const timer = setTimeout(work, delayMs);
    return () => clearTimeout(timer);
  },
};
