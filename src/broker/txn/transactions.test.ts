/** The coordinator over several partitions of its topic: what is wrong with one is no trouble of the others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createBrokerWorld } from "../../../tests/support/broker_world.ts";
import { Coordinator } from "../group/coordinator.ts";
import { partitionOfId } from "../java_hash.ts";
import { routesOf } from "../routes.ts";
import { Transactions } from "./transactions.ts";

const TIMEOUT_MS = 1000;
const SCAN_MS = 10_000;

async function world() {
  const found: { transactions: Transactions; coordinator: Coordinator }[] = [];
  const broker = await createBrokerWorld({
    properties: { "transaction.state.log.num.partitions": "2" },
    routes: (services) => {
      const coordinator = new Coordinator(services);
      const transactions = new Transactions({ ...services, coordinator });
      found.push({ transactions, coordinator });
      return routesOf({ ...services, coordinator, transactions });
    },
  });
  await broker.createTopic("t");
  return { broker, ...found[0]! };
}

function idIn(partition: number): string {
  for (let n = 0;; n++) if (partitionOfId(`tx-${n}`, 2, "kafka") === partition) return `tx-${n}`;
}

test("transactions time out in one partition while the log of another takes nothing", async () => {
  const { broker, transactions, coordinator } = await world();
  const ids = [0, 1].map(idIn);
  for (const transactionalId of ids) {
    const ask = { transactionalId, timeoutMs: TIMEOUT_MS, expected: null };
    const made = await transactions.initProducerId(ask);
    assert.ok(made.ok, made.ok ? "" : made.error);
    const partitions = [{ topic: "t", partition: 0 }];
    assert.equal(await transactions.add(transactionalId, made.who, partitions, false), "NONE");
  }
  for (const broken of [0, 1]) {
    broker.logs.get(`__transaction_state-${broken}`)!.refusal = "NOT_ENOUGH_REPLICAS";
    await broker.clock.advance(SCAN_MS);
    broker.logs.get(`__transaction_state-${broken}`)!.refusal = null;
    const described = await transactions.describe(ids[1 - broken]!);
    assert.ok(typeof described !== "string");
    assert.equal(described.row.status, "PrepareAbort", `while ${broken} is broken`);
  }
  transactions.close();
  coordinator.close();
});
