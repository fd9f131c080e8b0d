import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { createBrokerWorld } from "../../../tests/support/broker_world.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import type { Clock } from "../../env/clock.ts";
import { TOPIC_REGEX_SLICE_STEPS } from "../../lib/limits.ts";
import { listTransactionsApi } from "../../protocol/message/66_list_transactions.ts";
import { bind } from "../broker.ts";
import { Coordinator } from "../group/coordinator.ts";

import { NO_PARTITIONS, type Transaction } from "../txn/transaction.ts";
import { Transactions } from "../txn/transactions.ts";
import { listTransactionsHandler } from "./66_list_transactions.ts";

function rowOf(transactionalId: string): Transaction {
  return {
    transactionalId,
    producerId: 7,
    previousProducerId: -1,
    nextProducerId: -1,
    producerEpoch: 0,
    lastProducerEpoch: -1,
    timeoutMs: 60_000,
    status: "Empty",
    partitions: NO_PARTITIONS,
    startedAtMs: -1,
    updatedAtMs: 0,
    isV2: true,
  };
}

test("others have their turn while a long pattern is matched against long ids", async () => {
  let turns = 0;
  const clock: Clock = {
    ...createFakeClock(),
    after(_ms, work) {
      turns += 1;
      queueMicrotask(work);
      return () => {};
    },
  };
  const closing: { close(): void }[] = [];
  const broker = await createBrokerWorld({
    routes: (services) => {
      const coordinator = new Coordinator(services);
      const transactions = new Transactions({ ...services, coordinator });
      closing.push(transactions, coordinator);
      const rows = Array.from({ length: 10 }, (_, n) => rowOf(`${n}${"x".repeat(30_000)}`));
      transactions.list = () => Promise.resolve(rows);
      const env = testEnv({ clock });
      const handler = listTransactionsHandler({ ...services, env, coordinator, transactions });
      return [bind(handler)];
    },
  });
  const none = { producerIdFilters: [], stateFilters: [] };
  const steps = Math.ceil(TOPIC_REGEX_SLICE_STEPS / 30_000);
  const transactionalIdPattern = `[3-5]x*(?:y{${steps}})?`;
  const answer = await broker.call(listTransactionsApi, 2, { ...none, transactionalIdPattern });
  assert.equal(answer.transactionStates.length, 3);
  assert.ok(turns >= 9, `${turns} turns`);
  for (const each of closing) each.close();
});
