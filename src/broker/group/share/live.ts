/**
 * A share group in use: its one writer, the deadlines of its members, and the states of partitions that it has
 * made. Each change is decided and appended in one synchronous stretch; who is told of it waits until it is
 * durable. States are made behind an answer, as in Kafka: a later heartbeat brings the partitions.
 */
import type { Env } from "../../../env/env.ts";
import { isFault, messageOf } from "../../../lib/errors.ts";
import type { Uuid } from "../../../lib/uuid.ts";
import type { ErrorName } from "../../../protocol/error_code.ts";
import { faultToCode } from "../../fault_to_code.ts";
import { inGroups } from "../../many.ts";
import type { ShareListener, ShareStates } from "../../share/share_states.ts";
import type { KeyValue } from "../../shard/shard_log.ts";
import { type Assignment, assignmentOf, listOf, sizeOf } from "../consumer/assignment.ts";
import { type ConsumerRefused, refused, type TopicView } from "../consumer/group.ts";
import { Deadlines } from "../deadlines.ts";
import { LiveState } from "../live_state.ts";
import type { ShareGroup } from "./group.ts";
import {
  initializingOf,
  leaveShareGroup,
  type ShareBeat,
  type ShareBeatRequest,
  shareHeartbeat,
  type ShareLeft,
  type ShareWorld,
  withoutShareMembers,
} from "./heartbeat.ts";
import { isStored, shareRecordsBetween } from "./records.ts";
import type { ShareMembership } from "./share_membership.ts";
import {
  pruned,
  type StatePartitions,
  withDeleted,
  withDeleting,
  withInitialized,
  withInitializing,
} from "./state_partitions.ts";

/** The node's, shared by its share groups. */
export interface ShareHost {
  readonly env: Env;
  readonly topics: TopicView;
  readonly membership: ShareMembership;
  readonly shareGroups: ShareStates & ShareListener;
  readonly membersMax: number;
}

/** The shard, as one of its share groups sees it. */
export interface SharePort {
  monotonicMs(): number;
  hasRoom(bytes: number): boolean;
  /** See LiveStateOptions. */
  write(records: readonly KeyValue[]): Promise<void>;
  /** False once the shard has closed or the group is deleted: nothing of it is written then. */
  isAlive(): boolean;
  /** Something changed behind the back of the shard. */
  changed(): void;
}

/** A partition that is asked for by its own start, not by the group's rule. */
export interface ShareStart {
  readonly topicId: Uuid;
  readonly partition: number;
  readonly startOffset: number;
}

const GROUP_BYTES = 512;
const MEMBER_BYTES = 512;
const PARTITION_BYTES = 32;
/** When the log refused to take that a member is gone, or states could not be made. */
const RETRY_MS = 1000;
const UNINITIALIZED = -1;

function bytesOf(group: ShareGroup): number {
  let bytes = GROUP_BYTES + group.groupId.length;
  for (const { memberId, profile, place } of group.members.values()) {
    const { rackId, clientId, clientHost, topicNames } = profile;
    bytes += MEMBER_BYTES + memberId.length + (rackId?.length ?? 0) + clientId.length +
      clientHost.length + PARTITION_BYTES * sizeOf(place.assigned);
    for (const name of topicNames) bytes += PARTITION_BYTES + name.length;
  }
  for (const target of group.target.values()) bytes += PARTITION_BYTES * sizeOf(target);
  const { initializing, initialized, names } = group.states;
  for (const name of names.values()) bytes += PARTITION_BYTES + name.length;
  return bytes + PARTITION_BYTES * (sizeOf(initializing) + sizeOf(initialized));
}

export class LiveShareGroup {
  readonly #host: ShareHost;
  readonly #port: SharePort;
  readonly #world: ShareWorld;
  readonly #state: LiveState<ShareGroup>;
  readonly #sessions = new Deadlines();
  /** What the last heartbeat has looked at. */
  #seenVersion = -1;
  #seenStates: Assignment | null = null;
  /** Work on states goes on one after the other: what came first must not end last. */
  #statesWork: Promise<unknown> = Promise.resolve();
  #isMaking = false;
  #retryAtMs = -Infinity;

