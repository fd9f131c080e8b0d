/**
 * The transaction coordinator as plain calls: finds the shard of a transactional id, takes its turn there, decides,
 * stores, answers. Every node leads some partitions of `__transaction_state`; for the others it answers
 * NOT_COORDINATOR.
 */
import { messageOf } from "../../lib/errors.ts";
import { TXN_COMPACT_BYTES_MIN, TXN_STATE_BYTES_MAX } from "../../lib/limits.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import { TRANSACTIONS_V2 } from "../features.ts";
import { faultToCode } from "../fault_to_code.ts";
import { ShardMemory } from "../shard/shard_memory.ts";
import { LedShards } from "../shard/led_shards.ts";
import { ProducerIds } from "../producer_ids.ts";
import { TRANSACTIONS_TOPIC } from "../topic_name.ts";
import { decideAdd, decideVerify, holds } from "./decide_add.ts";
import { afterEnd, decideEnd, type EndAsk } from "./decide_end.ts";
import { decideInit, type InitAsk } from "./decide_init.ts";
import { Markers, type MarkerServices } from "./markers.ts";
import {
  isPreparing,
  type NeedsId,
  partitionName,
  type ProducerIdentity,
  type Transaction,
  type TxnPartition,
} from "./transaction.ts";
import { type Turn, TxnShard } from "./txn_shard.ts";

export type Identified =
  | { readonly ok: true; readonly who: ProducerIdentity }
  | { readonly ok: false; readonly error: ErrorName };

export interface DescribedTransaction {
  readonly row: Transaction;
  readonly partitions: readonly TxnPartition[];
}

/** Bounds that tests and the simulator lower. */
export interface TransactionBounds {
  readonly compactBytesMin?: number;
}

function refused(error: ErrorName): Identified {
  return { ok: false, error };
}

export class Transactions {
  readonly ids: ProducerIds;
  readonly markers: Markers;
  readonly #services: MarkerServices;
  readonly #memory = new ShardMemory(TXN_STATE_BYTES_MAX);
  readonly #shards: LedShards<TxnShard>;
  #cancelScan: () => void = () => {};
  #cancelExpiry: () => void = () => {};
  #closed = false;

