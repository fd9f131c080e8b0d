/**
 * One led partition of `__share_group_state`: the states of the share partitions that hash to it. A change is an
 * update record over the last snapshot; after some updates the next change is a snapshot again. What was appended
 * counts for who asks next, and is answered once it is durable. Epochs keep out who was replaced.
 */
import type { Env } from "../../env/env.ts";
import { FaultError, messageOf } from "../../lib/errors.ts";
import type { PartitionLog } from "../../log/partition_log.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import { HollowLog } from "../shard/hollow_log.ts";
import type { LedShard } from "../shard/led_shards.ts";
import { appendRecords, bytesOf, type KeyValue, storedRecords } from "../shard/shard_log.ts";
import type { ShardMemory } from "../shard/shard_memory.ts";
import { changed, type ShareState, type ShareStateChange } from "./share_state.ts";
import type { SharePartitionKey } from "./share_states.ts";
import {
  coordinatorKey,
  readShareRecord,
  type ShareRecord,
  shareTombstone,
  snapshotRecord,
  updateRecord,
} from "./state_records.ts";

/** What a state costs in memory beside its record's bytes. */
const STATE_BYTES = 256;
const BATCH_BYTES = 64;

export interface StateShardOptions {
  readonly env: Env;
  readonly log: PartitionLog;
  /** The node's, shared by its shards. */
  readonly memory: ShardMemory;
  /** Updates between two snapshots of a state. */
  readonly updatesMax: number;
  /** A smaller log is not rewritten. */
  readonly compactBytesMin: number;
}

function bytesIn(name: string, { batches }: ShareState): number {
  return STATE_BYTES + name.length + BATCH_BYTES * batches.length;
}

interface Slot {
  readonly key: SharePartitionKey;
  state: ShareState;
  /** Since its snapshot. */
  updates: number;
  /** In the node's memory. */
  bytes: number;
}

export class StateShard implements LedShard {
  readonly log: PartitionLog;
  readonly #options: StateShardOptions;
  readonly #slots = new Map<string, Slot>();
  readonly #hollow: HollowLog;
  #bytes = 0;
  #closed = false;

