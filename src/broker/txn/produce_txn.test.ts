/** The coordinator's word for the first batch of a transaction, while the transaction before still ends. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import {
  accepted,
  appendMarker,
  createHarness,
  outcome,
} from "../../../tests/support/partition_harness.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { TXN_ADD_RETRY_MS } from "../../lib/limits.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import { type TxnBatch, verifyBatches } from "./produce_txn.ts";
import { verifyOne } from "./verify.ts";

test("the marker of the transaction before, written while the broker waits for its end, spoils nothing", async () => {
  const clock = createFakeClock();
  const h = await createHarness();
  const batch: TxnBatch = {
    topic: "t",
    partition: 0,
    log: h.log,
    records: h.sequenced(0, 1, { transactional: true }),
    verification: null,
    refused: null,
  };
  const answers: ErrorName[] = ["CONCURRENT_TRANSACTIONS", "NONE"];
  const transactions = {
    add: () => Promise.resolve(answers.shift()!),
    verify: () => Promise.reject(new Error("not asked")),
  };
  const done = verifyBatches(testEnv({ clock }), transactions, "x", [batch], "add");
  await clock.advance(0);
  accepted(appendMarker(h));
  await clock.advance(TXN_ADD_RETRY_MS);
  await done;
  assert.deepEqual(answers, []);
  assert.equal(batch.refused, null);
  assert.equal(outcome(h.log.append(batch.records, batch.verification ?? undefined)), "new @1");
});

test("so it is where offsets join the transaction first", async () => {
  const clock = createFakeClock();
  const h = await createHarness();
  const answers: ErrorName[] = ["CONCURRENT_TRANSACTIONS", "NONE"];
  const transactions = {
    add: () => Promise.resolve(answers.shift()!),
    verify: () => Promise.reject(new Error("not asked")),
  };
  const producer = { producerId: 7, producerEpoch: 3 };
  const partition = { topic: "t", partition: 0 };
  const done = verifyOne(
    testEnv({ clock }),
    transactions,
    { transactionalId: "x", producer, partition, mode: "add" },
    () => h.log.verify({ ...producer, baseSequence: 0, isTransactionsV2: true }),
  );
  await clock.advance(0);
  accepted(appendMarker(h));
  await clock.advance(TXN_ADD_RETRY_MS);
  const { error, verification } = await done;
  assert.equal(error, "NONE");
  const records = h.sequenced(0, 0, { transactional: true });
  assert.equal(outcome(h.log.append(records, verification ?? undefined)), "new @1");
});

test("a marker that comes after the last word makes it void", async () => {
  const h = await createHarness();
  const records = h.sequenced(0, 1, { transactional: true });
  const batch: TxnBatch = {
    topic: "t",
    partition: 0,
    log: h.log,
    records,
    verification: null,
    refused: null,
  };
  const transactions = {
    add: () => {
      accepted(appendMarker(h));
      return Promise.resolve<ErrorName>("NONE");
    },
    verify: () => Promise.reject(new Error("not asked")),
  };
  await verifyBatches(testEnv(), transactions, "x", [batch], "add");
  const appended = h.log.append(records, batch.verification ?? undefined);
  assert.equal(outcome(appended), "INVALID_TXN_STATE");
});
