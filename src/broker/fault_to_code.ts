/**
 * The one place where faults become Kafka error codes. Trouble with the store always reads as an
 * error that clients try again. UNKNOWN_SERVER_ERROR, on which they give up, is only for what can never be
 * stored, as in Kafka.
 */
import { type FaultCode, FaultError } from "../lib/errors.ts";
import type { ErrorName } from "../protocol/error_code.ts";

/** Which family of clients will read the code: each retries other ones. */
export type Surface = "produce" | "fetch" | "coordinator" | "admin";

type Row = Readonly<Record<Surface, ErrorName>>;

function same(name: ErrorName): Row {
  return { produce: name, fetch: name, coordinator: name, admin: name };
}

/** The store cannot be used now. Old producers do not know KAFKA_STORAGE_ERROR. */
const STORE: Row = {
  produce: "NOT_ENOUGH_REPLICAS",
  fetch: "KAFKA_STORAGE_ERROR",
  coordinator: "COORDINATOR_NOT_AVAILABLE",
  admin: "REQUEST_TIMED_OUT",
};
/** Somebody else owns this, or nobody until it opens again. */
const MOVED: Row = {
  produce: "NOT_LEADER_OR_FOLLOWER",
  fetch: "NOT_LEADER_OR_FOLLOWER",
  coordinator: "NOT_COORDINATOR",
  admin: "NOT_CONTROLLER",
};
/** What is stored cannot be read back. */
const DAMAGED: Row = {
  ...same("KAFKA_STORAGE_ERROR"),
  coordinator: "COORDINATOR_NOT_AVAILABLE",
};
const LATE: Row = { ...same("REQUEST_TIMED_OUT"), coordinator: "COORDINATOR_NOT_AVAILABLE" };

const TOO_LARGE: Row = {
  produce: "MESSAGE_TOO_LARGE",
  fetch: "UNKNOWN_SERVER_ERROR",
  coordinator: "UNKNOWN_SERVER_ERROR",
  admin: "INVALID_REQUEST",
};

const CODES: Readonly<Record<FaultCode, Row>> = {
  "store-unavailable": STORE,
  "store-denied": STORE,
  "store-full": STORE,
  "overloaded": STORE,
  "object-missing": DAMAGED,
  "corrupt": DAMAGED,
  "data-loss": DAMAGED,
  "fenced": MOVED,
  "closed": MOVED,
  "timeout": LATE,
  "aborted": LATE,
  "too-large": TOO_LARGE,
  "config": same("INVALID_CONFIG"),
};

/** The code of a fault. Anything else is a bug and goes on upwards, to where the connection ends. */
export function faultToCode(error: unknown, surface: Surface): ErrorName {
  if (!(error instanceof FaultError)) throw error;
  return CODES[error.code][surface];
}
