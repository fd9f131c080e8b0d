/**
 * A consumer group in use: its one writer, and the deadlines of its members, which are not stored. Each
 * change is decided and appended in one synchronous stretch; who is told of it waits until it is durable.
 */
import { isFault, messageOf } from "../../../lib/errors.ts";
import type { ErrorName } from "../../../protocol/error_code.ts";
import type { JoinRequest, SyncAnswer, SyncRequest } from "../group.ts";
import type { KeyValue } from "../../shard/shard_log.ts";
import { Deadlines } from "../deadlines.ts";
import { LiveState } from "../live_state.ts";
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
  JOIN,
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

/** A group may have its own. */
export interface MemberTimes {
  readonly sessionTimeoutMs: number;
  readonly heartbeatIntervalMs: number;
}

export interface ConsumerSettings {
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
  /** As they are now. */
  readonly timesOf: (groupId: string) => MemberTimes;
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
  /** Trouble that whoever runs the broker should know of. */
  note(event: string, reason: string): void;
}

const GROUP_BYTES = 512;
const MEMBER_BYTES = 1024;
const PARTITION_BYTES = 32;
/** After a target that could not be stored, before one is made again: topics and members may be others by then. */
const FROZEN_MS = 30_000;
/** When the log refused to take that a member is gone. */
const RETRY_MS = 1000;

function classicBytes({ classic }: Profile): number {
  return (classic?.protocols ?? []).reduce((sum, { metadata }) => sum + metadata.length, 0);
}

const profilesKnown = new WeakMap<Profile, number>();

/** A profile never changes, and a thousand names are too many to count at each heartbeat of a group. */
function profileBytes(profile: Profile): number {
  const known = profilesKnown.get(profile);
  if (known !== undefined) return known;
  const bytes = bytesOfProfile(profile);
  profilesKnown.set(profile, bytes);
  return bytes;
}

