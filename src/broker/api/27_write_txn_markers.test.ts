import assert from "node:assert/strict";
import { test } from "node:test";
import { createBrokerWorld } from "../../../tests/support/broker_world.ts";
import { errorName } from "../../protocol/error_code.ts";
import { writeTxnMarkersApi } from "../../protocol/message/27_write_txn_markers.ts";
import { Coordinator } from "../group/coordinator.ts";
import { routesOf } from "../routes.ts";
import { Transactions } from "../txn/transactions.ts";

test("a marker of a producer id that cannot be stored, or of none, is written nowhere", async () => {
  const closing: { close(): void }[] = [];
  const broker = await createBrokerWorld({
    routes: (services) => {
      const coordinator = new Coordinator(services);
      const transactions = new Transactions({ ...services, coordinator });
      closing.push(transactions, coordinator);
      return routesOf({ ...services, coordinator, transactions });
    },
  });
  await broker.createTopic("t");
  let written = 0;
  const log = await broker.log("t");
  log.appendMarker = () => {
    written += 1;
    return { ok: false, error: "NOT_ENOUGH_REPLICAS" };
  };
  const one = {
    producerEpoch: 0,
    transactionResult: true,
    topics: [{ name: "t", partitionIndexes: [0] }],
    coordinatorEpoch: 0,
  };
  const ids = [Number.MAX_SAFE_INTEGER, -1, Number.MIN_SAFE_INTEGER, 7];
  const markers = ids.map((producerId) => ({ ...one, producerId }));
  const answer = await broker.call(writeTxnMarkersApi, 1, { markers });
  const errors = answer.markers.map(({ topics }) => errorName(topics[0]!.partitions[0]!.errorCode));
  const refused = "INVALID_PRODUCER_ID_MAPPING";
  assert.deepEqual(errors, [refused, refused, refused, "NOT_ENOUGH_REPLICAS"]);
  assert.equal(written, 1);
  for (const each of closing) each.close();
});
