/**
 * What the coordinator knows of one transactional id, as an immutable row: each change is a new row, which counts
 * once its record is durable. Statuses and their meaning are Kafka's.
 */
import type { ErrorName } from "../../protocol/error_code.ts";

export type TxnStatus =
  | "Empty"
  | "Ongoing"
  | "PrepareCommit"
  | "PrepareAbort"
  | "CompleteCommit"
  | "CompleteAbort"
  | "Dead"
  | "PrepareEpochFence";

/** In the order of their numbers in the log. The last two are never stored. */
export const TXN_STATUSES: readonly TxnStatus[] = [
  "Empty",
  "Ongoing",
  "PrepareCommit",
  "PrepareAbort",
  "CompleteCommit",
  "CompleteAbort",
  "Dead",
  "PrepareEpochFence",
];

export interface TxnPartition {
  readonly topic: string;
  readonly partition: number;
}

export interface Transaction {
  readonly transactionalId: string;
  readonly producerId: number;
  /** -1 unless the epochs of an earlier id were used up. */
  readonly previousProducerId: number;
  /** Takes over when the end is complete; -1 but for an end that used up the epochs. */
  readonly nextProducerId: number;
  readonly producerEpoch: number;
  /** The epoch before, which a client may show again whose answer was lost; -1 if unknown. Not stored, as in Kafka. */
  readonly lastProducerEpoch: number;
  readonly timeoutMs: number;
  readonly status: TxnStatus;
  /** By `partitionName`. */
  readonly partitions: ReadonlyMap<string, TxnPartition>;
  /** -1 while no transaction was begun. */
  readonly startedAtMs: number;
  readonly updatedAtMs: number;
  /** The client ends transactions by the rules of KIP-890, part 2: each end raises the epoch. */
  readonly isV2: boolean;
}

export interface ProducerIdentity {
  readonly producerId: number;
  readonly producerEpoch: number;
}

export interface Refused {
  readonly kind: "refuse";
  readonly error: ErrorName;
}

/** The row to store before anything is answered. */
export interface Stored {
  readonly kind: "store";
  readonly next: Transaction;
}

/** A new producer id is needed: decide again with one. */
export interface NeedsId {
  readonly kind: "needs-id";
}

export const NO_PRODUCER_ID = -1;
export const NO_EPOCH = -1;
const SHORT_MAX = 32_767;
/** The last epoch that clients see; the one above is for markers and fences only. */
export const CLIENT_EPOCH_MAX = SHORT_MAX - 1;

export const NO_PARTITIONS: ReadonlyMap<string, TxnPartition> = new Map();

export function partitionName({ topic, partition }: TxnPartition): string {
  return `${topic}-${partition}`;
}

export function partitionsOf(list: Iterable<TxnPartition>): ReadonlyMap<string, TxnPartition> {
  return new Map([...list].map((one) => [partitionName(one), one]));
}

const ROW_BYTES = 512;
const PARTITION_BYTES = 256;

/** What a row takes up in memory, estimated: names stand in keys as well. */
export function rowBytes({ transactionalId, partitions }: Transaction): number {
  let bytes = ROW_BYTES + 2 * transactionalId.length;
  for (const name of partitions.keys()) bytes += PARTITION_BYTES + 2 * name.length;
  return bytes;
}

export function refuse(error: ErrorName): Refused {
  return { kind: "refuse", error };
}

export function isPreparing({ status }: Transaction): boolean {
  return status === "PrepareCommit" || status === "PrepareAbort";
}

export function isComplete({ status }: Transaction): boolean {
  return status === "CompleteCommit" || status === "CompleteAbort";
}
