/**
 * Transaction markers on their way into the partitions of this node. A partition of `__consumer_offsets` gets its
 * markers through its group shard only, so that pending offsets cannot miss them. A partition that another node
 * leads waits: nodes do not write to each other, its marker is written once this node leads it.
 */
import { sleep } from "../../env/clock.ts";
import { FaultError } from "../../lib/errors.ts";
import { TXN_MARKERS_AT_ONCE, TXN_RETRY_CAP_MS, TXN_RETRY_FIRST_MS } from "../../lib/limits.ts";
import { Semaphore } from "../../lib/semaphore.ts";
import type { Appended, AppendRefused, TransactionMarker } from "../../log/partition_log.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import type { Coordinator } from "../group/coordinator.ts";
import type { BrokerServices } from "../handler.ts";
import { faultToCode } from "../fault_to_code.ts";
import { OFFSETS_TOPIC } from "../topic_name.ts";
import type { Transaction, TxnPartition } from "./transaction.ts";

export interface MarkerServices extends BrokerServices {
  readonly coordinator: Coordinator;
}

type Written = Appended | AppendRefused;

/** Outcomes after which the partition needs no marker of ours any more. */
const SETTLED: ReadonlySet<ErrorName> = new Set([
  // It was deleted, and its records with it.
  "UNKNOWN_TOPIC_OR_PARTITION",
  // It has this marker, or a later epoch's: the transaction is not open there.
  "INVALID_PRODUCER_EPOCH",
]);

export class Markers {
  readonly #services: MarkerServices;
  readonly #permits = new Semaphore(TXN_MARKERS_AT_ONCE);

  constructor(services: MarkerServices) {
    this.#services = services;
  }

  /** Writes one marker; NONE once it is durable. */
  async write(at: TxnPartition, marker: TransactionMarker): Promise<ErrorName> {
    try {
      const written = await this.#append(at, marker);
      if (!written.ok) return written.error;
      await written.durable;
      return "NONE";
    } catch (error) {
      return faultToCode(error, "produce");
    }
  }

  async #append({ topic, partition }: TxnPartition, marker: TransactionMarker): Promise<Written> {
    const { topics, partitions, coordinator } = this.#services;
    const row = topics.find(topic);
    if (row === undefined || partition < 0 || partition >= row.partitions) {
      return { ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION" };
    }
    if (topic === OFFSETS_TOPIC) {
      const found = await coordinator.shardAt(partition);
      if (!found.ok) return { ok: false, error: "NOT_LEADER_OR_FOLLOWER" };
      return found.shard.pending.appendMarker(marker);
    }
    const located = await partitions.open(row.topicId, partition);
    if (!located.ok) return { ok: false, error: located.error };
    return located.log.appendMarker(marker);
  }

  /** Writes all markers of an end; resolves when no partition needs one any more, and throws only when aborted. */
  async send(
    row: Transaction,
    coordinatorEpoch: number,
    done: (partition: TxnPartition) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const marker: TransactionMarker = {
      producerId: row.producerId,
      producerEpoch: row.producerEpoch,
      coordinatorEpoch,
      commit: row.status === "PrepareCommit",
      isTransactionsV2: row.isV2,
    };
    await Promise.all([...row.partitions.values()].map(async (at) => {
      await this.#persist(at, marker, row.transactionalId, signal);
      done(at);
    }));
  }

  async #persist(
    at: TxnPartition,
    marker: TransactionMarker,
    transactionalId: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { env } = this.#services;
    // Its shard may close while it waits for its turn: another one sends the marker then.
    const write = (): Promise<ErrorName> =>
      signal.aborted ? Promise.resolve("NOT_COORDINATOR") : this.write(at, marker);
    for (let pauseMs = TXN_RETRY_FIRST_MS;; pauseMs = Math.min(2 * pauseMs, TXN_RETRY_CAP_MS)) {
      const error = await this.#permits.run(write);
      if (error === "NONE") return;
      if (SETTLED.has(error)) {
        env.log.log("info", "transaction-marker-dropped", { transactionalId, ...at, error });
        return;
      }
      if (!signal.aborted) await sleep(env.clock, pauseMs, signal);
      if (signal.aborted) {
        throw new FaultError("aborted", "Cannot write markers: closed", { retriable: true });
      }
      if (pauseMs >= TXN_RETRY_CAP_MS) {
        env.log.log("warn", "transaction-marker-delayed", { transactionalId, ...at, error });
      }
    }
  }
}