function bytesOfProfile(profile: Profile): number {
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
  readonly #state: LiveState<ConsumerGroup>;
  /** Of the topics that the group has looked at. */
  #seenVersion = -1;
  #frozenUntilMs = -Infinity;
  readonly #sessions = new Deadlines();
  /** Until when members must have done what they were asked for: let go, or join or sync if they are classic. */
  readonly #phases = new Deadlines();

  /** `written`: what the log knows of it; less than the group when that was of the other protocol. */
  constructor(host: ConsumerHost, port: LivePort, group: ConsumerGroup, written = group) {
    this.#host = host;
    this.#port = port;
    const { assignors, membersMax } = host.settings;
    const resolved = (pattern: string) => host.regexes.known(pattern);
    this.#world = { topics: host.topics, resolved, assignors, membersMax, isFrozen: false };
    const write = (records: readonly KeyValue[]) => port.write(records);
    this.#state = new LiveState({ recordsBetween, bytesOf, write }, group, written);
    for (const member of group.members.values()) {
      this.#touch(member);
      this.#watch(null, member);
    }
  }

  get group(): ConsumerGroup {
    return this.#state.group;
  }
  /** What it takes up, estimated. */
  get bytes(): number {
    return this.#state.bytes;
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
    return this.#state.written.epoch === 0;
  }

  /** Throws FaultError. */
  async heartbeat(request: HeartbeatRequest): Promise<Beat | ConsumerRefused> {
    const { version } = this.#host.topics;
    const decided = this.#storable(request.epoch === JOIN, (world) => {
      const isStale = this.isStale && !world.isFrozen;
      const beat = heartbeat(this.#state.group, request, world, isStale);
      return beat.ok ? this.#accept(beat, world.isFrozen ? null : version) ?? beat : beat;
    });
    if (decided.ok) await this.#state.durable;
    return decided;
  }

  /**
   * A target, or what an expression means, may be more than one record holds. Who comes with it is refused; to
   * those who are there nothing changes for a while, so that they keep what they have and can leave.
   */
  #storable<T>(isNew: boolean, work: (world: World) => T): T | ConsumerRefused {
    const nowMs = this.#port.monotonicMs();
    const frozen = { ...this.#world, isFrozen: true };
    if (!isNew && nowMs < this.#frozenUntilMs) return work(frozen);
    try {
      return work(this.#world);
    } catch (error) {
      if (!isFault(error, "too-large")) throw error;
      this.#port.note("group-too-large", messageOf(error));
      if (isNew) return refused("GROUP_MAX_SIZE_REACHED", messageOf(error));
      this.#frozenUntilMs = nowMs + FROZEN_MS;
      return work(frozen);
    }
  }

  /** JoinGroup of a classic member; `memberId` is new when the request has none. Throws FaultError. */
  async joinClassic(request: JoinRequest, memberId: string): Promise<Beat | ConsumerRefused> {
    const { version } = this.#host.topics;
    const decided = joinClassic(this.#state.group, request, memberId, this.#world, this.isStale);
    if (!decided.ok) return decided;
    const problem = this.#accept(decided, version);
    if (problem !== null) return problem;
    this.#phases.set(memberId, this.#port.monotonicMs() + request.rebalanceTimeoutMs);
    await this.#state.durable;
    return decided;
  }

  /** SyncGroup of a classic member. Throws FaultError. */
  async syncClassic(request: SyncRequest): Promise<SyncAnswer> {
    const decided = syncClassic(this.#state.group, request);
    if (decided.error !== "NONE") {
      if (decided.error === "REBALANCE_IN_PROGRESS") this.#askToJoin(request.memberId);
      return failed(decided.error);
    }
    const { member, protocols: [protocol] } = decided;
    this.#touch(member);
    this.#phases.delete(member.memberId);
    await this.#state.durable;
    return {
      error: "NONE",
      protocolType: CONSUMER_TYPE,
      protocolName: protocol!.name,
      assignment: assignmentBytes(member.place.assigned, protocol!.metadata, this.#host.topics),
    };
  }

  /** Heartbeat of a classic member. */
  beatClassic(memberId: string, instanceId: string | null, generation: number): ErrorName {
    const error = beatClassic(this.#state.group, memberId, instanceId, generation);
    if (error !== "NONE" && error !== "REBALANCE_IN_PROGRESS") return error;
    this.#touch(this.#state.group.members.get(memberId)!);
    if (error !== "NONE") this.#askToJoin(memberId);
    return error;
  }

  /** A member that is told to join again has its rebalance timeout for it, from the first time on. */
  #askToJoin(memberId: string): void {
    const timeoutMs = this.#state.group.members.get(memberId)?.profile.rebalanceTimeoutMs;
    if (timeoutMs === undefined || this.#phases.has(memberId)) return;
    this.#phases.set(memberId, this.#port.monotonicMs() + timeoutMs);
  }

  /** Makes the decision true, if there is memory for it. */
  #accept(decided: Beat, version: number | null): ConsumerRefused | null {
    const before = this.#state.group.members.get(decided.member.memberId)?.place ?? null;
    if (!this.#port.hasRoom(this.#state.growthTo(decided.group))) {
      return refused("GROUP_MAX_SIZE_REACHED", "The node has no memory for more members.");
    }
    this.#change(decided.group);
    if (version !== null && this.isStale && this.#areRegexesCurrent()) this.#seenVersion = version;
    this.#touch(decided.member);
    this.#watch(before, decided.member);
    return null;
  }

  /** What is known of an expression may be older than the topics: they changed while it was looked up. */
  #areRegexesCurrent(): boolean {
    for (const { profile: { topicRegex } } of this.#state.group.members.values()) {
      if (topicRegex === null || topicRegex === "") continue;
      if (!this.#host.regexes.isCurrent(topicRegex)) return false;
    }
    return true;
  }

  /** Throws FaultError. */
  async leave(request: LeaveRequest): Promise<Left | ConsumerRefused> {
    const decided = this.#storable(false, (world) => {
      const left = leave(this.#state.group, request, world);
      if (left.ok) this.#change(left.group);
      return left;
    });
    if (!decided.ok) return decided;
    // One that left for a while is not asked for anything any more; its session goes on.
    this.#phases.delete(request.memberId);
    await this.#state.durable;
    return decided;
  }

  /** Takes the last words of members as they are; no answer depends on them. Throws FaultError. */
  async remove(memberIds: readonly string[]): Promise<void> {
    this.#drop(memberIds);
    await this.#state.durable;
  }

  /** Monotonic time of the next thing to happen by itself; null if nothing will. */
  get nextDeadline(): number | null {
    const next = Math.min(this.#sessions.next, this.#phases.next);
    return next === Infinity ? null : next;
  }

  /** Members that were silent too long, or keep what they should let go of. Returns who they were. */
  tick(): readonly string[] {
    const nowMs = this.#port.monotonicMs();
    const late = [...this.#state.group.members.keys()].filter((memberId) =>
      this.#sessions.isPast(memberId, nowMs) || this.#phases.isPast(memberId, nowMs)
    );
    if (late.length === 0) return [];
    try {
      this.#drop(late);
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

  #drop(memberIds: readonly string[]): void {
    this.#storable(
      false,
      (world) => this.#change(without(this.#state.group, memberIds, world)),
    );
  }

  #change(next: ConsumerGroup): void {
    this.#state.change(next);
    this.#sessions.keepOnly(next.members);
    this.#phases.keepOnly(next.members);
  }

  #touch({ memberId, profile: { classic } }: ConsumerMember): void {
    const timeoutMs = classic?.sessionTimeoutMs ??
      this.#host.timesOf(this.group.groupId).sessionTimeoutMs;
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
