/**
 * A consumer group in use: its one writer, and the deadlines of its members, which are not stored. Each
 * change is decided and appended in one synchronous stretch; who is told of it waits until it is durable.
 */
import { isFault } from "../../../lib/errors.ts";
import type { ErrorName } from "../../../protocol/error_code.ts";
import type { JoinRequest, SyncAnswer, SyncRequest } from "../group.ts";
import type { KeyValue } from "../records.ts";
import { failed } from "../sync.ts";
import { sizeOf } from "./assignment.ts";
import {
  assignmentBytes,
  beatClassic,
  CONSUMER_TYPE,
  joinClassic,
  syncClassic,
} from "./classic_member.ts";
import {
  type ConsumerGroup,
  type ConsumerMember,
  type ConsumerRefused,
  type Place,
  type Profile,
  refused,
  type TopicView,
} from "./group.ts";
import { type Beat, heartbeat, type HeartbeatRequest } from "./heartbeat.ts";
import { leave, type LeaveRequest, type Left, without } from "./leave.ts";
import { recordsBetween } from "./records.ts";
import type { RegexTopics } from "./regex_topics.ts";
import type { World } from "./target.ts";

export interface ConsumerSettings {
  readonly sessionTimeoutMs: number;
  readonly heartbeatIntervalMs: number;
  readonly membersMax: number;
  /** Allowed ones, the default first. */
  readonly assignors: readonly string[];
  /** Whether groups with live classic members may change their protocol. */
  readonly canUpgrade: boolean;
  readonly canDowngrade: boolean;
}

/** The node's, shared by its groups. */
export interface ConsumerHost {
  readonly settings: ConsumerSettings;
  readonly topics: TopicView;
  readonly regexes: RegexTopics;
}

/** The shard, as one of its groups sees it. */
export interface LivePort {
  monotonicMs(): number;
  hasRoom(bytes: number): boolean;
  /**
   * Appends in this very stretch and resolves when all is durable. Throws FaultError when the log takes
   * nothing: nothing has happened then.
   */
  write(records: readonly KeyValue[]): Promise<void>;
}

const GROUP_BYTES = 512;
const MEMBER_BYTES = 1024;
const PARTITION_BYTES = 32;
/** When the log refused to take that a member is gone. */
const RETRY_MS = 1000;

function classicBytes({ classic }: Profile): number {
  return (classic?.protocols ?? []).reduce((sum, { metadata }) => sum + metadata.length, 0);
}

function profileBytes(profile: Profile): number {
  const { instanceId, rackId, clientId, clientHost, topicNames, topicRegex } = profile;
  const names = topicNames.reduce((sum, name) => sum + name.length + PARTITION_BYTES, 0);
  return names + (instanceId?.length ?? 0) + (rackId?.length ?? 0) + clientId.length +
    clientHost.length + (topicRegex?.length ?? 0) + classicBytes(profile);
}

function bytesOf(group: ConsumerGroup): number {
  let bytes = GROUP_BYTES + group.groupId.length;
  for (const { memberId, profile, place } of group.members.values()) {
    bytes += MEMBER_BYTES + memberId.length + profileBytes(profile) +
      PARTITION_BYTES * (sizeOf(place.assigned) + sizeOf(place.revoking));
  }
  for (const target of group.target.values()) bytes += PARTITION_BYTES * sizeOf(target);
  for (const { topics } of group.regexes.values()) {
    bytes += topics.reduce((sum, name) => sum + name.length + PARTITION_BYTES, 0);
  }
  return bytes;
}

export class LiveGroup {
  readonly #host: ConsumerHost;
  readonly #port: LivePort;
  readonly #world: World;
  #group: ConsumerGroup;
  /** What the log knows of it. */
  #written: ConsumerGroup;
  #bytes: number;
  /** Of the topics that the group has looked at. */
  #seenVersion = -1;
  #durable: Promise<void> = Promise.resolve();
  readonly #sessions = new Map<string, number>();
  /** Until when members must have done what they were asked for: let go, or join or sync if they are classic. */
  readonly #phases = new Map<string, number>();

