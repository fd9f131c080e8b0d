import assert from "node:assert/strict";
import { test } from "node:test";
import { FaultError } from "../../lib/errors.ts";
import { errorName } from "../../protocol/error_code.ts";
import { offsetCommitApi } from "../../protocol/message/08_offset_commit.ts";
import { offsetFetchApi } from "../../protocol/message/09_offset_fetch.ts";
import { joinGroupApi } from "../../protocol/message/11_join_group.ts";
import { heartbeatApi } from "../../protocol/message/12_heartbeat.ts";
import { leaveGroupApi } from "../../protocol/message/13_leave_group.ts";
import { syncGroupApi } from "../../protocol/message/14_sync_group.ts";
import { describeGroupsApi } from "../../protocol/message/15_describe_groups.ts";
import { listGroupsApi } from "../../protocol/message/16_list_groups.ts";
import { deleteGroupsApi } from "../../protocol/message/42_delete_groups.ts";
import { type BrokerWorld, createBrokerWorld } from "../../../tests/support/broker_world.ts";
import type { BrokerServices } from "../handler.ts";
import { routesOf } from "../routes.ts";
import { Transactions } from "../txn/transactions.ts";
import { Coordinator, type CoordinatorBounds, type ShardFound } from "./coordinator.ts";

async function world(bounds?: CoordinatorBounds, partitions = "1") {
  const found: { services: BrokerServices; coordinator: Coordinator }[] = [];
  const broker = await createBrokerWorld({
    properties: { "offsets.topic.num.partitions": partitions },
    routes: (services) => {
      const coordinator = new Coordinator(services, bounds);
      found.push({ services, coordinator });
      const transactions = new Transactions({ ...services, coordinator });
      return routesOf({ ...services, coordinator, transactions });
    },
  });
  return { broker, ...found[0]! };
}

test("groups of a new cluster lie in Kafka's partitions, those of an earlier build where they are", async () => {
  const { broker: { metadata }, coordinator } = await world(undefined, "50");
  assert.equal(await coordinator.partitionOf("orders"), 31);
  const key = [...metadata.view().kv.entries()].map(([name]) => name)
    .find((name) => name.startsWith("kafka/placement/"));
  assert.ok(key !== undefined);
  await metadata.submit({ type: "delete-kv", key, expectedVersion: 1 });
  assert.equal(await coordinator.partitionOf("orders"), 17);
});

const JOIN = {
  groupId: "g",
  sessionTimeoutMs: 60_000,
  rebalanceTimeoutMs: 20_000,
  memberId: "",
  protocolType: "consumer",
  protocols: [{ name: "range", metadata: new Uint8Array(4) }],
};

async function join(
  broker: BrokerWorld,
  over: Partial<typeof JOIN> & { readonly clientId?: string } = {},
) {
  const { clientId = "c", ...request } = over;
  const answer = await broker.call(joinGroupApi, 3, { ...JOIN, ...request }, { clientId });
  return errorName(answer.errorCode);
}

test("the request that makes a shard load gets it, not COORDINATOR_LOAD_IN_PROGRESS", async () => {
  // Found by the simulator on Deno: ending the wait for the load overtook the load's own answer.
  const { coordinator } = await world();
  const shard = await coordinator.shardOf("g");
  assert.ok(shard.ok, shard.ok ? "" : shard.error);
  coordinator.close();
});

/** The node's rows lose their leader, as when another incarnation of it registers. */
async function loseLeadership({ metadata, services }: BrokerWorld): Promise<void> {
  const row = metadata.view().nodes.get(services.nodeId)!;
  await metadata.submit({ type: "register-node", ...row, incarnation: "1".repeat(32) });
}

test("a shard ends with its partition: who waits in it is sent on without another request", async () => {
  const { broker, coordinator } = await world();
  const waiting = join(broker);
  await broker.clock.settle();
  const shard = await coordinator.shardOf("g");
  assert.ok(shard.ok);
  assert.equal(shard.shard.groups.size, 1);
  await loseLeadership(broker);
  assert.ok(shard.shard.closed);
  assert.equal(await waiting, "NOT_COORDINATOR");
  assert.equal(
    broker.clock.timers,
    5,
    "the ticks of partitions, groups, share states and transactions, no timer of the group",
  );
  assert.equal(await join(broker), "NOT_COORDINATOR");
  coordinator.close();
});

test("a shard whose partition is lost while it loads is not used", async () => {
  const { broker, coordinator } = await world();
  let go: () => void = () => {};
  broker.gate = new Promise((resolve) => {
    go = resolve;
  });
  const waiting = join(broker);
  await broker.clock.settle();
  await loseLeadership(broker);
  go();
  assert.equal(await waiting, "NOT_COORDINATOR");
  coordinator.close();
});

