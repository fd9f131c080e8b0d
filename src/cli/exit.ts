/** Exit codes of the executable, as printed by --help, and which of them a fault ends in. */
import { type FaultCode, FaultError } from "../lib/errors.ts";

export const EXIT = {
  ok: 0,
  unexpected: 1,
  /** Also a store that cannot be used, or stays away: both are for whoever configured it. */
  config: 2,
  fenced: 4,
  data: 5,
  /** Whoever read our output has had enough: 128 and the number of SIGPIPE, as from any tool. */
  pipe: 141,
} as const;

const CODES: Readonly<Partial<Record<FaultCode, number>>> = {
  "config": EXIT.config,
  "store-unavailable": EXIT.config,
  "store-denied": EXIT.config,
  "store-full": EXIT.config,
  "timeout": EXIT.config,
  "fenced": EXIT.fenced,
  "corrupt": EXIT.data,
  "data-loss": EXIT.data,
  "object-missing": EXIT.data,
};

export function exitCodeOf(error: unknown): number {
  return error instanceof FaultError ? CODES[error.code] ?? EXIT.unexpected : EXIT.unexpected;
}
