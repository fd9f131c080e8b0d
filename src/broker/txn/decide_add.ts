/** Partitions that join a transaction, and the question whether it holds them (KIP-890). Pure. */
import type { ErrorName } from "../../protocol/error_code.ts";
import {
  CLIENT_EPOCH_MAX,
  isPreparing,
  partitionName,
  type ProducerIdentity,
  refuse,
  type Refused,
  type Stored,
  type Transaction,
  type TxnPartition,
} from "./transaction.ts";

export type AddVerdict = Stored | { readonly kind: "nothing" } | Refused;

function isSubset(
  partitions: readonly TxnPartition[],
  of: ReadonlyMap<string, TxnPartition>,
): boolean {
  return partitions.every((one) => of.has(partitionName(one)));
}

/** The epoch behind the clients' last one belongs to nobody, and no fence could rise above it. */
function isFenced(known: Transaction, { producerEpoch }: ProducerIdentity): boolean {
  return producerEpoch !== known.producerEpoch || producerEpoch > CLIENT_EPOCH_MAX;
}

function begun(
  known: Transaction,
  partitions: readonly TxnPartition[],
  isV2: boolean,
  nowMs: number,
): Transaction {
  const all = new Map(known.partitions);
  for (const one of partitions) all.set(partitionName(one), one);
  const startedAtMs = known.status === "Ongoing" ? known.startedAtMs : nowMs;
  return { ...known, status: "Ongoing", partitions: all, startedAtMs, updatedAtMs: nowMs, isV2 };
}

/**
 * While an end is under way everybody waits, whoever they say they are: after an overflow the client already has the
 * producer id that takes over when the end is complete.
 */
export function decideAdd(
  known: Transaction | undefined,
  producer: ProducerIdentity,
  partitions: readonly TxnPartition[],
  isV2: boolean,
  nowMs: number,
): AddVerdict {
  if (known === undefined) return refuse("INVALID_PRODUCER_ID_MAPPING");
  if (isPreparing(known)) return refuse("CONCURRENT_TRANSACTIONS");
  if (known.producerId !== producer.producerId) return refuse("INVALID_PRODUCER_ID_MAPPING");
  if (isFenced(known, producer)) return refuse("PRODUCER_FENCED");
  if (known.status === "Ongoing" && isSubset(partitions, known.partitions)) {
    return { kind: "nothing" };
  }
  return { kind: "store", next: begun(known, partitions, isV2, nowMs) };
}

/** The error that all partitions share, or NONE: then each that the transaction does not hold is TRANSACTION_ABORTABLE. */
export function decideVerify(
  known: Transaction | undefined,
  producer: ProducerIdentity,
): ErrorName {
  if (known === undefined) return "INVALID_PRODUCER_ID_MAPPING";
  if (known.producerId !== producer.producerId) return "INVALID_PRODUCER_ID_MAPPING";
  if (isFenced(known, producer)) return "PRODUCER_FENCED";
  return isPreparing(known) ? "CONCURRENT_TRANSACTIONS" : "NONE";
}

/** Partitions of an ended transaction are not kept in the row, so what it holds is what is open. */
export function holds(known: Transaction | undefined, partition: TxnPartition): boolean {
  return known?.partitions.has(partitionName(partition)) === true;
}
