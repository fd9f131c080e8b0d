/** Pauses between attempts: doubling, capped, with full jitter so that nodes do not return in step. */
import type { Random } from "../env/random.ts";
import { STORE_BACKOFF_CAP_MS, STORE_BACKOFF_FIRST_MS } from "../lib/limits.ts";

const DOUBLINGS_MAX = 16;

/** The pause after failed attempt number `attempt`, counted from 1. */
export function backoffMs(attempt: number, random: Pick<Random, "float">): number {
  const ceiling = STORE_BACKOFF_FIRST_MS * 2 ** Math.min(attempt - 1, DOUBLINGS_MAX);
  return random.float() * Math.min(STORE_BACKOFF_CAP_MS, ceiling);
}
