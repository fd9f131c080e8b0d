/**
 * One led partition of `__transaction_state`: the transactional ids that hash to it. Each id has one writer, a queue
 * of changes; a change counts, and is answered, once its record is durable. An end that was stored is carried
 * through, whatever happens: its markers are sent until every partition has one, after a restart as well.
 */
import { sleep } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import { FaultError, messageOf } from "../../lib/errors.ts";
import {
  TXN_IDS_PER_PARTITION_MAX,
  TXN_QUEUE_MAX,
  TXN_RETRY_CAP_MS,
  TXN_RETRY_FIRST_MS,
} from "../../lib/limits.ts";
import type { PartitionLog } from "../../log/partition_log.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import { inGroups } from "../many.ts";
import { HollowLog } from "../shard/hollow_log.ts";
import type { LedShard } from "../shard/led_shards.ts";
import { appendRecords, bytesOf, type KeyValue, storedRecords } from "../shard/shard_log.ts";
import type { ShardMemory } from "../shard/shard_memory.ts";
import { abortFenced, completed } from "./decide_end.ts";
import { readTransactionRecord, transactionRecord, transactionTombstone } from "./records.ts";
import {
  isPreparing,
  partitionName,
  rowBytes,
  type Transaction,
  type TxnPartition,
} from "./transaction.ts";

/** Writes the markers of an end; calls back for each partition that needs none any more. Throws only when aborted. */
export type SendMarkers = (
  row: Transaction,
  coordinatorEpoch: number,
  done: (partition: TxnPartition) => void,
  signal: AbortSignal,
) => Promise<void>;

export interface TxnShardOptions {
  readonly env: Env;
  readonly log: PartitionLog;
  readonly sendMarkers: SendMarkers;
  /** The node's, shared by its shards. */
  readonly memory: ShardMemory;
  readonly expirationMs: number;
  /** A smaller log is not rewritten. */
  readonly compactBytesMin: number;
  readonly idsMax?: number;
}

interface Slot {
  /** What is durable; undefined before the first record and after the tombstone. */
  row: Transaction | undefined;
  /** What was appended last, durable or not. */
  newest: Transaction | undefined;
  /** Names of partitions whose marker is still to be written. */
  unmarked: ReadonlyMap<string, TxnPartition>;
  tail: Promise<unknown>;
  queued: number;
  /** What it counts for in the node's memory. */
  bytes: number;
  /** Of the record that `newest` is in the log. */
  recordBytes: number;
}

/** A change of one id, in its turn. */
export interface Turn {
  readonly row: Transaction | undefined;
  /** Resolves when the row is durable. Throws FaultError; the row then is what it was. */
  readonly store: (next: Transaction) => Promise<void>;
}

export class TxnShard implements LedShard {
  readonly log: PartitionLog;
  readonly #options: TxnShardOptions;
  readonly #slots = new Map<string, Slot>();
  readonly #stop = new AbortController();
  readonly #idsMax: number;
  readonly #hollow: HollowLog;
  /** Of all records that are alive in the log, so that nobody has to make them to know. */
  #aliveBytes = 0;

