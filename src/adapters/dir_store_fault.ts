/** Maps errors of the file system to faults. All are retriable: space and permissions can come back. */
import { AssertionError } from "../lib/assert.ts";
import type { FaultCode } from "../lib/errors.ts";
import { FaultError, messageOf } from "../lib/errors.ts";

const CODES: Readonly<Record<string, FaultCode>> = {
  ENOSPC: "store-full",
  EDQUOT: "store-full",
  EFBIG: "store-full",
  EACCES: "store-denied",
  EPERM: "store-denied",
  EROFS: "store-denied",
};

/** The `E...` name of a system error, or an empty string. */
export function errnoOf(error: unknown): string {
  if (!(error instanceof Error) || !("code" in error)) return "";
  return typeof error.code === "string" ? error.code : "";
}

/** `what` is the action with its key, such as "put a/b". Faults and bugs stay what they are. */
export function fileFault(error: unknown, what: string): Error {
  if (error instanceof FaultError || error instanceof AssertionError) return error;
  const code = CODES[errnoOf(error)] ?? "store-unavailable";
  return new FaultError(code, `Cannot ${what}: ${messageOf(error)}`, {
    retriable: true,
    cause: error,
  });
}