  constructor(services: MarkerServices, bounds: TransactionBounds = {}) {
    this.#services = services;
    this.ids = new ProducerIds(services);
    this.markers = new Markers(services);
    const { env, config } = services;
    this.#shards = new LedShards({
      services,
      topic: TRANSACTIONS_TOPIC,
      partitionsProperty: "transaction.state.log.num.partitions",
      create: (log) =>
        new TxnShard({
          env,
          log,
          memory: this.#memory,
          sendMarkers: (...of) => this.markers.send(...of),
          expirationMs: config.integer("transactional.id.expiration.ms"),
          compactBytesMin: bounds.compactBytesMin ?? TXN_COMPACT_BYTES_MIN,
        }),
    });
    // Ends that an earlier incarnation promised wait for nobody's request.
    this.#cancelScan = env.clock.after(0, () => void this.#scan());
    this.#scheduleExpiry();
  }

  /** Whether ends raise the epoch, and writers add partitions by themselves. */
  get isV2(): boolean {
    return this.#services.features.levelOf("transaction.version") >= TRANSACTIONS_V2;
  }

  /** Who coordinates a transactional id; creates the topic of the transactions when it is missing. */
  locate(
    transactionalId: string,
  ): Promise<{ readonly leader: number | null } | { readonly error: ErrorName }> {
    return this.#shards.locate(transactionalId);
  }

  async #change<T>(
    transactionalId: string,
    work: (turn: Turn) => Promise<T | ErrorName>,
  ): Promise<T | ErrorName> {
    const found = await this.#shards.shardOf(transactionalId);
    if (!found.ok) return found.error;
    try {
      return await found.shard.change(transactionalId, work);
    } catch (error) {
      return faultToCode(error, "coordinator");
    }
  }

  /** Decides with a new producer id if the verdict needs one. */
  async #withId<V extends { readonly kind: string }>(
    decide: (newId: number | null) => V | NeedsId,
  ): Promise<V | ErrorName> {
    const first = decide(null);
    if (!needsId(first)) return first;
    const id = await this.ids.take();
    if (typeof id === "string") return id;
    const second = decide(id);
    return needsId(second) ? "COORDINATOR_NOT_AVAILABLE" : second;
  }

  /** For ids that must be known already: asking for one that is not makes nothing. */
  async #changeKnown<T>(
    transactionalId: string,
    work: (turn: Turn) => Promise<T | ErrorName>,
  ): Promise<T | ErrorName> {
    if (!this.#shards.exists) return "INVALID_PRODUCER_ID_MAPPING";
    return await this.#change(transactionalId, work);
  }

  async initProducerId(ask: InitAsk): Promise<Identified> {
    const { clock } = this.#services.env;
    const outcome = await this.#change(ask.transactionalId, async ({ row, store }) => {
      const verdict = await this.#withId((newId) => decideInit(row, ask, clock.nowMs(), newId));
      if (typeof verdict === "string") return verdict;
      if (verdict.kind === "refuse") return verdict.error;
      await store(verdict.next);
      return verdict.kind === "fence" ? "CONCURRENT_TRANSACTIONS" : verdict.next;
    });
    if (typeof outcome === "string") return refused(outcome);
    const { producerId, producerEpoch } = outcome;
    return { ok: true, who: { producerId, producerEpoch } };
  }

  /** Adds partitions to the transaction, which begins it; NONE once that is durable. */
  async add(
    transactionalId: string,
    producer: ProducerIdentity,
    partitions: readonly TxnPartition[],
    isV2: boolean,
  ): Promise<ErrorName> {
    const { clock } = this.#services.env;
    return await this.#changeKnown<ErrorName>(transactionalId, async ({ row, store }) => {
      const verdict = decideAdd(row, producer, partitions, isV2, clock.nowMs());
      if (verdict.kind === "refuse") return verdict.error;
      if (verdict.kind === "store") await store(verdict.next);
      return "NONE";
    });
  }

  /** Whether the transaction holds each of the partitions, by their names. */
  async verify(
    transactionalId: string,
    producer: ProducerIdentity,
    partitions: readonly TxnPartition[],
  ): Promise<ReadonlyMap<string, ErrorName>> {
    let row: Transaction | undefined;
    const shared = await this.#changeKnown<ErrorName>(transactionalId, (turn) => {
      row = turn.row;
      return Promise.resolve(decideVerify(row, producer));
    });
    return new Map(partitions.map((one) => {
      const missing = shared === "NONE" && !holds(row, one);
      return [partitionName(one), missing ? "TRANSACTION_ABORTABLE" : shared];
    }));
  }

  /** Answers once the end is certain; markers follow. */
  async end(transactionalId: string, ask: EndAsk): Promise<Identified> {
    const { clock } = this.#services.env;
    const outcome = await this.#changeKnown(transactionalId, async ({ row, store }) => {
      const verdict = await this.#withId((newId) => decideEnd(row, ask, clock.nowMs(), newId));
      if (typeof verdict === "string") return verdict;
      if (verdict.kind === "refuse") return verdict.error;
      if (verdict.kind === "answer") return verdict.who;
      await store(verdict.next);
      return afterEnd(verdict.next);
    });
    return typeof outcome === "string" ? refused(outcome) : { ok: true, who: outcome };
  }

  async describe(transactionalId: string): Promise<DescribedTransaction | ErrorName> {
    if (!this.#shards.exists) return "TRANSACTIONAL_ID_NOT_FOUND";
    const found = await this.#shards.shardOf(transactionalId);
    if (!found.ok) return found.error;
    const row = found.shard.find(transactionalId);
    if (row === undefined) return "TRANSACTIONAL_ID_NOT_FOUND";
    return { row, partitions: found.shard.openPartitions(transactionalId) };
  }

  /** All that this node coordinates, or why it cannot tell. */
  async list(): Promise<readonly Transaction[] | ErrorName> {
    const rows: Transaction[] = [];
    for (const found of await this.#shards.all()) {
      if (!found.ok) return found.error;
      for (const row of found.shard.rows()) rows.push(row);
    }
    return rows;
  }

  close(): void {
    this.#closed = true;
    this.#cancelScan();
    this.#cancelExpiry();
    this.#shards.close();
  }

  async #guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const { log } = this.#services.env;
      log.log("warn", "transaction-maintenance-failed", { reason: messageOf(error) });
    }
  }

  #eachShard(work: (shard: TxnShard, nowMs: number) => Promise<void>): Promise<void> {
    const { clock } = this.#services.env;
    return this.#guarded(async () => {
      for (const found of await this.#shards.all()) {
        if (!found.ok || found.shard.closed) continue;
        // The others' transactions time out whatever is wrong with this one.
        await this.#guarded(() => work(found.shard, clock.nowMs()));
      }
    });
  }

  async #scan(): Promise<void> {
    const { env, config } = this.#services;
    const counts = { open: 0, ending: 0 };
    await this.#eachShard(async (shard, nowMs) => {
      for (const row of shard.rows()) {
        if (row.status === "Ongoing") counts.open += 1;
        else if (isPreparing(row)) counts.ending += 1;
      }
      await shard.maintain(nowMs);
    });
    if (this.#closed) return;
    env.metrics.gauge("skerry_transactions", counts.open, { state: "open" });
    env.metrics.gauge("skerry_transactions", counts.ending, { state: "ending" });
    const name = "transaction.abort.timed.out.transaction.cleanup.interval.ms";
    this.#cancelScan = env.clock.after(config.integer(name), () => void this.#scan());
  }

  #scheduleExpiry(): void {
    const { env, config } = this.#services;
    const name = "transaction.remove.expired.transaction.cleanup.interval.ms";
    this.#cancelExpiry = env.clock.after(config.integer(name), () => void this.#expire());
  }

  async #expire(): Promise<void> {
    await this.#eachShard((shard, nowMs) => shard.expire(nowMs));
    if (!this.#closed) this.#scheduleExpiry();
  }
}

function needsId(verdict: { readonly kind: string }): verdict is NeedsId {
  return verdict.kind === "needs-id";
}
