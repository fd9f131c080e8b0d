/** Turns refusals of the metadata into what the engine's callers understand. */
import { AssertionError } from "../lib/assert.ts";
import { FaultError } from "../lib/errors.ts";
import type { Refusal } from "./ports.ts";

/**
 * Loss of ownership is a fault; the rest can only come from wrong accounting of ours, for metadata
 * serialises all owners: an assertion.
 */
export function refused(what: string, refusal: Refusal): Error {
  const { reason } = refusal;
  if (reason === "fenced" || reason === "not-open") {
    return new FaultError("fenced", `${what} refused: ${reason}`, { retriable: false });
  }
  if (reason === "not-found") {
    return new FaultError("closed", `${what} refused: it was deleted`, { retriable: false });
  }
  const detail = reason === "not-continuous"
    ? `, expected offset ${refusal.expected}`
    : reason === "conflict"
    ? `: ${refusal.detail}`
    : "";
  return new AssertionError(`${what} refused: ${reason}${detail}`);
}
