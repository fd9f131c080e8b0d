/** What a log says once it is closed, or another owner has it. */
import { FaultError } from "../lib/errors.ts";
import type { AppendRefused } from "./partition_log.ts";

export function notLeader(message: string): AppendRefused {
  return { ok: false, error: "NOT_LEADER_OR_FOLLOWER", message };
}

export function closedFault(name: string): FaultError {
  return new FaultError("closed", `The log of ${name} is closed`, { retriable: true });
}