  constructor(host: ShareHost, port: SharePort, group: ShareGroup, written = group) {
    this.#host = host;
    this.#port = port;
    this.#world = { topics: host.topics, membersMax: host.membersMax };
    const write = (records: readonly KeyValue[]) => port.write(records);
    this.#state = new LiveState(
      { recordsBetween: shareRecordsBetween, bytesOf, write },
      group,
      written,
    );
    for (const memberId of group.members.keys()) this.#touch(memberId);
  }

  get group(): ShareGroup {
    return this.#state.group;
  }
  get bytes(): number {
    return this.#state.bytes;
  }
  /** It came from nowhere, and nothing of it stands in the log. */
  get isUnwritten(): boolean {
    return !isStored(this.#state.written);
  }

  /** Throws FaultError. */
  async heartbeat(request: ShareBeatRequest): Promise<ShareBeat | ConsumerRefused> {
    const { topics: { version } } = this.#host;
    const { initialized } = this.group.states;
    const decided = shareHeartbeat(this.group, request, this.#world, {
      topics: version !== this.#seenVersion,
      states: initialized !== this.#seenStates,
    });
    if (!decided.ok) return decided;
    if (!this.#port.hasRoom(this.#state.growthTo(decided.group))) {
      return refused("GROUP_MAX_SIZE_REACHED", "The node has no memory for more members.");
    }
    const outcome = this.#taken(decided, request);
    this.#seenVersion = version;
    this.#seenStates = this.group.states.initialized;
    if (!outcome.ok) return outcome;
    this.#touch(request.memberId);
    await this.#state.durable;
    this.#makeStates();
    return outcome;
  }

  /**
   * A target, or the list of all states, may be more than one record holds. Who comes with it is refused; who is there
   * keeps what it has, until topics or members are others.
   */
  #taken(
    decided: ShareBeat,
    { memberId, topicNames }: ShareBeatRequest,
  ): ShareBeat | ConsumerRefused {
    try {
      this.#change(decided.group);
      return decided;
    } catch (error) {
      if (!isFault(error, "too-large")) throw error;
      const fields = { group: this.group.groupId, reason: messageOf(error) };
      this.#host.env.log.log("warn", "group-too-large", fields);
      const member = this.group.members.get(memberId);
      return member === undefined || topicNames !== null
        ? refused("GROUP_MAX_SIZE_REACHED", messageOf(error))
        : { ok: true, group: this.group, member, assignment: null };
    }
  }

  /** Throws FaultError. */
  async leave(memberId: string): Promise<ShareLeft | ConsumerRefused> {
    const decided = leaveShareGroup(this.group, memberId, this.#world);
    if (!decided.ok) return decided;
    this.#change(decided.group);
    await this.#state.durable;
    return decided;
  }

  /** Monotonic time of the next thing to happen by itself; null if nothing will. */
  get nextDeadline(): number | null {
    const { next } = this.#sessions;
    return next === Infinity ? null : next;
  }

  /** Members that were silent too long. Returns who they were. */
  tick(): readonly string[] {
    const nowMs = this.#port.monotonicMs();
    const late = [...this.group.members.keys()]
      .filter((memberId) => this.#sessions.isPast(memberId, nowMs));
    if (late.length === 0) return [];
    try {
      this.#change(withoutShareMembers(this.group, late, this.#world));
      return late;
    } catch (error) {
      if (!isFault(error)) throw error;
      for (const memberId of late) this.#sessions.set(memberId, nowMs + RETRY_MS);
      return [];
    }
  }

  /**
   * Starts partitions anew, each where it is told (AlterShareGroupOffsets), if nobody is in the group. What could
   * not be started is named. Throws FaultError; then nothing was started.
   */
  restart(starts: readonly ShareStart[]): Promise<ReadonlyMap<ShareStart, ErrorName> | ErrorName> {
    return this.#inTurn(async () => {
      if (this.group.members.size > 0) return "NON_EMPTY_GROUP";
      const { topics } = this.#host;
      const nameOf = (topicId: Uuid) => topics.findById(topicId)?.name ?? "";
      const asked = partitionsOf(starts);
      await this.#changeStates((states) => withInitializing(states, asked, nameOf));
      return await this.#make(starts);
    });
  }

  /**
   * Takes the states of topics away, if nobody is in the group; null is all. What could not be taken away is named,
   * and stays for a later attempt. Throws FaultError.
   */
  removeStates(
    topicIds: readonly Uuid[] | null,
  ): Promise<ReadonlyMap<Uuid, ErrorName> | ErrorName> {
    return this.#inTurn(async () => {
      if (this.group.members.size > 0) return "NON_EMPTY_GROUP";
      const before = this.group.states;
      const gone = topicIds ??
        [...before.initializing.keys(), ...before.initialized.keys(), ...before.deleting];
      const partitions = new Map([...new Set(gone)].map((id) => [id, this.#statesIn(before, id)]));
      await this.#changeStates((states) => withDeleting(states, partitions.keys()));
      return await this.#remove(partitions);
    });
  }

  async #remove(of: ReadonlyMap<Uuid, ReadonlySet<number>>): Promise<ReadonlyMap<Uuid, ErrorName>> {
    const { shareGroups, env } = this.#host;
    const { groupId } = this.group;
    const failed = new Map<Uuid, ErrorName>();
    const all = [...of].flatMap(([topicId, partitions]) =>
      [...partitions].map((partition) => ({ groupId, topicId, partition }))
    );
    await inGroups(env.clock, all, async (key) => {
      const error = await outcomeOf(() => shareGroups.remove(key));
      if (error !== null) failed.set(key.topicId, error);
    });
    const removed = [...of.keys()].filter((topicId) => !failed.has(topicId));
    await this.#changeStates((now) => withDeleted(now, removed));
    return failed;
  }

  /** Forgets states of topics that are gone. Throws FaultError. */
  async prune(): Promise<void> {
    await this.#changeStates((states) => pruned(states, this.#host.topics));
  }

  /** Partitions of a topic that may have a state. Of one that was taken away in part nobody knows which. */
  #statesIn({ initializing, initialized, deleting }: StatePartitions, topicId: Uuid): Set<number> {
    const known = new Set([
      ...initializing.get(topicId) ?? [],
      ...initialized.get(topicId) ?? [],
    ]);
    if (!deleting.has(topicId)) return known;
    const partitions = this.#host.topics.findById(topicId)?.partitions ?? 0;
    for (let partition = 0; partition < partitions; partition++) known.add(partition);
    return known;
  }

  #inTurn<T>(work: () => Promise<T | ErrorName>): Promise<T | ErrorName> {
    const done = this.#statesWork.then(async () =>
      this.#port.isAlive() ? await work() : "NOT_COORDINATOR" as const
    );
    this.#statesWork = done.catch(() => {});
    return done;
  }

  async #changeStates(change: (states: StatePartitions) => StatePartitions): Promise<void> {
    if (!this.#port.isAlive()) return;
    const { group } = this;
    const states = change(group.states);
    if (states === group.states) return;
    this.#change({ ...group, states });
    this.#port.changed();
    await this.#state.durable;
  }

  #change(next: ShareGroup): void {
    const { groupId, members } = this.group;
    this.#state.change(next);
    this.#sessions.keepOnly(next.members);
    const { shareGroups } = this.#host;
    for (const memberId of members.keys()) {
      if (next.members.has(memberId)) continue;
      shareGroups.memberLeft(groupId, memberId);
      // What it had is nobody's now.
      this.#seenStates = null;
    }
    if (members.size > 0 && next.members.size === 0) shareGroups.groupEmptied(groupId);
  }

  #touch(memberId: string): void {
    const { sessionTimeoutMs } = this.#host.membership.settingsOf(this.group.groupId);
    this.#sessions.set(memberId, this.#port.monotonicMs() + sessionTimeoutMs);
  }

  /** One attempt at a time; what fails is tried again with a later heartbeat. */
  #makeStates(): void {
    if (this.#isMaking || this.#port.monotonicMs() < this.#retryAtMs) return;
    if (sizeOf(this.group.states.initializing) === 0) return;
    this.#isMaking = true;
    void this.#tryToMake();
  }

  /** Never rejects. */
  async #tryToMake(): Promise<void> {
    const reason = await this.#makeWanted().catch(messageOf);
    this.#isMaking = false;
    if (reason === null) return;
    this.#retryAtMs = this.#port.monotonicMs() + RETRY_MS;
    const fields = { group: this.group.groupId, reason };
    this.#host.env.log.log("warn", "share-states-not-made", fields);
  }

  /** What went wrong, or null. */
  async #makeWanted(): Promise<ErrorName | null> {
    const failed = await this.#inTurn(async () => {
      const wanted = listOf(initializingOf(this.group, this.#host.topics));
      return await this.#make(
        wanted.flatMap(({ topicId, partitions }) =>
          partitions.map((partition) => ({ topicId, partition, startOffset: UNINITIALIZED }))
        ),
      );
    });
    return typeof failed === "string" ? failed : [...failed.values()][0] ?? null;
  }

  /** Makes the states and takes in those that are there; names what is not. */
  async #make(starts: readonly ShareStart[]): Promise<ReadonlyMap<ShareStart, ErrorName>> {
    const { shareGroups, env } = this.#host;
    const { groupId, epoch } = this.group;
    const failed = new Map<ShareStart, ErrorName>();
    await inGroups(env.clock, starts, async (start) => {
      const { topicId, partition, startOffset } = start;
      const key = { groupId, topicId, partition };
      const error = await outcomeOf(() => shareGroups.initialize(key, epoch, startOffset));
      if (error !== null) failed.set(start, error);
    });
    const made = partitionsOf(starts.filter((start) => !failed.has(start)));
    await this.#changeStates((now) => withInitialized(now, made));
    return failed;
  }
}

function partitionsOf(starts: readonly ShareStart[]): Assignment {
  return assignmentOf(
    starts.map(({ topicId, partition }) => ({ topicId, partitions: [partition] })),
  );
}

async function outcomeOf(work: () => Promise<ErrorName | null>): Promise<ErrorName | null> {
  try {
    return await work();
  } catch (error) {
    return faultToCode(error, "coordinator");
  }
}
