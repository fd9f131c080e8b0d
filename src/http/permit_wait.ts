/** Waits for byte permits, but not for ever: a request that gets none is told to come again. */
import type { Clock } from "../env/clock.ts";
import { isFault } from "../lib/errors.ts";
import { HTTP_PERMIT_WAIT_MS } from "../lib/limits.ts";
import type { Semaphore } from "../lib/semaphore.ts";
import { ProblemError, RETRY_AFTER_S } from "./problem.ts";

export function busy(): ProblemError {
  return new ProblemError({
    status: 503,
    title: "Busy",
    detail: "Cannot take more requests: the memory for them is in use",
    headers: { "retry-after": RETRY_AFTER_S },
  });
}

/**
 * Throws ProblemError after the wait, or once the client is gone; then nothing is held. The signal is looked
 * at only when there is a wait: hosts make one for each request that asks for it.
 */
export async function takePermits(
  permits: Semaphore,
  bytes: number,
  clock: Clock,
  client: { readonly signal: AbortSignal },
): Promise<void> {
  if (permits.tryAcquire(bytes)) return;
  const late = new AbortController();
  const cancel = clock.after(HTTP_PERMIT_WAIT_MS, () => late.abort());
  try {
    await permits.acquire(bytes, AbortSignal.any([client.signal, late.signal]));
  } catch (error) {
    throw isFault(error, "aborted") ? busy() : error;
  } finally {
    cancel();
  }
}
