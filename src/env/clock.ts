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

/** Whether the work has an outcome within the time; it goes on either way. */
export async function settlesWithin(
  clock: Clock,
  work: Promise<unknown>,
  ms: number,
): Promise<boolean> {
  const settled = work.then(() => true, () => true);
  const stop = new AbortController();
  const late = sleep(clock, ms, stop.signal).then(() => false);
  const inTime = await Promise.race([settled, late]);
  stop.abort();
  return inTime;
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
