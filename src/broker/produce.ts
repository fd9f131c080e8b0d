/**
 * Appends batches and waits until they are durable: the part of Produce that the wire and the gateway
 * share. Appending is synchronous and in order; only opening and waiting take time.
 */
import { PRODUCE_TIMEOUT_MS_MIN } from "../lib/limits.ts";
import type { Clock } from "../env/clock.ts";
import type { Appended, AppendRefused, PartitionLog, Verification } from "../log/partition_log.ts";
import { faultToCode } from "./fault_to_code.ts";

export type AppendOutcome = Appended | AppendRefused;

export function refusalOf(error: unknown): AppendRefused {
  return { ok: false, error: faultToCode(error, "produce") };
}

/** A fault of the storage below (full, fenced, closed) is an outcome here. */
export function appendTo(
  log: PartitionLog,
  batch: Uint8Array,
  verification?: Verification,
): AppendOutcome {
  try {
    const appended = log.append(batch, verification);
    // Whoever does not wait (acks=0, a time-out) must not leave the rejection unhandled.
    if (appended.ok) appended.durable.catch(() => {});
    return appended;
  } catch (error) {
    return refusalOf(error);
  }
}

/** Resolves after the time-out that a producer asked for; `stop` ends the waiting. */
export function produceDeadline(
  clock: Clock,
  timeoutMs: number,
): { readonly expired: Promise<"expired">; stop(): void } {
  let stop = (): void => {};
  const expired = new Promise<"expired">((resolve) => {
    const delayMs = Math.max(timeoutMs, PRODUCE_TIMEOUT_MS_MIN);
    stop = clock.after(delayMs, () => resolve("expired"));
  });
  return { expired, stop };
}

/** The final outcome: durable, late (the data stays, a retry is a duplicate) or lost to a fault. */
export async function settle(
  outcome: AppendOutcome,
  expired: Promise<"expired">,
): Promise<AppendOutcome> {
  if (!outcome.ok) return outcome;
  try {
    const first = await Promise.race([outcome.durable, expired]);
    return first === "expired" ? { ok: false, error: "REQUEST_TIMED_OUT" } : outcome;
  } catch (error) {
    return refusalOf(error);
  }
}
