/**
 * Operating faults: what goes wrong outside of us. Expected outcomes are return values, bugs are
 * assertions; only faults are thrown. A fault says whether trying again can help.
 */

/** The closed list of fault codes; `broker/fault_to_code.ts` maps each to a Kafka error code. */
export type FaultCode =
  /** The store does not answer, answers 5xx or throttles. */
  | "store-unavailable"
  /** The store refuses us: credentials, permissions, missing bucket. */
  | "store-denied"
  /** No space left, or a quota of the store is used up. */
  | "store-full"
  /** An object that metadata refers to is not there. */
  | "object-missing"
  /** Bytes fail their checksum or do not parse. */
  | "corrupt"
  /** Acknowledged data cannot be found: serving on would hide a loss. */
  | "data-loss"
  /** Another incarnation or a newer epoch owns this; this owner must stop. */
  | "fenced"
  /** The part was closed, or closes now. */
  | "closed"
  /** A deadline passed; the outcome may still come. */
  | "timeout"
  /** A bound is reached (bytes, requests, slots); the caller should slow down. */
  | "overloaded"
  /** One thing is larger than what may be stored at once: trying again cannot help. */
  | "too-large"
  /** The caller's AbortSignal fired. */
  | "aborted"
  /** A configuration value is wrong or not possible here. */
  | "config";

export interface FaultOptions {
  /** Whether the same call may succeed later. */
  readonly retriable: boolean;
  /** The other side asks for fewer requests; with `store-unavailable`. */
  readonly isThrottled?: boolean;
  readonly cause?: unknown;
}

export class FaultError extends Error {
  override readonly name = "FaultError";
  readonly code: FaultCode;
  readonly retriable: boolean;
  readonly isThrottled: boolean;

  constructor(code: FaultCode, message: string, options: FaultOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retriable = options.retriable;
    this.isThrottled = options.isThrottled === true;
  }
}

export function isFault(error: unknown, code?: FaultCode): error is FaultError {
  return error instanceof FaultError && (code === undefined || error.code === code);
}

/** The text of any thrown value, for logs. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
