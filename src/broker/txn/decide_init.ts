/**
 * InitProducerId for a transactional id: who becomes its producer. Pure. A producer that names itself goes on with
 * its id (KIP-360); one that does not is new, and whoever was there before is fenced by a higher epoch.
 */
import { assert } from "../../lib/assert.ts";
import { abortFenced } from "./decide_end.ts";
import {
  CLIENT_EPOCH_MAX,
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

export interface InitAsk {
  readonly transactionalId: string;
  readonly timeoutMs: number;
  /** Null unless the producer says who it was. */
  readonly expected: ProducerIdentity | null;
}

/** `store` answers the new row's id and epoch; `fence` stores and answers CONCURRENT_TRANSACTIONS. */
export type InitVerdict =
  | Stored
  | { readonly kind: "fence"; readonly next: Transaction }
  | NeedsId
  | Refused;

function firstUse(ask: InitAsk, nowMs: number, producerId: number): Stored {
  const next: Transaction = {
    transactionalId: ask.transactionalId,
    producerId,
    previousProducerId: NO_PRODUCER_ID,
    nextProducerId: NO_PRODUCER_ID,
    producerEpoch: 0,
    lastProducerEpoch: NO_EPOCH,
    timeoutMs: ask.timeoutMs,
    status: "Empty",
    partitions: NO_PARTITIONS,
    startedAtMs: -1,
    updatedAtMs: nowMs,
    isV2: false,
  };
  return { kind: "store", next };
}

/** The producer id before an overflow is still known by its last epoch: the answer with the new one may be lost. */
function isKnown(known: Transaction, { producerId, producerEpoch }: ProducerIdentity): boolean {
  return producerId === known.producerId ||
    producerId === known.previousProducerId && producerEpoch >= CLIENT_EPOCH_MAX;
}

function renewed(known: Transaction, ask: InitAsk, nowMs: number, change: {
  readonly producerId?: number;
  readonly previousProducerId?: number;
  readonly producerEpoch: number;
  readonly lastProducerEpoch: number;
}): Stored {
  const next: Transaction = {
    ...known,
    ...change,
    timeoutMs: ask.timeoutMs,
    status: "Empty",
    partitions: NO_PARTITIONS,
    startedAtMs: -1,
    updatedAtMs: nowMs,
  };
  return { kind: "store", next };
}

function bumped(known: Transaction, ask: InitAsk, nowMs: number): InitVerdict {
  const { producerEpoch, lastProducerEpoch } = known;
  const expected = ask.expected?.producerEpoch;
  if (expected === undefined) {
    const change = { producerEpoch: producerEpoch + 1, lastProducerEpoch: NO_EPOCH };
    return renewed(known, ask, nowMs, change);
  }
  if (expected === producerEpoch) {
    const change = { producerEpoch: producerEpoch + 1, lastProducerEpoch: producerEpoch };
    return renewed(known, ask, nowMs, change);
  }
  // The answer to the same question was lost.
  return expected === lastProducerEpoch
    ? renewed(known, ask, nowMs, { producerEpoch, lastProducerEpoch })
    : refuse("PRODUCER_FENCED");
}

function rotated(known: Transaction, ask: InitAsk, nowMs: number, producerId: number): Stored {
  return renewed(known, ask, nowMs, {
    producerId,
    previousProducerId: known.producerId,
    producerEpoch: 0,
    lastProducerEpoch: ask.expected === null ? NO_EPOCH : known.producerEpoch,
  });
}

/** `newId` is null until the verdict asks for one. */
export function decideInit(
  known: Transaction | undefined,
  ask: InitAsk,
  nowMs: number,
  newId: number | null,
): InitVerdict {
  if (known === undefined) {
    return newId === null ? { kind: "needs-id" } : firstUse(ask, nowMs, newId);
  }
  const { expected } = ask;
  if (expected !== null && !isKnown(known, expected)) return refuse("PRODUCER_FENCED");
  if (isPreparing(known)) return refuse("CONCURRENT_TRANSACTIONS");
  if (known.status === "Ongoing") return { kind: "fence", next: abortFenced(known, nowMs) };
  assert(known.status !== "Dead" && known.status !== "PrepareEpochFence", "such rows are not kept");
  const isUsedUp = known.producerEpoch >= CLIENT_EPOCH_MAX;
  if (!isUsedUp || expected !== null && expected.producerEpoch !== known.producerEpoch) {
    return bumped(known, ask, nowMs);
  }
  return newId === null ? { kind: "needs-id" } : rotated(known, ask, nowMs, newId);
}
