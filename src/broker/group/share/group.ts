/**
 * A share group (KIP-932) as a value: a decision makes a new one out of it, and the difference of the two is what
 * gets written (`records.ts`). Its members share partitions, so nobody waits for anybody to let go: a member
 * takes the target as soon as it is there.
 */
import type { Assignment } from "../consumer/assignment.ts";
import { NOTHING } from "../consumer/assignment.ts";
import { NO_STATES, type StatePartitions } from "./state_partitions.ts";

/** What a member said of itself. */
export interface ShareProfile {
  readonly rackId: string | null;
  readonly clientId: string;
  /** With a slash before it, as Java writes an address. */
  readonly clientHost: string;
  /** Sorted, each once. */
  readonly topicNames: readonly string[];
}

export interface SharePlace {
  readonly epoch: number;
  /** Accepted once more: the answer with the newer epoch may have been lost. */
  readonly previousEpoch: number;
  readonly assigned: Assignment;
}

export interface ShareMember {
  readonly memberId: string;
  readonly profile: ShareProfile;
  readonly place: SharePlace;
}

export interface ShareGroup {
  readonly groupId: string;
  readonly epoch: number;
  /** Of the topics that its members subscribe to. */
  readonly metadataHash: number;
  readonly members: ReadonlyMap<string, ShareMember>;
  readonly targetEpoch: number;
  readonly target: ReadonlyMap<string, Assignment>;
  readonly states: StatePartitions;
}

export const NEW_SHARE_PLACE: SharePlace = { epoch: 0, previousEpoch: 0, assigned: NOTHING };

export function emptyShareGroup(groupId: string): ShareGroup {
  return {
    groupId,
    epoch: 0,
    metadataHash: 0,
    members: new Map(),
    targetEpoch: 0,
    target: new Map(),
    states: NO_STATES,
  };
}

export function withShareMember(group: ShareGroup, member: ShareMember): ShareGroup {
  return { ...group, members: new Map(group.members).set(member.memberId, member) };
}

/** It has only these two: nothing is ever waited for. */
export function shareStateOf({ members }: ShareGroup): "Empty" | "Stable" {
  return members.size === 0 ? "Empty" : "Stable";
}

/** Names that members want, whether they exist or not. */
export function subscribedNames({ members }: ShareGroup): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { profile } of members.values()) {
    for (const name of profile.topicNames) names.add(name);
  }
  return names;
}
