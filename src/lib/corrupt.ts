/** The fault of all decoders of foreign bytes: wrong once, wrong for ever. */
import { FaultError } from "./errors.ts";

export function corrupt(message: string, cause?: unknown): FaultError {
  return new FaultError("corrupt", message, { retriable: false, cause });
}
