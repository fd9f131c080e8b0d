/**
 * Share groups on this node: the partitions that they read here, their sessions, and their durable states. A share
 * partition lives in memory while this node leads the partition, in the epoch in which it was opened; its state
 * must be stored on this node as well, because nodes do not write to each other.
 */
import { messageOf } from "../../lib/errors.ts";
import { SHARE_PARTITIONS_MAX, SHARE_RECORDS_IN_FLIGHT_MAX } from "../../lib/limits.ts";
import { SingleFlight } from "../../lib/single_flight.ts";
import type { PartitionLog } from "../../log/partition_log.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import { faultToCode } from "../fault_to_code.ts";
import {
  createShareMembership,
  type ShareGroupSettings,
  type ShareMembership,
} from "../group/share/share_membership.ts";
import type { LedShardsServices } from "../shard/led_shards.ts";
import { ShardMemory } from "../shard/shard_memory.ts";
import { SharePartition, STATE_UNAVAILABLE } from "./share_partition.ts";
import { type ShareMember, type SharePlace, ShareSessions } from "./share_sessions.ts";
import type { ShareState } from "./share_state.ts";
import type {
  ShareListener,
  SharePartitionKey,
  ShareStates,
  ShareStateSummary,
} from "./share_states.ts";
import { coordinatorKey } from "./state_records.ts";
import { StateStore } from "./state_store.ts";
import { ShareWindow } from "./window.ts";

export type ShareOpen =
  | { readonly ok: true; readonly partition: SharePartition }
  | { readonly ok: false; readonly error: ErrorName };

function refused(error: ErrorName): ShareOpen {
  return { ok: false, error };
}

/** Clients of a fetch know no coordinators: a state that cannot be had is trouble that passes. */
function asFetchError(error: ErrorName): ErrorName {
  return error.startsWith("FENCED") ? "NOT_LEADER_OR_FOLLOWER" : STATE_UNAVAILABLE;
}

export class ShareGroups implements ShareStates, ShareListener {
  readonly sessions: ShareSessions;
  readonly #services: LedShardsServices;
  readonly #membership: ShareMembership;
  readonly #states: StateStore;
  readonly #inFlight = new ShardMemory(SHARE_RECORDS_IN_FLIGHT_MAX);
  readonly #live = new Map<string, SharePartition>();
  readonly #opening = new SingleFlight<string, ShareOpen>();
  /** Share partitions that were let go, until all that they have to say is in the log. */
  readonly #leaving = new Map<string, Promise<void>>();
  readonly #unsubscribe: () => void;
  #closed = false;

