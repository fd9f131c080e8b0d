/**
 * Clients of transactional ids that do as they like: they add, produce, commit offsets, end, give up in the middle,
 * take each other's place. What each transaction came to is noted as the client saw it.
 */
import { sleep } from "../../src/env/clock.ts";
import type { Random } from "../../src/env/random.ts";
import { type ErrorName, isRetriable } from "../../src/protocol/error_code.ts";
import { Quirks } from "../quirks/quirks.ts";
import { TxnClient } from "../support/txn_client.ts";
import type { FaultWorld } from "./world.ts";

export const TOPIC = "t";
export const PARTITIONS = 3;
const RETRY_MS = 50;

export interface Noted {
  readonly value: string;
  readonly partitions: readonly number[];
  /** Null when the transaction commits no offset. */
  readonly offset: number | null;
  readonly group: string;
  /** `unknown`: its commit was asked and not answered. */
  outcome: "open" | "committed" | "aborted" | "unknown";
}

export interface History {
  readonly transactions: Noted[];
  /** Epochs in the order of their answers, by producer id. */
  readonly epochs: {
    readonly transactionalId: string;
    readonly id: number;
    readonly epoch: number;
  }[];
  next: number;
}

/** A refusal after which a client has to begin anew. */
class GivenUp extends Error {}

export interface ClientPlan {
  readonly transactionalId: string;
  readonly isV2: boolean;
  readonly transactions: number;
}

function pick(random: Random, below: number): number {
  return Math.floor(random.float() * below);
}

/** Runs until its transactions are over; hangs for ever when the node is killed. */
export async function runClient(
  world: FaultWorld,
  random: Random,
  plan: ClientPlan,
  history: History,
): Promise<void> {
  const q = new Quirks(world.q.node);
  const client = new TxnClient(q, plan.transactionalId, { isV2: plan.isV2, timeoutMs: 20_000 });
  const again = async (ask: () => Promise<ErrorName>) => {
    for (;;) {
      const error = await ask();
      if (error === "NONE") return;
      if (!isRetriable(error)) throw new GivenUp(error);
      await sleep(world.clock, RETRY_MS);
    }
  };
  async function begin(keep: boolean): Promise<void> {
    await again(() => client.init({ keep }));
    const { transactionalId, producerId, producerEpoch } = client;
    history.epochs.push({ transactionalId, id: producerId, epoch: producerEpoch });
  }
  async function one(noted: Noted): Promise<void> {
    const { value, partitions, offset, group } = noted;
    for (const partition of partitions) {
      if (!plan.isV2) await again(() => client.add(TOPIC, [partition]));
      await again(() => client.produce(TOPIC, [value], { partition }));
    }
    if (offset !== null) {
      if (!plan.isV2) await again(() => client.addOffsets(group));
      await again(() => client.commitOffset(group, TOPIC, offset));
    }
    const choice = random.float();
    if (choice < 0.1) return;
    const commit = choice < 0.75;
    if (commit) noted.outcome = "unknown";
    await again(() => client.end(commit));
    noted.outcome = commit ? "committed" : "aborted";
  }
  await begin(false);
  for (let i = 0; i < plan.transactions; i++) {
    history.next += 1;
    const noted: Noted = {
      value: `${plan.transactionalId}.${history.next}`,
      partitions: Array.from({ length: PARTITIONS }, (_, partition) => partition)
        .filter(() => random.float() < 0.6),
      offset: random.float() < 0.5 ? history.next : null,
      group: `group-${pick(random, 2)}`,
      outcome: "open",
    };
    history.transactions.push(noted);
    try {
      await one(noted);
      // Left open: the next one, or another producer of the id, ends it.
      if (noted.outcome === "open") await begin(random.float() < 0.5);
    } catch (error) {
      if (!(error instanceof GivenUp)) throw error;
      // An end that is refused for good did not happen by this request; by an earlier one it may have.
      await begin(false);
    }
  }
}
