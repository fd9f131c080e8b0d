/** The transactional part of Produce: which batches need the coordinator's word, and what it says. */
import { readBatchHeader } from "../../protocol/record_batch.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import type { Env } from "../../env/env.ts";
import type { AppendRefused, PartitionLog, Verification } from "../../log/partition_log.ts";
import { partitionName } from "./transaction.ts";
import { askCoordinator, type Coordinator, type VerifyMode } from "./verify.ts";

/** One transactional batch on its way to its log. */
export interface TxnBatch {
  readonly topic: string;
  readonly partition: number;
  readonly log: PartitionLog;
  /** At least a whole header. */
  readonly records: Uint8Array;
  /** Shown at the append; null when nobody had to be asked. */
  verification: Verification | null;
  /** Why it must not be appended. */
  refused: AppendRefused | null;
}

const ADD_SINCE = 12;
const ABORTABLE_SINCE = 11;

function refuse(error: ErrorName, message: string): AppendRefused {
  return { ok: false, error, message };
}

export function produceMode(version: number, isV2: boolean): VerifyMode {
  if (version >= ADD_SINCE && isV2) return "add";
  return version >= ABORTABLE_SINCE ? "abortable" : "old";
}

/** What is written between this and the append makes it void, so it comes before each question. */
function begin(batch: TxnBatch, mode: VerifyMode): void {
  const { producerId, producerEpoch, baseSequence } = readBatchHeader(batch.records);
  const isTransactionsV2 = mode === "add";
  const ask = { producerId, producerEpoch, baseSequence, isTransactionsV2 };
  batch.verification = batch.log.verify(ask);
}

/** Fills in the verification or the refusal of each batch. All of them are of one producer, or none is let through. */
export async function verifyBatches(
  env: Env,
  transactions: Coordinator,
  transactionalId: string,
  batches: readonly TxnBatch[],
  mode: VerifyMode,
): Promise<void> {
  const headers = batches.map(({ records }) => readBatchHeader(records));
  const [first] = headers;
  if (first === undefined) return;
  if (headers.some(({ producerId }) => producerId !== first.producerId)) {
    const refused = refuse("INVALID_PRODUCER_ID_MAPPING", "The request has several producers");
    for (const batch of batches) batch.refused = refused;
    return;
  }
  const byEpoch = new Map<number, TxnBatch[]>();
  for (const [at, batch] of batches.entries()) {
    const { producerEpoch } = headers[at]!;
    begin(batch, mode);
    if (batch.verification === null) continue;
    const same = byEpoch.get(producerEpoch);
    if (same === undefined) byEpoch.set(producerEpoch, [batch]);
    else same.push(batch);
  }
  await Promise.all([...byEpoch].map(async ([producerEpoch, asking]) => {
    const producer = { producerId: first.producerId, producerEpoch };
    const renew = () => asking.forEach((batch) => begin(batch, mode));
    const ask = { transactionalId, producer, partitions: asking, mode, renew };
    const verdicts = await askCoordinator(env, transactions, ask);
    for (const batch of asking) {
      const verdict = verdicts.get(partitionName(batch)) ?? "NONE";
      if (verdict === "NONE") continue;
      batch.refused = refuse(
        verdict,
        `The partition is not known to be in the transaction: ${verdict}`,
      );
    }
  }));
}
