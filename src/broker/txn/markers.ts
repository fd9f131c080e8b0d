/**
 * Transaction markers on their way into the partitions of this node. A partition of `__consumer_offsets` gets its
 * markers through its group shard only, so that pending offsets cannot miss them. A partition that another node
 * leads waits: nodes do not write to each other, its marker is written once this node leads it.
 */
import { sleep } from "../../env/clock.ts";
import { FaultError } from "../../lib/errors.ts";
import { TXN_MARKERS_AT_ONCE, TXN_RETRY_CAP_MS, TXN_RETRY_FIRST_MS } from "../../lib/limits.ts";
import { Semaphore } from "../../lib/semaphore.ts";
import type {
  Appended,
  AppendRefused,
  PartitionLog,
  TransactionMarker,
} from "../../log/partition_log.ts";
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

/** Where a marker goes, one that is found and open. */
interface MarkedLog {
  readonly ok: true;
  readonly log: PartitionLog;
  append(marker: TransactionMarker): Written;
}

/**
 * A tool may have sent a marker with any coordinator epoch, and the log keeps the highest. It must not lock out the
 * coordinator itself, whose shard is fenced by its own log and has no second one.
 */
function raised(log: PartitionLog, marker: TransactionMarker): TransactionMarker {
  const known = log.activeProducers(marker.producerId).map((one) => one.coordinatorEpoch);
  return { ...marker, coordinatorEpoch: Math.max(marker.coordinatorEpoch, ...known) };
}

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

  /** Writes one marker, of whoever sends it; NONE once it is durable. */
  async write(at: TxnPartition, marker: TransactionMarker): Promise<ErrorName> {
    return await this.#written(at, (found) => found.append(marker));
  }

  /** One of a shard of this node, as long as that is open. */
  async #writeOwn(
    at: TxnPartition,
    marker: TransactionMarker,
    shard: AbortSignal,
  ): Promise<ErrorName> {
    const closed = { ok: false, error: "NOT_COORDINATOR", message: "closed" } as const;
    // In one stretch: once it is closed the next owner may let a new transaction begin, which this would end.
    return await this.#written(
      at,
      (found) => shard.aborted ? closed : found.append(raised(found.log, marker)),
    );
  }

  async #written(
    at: TxnPartition,
    append: (found: MarkedLog) => Written,
  ): Promise<ErrorName> {
    try {
      const found = await this.#find(at);
      if (!found.ok) return found.error;
      const written = append(found);
      if (!written.ok) return written.error;
      await written.durable;
      return "NONE";
    } catch (error) {
      return faultToCode(error, "produce");
    }
  }

  async #find(
    { topic, partition }: TxnPartition,
  ): Promise<MarkedLog | { readonly ok: false; readonly error: ErrorName }> {
    const { topics, partitions, coordinator } = this.#services;
    const row = topics.find(topic);
    if (row === undefined || partition < 0 || partition >= row.partitions) {
      return { ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION" };
    }
    if (topic === OFFSETS_TOPIC) {
      const found = await coordinator.shardAt(partition);
      if (!found.ok) return { ok: false, error: "NOT_LEADER_OR_FOLLOWER" };
      const { log, pending } = found.shard;
      return { ok: true, log, append: (marker) => pending.appendMarker(marker) };
    }
    const located = await partitions.open(row.topicId, partition);
    if (!located.ok) return { ok: false, error: located.error };
    const { log } = located;
    return { ok: true, log, append: (marker) => log.appendMarker(marker) };
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
      signal.aborted ? Promise.resolve("NOT_COORDINATOR") : this.#writeOwn(at, marker, signal);
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
