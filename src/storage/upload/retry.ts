/** Repeats what may succeed later, with growing pauses, until it does or its owner stops. */
import { sleep } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import { type FaultCode, FaultError, isFault } from "../../lib/errors.ts";

const PAUSE_MS_MIN = 100;
const PAUSE_MS_MAX = 10_000;
/** An operator can mend these while we run: nothing is lost as long as the WAL keeps the records. */
const MENDABLE: readonly FaultCode[] = [
  "store-unavailable",
  "store-denied",
  "store-full",
  "timeout",
];

export interface RetryOptions {
  readonly signal: AbortSignal;
  readonly onFailure?: (fault: FaultError) => void;
}

export function canRetry(error: unknown): error is FaultError {
  return isFault(error) && (error.retriable || MENDABLE.includes(error.code));
}

export async function retry<T>(
  env: Pick<Env, "clock" | "random">,
  work: (attempt: number) => Promise<T>,
  { signal, onFailure }: RetryOptions,
): Promise<T> {
  for (let attempt = 0;; attempt++) {
    throwIfStopped(signal);
    try {
      return await work(attempt);
    } catch (error) {
      if (!canRetry(error)) throw error;
      onFailure?.(error);
      const pauseMs = Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** Math.min(attempt, 20));
      await sleep(env.clock, pauseMs * (0.5 + env.random.float() / 2), signal);
    }
  }
}

export function throwIfStopped(signal: AbortSignal): void {
  if (!signal.aborted) return;
  if (signal.reason instanceof FaultError) throw signal.reason;
  throw new FaultError("closed", "Stopped", { retriable: false, cause: signal.reason });
}
