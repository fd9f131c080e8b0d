/**
 * The end of a transaction: EndTxn by the old rules and by those of KIP-890 part 2, the coordinator's own abort
 * (time-out, fence), and what is left when every partition has its marker. Pure.
 */
import { assert } from "../../lib/assert.ts";
import {
  CLIENT_EPOCH_MAX,
  isComplete,
  isPreparing,
  type NeedsId,
  NO_EPOCH,
  NO_PARTITIONS,
  NO_PRODUCER_ID,
  type ProducerIdentity,
  refuse,
  type Refused,
  type Stored,
  type Transaction,
} from "./transaction.ts";

export interface EndAsk extends ProducerIdentity {
  readonly commit: boolean;
  /** EndTxn 5 and later while transactions v2 are on: each end raises the epoch. */
  readonly isV2: boolean;
}

/** `answer`: the transaction ended this way before; `who` is what the client goes on with. */
export type EndVerdict =
  | Stored
  | { readonly kind: "answer"; readonly who: ProducerIdentity }
  | NeedsId
  | Refused;

function prepared(commit: boolean): "PrepareCommit" | "PrepareAbort" {
  return commit ? "PrepareCommit" : "PrepareAbort";
}

function answered(known: Transaction): EndVerdict {
  const { producerId, producerEpoch } = known;
  return { kind: "answer", who: { producerId, producerEpoch } };
}

/** Whom the client goes on as once the row of an end is stored. */
export function afterEnd(
  { nextProducerId, producerId, producerEpoch }: Transaction,
): ProducerIdentity {
  return nextProducerId === NO_PRODUCER_ID
    ? { producerId, producerEpoch }
    : { producerId: nextProducerId, producerEpoch: 0 };
}

function decideLegacy(known: Transaction, { commit, ...ask }: EndAsk, nowMs: number): EndVerdict {
  if (ask.producerId !== known.producerId) return refuse("INVALID_PRODUCER_ID_MAPPING");
  if (ask.producerEpoch !== known.producerEpoch) return refuse("PRODUCER_FENCED");
  if (known.status === "Ongoing") {
    const next = { ...known, status: prepared(commit), updatedAtMs: nowMs, isV2: false };
    return { kind: "store", next };
  }
  const sameWay = known.status.endsWith(commit ? "Commit" : "Abort");
  if (!sameWay) return refuse("INVALID_TXN_STATE");
  return isPreparing(known) ? refuse("CONCURRENT_TRANSACTIONS") : answered(known);
}

/** How a request's identity relates to the row, by the rules under which every end has raised the epoch. */
type Standing = "current" | "retry" | "fenced" | "foreign";

function standingOf(known: Transaction, ask: ProducerIdentity): Standing {
  const isOverflowRetry = isComplete(known) && known.previousProducerId === ask.producerId &&
    known.producerEpoch === 0 && ask.producerEpoch === CLIENT_EPOCH_MAX;
  if (isOverflowRetry) return "retry";
  if (known.producerId !== ask.producerId) return "foreign";
  if (isPreparing(known)) {
    return known.producerEpoch === ask.producerEpoch + 1 ? "retry" : "fenced";
  }
  if (known.producerEpoch === ask.producerEpoch) return "current";
  return isComplete(known) && known.producerEpoch === ask.producerEpoch + 1 ? "retry" : "fenced";
}

function raised(
  known: Transaction,
  status: "PrepareCommit" | "PrepareAbort",
  nowMs: number,
  newId: number | null,
): Stored | NeedsId {
  const isUsedUp = known.producerEpoch >= CLIENT_EPOCH_MAX;
  if (isUsedUp && newId === null) return { kind: "needs-id" };
  const next: Transaction = {
    ...known,
    status,
    nextProducerId: isUsedUp && newId !== null ? newId : NO_PRODUCER_ID,
    producerEpoch: known.producerEpoch + 1,
    lastProducerEpoch: known.producerEpoch,
    // An abort of nothing has no beginning of its own.
    startedAtMs: known.status === "Ongoing" ? known.startedAtMs : nowMs,
    updatedAtMs: nowMs,
    isV2: true,
  };
  return { kind: "store", next };
}

function decideV2(
  known: Transaction,
  ask: EndAsk,
  nowMs: number,
  newId: number | null,
): EndVerdict {
  // The client was told at the Prepare record whom it will go on as.
  if (isPreparing(known) && known.nextProducerId === ask.producerId) {
    return refuse("CONCURRENT_TRANSACTIONS");
  }
  const standing = standingOf(known, ask);
  if (standing === "foreign") return refuse("INVALID_PRODUCER_ID_MAPPING");
  if (standing === "fenced") return refuse("PRODUCER_FENCED");
  if (standing === "retry") {
    if (!known.status.endsWith(ask.commit ? "Commit" : "Abort")) return refuse("INVALID_TXN_STATE");
    return isPreparing(known) ? refuse("CONCURRENT_TRANSACTIONS") : answered(known);
  }
  if (known.status !== "Ongoing" && ask.commit) return refuse("INVALID_TXN_STATE");
  return raised(known, prepared(ask.commit), nowMs, newId);
}

/** `newId` is null until the verdict asks for one. */
export function decideEnd(
  known: Transaction | undefined,
  ask: EndAsk,
  nowMs: number,
  newId: number | null,
): EndVerdict {
  if (known === undefined) return refuse("INVALID_PRODUCER_ID_MAPPING");
  // It belongs to nobody: a client that shows it would raise it to one that cannot be stored.
  if (ask.producerEpoch > CLIENT_EPOCH_MAX) return refuse("PRODUCER_FENCED");
  return ask.isV2 ? decideV2(known, ask, nowMs, newId) : decideLegacy(known, ask, nowMs);
}

/**
 * The coordinator's own abort of an open transaction. The epoch rises by exactly one, so that the client's next call
 * is fenced; when the row cannot be stored the next try raises the same epoch again.
 */
export function abortFenced(known: Transaction, nowMs: number): Transaction {
  assert(known.status === "Ongoing", "only an open transaction is aborted");
  return {
    ...known,
    status: "PrepareAbort",
    producerEpoch: known.producerEpoch + 1,
    lastProducerEpoch: NO_EPOCH,
    updatedAtMs: nowMs,
  };
}

/** What is left once every partition has its marker. */
export function completed(known: Transaction, nowMs: number): Transaction {
  assert(isPreparing(known), "only an end under way is completed");
  const { nextProducerId, producerId } = known;
  const next: Transaction = {
    ...known,
    status: known.status === "PrepareCommit" ? "CompleteCommit" : "CompleteAbort",
    partitions: NO_PARTITIONS,
    updatedAtMs: nowMs,
  };
  if (nextProducerId === NO_PRODUCER_ID) return next;
  return {
    ...next,
    producerId: nextProducerId,
    previousProducerId: producerId,
    nextProducerId: NO_PRODUCER_ID,
    producerEpoch: 0,
  };
}
