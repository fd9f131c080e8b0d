/**
 * A classic group as data: members, state, waiting answers, deadlines. The functions beside this file
 * change it, each in one synchronous stretch; the coordinator owns it and its one timer.
 */
import { toUtf8 } from "../../lib/bytes.ts";
import type { ErrorName } from "../../protocol/error_code.ts";

export type GroupState = "Empty" | "PreparingRebalance" | "CompletingRebalance" | "Stable" | "Dead";

export interface Protocol {
  readonly name: string;
  /** Opaque: only type `consumer` says what is inside. */
  readonly metadata: Uint8Array;
}

export interface JoinRequest {
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly clientId: string;
  readonly clientHost: string;
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly protocolType: string;
  readonly protocols: readonly Protocol[];
  /** v4+: a dynamic member first gets an id, then joins with it (KIP-394). */
  readonly needsKnownId: boolean;
  /** v9+: a static leader may be told to keep the assignment (KIP-814). */
  readonly canSkipAssignment: boolean;
}

export interface JoinedMember {
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly metadata: Uint8Array;
}

export interface JoinAnswer {
  readonly error: ErrorName;
  readonly memberId: string;
  readonly generation: number;
  readonly protocolType: string | null;
  readonly protocolName: string | null;
  readonly leader: string;
  readonly skipAssignment: boolean;
  /** For the leader only. */
  readonly members: readonly JoinedMember[];
}

export interface SyncRequest {
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly generation: number;
  /** v5+; null when the client does not say. */
  readonly protocolType: string | null;
  readonly protocolName: string | null;
  readonly assignments: readonly { readonly memberId: string; readonly assignment: Uint8Array }[];
}

export interface SyncAnswer {
  readonly error: ErrorName;
  readonly protocolType: string | null;
  readonly protocolName: string | null;
  readonly assignment: Uint8Array;
}

export type Reply<T> = (answer: T) => void;

export interface Member {
  readonly instanceId: string | null;
  memberId: string;
  clientId: string;
  clientHost: string;
  sessionTimeoutMs: number;
  rebalanceTimeoutMs: number;
  protocols: readonly Protocol[];
  assignment: Uint8Array;
  /** The answer held back while the group gathers. */
  joining: Reply<JoinAnswer> | null;
  /** The answer held back until the leader has assigned. */
  syncing: Reply<SyncAnswer> | null;
  /** Monotonic time at which it counts as gone; not looked at while an answer is held back. */
  deadlineMs: number;
  /** Has never completed a join: it cannot heartbeat yet, so other limits hold. */
  isNew: boolean;
}

/** The first gathering of an empty group waits for late comers. */
export interface InitialDelay {
  /** What is left of the longest rebalance timeout. */
  leftMs: number;
  newcomers: boolean;
}

export interface Group {
  readonly groupId: string;
  state: GroupState;
  generation: number;
  protocolType: string | null;
  protocolName: string | null;
  leader: string | null;
  /** In order of arrival: the next leader is the first that rejoined. */
  readonly members: Map<string, Member>;
  /** Ids handed out by MEMBER_ID_REQUIRED and not used yet, with their deadlines. */
  readonly pending: Map<string, number>;
  /** End of the join phase, or of the sync phase; null outside of both. */
  phaseDeadlineMs: number | null;
  initial: InitialDelay | null;
  /** True while the assignment of this generation is being written. */
  storing: boolean;
  /** Wall time of the last change of state, kept for expiry of offsets. */
  stateChangedAtMs: number;
}

export interface GroupSettings {
  readonly sessionTimeoutMsMin: number;
  readonly sessionTimeoutMsMax: number;
  readonly initialRebalanceDelayMs: number;
  readonly membersMax: number;
}

/** What the functions need from outside. */
export interface GroupHost {
  readonly settings: GroupSettings;
  nowMs(): number;
  monotonicMs(): number;
  newMemberId(prefix: string): string;
  /** Whether the node's groups may take up so many bytes more. */
  hasRoom(bytes: number): boolean;
  /** Makes members, generation and assignments durable. */
  store(group: Group): Promise<void>;
}

/** A member that waits in its first join has no heartbeat yet: Kafka's fixed limit for it. */
export const NEW_MEMBER_JOIN_MS = 5 * 60_000;
export const NO_GENERATION = -1;
export const NO_BYTES: Uint8Array = new Uint8Array(0);

/** Kafka's strings have 16-bit lengths; what clients sent as no UTF-8 may have grown past that. */
const TEXT_BYTES_MAX = 0x7fff;
/** A dash and a UUID: what a member id has behind a client's or an instance's name. */
const ID_SUFFIX_BYTES = 37;
const UTF8_BYTES_PER_UNIT_MAX = 3;

function isStorableWith(text: string, moreBytes: number): boolean {
  const bytesMax = TEXT_BYTES_MAX - moreBytes;
  return text.length * UTF8_BYTES_PER_UNIT_MAX <= bytesMax || toUtf8(text).length <= bytesMax;
}

/** Whether a text can be written back into a record and into answers. */
export function isStorable(text: string): boolean {
  return isStorableWith(text, 0);
}

/** Whether a member's id can be made of the name. */
export function isMemberName(text: string): boolean {
  return isStorableWith(text, ID_SUFFIX_BYTES);
}

export function createGroup(groupId: string, nowMs: number): Group {
  return {
    groupId,
    state: "Empty",
    generation: 0,
    protocolType: null,
    protocolName: null,
    leader: null,
    members: new Map(),
    pending: new Map(),
    phaseDeadlineMs: null,
    initial: null,
    storing: false,
    stateChangedAtMs: nowMs,
  };
}

export function setState(group: Group, state: GroupState, nowMs: number): void {
  group.state = state;
  group.stateChangedAtMs = nowMs;
}

export function staticMember(group: Group, instanceId: string): Member | undefined {
  for (const member of group.members.values()) if (member.instanceId === instanceId) return member;
  return undefined;
}

export function metadataOf(member: Member, protocolName: string | null): Uint8Array {
  return member.protocols.find(({ name }) => name === protocolName)?.metadata ?? NO_BYTES;
}

/** Whether a request's identity fits a known member; NONE if it does (KIP-345). */
export function checkIdentity(
  group: Group,
  memberId: string,
  instanceId: string | null,
): ErrorName {
  if (instanceId !== null) {
    const known = staticMember(group, instanceId);
    if (known === undefined) return "UNKNOWN_MEMBER_ID";
    return known.memberId === memberId ? "NONE" : "FENCED_INSTANCE_ID";
  }
  return group.members.has(memberId) ? "NONE" : "UNKNOWN_MEMBER_ID";
}

/** A member that was heard of lives for another session timeout. */
export function touch(member: Member, host: GroupHost): void {
  member.deadlineMs = host.monotonicMs() + member.sessionTimeoutMs;
}

/** Monotonic time of the next thing to happen by itself; null if nothing will. */
export function nextDeadline(group: Group): number | null {
  let next = group.phaseDeadlineMs ?? Infinity;
  for (const deadline of group.pending.values()) next = Math.min(next, deadline);
  for (const member of group.members.values()) {
    if (waits(member)) continue;
    next = Math.min(next, member.deadlineMs);
  }
  return next === Infinity ? null : next;
}

/** Waiting for an answer counts as alive, but a first join has its own limit. */
export function waits(member: Member): boolean {
  return member.syncing !== null || (member.joining !== null && !member.isNew);
}
