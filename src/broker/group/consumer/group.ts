/**
 * A group of the consumer protocol (KIP-848) as a value: a decision makes a new one out of it, and the
 * difference of the two is what gets written (`records.ts`). Three epochs: the group's rises with
 * subscriptions and topics, the target's says for which of them the target was made, a member's how far
 * it has come.
 */
import type { Uuid } from "../../../lib/uuid.ts";
import type { ErrorName } from "../../../protocol/error_code.ts";
import type { Protocol } from "../group.ts";
import { type Assignment, NOTHING } from "./assignment.ts";

/** Of a member that speaks the classic protocol while its group migrates. */
export interface ClassicSide {
  readonly sessionTimeoutMs: number;
  readonly protocols: readonly Protocol[];
}

/** What a member said of itself. */
export interface Profile {
  readonly instanceId: string | null;
  readonly rackId: string | null;
  readonly clientId: string;
  /** With a slash before it, as Java writes an address. */
  readonly clientHost: string;
  /** Sorted, each once. */
  readonly topicNames: readonly string[];
  /** Null and empty are none. */
  readonly topicRegex: string | null;
  readonly rebalanceTimeoutMs: number;
  readonly assignor: string | null;
  /** Null for members of the consumer protocol. */
  readonly classic: ClassicSide | null;
}

/**
 * `unrevoked`: it has to give up partitions before it may go on. `unreleased`: it waits for partitions that
 * others still have.
 */
export type PlaceState = "stable" | "unrevoked" | "unreleased";

/** How far a member has come, and what is its own now. */
export interface Place {
  readonly epoch: number;
  /** Accepted once more: the answer with the newer epoch may have been lost. */
  readonly previousEpoch: number;
  readonly state: PlaceState;
  readonly assigned: Assignment;
  /** Not given to anybody else before the member has confirmed that it let go. */
  readonly revoking: Assignment;
}

export interface ConsumerMember {
  readonly memberId: string;
  readonly profile: Profile;
  readonly place: Place;
}

/** The topics that a regular expression meant when it was looked at. */
export interface Resolved {
  readonly topics: readonly string[];
  /** Of the topics' version that it was made from, and the wall time. */
  readonly version: number;
  readonly resolvedAtMs: number;
}

export interface ConsumerGroup {
  readonly groupId: string;
  readonly epoch: number;
  /** Of the topics that its members subscribe to. */
  readonly metadataHash: number;
  readonly members: ReadonlyMap<string, ConsumerMember>;
  readonly targetEpoch: number;
  readonly target: ReadonlyMap<string, Assignment>;
  readonly regexes: ReadonlyMap<string, Resolved>;
}

export interface SubscribedTopic {
  readonly topicId: Uuid;
  readonly name: string;
  readonly partitions: number;
}

/** Topics as they are now. */
export interface TopicView {
  /** Grows whenever a topic changes. */
  readonly version: number;
  find(name: string): SubscribedTopic | undefined;
  findById(topicId: Uuid): SubscribedTopic | undefined;
  names(): Iterable<string>;
}

export interface ConsumerRefused {
  readonly ok: false;
  readonly error: ErrorName;
  readonly message: string;
}

export function refused(error: ErrorName, message: string): ConsumerRefused {
  return { ok: false, error, message };
}

/** Of a static member that went away for a while; its partitions stay. */
export const LEFT_FOR_A_WHILE = -2;
export const LEAVE = -1;
export const JOIN = 0;

export const NEW_PLACE: Place = {
  epoch: 0,
  previousEpoch: 0,
  state: "stable",
  assigned: NOTHING,
  revoking: NOTHING,
};

export function emptyGroup(groupId: string): ConsumerGroup {
  return {
    groupId,
    epoch: 0,
    metadataHash: 0,
    members: new Map(),
    targetEpoch: 0,
    target: new Map(),
    regexes: new Map(),
  };
}

export function staticMemberOf(
  group: ConsumerGroup,
  instanceId: string,
): ConsumerMember | undefined {
  for (const member of group.members.values()) {
    if (member.profile.instanceId === instanceId) return member;
  }
  return undefined;
}

export function withMember(group: ConsumerGroup, member: ConsumerMember): ConsumerGroup {
  return { ...group, members: new Map(group.members).set(member.memberId, member) };
}

export function isReconciled({ epoch, state }: Place, targetEpoch: number): boolean {
  return state === "stable" && epoch === targetEpoch;
}

export type ConsumerGroupState = "Empty" | "Assigning" | "Reconciling" | "Stable";

export function stateOf(group: ConsumerGroup): ConsumerGroupState {
  if (group.members.size === 0) return "Empty";
  if (group.epoch > group.targetEpoch) return "Assigning";
  for (const { place } of group.members.values()) {
    if (!isReconciled(place, group.targetEpoch)) return "Reconciling";
  }
  return "Stable";
}

/** Nobody of the consumer protocol is left in it. */
export function isAllClassic({ members }: ConsumerGroup): boolean {
  for (const { profile } of members.values()) if (profile.classic === null) return false;
  return members.size > 0;
}

/** Names that a member wants, whether they exist or not. */
export function namesOf({ regexes }: ConsumerGroup, { profile }: ConsumerMember): Set<string> {
  const names = new Set(profile.topicNames);
  const resolved = profile.topicRegex === null ? undefined : regexes.get(profile.topicRegex);
  for (const name of resolved?.topics ?? []) names.add(name);
  return names;
}

/** A member for each different subscription: of many members most say the same, and share what they say. */
export function* oneOfEach({ members }: ConsumerGroup): Generator<ConsumerMember, void> {
  const seen = new Map<readonly string[], Set<string | null>>();
  for (const member of members.values()) {
    const { topicNames, topicRegex } = member.profile;
    const known = seen.get(topicNames);
    if (known?.has(topicRegex) === true) continue;
    if (known === undefined) seen.set(topicNames, new Set([topicRegex]));
    else known.add(topicRegex);
    yield member;
  }
}

/** The names as another member has them already, if one does: equal lists are one list. */
export function sharedNames(
  members: Iterable<ConsumerMember>,
  names: readonly string[],
): readonly string[] {
  let compared: readonly string[] | null = null;
  for (const { profile: { topicNames } } of members) {
    if (topicNames === compared) continue;
    compared = topicNames;
    if (isSameNames(topicNames, names)) return topicNames;
  }
  return names;
}

export function isSameNames(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((name, at) => b[at] === name));
}

/** For one topic or many: members and their names are looked at once, when the first one is asked for. */
export function subscriptionTo(group: ConsumerGroup): (topic: string) => boolean {
  let names: Set<string> | null = null;
  return (topic) => {
    if (names === null) {
      names = new Set();
      for (const member of oneOfEach(group)) {
        for (const name of namesOf(group, member)) names.add(name);
      }
    }
    return names.has(topic);
  };
}