  constructor(options: StateShardOptions) {
    this.#options = options;
    this.log = options.log;
    this.#hollow = new HollowLog({
      env: options.env,
      log: options.log,
      event: "share-state-log-rewritten",
      bytesMin: options.compactBytesMin,
    });
  }

  get closed(): boolean {
    return this.#closed;
  }

  async load(): Promise<void> {
    const records = storedRecords(this.#options.env, this.log, "share states");
    for await (const { key, value } of records) this.#apply(key, value);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.memory.change(-this.#bytes);
    this.#bytes = 0;
  }

  /** What is in the log is true; a record that does not parse is named and passed over. */
  #apply(key: Uint8Array, value: Uint8Array | null): void {
    let record: ShareRecord;
    try {
      record = readShareRecord(key, value);
    } catch (error) {
      const reason = messageOf(error);
      this.#options.env.log.log("warn", "share-state-record-unreadable", { reason });
      return;
    }
    if (record.kind === "snapshot") this.#set(record.key, record.state, 0);
    if (record.kind !== "update") return;
    const slot = this.#slots.get(coordinatorKey(record.key));
    // An update of an earlier snapshot, or of a state that has ended, has nothing to change.
    if (slot === undefined || slot.state.snapshotEpoch !== record.snapshotEpoch) return;
    this.#set(record.key, changed(slot.state, record.change), slot.updates + 1);
  }

  #set(key: SharePartitionKey, state: ShareState | null, updates: number): void {
    const name = coordinatorKey(key);
    const before = this.#slots.get(name);
    const bytes = state === null ? 0 : bytesIn(name, state);
    if (state === null) this.#slots.delete(name);
    else this.#slots.set(name, { key, state, updates, bytes });
    const by = bytes - (before?.bytes ?? 0);
    this.#bytes += by;
    this.#options.memory.change(by);
  }

  find(key: SharePartitionKey): ShareState | null {
    return this.#slots.get(coordinatorKey(key))?.state ?? null;
  }

  *keys(): Generator<SharePartitionKey, void> {
    for (const { key } of this.#slots.values()) yield key;
  }

  /**
   * Makes the state, or begins it anew with an epoch that is not lower. Said once more without an offset it changes
   * nothing: whoever asks cannot tell whether it has asked before.
   */
  async initialize(
    key: SharePartitionKey,
    stateEpoch: number,
    startOffset: number,
  ): Promise<ErrorName | null> {
    const known = this.find(key);
    if (known !== null && stateEpoch < known.stateEpoch) return "FENCED_STATE_EPOCH";
    if (known?.stateEpoch === stateEpoch && startOffset < 0) return null;
    const isNew = known === null;
    if (isNew && !this.#options.memory.hasRoom(STATE_BYTES)) return "COORDINATOR_NOT_AVAILABLE";
    const nowMs = this.#options.env.clock.nowMs();
    await this.#snapshot(key, {
      snapshotEpoch: isNew ? 0 : known.snapshotEpoch + 1,
      stateEpoch,
      leaderEpoch: isNew ? 0 : known.leaderEpoch,
      startOffset,
      // As in Kafka's answer for one that nobody has read: not known.
      finalCount: startOffset < 0 ? -1 : 0,
      createdAtMs: nowMs,
      writtenAtMs: nowMs,
      batches: [],
    });
    return null;
  }

  /**
   * Stores what changed; null once it is durable. It is appended before this returns, so that the order of calls
   * is the order in the log. Refused without a state, when another leader or a later state has taken over, or when
   * the node has no memory for more; what makes a state smaller is always taken.
   */
  write(
    key: SharePartitionKey,
    stateEpoch: number,
    change: ShareStateChange,
  ): Promise<ErrorName | null> {
    const name = coordinatorKey(key);
    const slot = this.#slots.get(name);
    if (slot === undefined) return Promise.resolve("COORDINATOR_NOT_AVAILABLE");
    const { state, updates, bytes } = slot;
    if (change.leaderEpoch < state.leaderEpoch) return Promise.resolve("FENCED_LEADER_EPOCH");
    if (stateEpoch !== state.stateEpoch) return Promise.resolve("FENCED_STATE_EPOCH");
    const next = changed(state, change);
    // Windows end with their readers, and states stay: what the windows of the node may hold is no bound for them.
    if (!this.#options.memory.hasRoom(bytesIn(name, next) - bytes)) {
      return Promise.resolve("COORDINATOR_NOT_AVAILABLE");
    }
    const stored = updates >= this.#options.updatesMax
      ? this.#snapshot(key, {
        ...next,
        snapshotEpoch: state.snapshotEpoch + 1,
        writtenAtMs: this.#options.env.clock.nowMs(),
      })
      : this.#append(
        updateRecord(key, state.snapshotEpoch, change),
        () => this.#set(key, next, updates + 1),
      );
    return stored.then(() => null);
  }

  async remove(key: SharePartitionKey): Promise<void> {
    if (this.find(key) === null) return;
    await this.#append(shareTombstone(key), () => this.#set(key, null, 0));
  }

  #snapshot(key: SharePartitionKey, state: ShareState): Promise<void> {
    return this.#append(snapshotRecord(key, state), () => this.#set(key, state, 0));
  }

  /** Throws FaultError; whether the record is in the log is then known to who loads it next. */
  async #append(record: KeyValue, applied: () => void): Promise<void> {
    if (this.#closed) {
      throw new FaultError("closed", "Cannot use the share states: closed", { retriable: true });
    }
    const { durable } = appendRecords(this.#options.env, this.log, [record]);
    applied();
    try {
      await durable;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Ends states whose topic is gone, rewrites a hollow log. Writes nothing else. */
  async maintain(topicExists: (topicId: string) => boolean): Promise<void> {
    for (const key of Array.from(this.keys())) {
      if (this.#closed) return;
      if (!topicExists(key.topicId)) await this.remove(key);
    }
    if (!this.#closed && this.#hollow.isLarge) await this.#compact();
  }

  /** What was appended is taken, durable or not: the rewrite stands behind it in the same log. */
  async #compact(): Promise<void> {
    const records = [...this.#slots.values()].map((slot) => {
      const state = { ...slot.state, snapshotEpoch: slot.state.snapshotEpoch + 1 };
      return { slot, state, record: snapshotRecord(slot.key, state) };
    });
    try {
      await this.#hollow.rewriteIfHollow({
        bytes: records.reduce((sum, { record }) => sum + bytesOf(record), 0),
        records: () => {
          // In the stretch in which they are appended: later updates name these snapshots.
          for (const { slot, state } of records) this.#set(slot.key, state, 0);
          return records.map(({ record }) => record);
        },
      });
    } catch (error) {
      // They may be missing in the log, and what names them would then be lost.
      this.close();
      throw error;
    }
  }
}