test("a shard that closes just after it was found answers NOT_COORDINATOR in every API", async () => {
  const { broker, coordinator } = await world();
  const joining = join(broker);
  await broker.clock.settle();
  const found = await coordinator.shardOf("g");
  assert.ok(found.ok);
  coordinator.close();
  assert.equal(await joining, "NOT_COORDINATOR");
  coordinator.shardOf = (): Promise<ShardFound> => Promise.resolve(found);
  coordinator.allShards = () => Promise.resolve([found]);
  await broker.createTopic("t");
  const member = { groupId: "g", generationId: 1, memberId: "m" };
  const partitions = [{ partitionIndex: 0, committedOffset: 1, committedMetadata: null }];
  const errors = {
    join: await join(broker),
    sync: (await broker.call(syncGroupApi, 3, { ...member, assignments: [] })).errorCode,
    heartbeat: (await broker.call(heartbeatApi, 3, member)).errorCode,
    leave: (await broker.call(leaveGroupApi, 3, { groupId: "g", members: [] })).errorCode,
    commit: (await broker.call(offsetCommitApi, 7, {
      groupId: "g",
      memberId: "",
      topics: [{ name: "t", partitions }],
    })).topics[0]!.partitions[0]!.errorCode,
    fetch: (await broker.call(offsetFetchApi, 7, {
      groupId: "g",
      topics: [{ name: "t", partitionIndexes: [0] }],
    })).errorCode,
    describe: (await broker.call(describeGroupsApi, 3, { groups: ["g"] })).groups[0]!.errorCode,
    list: (await broker.call(listGroupsApi, 2, {})).errorCode,
    remove: (await broker.call(deleteGroupsApi, 1, { groupsNames: ["g"] })).results[0]!.errorCode,
  };
  for (const [api, error] of Object.entries(errors)) {
    assert.equal(typeof error === "string" ? error : errorName(error), "NOT_COORDINATOR", api);
  }
});

test("groups that cannot be read back are not read again at each request", async () => {
  const { broker, coordinator } = await world();
  assert.ok((await coordinator.shardOf("g")).ok);
  coordinator.close();
  const log = broker.logs.get("__consumer_offsets-0")!;
  log.append(broker.batch("not a group"));
  const again = new Coordinator(broker.services);
  log.fault = new FaultError("corrupt", "a data block is damaged", { retriable: false });
  let reads = 0;
  const { read } = log;
  log.read = (...args) => {
    reads += 1;
    return read(...args);
  };
  const refused = { ok: false, error: "COORDINATOR_NOT_AVAILABLE" };
  for (let n = 0; n < 100; n++) {
    assert.deepEqual(await again.shardOf("g"), refused);
    await broker.clock.advance(1000);
  }
  assert.ok(reads > 5 && reads < 12, `${reads} reads in 100 s`);
  log.fault = null;
  await broker.clock.advance(30_000);
  assert.ok((await again.shardOf("g")).ok);
  again.close();
});

test("group state of a node is bounded: no more members, no more offsets, but offsets move on", async () => {
  const { broker, coordinator } = await world({ stateBytesMax: 20_000 });
  await broker.createTopic("t", 100);
  const metadata = new Uint8Array(4000);
  const outcomes: string[] = [];
  for (let n = 0; n < 8; n++) {
    const joining = join(broker, { groupId: `g${n}`, protocols: [{ name: "range", metadata }] });
    await broker.clock.advance(3000);
    outcomes.push(await joining);
  }
  assert.deepEqual(new Set(outcomes.slice(0, 3)), new Set(["NONE"]));
  assert.deepEqual(new Set(outcomes.slice(5)), new Set(["GROUP_MAX_SIZE_REACHED"]));
  const commit = async (partitionIndex: number, committedOffset: number, text: string) => {
    const partitions = [{ partitionIndex, committedOffset, committedMetadata: text }];
    const topics = [{ name: "t", partitions }];
    const answer = await broker.call(offsetCommitApi, 7, { groupId: "s", memberId: "", topics });
    return errorName(answer.topics[0]!.partitions[0]!.errorCode);
  };
  const stored: string[] = [];
  for (let at = 0; at < 20; at++) stored.push(await commit(at, 1, "m".repeat(1000)));
  assert.equal(stored[0], "NONE");
  assert.equal(stored.at(-1), "INVALID_COMMIT_OFFSET_SIZE");
  assert.equal(await commit(0, 2, "m".repeat(1000)), "NONE");
  coordinator.close();
});

test("names that cannot be written back are refused before they break the group's record", async () => {
  const { broker, coordinator } = await world();
  const long = "\ufffd".repeat(10_920);
  assert.equal(await join(broker, { clientId: long }), "INVALID_REQUEST");
  coordinator.close();
});

test("the log of groups is rewritten by and by, from the size on that was asked for", async () => {
  const { broker, coordinator } = await world({ compactBytesMin: 1000 });
  await broker.createTopic("t");
  for (let offset = 0; offset < 40; offset++) {
    const partitions = [{ partitionIndex: 0, committedOffset: offset, committedMetadata: null }];
    const topics = [{ name: "t", partitions }];
    await broker.call(offsetCommitApi, 7, { groupId: "s", memberId: "", topics });
  }
  const log = broker.logs.get("__consumer_offsets-0")!;
  assert.equal(log.logStartOffset, 0);
  await broker.clock.advance(600_000);
  assert.equal(log.logStartOffset, 40);
  coordinator.close();
});