  constructor(options: TxnShardOptions) {
    this.#options = options;
    this.#idsMax = options.idsMax ?? TXN_IDS_PER_PARTITION_MAX;
    this.log = options.log;
    this.#hollow = new HollowLog({
      env: options.env,
      log: options.log,
      event: "transaction-log-rewritten",
      bytesMin: options.compactBytesMin,
    });
  }

  get closed(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Durable rows. */
  *rows(): Generator<Transaction, void> {
    for (const { row } of this.#slots.values()) if (row !== undefined) yield row;
  }

  find(transactionalId: string): Transaction | undefined {
    return this.#slots.get(transactionalId)?.row;
  }

  /** What is open of a transaction; of one that ends, what has no marker yet. */
  openPartitions(transactionalId: string): TxnPartition[] {
    const slot = this.#slots.get(transactionalId);
    if (slot?.row === undefined) return [];
    return [...(isPreparing(slot.row) ? slot.unmarked : slot.row.partitions).values()];
  }

  async load(): Promise<void> {
    const records = storedRecords(this.#options.env, this.log, "transactions");
    for await (const { key, value } of records) this.#apply(key, value);
  }

  /** What is in the log is true; a record that does not parse is named and passed over. */
  #apply(key: Uint8Array, value: Uint8Array | null): void {
    try {
      const { transactionalId, row } = readTransactionRecord(key, value);
      const slot = this.#slotOf(transactionalId);
      slot.row = row ?? undefined;
      this.#setNewest(slot, slot.row, { key, value });
      if (row === null) this.#slots.delete(transactionalId);
    } catch (error) {
      this.#options.env.log.log("warn", "transaction-record-unreadable", {
        reason: messageOf(error),
      });
    }
  }

  #slotOf(transactionalId: string): Slot {
    const known = this.#slots.get(transactionalId);
    if (known !== undefined) return known;
    const slot: Slot = {
      row: undefined,
      newest: undefined,
      unmarked: new Map(),
      tail: Promise.resolve(),
      queued: 0,
      bytes: 0,
      recordBytes: 0,
    };
    this.#slots.set(transactionalId, slot);
    return slot;
  }

  /** Takes up the ends that an earlier owner has stored. */
  start(): void {
    for (const slot of this.#slots.values()) this.#carryThrough(slot);
  }

  close(): void {
    if (this.closed) return;
    this.#stop.abort();
    for (const { bytes } of this.#slots.values()) this.#options.memory.change(-bytes);
  }

  #setNewest(slot: Slot, newest: Transaction | undefined, record: KeyValue): void {
    const recordBytes = newest === undefined ? 0 : bytesOf(record);
    this.#aliveBytes += recordBytes - slot.recordBytes;
    slot.recordBytes = recordBytes;
    const bytes = newest === undefined ? 0 : rowBytes(newest);
    this.#options.memory.change(bytes - slot.bytes);
    slot.bytes = bytes;
    slot.newest = newest;
  }

  /** Runs a change when those before it are over; refused when too many wait, or for a new id too many. */
  async change<T>(
    transactionalId: string,
    work: (turn: Turn) => Promise<T>,
  ): Promise<T | ErrorName> {
    const known = this.#slots.get(transactionalId);
    if (known === undefined && this.#slots.size >= this.#idsMax) {
      return "POLICY_VIOLATION";
    }
    const slot = this.#slotOf(transactionalId);
    if (slot.queued >= TXN_QUEUE_MAX) return "CONCURRENT_TRANSACTIONS";
    slot.queued += 1;
    try {
      return await this.#inTurn(slot, work);
    } finally {
      slot.queued -= 1;
      const isUnused = slot.queued === 0 && slot.newest === undefined;
      if (isUnused && this.#slots.get(transactionalId) === slot) {
        this.#slots.delete(transactionalId);
      }
    }
  }

  /** Behind all that waits for the id. */
  #inTurn<T>(slot: Slot, work: (turn: Turn) => Promise<T>): Promise<T> {
    const turn = slot.tail.then(() => this.#turn(slot, work));
    slot.tail = turn.catch(() => {});
    return turn;
  }

  async #turn<T>(slot: Slot, work: (turn: Turn) => Promise<T>): Promise<T> {
    this.#checkOpen();
    return await work({ row: slot.row, store: (next) => this.#store(slot, next) });
  }

  #checkOpen(): void {
    if (this.closed) {
      throw new FaultError("closed", "Cannot use the transactions: closed", { retriable: true });
    }
  }

  /** What was begun may always be ended. */
  #checkRoom(slot: Slot, next: Transaction): void {
    if (isPreparing(next) || this.#options.memory.hasRoom(rowBytes(next) - slot.bytes)) return;
    const message = "Cannot begin more transactions: no memory is left for them";
    throw new FaultError("overloaded", message, { retriable: true });
  }

  async #store(slot: Slot, next: Transaction): Promise<void> {
    this.#checkOpen();
    this.#checkRoom(slot, next);
    await this.#append(slot, next, transactionRecord(next));
    this.#carryThrough(slot);
  }

  async #append(slot: Slot, next: Transaction | undefined, record: KeyValue): Promise<void> {
    this.#checkOpen();
    const { durable } = appendRecords(this.#options.env, this.log, [record]);
    this.#setNewest(slot, next, record);
    try {
      await durable;
    } catch (error) {
      // Nobody knows whether the record is in the log: whoever opens it next will see.
      this.close();
      throw error;
    }
    slot.row = next;
  }

  /** Never gives up: what was promised with the Prepare record must come true. */
  #carryThrough(slot: Slot): void {
    const { row } = slot;
    if (row === undefined || !isPreparing(row) || this.closed) return;
    const unmarked = new Map(row.partitions);
    slot.unmarked = unmarked;
    void this.#finish(slot, row, unmarked);
  }

  async #finish(
    slot: Slot,
    row: Transaction,
    unmarked: Map<string, TxnPartition>,
  ): Promise<void> {
    const { env, sendMarkers } = this.#options;
    const { signal } = this.#stop;
    for (let pauseMs = TXN_RETRY_FIRST_MS; !this.closed;) {
      try {
        const done = (partition: TxnPartition) => void unmarked.delete(partitionName(partition));
        await sendMarkers(
          { ...row, partitions: new Map(unmarked) },
          this.log.leaderEpoch,
          done,
          signal,
        );
        await this.#complete(slot, row);
        return;
      } catch (error) {
        if (this.closed) return;
        const { transactionalId } = row;
        const fields = { transactionalId, status: row.status, pauseMs, reason: messageOf(error) };
        env.log.log("warn", "transaction-end-delayed", fields);
        await sleep(env.clock, pauseMs, signal);
        pauseMs = Math.min(2 * pauseMs, TXN_RETRY_CAP_MS);
      }
    }
  }

  /** In its turn: what waits before it is told to come again. */
  async #complete(slot: Slot, row: Transaction): Promise<void> {
    await this.#inTurn(slot, async ({ row: current, store }) => {
      if (current === row) await store(completed(row, this.#options.env.clock.nowMs()));
    });
  }

  /** Ends transactions that are open for too long, rewrites a hollow log. Writes nothing else. */
  async maintain(nowMs: number): Promise<void> {
    const { clock } = this.#options.env;
    const overdue = [...this.rows()].filter((row) => this.#isOverdue(row, nowMs));
    await inGroups(clock, overdue, (row) => this.#abort(row, nowMs));
    if (!this.closed) await this.#compact();
  }

  /** Forgets ids that nobody used for long. Writes nothing when there is none. */
  async expire(nowMs: number): Promise<void> {
    const { clock } = this.#options.env;
    const expired = [...this.rows()].filter((row) => this.#isExpired(row, nowMs));
    await inGroups(clock, expired, (row) => this.#expire(row));
  }

  #isOverdue({ status, startedAtMs, timeoutMs }: Transaction, nowMs: number): boolean {
    return status === "Ongoing" && nowMs - startedAtMs >= timeoutMs;
  }

  #isExpired(row: Transaction, nowMs: number): boolean {
    return row.status !== "Ongoing" && !isPreparing(row) &&
      nowMs - row.updatedAtMs >= this.#options.expirationMs;
  }

  /** No bound on who waits keeps it out: a client must not hold its partitions by asking much. */
  async #abort({ transactionalId }: Transaction, nowMs: number): Promise<void> {
    const { env } = this.#options;
    const slot = this.#slots.get(transactionalId);
    if (slot === undefined) return;
    await this.#inTurn(slot, async ({ row, store }) => {
      if (row === undefined || !this.#isOverdue(row, nowMs)) return;
      await store(abortFenced(row, nowMs));
      const { producerId, producerEpoch, timeoutMs } = row;
      const fields = { transactionalId, producerId, producerEpoch, timeoutMs };
      env.log.log("info", "transaction-timed-out", fields);
    });
  }

  async #expire(row: Transaction): Promise<void> {
    const { transactionalId } = row;
    const slot = this.#slots.get(transactionalId);
    await this.change(transactionalId, async (turn) => {
      if (turn.row !== row || slot === undefined) return;
      await this.#append(slot, undefined, transactionTombstone(transactionalId));
    });
  }

  /** What was appended is taken, durable or not: the rewrite stands behind it in the same log. */
  #compact(): Promise<void> {
    return this.#hollow.rewriteIfHollow({
      bytes: this.#aliveBytes,
      records: () =>
        [...this.#slots.values()].flatMap(({ newest }) =>
          newest === undefined ? [] : [transactionRecord(newest)]
        ),
    });
  }
}