  constructor(services: LedShardsServices) {
    this.#services = services;
    this.#membership = createShareMembership(services);
    this.#states = new StateStore(services);
    this.sessions = new ShareSessions({
      sessionsMax: () => services.config.integer("group.share.max.share.sessions"),
      onLost: (member, places) => this.#releaseLost(member, places),
    });
    this.#unsubscribe = services.metadata.onChange(({ topics, partitions }) => {
      if (topics.size > 0 || partitions.size > 0) this.#follow();
    });
  }

  /** Share partitions in memory. */
  get size(): number {
    return this.#live.size;
  }

  settingsOf(groupId: string): ShareGroupSettings {
    return this.#membership.settingsOf(groupId);
  }

  async initialize(
    key: SharePartitionKey,
    stateEpoch: number,
    startOffset: number,
  ): Promise<ErrorName | null> {
    const live = this.#live.get(coordinatorKey(key));
    if (startOffset < 0 && live?.stateEpoch === stateEpoch) return null;
    // A group's epoch may be that of the state still: what was said before must not come behind its new start.
    if (startOffset >= 0) await this.#dropAndWait(key);
    const error = await this.#states.initialize(key, stateEpoch, startOffset);
    // Whoever reads on begins with the new state.
    this.#drop(key);
    return error;
  }

  async summary(key: SharePartitionKey): Promise<ShareStateSummary | ErrorName | null> {
    const found = await this.#states.find(key);
    if (found === null || typeof found === "string") return found;
    const { stateEpoch, leaderEpoch, startOffset, finalCount: deliveryCompleteCount } = found;
    return { stateEpoch, leaderEpoch, startOffset, deliveryCompleteCount };
  }

  async remove(key: SharePartitionKey): Promise<ErrorName | null> {
    const error = await this.#states.remove(key);
    this.#drop(key);
    return error;
  }

  memberLeft(groupId: string, memberId: string): void {
    const member = { groupId, memberId };
    this.#releaseLost(member, this.sessions.end(member));
  }

  groupEmptied(groupId: string): void {
    for (const { key } of this.#live.values()) if (key.groupId === groupId) this.#drop(key);
  }

  /** The share partition if it is in memory and may serve; acknowledgements open none. */
  peek(key: SharePartitionKey): SharePartition | undefined {
    const live = this.#live.get(coordinatorKey(key));
    return live !== undefined && this.mayServe(live) ? live : undefined;
  }

  /** Whether it is what opening its partition once more would give. */
  mayServe({ key, log, closed }: SharePartition): boolean {
    return !closed && this.#services.partitions.peek(key.topicId, key.partition) === log;
  }

  /** Opens it when needed: reads its state, and chooses where a group begins that was never here. */
  async open(key: SharePartitionKey): Promise<ShareOpen> {
    const live = this.peek(key);
    if (live !== undefined) return { ok: true, partition: live };
    if (this.#closed) return refused("NOT_LEADER_OR_FOLLOWER");
    try {
      return await this.#opening.run(coordinatorKey(key), () => this.#open(key));
    } catch (error) {
      return refused(faultToCode(error, "fetch"));
    }
  }

  /** Gives back what a member has in some partitions; resolves when that is durable or has failed. */
  async release({ groupId, memberId }: ShareMember, places: readonly SharePlace[]): Promise<void> {
    await Promise.all(
      places.map(async (place) => await this.peek({ groupId, ...place })?.release(memberId)),
    );
  }

  showMetrics(): void {
    const { metrics } = this.#services.env;
    metrics.gauge("skerry_share_sessions", this.sessions.size);
    metrics.gauge("skerry_share_partitions", this.#live.size);
    metrics.gauge("skerry_share_records_in_flight", this.#inFlight.bytes);
  }

  close(): void {
    this.#closed = true;
    this.#unsubscribe();
    this.sessions.close();
    for (const { key } of this.#live.values()) this.#drop(key);
    this.#states.close();
  }

  #releaseLost(member: ShareMember, places: readonly SharePlace[]): void {
    this.release(member, places).catch((error: unknown) => {
      const fields = { groupId: member.groupId, reason: messageOf(error) };
      this.#services.env.log.log("warn", "share-release-failed", fields);
    });
  }

  #drop(key: SharePartitionKey): void {
    const name = coordinatorKey(key);
    const live = this.#live.get(name);
    this.#live.delete(name);
    if (live === undefined) return;
    live.close();
    const left: Promise<void> = live.placed().then(() => {
      if (this.#leaving.get(name) === left) this.#leaving.delete(name);
    });
    this.#leaving.set(name, left);
  }

  async #dropAndWait(key: SharePartitionKey): Promise<void> {
    this.#drop(key);
    await this.#leaving.get(coordinatorKey(key));
  }

  #follow(): void {
    for (const live of this.#live.values()) if (!this.mayServe(live)) this.#drop(live.key);
  }

  async #open(key: SharePartitionKey): Promise<ShareOpen> {
    const located = await this.#services.partitions.open(key.topicId, key.partition);
    if (!located.ok) return refused(located.error);
    const { log } = located;
    // What the one before is about to write counts: its clients are told so.
    await this.#dropAndWait(key);
    const state = await this.#states.find(key);
    if (state === null) return refused(STATE_UNAVAILABLE);
    if (typeof state === "string") return refused(asFetchError(state));
    if (this.#live.size >= SHARE_PARTITIONS_MAX) return refused(STATE_UNAVAILABLE);
    const startOffset = await this.#startOffset(key, log, state);
    const error = await this.#take(key, log, state, startOffset);
    if (error !== null) return refused(asFetchError(error));
    const partition = this.#create(key, log, state, startOffset);
    if (this.#closed || !this.mayServe(partition)) {
      partition.close();
      return refused("NOT_LEADER_OR_FOLLOWER");
    }
    this.#live.set(coordinatorKey(key), partition);
    return { ok: true, partition };
  }

  async #startOffset(
    { groupId }: SharePartitionKey,
    log: PartitionLog,
    { startOffset }: ShareState,
  ): Promise<number> {
    if (startOffset >= 0) return startOffset;
    const reset = this.#membership.settingsOf(groupId).autoOffsetReset;
    if (reset.kind === "by_duration") {
      const since = this.#services.env.clock.nowMs() - reset.durationMs;
      return (await log.offsetForTimestamp(since))?.offset ?? log.highWatermark;
    }
    return reset.kind === "earliest" ? log.logStartOffset : log.highWatermark;
  }

  /** Tells the state who leads now, which keeps earlier leaders out, and where the group has begun. */
  async #take(
    key: SharePartitionKey,
    { leaderEpoch }: PartitionLog,
    state: ShareState,
    startOffset: number,
  ): Promise<ErrorName | null> {
    if (leaderEpoch === state.leaderEpoch && startOffset === state.startOffset) return null;
    const { finalCount } = state;
    const change = { leaderEpoch, startOffset, finalCount, batches: [] };
    const { outcome } = await this.#states.store(key, state.stateEpoch, change);
    return await outcome;
  }

  #create(
    key: SharePartitionKey,
    log: PartitionLog,
    { stateEpoch, batches }: ShareState,
    startOffset: number,
  ): SharePartition {
    const settings = this.#membership.settingsOf(key.groupId);
    const partition = new SharePartition({
      env: this.#services.env,
      key,
      log,
      stateEpoch,
      window: new ShareWindow({
        startOffset,
        batches,
        deliveriesMax: settings.deliveryCountLimit,
        recordsMax: settings.recordLocksMax,
      }),
      recordLockMs: () => this.#membership.settingsOf(key.groupId).recordLockDurationMs,
      store: (change) => this.#states.store(key, stateEpoch, change),
      inFlight: this.#inFlight,
      onFenced: () => {
        if (this.#live.get(coordinatorKey(key)) === partition) this.#drop(key);
      },
    });
    return partition;
  }
}
