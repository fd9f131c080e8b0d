/**
 * Before a producer's first transactional batch in a partition is written, its coordinator is asked (KIP-890): old
 * clients must have added the partition, newer ones have it added here. Errors are those that writers understand.
 */
import { sleep } from "../../env/clock.ts";
import { TXN_ADD_RETRIES_MS_MAX, TXN_ADD_RETRY_MS } from "../../lib/limits.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import type { Env } from "../../env/env.ts";
import type { Verification } from "../../log/partition_log.ts";
import { partitionName, type ProducerIdentity, type TxnPartition } from "./transaction.ts";
import type { Transactions } from "./transactions.ts";

/** By what the client understands: INVALID_TXN_STATE only, TRANSACTION_ABORTABLE too, or adding by the broker. */
export type VerifyMode = "old" | "abortable" | "add";

export interface PartitionsAsk {
  readonly transactionalId: string;
  readonly producer: ProducerIdentity;
  readonly partitions: readonly TxnPartition[];
  readonly mode: VerifyMode;
  /** Called before the coordinator is asked once more: the end it waited for may have left its marker meanwhile. */
  readonly renew?: () => void;
}

/** Of the coordinator. */
export type Coordinator = Pick<Transactions, "add" | "verify">;

/** The coordinator's words as a writer's client reads them. */
function renamed(error: ErrorName, mode: VerifyMode): ErrorName {
  switch (error) {
    case "PRODUCER_FENCED":
      return "INVALID_PRODUCER_EPOCH";
    case "COORDINATOR_LOAD_IN_PROGRESS":
    case "COORDINATOR_NOT_AVAILABLE":
    case "NOT_COORDINATOR":
    case "REQUEST_TIMED_OUT":
      return "NOT_ENOUGH_REPLICAS";
    case "CONCURRENT_TRANSACTIONS":
      return mode === "add" ? error : "NOT_ENOUGH_REPLICAS";
    case "TRANSACTION_ABORTABLE":
      return mode === "old" ? "INVALID_TXN_STATE" : error;
    default:
      return error;
  }
}

/** The end before may still be under way when the next transaction begins: a short wait spares the client's retry. */
async function add(
  env: Env,
  transactions: Coordinator,
  { transactionalId, producer, partitions, renew }: PartitionsAsk,
): Promise<ErrorName> {
  const untilMs = env.clock.monotonicMs() + TXN_ADD_RETRIES_MS_MAX;
  for (;;) {
    const error = await transactions.add(transactionalId, producer, partitions, true);
    if (error !== "CONCURRENT_TRANSACTIONS" || env.clock.monotonicMs() >= untilMs) return error;
    await sleep(env.clock, TXN_ADD_RETRY_MS);
    renew?.();
  }
}

/** The verdict on each partition, by its name. */
export async function askCoordinator(
  env: Env,
  transactions: Coordinator,
  ask: PartitionsAsk,
): Promise<ReadonlyMap<string, ErrorName>> {
  const { transactionalId, producer, partitions, mode } = ask;
  if (transactionalId === "") {
    return new Map(partitions.map((one) => [partitionName(one), "INVALID_REQUEST"]));
  }
  if (mode === "add") {
    const error = renamed(await add(env, transactions, ask), mode);
    return new Map(partitions.map((one) => [partitionName(one), error]));
  }
  const found = await transactions.verify(transactionalId, producer, partitions);
  return new Map([...found].map(([name, error]) => [name, renamed(error, mode)]));
}

export interface Verified {
  readonly error: ErrorName;
  /** Shown at the append; null when nobody had to be asked. */
  readonly verification: Verification | null;
}

/** The same for one partition, where `begin` notes at its log that the coordinator is about to be asked. */
export async function verifyOne(
  env: Env,
  transactions: Coordinator,
  { partition, ...ask }: Omit<PartitionsAsk, "partitions" | "renew"> & {
    readonly partition: TxnPartition;
  },
  begin: () => Verification | null,
): Promise<Verified> {
  let verification = begin();
  if (verification === null) return { error: "NONE", verification };
  const renew = () => void (verification = begin());
  const verdicts = await askCoordinator(env, transactions, {
    ...ask,
    partitions: [partition],
    renew,
  });
  return { error: verdicts.get(partitionName(partition)) ?? "NONE", verification };
}
