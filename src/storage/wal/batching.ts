/**
 * When the open bulk leaves: pure rules over numbers, no timer of their own. Metered stores spend a
 * token per PUT (a bucket refilled by the hourly budget); on unmetered ones the PUT in flight is the clock
 * (group commit). A full bulk always leaves: the budget bends before the producers do.
 */
import { assert } from "../../lib/assert.ts";
import { WAL_BULKS_IN_FLIGHT_MAX } from "../../lib/limits.ts";

const MIB = 1024 * 1024;
const HOUR_MS = 3_600_000;
/** Tokens that a quiet time saves up, and the deepest debt of full bulks. */
const BURST = 8;
/** Records that arrive together share a PUT: the first waits this long for the rest. */
const GATHER_MS = 2;
/** Small bulks in flight when PUTs are free: two keep the store busy, more only make the bulks smaller. */
const SMALL_IN_FLIGHT = 2;

export type WalPolicy =
  | { readonly kind: "unmetered" }
  | {
    readonly kind: "metered";
    readonly putsPerHour: number;
    /** Size at which a bulk closes; the budget sets it when it is absent. */
    readonly bulkBytes?: number;
  };

/** Tokens at a moment of the monotonic clock; negative after full bulks passed the budget. */
export interface TokenBucket {
  readonly tokens: number;
  readonly atMs: number;
}

export interface BatchView {
  readonly nowMs: number;
  /** When the open bulk got its first record. */
  readonly openedAtMs: number;
  /** Bulks sent or waiting for room in the window. */
  readonly inFlight: number;
}

/** Send now, look again after a time, or look again when a PUT ends (`waitMs` null). */
export type BatchDecision =
  | { readonly send: true }
  | { readonly send: false; readonly waitMs: number | null };

const SEND: BatchDecision = { send: true };

const MONTH_HOURS = 730;

/** PUTs per hour that a budget in money buys, at least one; null when it sets no limit. */
export function putsPerHourFor(
  { dollarsPerMonth, dollarsPerMillionPuts }: {
    readonly dollarsPerMonth: number;
    readonly dollarsPerMillionPuts: number;
  },
): number | null {
  if (dollarsPerMonth <= 0 || dollarsPerMillionPuts <= 0) return null;
  const putsPerMonth = dollarsPerMonth / dollarsPerMillionPuts * 1e6;
  return Math.max(1, Math.round(putsPerMonth / MONTH_HOURS));
}

/** Milliseconds of budget per PUT; 0 when PUTs cost nothing. */
function intervalMs(policy: WalPolicy): number {
  if (policy.kind === "unmetered") return 0;
  assert(policy.putsPerHour > 0, `PUT budget is not positive: ${policy.putsPerHour}`);
  return HOUR_MS / policy.putsPerHour;
}

/** Size at which a bulk closes: rarer PUTs carry more, freer ones keep the transfer time low. */
export function softCapBytes(policy: WalPolicy): number {
  if (policy.kind === "unmetered") return 8 * MIB;
  if (policy.bulkBytes !== undefined) return policy.bulkBytes;
  const interval = intervalMs(policy);
  if (interval <= 250) return 16 * MIB;
  return interval <= 1_000 ? 32 * MIB : 64 * MIB;
}

export function fullBucket(nowMs: number): TokenBucket {
  return { tokens: BURST, atMs: nowMs };
}

export function refill(policy: WalPolicy, bucket: TokenBucket, nowMs: number): TokenBucket {
  const interval = intervalMs(policy);
  if (interval === 0) return fullBucket(nowMs);
  const earned = Math.max(0, nowMs - bucket.atMs) / interval;
  return { tokens: Math.min(BURST, bucket.tokens + earned), atMs: Math.max(nowMs, bucket.atMs) };
}

/** The bucket after one PUT. */
export function spend(policy: WalPolicy, bucket: TokenBucket, nowMs: number): TokenBucket {
  const { tokens, atMs } = refill(policy, bucket, nowMs);
  return { tokens: Math.max(-BURST, tokens - 1), atMs };
}

/** Decides about an open bulk that is below the soft cap. */
export function decideSend(policy: WalPolicy, bucket: TokenBucket, view: BatchView): BatchDecision {
  if (policy.kind === "unmetered") {
    return view.inFlight < SMALL_IN_FLIGHT ? SEND : { send: false, waitMs: null };
  }
  // Behind a full window a small bulk would only queue: it grows instead, and fewer PUTs do the work.
  if (view.inFlight >= WAL_BULKS_IN_FLIGHT_MAX) return { send: false, waitMs: null };
  const { tokens } = refill(policy, bucket, view.nowMs);
  const missing = Math.max(0, 1 - tokens) * intervalMs(policy);
  const gather = view.openedAtMs + GATHER_MS - view.nowMs;
  const waitMs = Math.max(missing, gather);
  return waitMs <= 0 ? SEND : { send: false, waitMs: Math.ceil(waitMs) };
}