  /** `written`: what the log knows of it; less than the group when that was of the other protocol. */
  constructor(host: ConsumerHost, port: LivePort, group: ConsumerGroup, written = group) {
    this.#host = host;
    this.#port = port;
    const { assignors, membersMax } = host.settings;
    const resolved = (pattern: string) => host.regexes.known(pattern);
    this.#world = { topics: host.topics, resolved, assignors, membersMax };
    this.#group = group;
    this.#written = written;
    this.#bytes = bytesOf(group);
    for (const member of group.members.values()) {
      this.#touch(member);
      this.#watch(null, member);
    }
  }

  get group(): ConsumerGroup {
    return this.#group;
  }
  /** What it takes up, estimated. */
  get bytes(): number {
    return this.#bytes;
  }
  get settings(): ConsumerSettings {
    return this.#host.settings;
  }

  /** Topics have changed since the group looked at them. */
  get isStale(): boolean {
    return this.#host.topics.version !== this.#seenVersion;
  }

  /** It came from the other protocol or from nowhere, and nothing of it stands in the log. */
  get isUnwritten(): boolean {
    return this.#written.epoch === 0;
  }

  /** Throws FaultError. */
  async heartbeat(request: HeartbeatRequest): Promise<Beat | ConsumerRefused> {
    const { version } = this.#host.topics;
    const decided = heartbeat(this.#group, request, this.#world, this.isStale);
    if (!decided.ok) return decided;
    const problem = this.#accept(decided, version);
    if (problem !== null) return problem;
    await this.#durable;
    return decided;
  }

  /** JoinGroup of a classic member; `memberId` is new when the request has none. Throws FaultError. */
  async joinClassic(request: JoinRequest, memberId: string): Promise<Beat | ConsumerRefused> {
    const { version } = this.#host.topics;
    const decided = joinClassic(this.#group, request, memberId, this.#world, this.isStale);
    if (!decided.ok) return decided;
    const problem = this.#accept(decided, version);
    if (problem !== null) return problem;
    this.#phases.set(memberId, this.#port.monotonicMs() + request.rebalanceTimeoutMs);
    await this.#durable;
    return decided;
  }

  /** SyncGroup of a classic member. Throws FaultError. */
  async syncClassic(request: SyncRequest): Promise<SyncAnswer> {
    const decided = syncClassic(this.#group, request);
    if (decided.error !== "NONE") {
      if (decided.error === "REBALANCE_IN_PROGRESS") this.#askToJoin(request.memberId);
      return failed(decided.error);
    }
    const { member, protocols: [protocol] } = decided;
    this.#touch(member);
    this.#phases.delete(member.memberId);
    await this.#durable;
    return {
      error: "NONE",
      protocolType: CONSUMER_TYPE,
      protocolName: protocol!.name,
      assignment: assignmentBytes(member.place.assigned, protocol!.metadata, this.#host.topics),
    };
  }

  /** Heartbeat of a classic member. */
  beatClassic(memberId: string, instanceId: string | null, generation: number): ErrorName {
    const error = beatClassic(this.#group, memberId, instanceId, generation);
    if (error !== "NONE" && error !== "REBALANCE_IN_PROGRESS") return error;
    this.#touch(this.#group.members.get(memberId)!);
    if (error !== "NONE") this.#askToJoin(memberId);
    return error;
  }

  /** A member that is told to join again has its rebalance timeout for it, from the first time on. */
  #askToJoin(memberId: string): void {
    const timeoutMs = this.#group.members.get(memberId)?.profile.rebalanceTimeoutMs;
    if (timeoutMs === undefined || this.#phases.has(memberId)) return;
    this.#phases.set(memberId, this.#port.monotonicMs() + timeoutMs);
  }

  /** Makes the decision true, if there is memory for it. */
  #accept(decided: Beat, version: number): ConsumerRefused | null {
    const before = this.#group.members.get(decided.member.memberId)?.place ?? null;
    const isChanged = decided.group !== this.#group;
    if (isChanged && !this.#port.hasRoom(bytesOf(decided.group) - this.#bytes)) {
      return refused("GROUP_MAX_SIZE_REACHED", "The node has no memory for more members.");
    }
    this.#change(decided.group);
    if (this.isStale && this.#areRegexesCurrent()) this.#seenVersion = version;
    this.#touch(decided.member);
    this.#watch(before, decided.member);
    return null;
  }

  /** What is known of an expression may be older than the topics: they changed while it was looked up. */
  #areRegexesCurrent(): boolean {
    for (const { profile: { topicRegex } } of this.#group.members.values()) {
      if (topicRegex === null || topicRegex === "") continue;
      if (!this.#host.regexes.isCurrent(topicRegex)) return false;
    }
    return true;
  }

  /** Throws FaultError. */
  async leave(request: LeaveRequest): Promise<Left | ConsumerRefused> {
    const decided = leave(this.#group, request, this.#world);
    if (!decided.ok) return decided;
    this.#change(decided.group);
    // One that left for a while is not asked for anything any more; its session goes on.
    this.#phases.delete(request.memberId);
    await this.#durable;
    return decided;
  }

  /** Takes the last words of members as they are; no answer depends on them. Throws FaultError. */
  async remove(memberIds: readonly string[]): Promise<void> {
    this.#change(without(this.#group, memberIds, this.#world));
    await this.#durable;
  }

  /** Monotonic time of the next thing to happen by itself; null if nothing will. */
  get nextDeadline(): number | null {
    let next = Infinity;
    for (const deadline of this.#sessions.values()) next = Math.min(next, deadline);
    for (const deadline of this.#phases.values()) next = Math.min(next, deadline);
    return next === Infinity ? null : next;
  }

  /** Members that were silent too long, or keep what they should let go of. Returns who they were. */
  tick(): readonly string[] {
    const nowMs = this.#port.monotonicMs();
    const late = [...this.#group.members.keys()].filter((memberId) =>
      (this.#sessions.get(memberId) ?? 0) <= nowMs ||
      (this.#phases.get(memberId) ?? Infinity) <= nowMs
    );
    if (late.length === 0) return [];
    try {
      this.#change(without(this.#group, late, this.#world));
      return late;
    } catch (error) {
      if (!isFault(error)) throw error;
      for (const memberId of late) {
        this.#sessions.set(memberId, nowMs + RETRY_MS);
        this.#phases.delete(memberId);
      }
      return [];
    }
  }

  #change(next: ConsumerGroup): void {
    if (next === this.#written) return;
    const records = recordsBetween(this.#written, next);
    if (records.length > 0) {
      const written = this.#port.write(records);
      // Who waits for it is told; nobody may.
      written.catch(() => {});
      this.#durable = written;
    }
    this.#written = next;
    if (next === this.#group) return;
    this.#group = next;
    this.#bytes = bytesOf(next);
    for (const memberId of this.#sessions.keys()) {
      if (next.members.has(memberId)) continue;
      this.#sessions.delete(memberId);
      this.#phases.delete(memberId);
    }
  }

  #touch({ memberId, profile: { classic } }: ConsumerMember): void {
    const timeoutMs = classic?.sessionTimeoutMs ?? this.#host.settings.sessionTimeoutMs;
    this.#sessions.set(memberId, this.#port.monotonicMs() + timeoutMs);
  }

  #watch(before: Place | null, { memberId, place, profile }: ConsumerMember): void {
    if (place.state !== "unrevoked") this.#phases.delete(memberId);
    else if (place !== before) {
      const timeoutMs = Math.max(0, profile.rebalanceTimeoutMs);
      this.#phases.set(memberId, this.#port.monotonicMs() + timeoutMs);
    }
  }
}
