/** The server's assignors by name, and which of them a group uses. Pure. */
import type { Uuid } from "../../../lib/uuid.ts";
import { assignRange } from "./assign_range.ts";
import { assignUniform } from "./assign_uniform.ts";
import type { Assignment } from "./assignment.ts";
import type { ConsumerGroup } from "./group.ts";

export interface AssignorMember {
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly topics: ReadonlySet<Uuid>;
  /** The target so far: what moves least is best. */
  readonly current: Assignment;
}

export interface AssignorInput {
  readonly members: readonly AssignorMember[];
  /** Partitions of every topic that somebody subscribes to. */
  readonly topics: ReadonlyMap<Uuid, number>;
}

export type Assignor = (input: AssignorInput) => ReadonlyMap<string, Assignment>;

export const ASSIGNORS: ReadonlyMap<string, Assignor> = new Map([
  ["uniform", assignUniform],
  ["range", assignRange],
]);

/** The one that most members ask for; the first of those allowed when nobody asks. */
export function assignorOf(group: ConsumerGroup, allowed: readonly string[]): string {
  const votes = new Map<string, number>();
  for (const { profile } of group.members.values()) {
    if (profile.assignor === null || !allowed.includes(profile.assignor)) continue;
    votes.set(profile.assignor, (votes.get(profile.assignor) ?? 0) + 1);
  }
  let best = allowed[0] ?? "uniform";
  for (const name of allowed) if ((votes.get(name) ?? 0) > (votes.get(best) ?? 0)) best = name;
  return best;
}
