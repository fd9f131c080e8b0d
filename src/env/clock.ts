/** Time as an argument. Wall time leaves the process (timestamps); monotonic time measures durations. */

/** Stops a scheduled call; does nothing when it already ran. */
export type Cancel = () => void;

export interface Clock {
  /** Milliseconds since 1970; may jump. */
  nowMs(): number;
  /** Milliseconds since some start; never goes back. */
  monotonicMs(): number;
  /** Calls `work` once after `delayMs`. */
  after(delayMs: number, work: () => void): Cancel;
}

/** Resolves after `delayMs`, or early when the signal aborts: callers look at the signal afterwards. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = () => {
      cancel();
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const cancel = clock.after(delayMs, finish);
    signal?.addEventListener("abort", finish, { once: true });
  });
}
