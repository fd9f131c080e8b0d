/**
 * Offsets of a shard that were committed inside transactions: written as the producer's transactional batches,
 * pending from their place in the log on, published or dropped by the marker behind them.
 */
import type { Env } from "../../env/env.ts";
import type {
  Appended,
  AppendRefused,
  PartitionLog,
  TransactionMarker,
  Verification,
} from "../../log/partition_log.ts";
import { readMarker } from "../../protocol/control_record.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import type { BatchHeader } from "../../protocol/record_batch.ts";
import type { ShardMemory } from "../shard/shard_memory.ts";
import type { OffsetEntry, TopicPartition } from "./offset_table.ts";
import { pendingBytes, type PendingOffset, PendingOffsets } from "./pending_offsets.ts";
import { offsetRecord } from "./records.ts";
import { batchesOf, shardBatch } from "../shard/shard_log.ts";

const SEQUENCES = 2 ** 31;

/** The producer of a transaction. */
export interface TxnProducer {
  readonly producerId: number;
  readonly producerEpoch: number;
}

export interface TxnOffsetsOptions {
  readonly env: Env;
  readonly log: PartitionLog;
  readonly memory: ShardMemory;
  /** Called for each offset whose transaction has ended. */
  readonly ended: (pending: PendingOffset, commit: boolean) => void;
}

export class TxnOffsets {
  readonly #options: TxnOffsetsOptions;
  readonly #pending = new PendingOffsets();

  constructor(options: TxnOffsetsOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#pending.isEmpty;
  }
  /** Whether an open transaction has committed an offset of the partition. */
  has(groupId: string, at: TopicPartition): boolean {
    return this.#pending.has(groupId, at);
  }
  hasGroup(groupId: string): boolean {
    return this.#pending.hasGroup(groupId);
  }
  /** Partitions of a group with offsets in open transactions. */
  of(groupId: string): readonly TopicPartition[] {
    return this.#pending.of(groupId);
  }

  /** Whether so much more may be pending: it counts beside what is committed already. */
  hasRoomFor(groupId: string, offsets: readonly OffsetEntry[]): boolean {
    const bytes = offsets.reduce((sum, entry) => sum + pendingBytes({ groupId, entry }), 0);
    return this.#options.memory.hasRoom(bytes);
  }

  /** From the log, while the shard loads. */
  replay(producerId: number, pending: PendingOffset): void {
    this.#counted(() => this.#pending.add(producerId, pending));
  }

  replayMarker({ producerId, baseOffset }: BatchHeader, batch: Uint8Array): void {
    const marker = readMarker(batch);
    if (marker === null) return;
    this.#pending.seal(producerId, baseOffset);
    this.#end(baseOffset, marker.commit);
  }

  /** The offset was deleted, for open transactions as well. */
  drop(groupId: string, at: TopicPartition): void {
    this.#counted(() => this.#pending.drop(groupId, at));
  }

  clear(): void {
    this.#counted(() => this.#pending.clear());
  }

  /** What the transaction's coordinator has to be asked first; null if nobody has to be. */
  verify(producer: TxnProducer, isTransactionsV2: boolean): Verification | null {
    const { producerId, producerEpoch } = producer;
    const baseSequence = this.#nextSequence(producer);
    return this.#options.log.verify({ producerId, producerEpoch, baseSequence, isTransactionsV2 });
  }

  /** Resolves when the offsets are durable and pending, or with the log's refusal. Throws FaultError. */
  async append(
    groupId: string,
    producer: TxnProducer,
    offsets: readonly OffsetEntry[],
    verification: Verification | null,
  ): Promise<ErrorName> {
    const { env, log } = this.#options;
    const waits: Promise<void>[] = [];
    let at = 0;
    for (const part of batchesOf(offsets.map((offset) => offsetRecord(groupId, offset)))) {
      const baseSequence = this.#nextSequence(producer);
      const batch = shardBatch(env, part, { ...producer, baseSequence, transactional: true });
      const appended = log.append(batch, verification ?? undefined);
      if (!appended.ok) return appended.error;
      appended.durable.catch(() => {});
      waits.push(appended.durable);
      for (const [index] of part.entries()) {
        const position = appended.baseOffset + index;
        this.replay(producer.producerId, { groupId, entry: offsets[at++]!, position });
      }
    }
    await Promise.all(waits);
    return "NONE";
  }

  /** The only way in which a marker comes into the log of a shard: its groups follow when it is durable. */
  appendMarker(marker: TransactionMarker): Appended | AppendRefused {
    const appended = this.#options.log.appendMarker(marker);
    if (!appended.ok) return appended;
    // The log had it before, and so had we.
    if (appended.duplicate) return appended;
    this.#pending.seal(marker.producerId, appended.baseOffset);
    const durable = appended.durable.then(() => this.#end(appended.baseOffset, marker.commit));
    durable.catch(() => {});
    return { ...appended, durable };
  }

  /** Sequences make the batch one that the log admits; nobody sends it twice, so the next one is always right. */
  #nextSequence({ producerId, producerEpoch }: TxnProducer): number {
    const [known] = this.#options.log.activeProducers(producerId);
    return known?.producerEpoch === producerEpoch ? (known.lastSequence + 1) % SEQUENCES : 0;
  }

  #end(marker: number, commit: boolean): void {
    const ended = this.#counted(() => this.#pending.end(marker));
    for (const pending of ended) this.#options.ended(pending, commit);
  }

  #counted<T>(change: () => T): T {
    const before = this.#pending.bytes;
    const result = change();
    this.#options.memory.change(this.#pending.bytes - before);
    return result;
  }
}
