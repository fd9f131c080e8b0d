import assert from "node:assert/strict";
import { test } from "node:test";
import { createBrokerWorld } from "../../../tests/support/broker_world.ts";
import { offsetCommitApi } from "../../protocol/message/08_offset_commit.ts";
import { offsetFetchApi } from "../../protocol/message/09_offset_fetch.ts";
import { Coordinator } from "../group/coordinator.ts";
import { routesOf } from "../routes.ts";
import { Transactions } from "../txn/transactions.ts";

async function world() {
  const made: Coordinator[] = [];
  const broker = await createBrokerWorld({
    properties: { "offsets.topic.num.partitions": "1" },
    routes: (services) => {
      const coordinator = new Coordinator(services);
      made.push(coordinator);
      const transactions = new Transactions({ ...services, coordinator });
      return routesOf({ ...services, coordinator, transactions });
    },
  });
  return { broker, coordinator: made[0]!, close: () => made[0]!.close() };
}

test("a partition that is named again is written once, and the last offset counts", async () => {
  const { broker, close } = await world();
  await broker.createTopic("t");
  const partitions = [5, 7, 6].map((committedOffset) => ({
    partitionIndex: 0,
    committedOffset,
    committedMetadata: null,
  }));
  const topics = [{ name: "t", partitions }];
  const answer = await broker.call(offsetCommitApi, 7, { groupId: "g", memberId: "", topics });
  assert.deepEqual(answer.topics[0]!.partitions.map((one) => one.errorCode), [0, 0, 0]);
  assert.equal(broker.logs.get("__consumer_offsets-0")!.logEndOffset, 1);
  const fetched = await broker.call(offsetFetchApi, 7, { groupId: "g", topics: null });
  assert.equal(fetched.topics[0]!.partitions[0]!.committedOffset, 6);
  close();
});

test("all offsets of a group are answered once, however often they are asked for", async () => {
  const { broker, close } = await world();
  await broker.createTopic("t");
  const topics = [{
    name: "t",
    partitions: [{ partitionIndex: 0, committedOffset: 1, committedMetadata: null }],
  }];
  await broker.call(offsetCommitApi, 7, { groupId: "g", memberId: "", topics });
  const one = { groupId: "g", memberId: null, memberEpoch: -1, topics: null };
  const answer = await broker.call(offsetFetchApi, 8, { groups: [one, one, one] });
  assert.equal(answer.groups.length, 1);
  assert.equal(answer.groups[0]!.topics[0]!.partitions[0]!.committedOffset, 1);
  close();
});

test("named partitions are looked up without a look at all that open transactions have", async () => {
  const { broker, coordinator, close } = await world();
  await broker.createTopic("t");
  const found = await coordinator.shardOf("g");
  assert.ok(found.ok);
  let looks = 0;
  found.shard.pending.of = () => {
    looks += 1;
    return [];
  };
  const one = { groupId: "g", memberId: null, memberEpoch: -1 };
  const named = { ...one, topics: [{ name: "t", partitionIndexes: [0] }] };
  const groups = [named, named, { ...one, topics: [] }];
  await broker.call(offsetFetchApi, 8, { groups, requireStable: true });
  assert.equal(looks, 0);
  await broker.call(offsetFetchApi, 8, { groups: [{ ...one, topics: null }], requireStable: true });
  assert.equal(looks, 1);
  close();
});
