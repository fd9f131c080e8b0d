/** Why groups refuse, as problems. */
import { faultToCode } from "../../broker/fault_to_code.ts";
import type { GroupLeases } from "../../broker/group/lease/group_leases.ts";
import { messageOf } from "../../lib/errors.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import { ProblemError, problemOf } from "../problem.ts";
import type { LeaseGateway } from "./lease_port.ts";

const WHY: Partial<Record<ErrorName, string>> = {
  NON_EMPTY_GROUP: "Kafka members are in it, and have its partitions",
  INCONSISTENT_GROUP_PROTOCOL: "it is a share group",
  NOT_COORDINATOR: "it has just moved; come again",
};

export function refusedGroup(group: string, error: ErrorName): ProblemError {
  const message = `Cannot use group ${group}: ${WHY[error] ?? error}`;
  return new ProblemError(problemOf({ ok: false, error, message }));
}

/** A fault of the group's log; what is no fault goes on upwards. */
export function faultOf(error: unknown): ProblemError {
  const code = faultToCode(error, "coordinator");
  return new ProblemError(problemOf({ ok: false, error: code, message: messageOf(error) }));
}

/** Throws ProblemError when nothing may be leased or acknowledged. */
export function expectUsable(leases: GroupLeases, group: string): void {
  const { refusal } = leases;
  if (refusal !== null) throw refusedGroup(group, refusal);
}

/** Throws ProblemError. */
export async function openGroup(gateway: LeaseGateway, group: string): Promise<GroupLeases> {
  const opened = await gateway.open(group);
  if (!opened.ok) throw new ProblemError(problemOf(opened));
  expectUsable(opened.leases, group);
  return opened.leases;
}
