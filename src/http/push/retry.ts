/** What comes after a delivery that was not taken: when it is tried again, and what else waits meanwhile. */
import type { OutboundAnswer } from "../../env/outbound_http.ts";
import { PUSH_RETRY_AFTER_MS_MAX } from "../../lib/limits.ts";

export interface RetryRules {
  readonly attempts: number;
  readonly minMs: number;
  readonly maxMs: number;
}

export type Judged =
  | { readonly isTaken: true }
  | {
    readonly isTaken: false;
    /** In a few words, for people. */
    readonly reason: string;
    /** The handler is away or asks for less: all of the subscription waits, not these records alone. */
    readonly isAboutHandler: boolean;
    /** Something in these records may be what is refused: they are tried one by one. */
    readonly isAboutRecords: boolean;
    readonly retryAfterMs: number | null;
  };

const ABOUT_HANDLER: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const ABOUT_RECORDS: ReadonlySet<number> = new Set([400, 413, 415, 422]);
const SECONDS = /^\d{1,9}$/;

/** Seconds, or a date (RFC 9110); null for what is neither. */
export function retryAfterMs(text: string | null, nowMs: number): number | null {
  if (text === null) return null;
  const trimmed = text.trim();
  const ms = SECONDS.test(trimmed) ? Number(trimmed) * 1000 : Date.parse(trimmed) - nowMs;
  return Number.isNaN(ms) ? null : Math.max(0, Math.min(PUSH_RETRY_AFTER_MS_MAX, ms));
}

export function judge(answer: OutboundAnswer, nowMs: number): Judged {
  if (!answer.ok) {
    const { reason } = answer;
    return {
      isTaken: false,
      reason,
      isAboutHandler: true,
      isAboutRecords: false,
      retryAfterMs: null,
    };
  }
  const { status } = answer;
  if (status >= 200 && status < 300) return { isTaken: true };
  const after = retryAfterMs(answer.retryAfter, nowMs);
  return {
    isTaken: false,
    reason: `answered ${status}`,
    isAboutHandler: ABOUT_HANDLER.has(status) || after !== null,
    isAboutRecords: ABOUT_RECORDS.has(status),
    retryAfterMs: after,
  };
}

/** After so many attempts; `chance` is from [0, 1), so that many do not come back at once. */
export function pauseMs(
  attempts: number,
  { minMs, maxMs }: Pick<RetryRules, "minMs" | "maxMs">,
  chance: number,
  afterMs: number | null = null,
): number {
  const full = Math.min(maxMs, minMs * 2 ** Math.min(attempts - 1, 40));
  return Math.max(afterMs ?? 0, Math.round(full * (0.5 + chance / 2)));
}

/** In their second half attempts are of single records: one that its handler dies of takes no others along. */
export function isAlone(attempts: number, rules: Pick<RetryRules, "attempts">): boolean {
  return attempts * 2 >= rules.attempts;
}
