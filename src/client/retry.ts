/** Trying again: exponential pauses with jitter, never shorter than the broker asks for. */
import { SkerryError } from "./errors.ts";
import { type Host, sleep } from "./host.ts";

export interface RetryOptions {
  /** From the first attempt on. */
  readonly forMs: number;
  /** Doing it twice is as good as once. */
  readonly isRepeatable: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Told of each failure but the last. */
  readonly onRetry?: ((error: SkerryError) => void) | undefined;
}

const PAUSE_MS_MIN = 100;
const PAUSE_MS_MAX = 10_000;

/** Of the nth failure in a row, from 0 on. */
export function pauseMs(host: Host, failures: number, { retryAfterMs }: SkerryError): number {
  const longest = Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** failures);
  return retryAfterMs + longest * (0.5 + host.random() / 2);
}

/** Throws the last error; its `sideEffects` are those of all attempts. */
export async function retrying<T>(
  host: Host,
  { forMs, isRepeatable, signal, onRetry }: RetryOptions,
  attempt: () => Promise<T>,
): Promise<T> {
  const startedMs = host.nowMs();
  let isUnknown = false;
  for (let failures = 0;; failures++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof SkerryError)) throw error;
      isUnknown ||= error.sideEffects === "unknown";
      if (isUnknown) error.sideEffects = "unknown";
      if (!error.retriable || (isUnknown && !isRepeatable)) throw error;
      const pause = pauseMs(host, failures, error);
      if (host.nowMs() - startedMs + pause > forMs) throw error;
      onRetry?.(error);
      await sleep(host, pause, signal);
      signal?.throwIfAborted();
    }
  }
}
