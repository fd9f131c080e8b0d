import assert from "node:assert/strict";
import { test } from "node:test";
import { createBrokerWorld } from "../../../tests/support/broker_world.ts";
import { TOPIC_REGEXES_PER_GROUP_MAX } from "../../lib/limits.ts";
import { errorName } from "../../protocol/error_code.ts";
import { consumerGroupHeartbeatApi } from "../../protocol/message/68_consumer_group_heartbeat.ts";
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
  await broker.createTopic("t");
  const coordinator = made[0]!;
  let lookups = 0;
  const { regexes } = coordinator.consumers;
  const resolve = regexes.resolve.bind(regexes);
  regexes.resolve = (pattern) => {
    lookups += 1;
    return resolve(pattern);
  };
  async function join(memberId: string, subscribedTopicRegex: string) {
    const answer = await broker.call(consumerGroupHeartbeatApi, 1, {
      groupId: "g",
      memberId,
      memberEpoch: 0,
      rebalanceTimeoutMs: 60_000,
      subscribedTopicRegex,
      topicPartitions: [],
    });
    return { error: errorName(answer.errorCode), epoch: answer.memberEpoch };
  }
  async function beat(memberId: string, memberEpoch: number) {
    const request = { groupId: "g", memberId, memberEpoch };
    return await broker.call(consumerGroupHeartbeatApi, 1, request);
  }
  return { broker, coordinator, join, beat, lookups: () => lookups };
}

test("a group has a bounded number of expressions; one that it has already may be said again", async () => {
  const { coordinator, join } = await world();
  for (let n = 0; n < TOPIC_REGEXES_PER_GROUP_MAX; n++) {
    assert.equal((await join(`m${n}`, `t|${n}`)).error, "NONE");
  }
  assert.equal((await join("more", "other")).error, "GROUP_MAX_SIZE_REACHED");
  assert.equal((await join("same", "t|7")).error, "NONE");
  coordinator.close();
});

test("a heartbeat looks expressions up only when topics have changed", async () => {
  const { broker, coordinator, join, beat, lookups } = await world();
  const { epoch } = await join("a", "t.*");
  const before = lookups();
  for (let n = 0; n < 5; n++) assert.equal((await beat("a", epoch)).errorCode, 0);
  assert.equal(lookups(), before);
  await broker.createTopic("t2");
  const told = await beat("a", epoch);
  assert.equal(told.assignment?.topicPartitions.length, 2, "the new topic is its own");
  coordinator.close();
});
