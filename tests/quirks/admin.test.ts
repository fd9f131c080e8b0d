/** Admin APIs on a whole node: sheet sections 3.8, 3.9, 3.13 and 3.17. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeVersioned } from "../../src/protocol/versioned.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { apiVersionsApi } from "../../src/protocol/message/18_api_versions.ts";
import { consumerProtocolSubscription } from "../../src/protocol/message/consumer_protocol.ts";
import { offsetFetchApi } from "../../src/protocol/message/09_offset_fetch.ts";
import { deleteRecordsApi } from "../../src/protocol/message/21_delete_records.ts";
import { describeConfigsApi } from "../../src/protocol/message/32_describe_configs.ts";
import { alterConfigsApi } from "../../src/protocol/message/33_alter_configs.ts";
import { describeLogDirsApi } from "../../src/protocol/message/35_describe_log_dirs.ts";
import { incrementalAlterConfigsApi } from "../../src/protocol/message/44_incremental_alter_configs.ts";
import { offsetDeleteApi } from "../../src/protocol/message/47_offset_delete.ts";
import { describeClientQuotasApi } from "../../src/protocol/message/48_describe_client_quotas.ts";
import { alterClientQuotasApi } from "../../src/protocol/message/49_alter_client_quotas.ts";
import { updateFeaturesApi } from "../../src/protocol/message/57_update_features.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { GroupMember } from "./group_member.ts";
import { batch, named, type Quirks, restarted, startQuirks, TIME, valuesOf } from "./quirks.ts";

const TOPIC = 2;
const BROKER = 4;
const SET = 0;
const DELETE = 1;

// DeleteRecords.

async function trim(q: Quirks, offset: number, { topic = "t", partition = 0, version = 2 } = {}) {
  const answer = await q.call(deleteRecordsApi, version, {
    topics: [{ name: topic, partitions: [{ partitionIndex: partition, offset }] }],
    timeoutMs: 1000,
  });
  const { error, lowWatermark } = named(answer.topics[0]!.partitions[0]!);
  return [error, lowWatermark];
}

test("DeleteRecords moves the log start, also inside a batch, which is still read as a whole", async () => {
  const q = await startQuirks();
  await q.topic("t");
  await q.produce("t", batch(["0", "1", "2"]));
  await q.produce("t", batch(["3", "4"]));
  for (const version of [0, 1, 2]) {
    assert.deepEqual(await trim(q, version, { version }), ["NONE", version]);
  }
  assert.equal((await q.fetch("t", 1)).error, "OFFSET_OUT_OF_RANGE");
  const read = await q.fetch("t", 2);
  assert.deepEqual([read.logStartOffset, valuesOf(read.records)], [2, ["0", "1", "2", "3", "4"]]);
});

test("DeleteRecords: -1 is the high watermark; a lower offset than the start changes nothing", async () => {
  const q = await startQuirks();
  await q.topic("t");
  await q.produce("t", batch(["0", "1", "2"]));
  assert.deepEqual(await trim(q, -1), ["NONE", 3]);
  assert.deepEqual(await trim(q, 1), ["NONE", 3]);
  assert.equal((await q.fetch("t", 3)).logStartOffset, 3);
});

test("DeleteRecords: the table of refusals", async () => {
  const q = await startQuirks();
  await q.topic("t");
  await q.topic("compacted", 1, { "cleanup.policy": "compact" });
  await q.topic("both", 1, { "cleanup.policy": "compact,delete" });
  await q.commit("g", "t", 1);
  assert.deepEqual(await trim(q, 1), ["OFFSET_OUT_OF_RANGE", -1]);
  assert.deepEqual(await trim(q, -2), ["OFFSET_OUT_OF_RANGE", -1]);
  assert.deepEqual(await trim(q, Number.MAX_SAFE_INTEGER), ["OFFSET_OUT_OF_RANGE", -1]);
  assert.deepEqual(await trim(q, 0, { partition: 1 }), ["UNKNOWN_TOPIC_OR_PARTITION", -1]);
  assert.deepEqual(await trim(q, 0, { topic: "u" }), ["UNKNOWN_TOPIC_OR_PARTITION", -1]);
  assert.deepEqual(await trim(q, 0, { topic: "compacted" }), ["POLICY_VIOLATION", -1]);
  assert.deepEqual(await trim(q, 0, { topic: "both" }), ["NONE", 0]);
  const internal = await trim(q, 0, { topic: "__consumer_offsets" });
  assert.deepEqual(internal, ["INVALID_TOPIC_EXCEPTION", -1]);
});

test("DeleteRecords deletes what it was asked to, not what retention would", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const old = (value: string) => ({ value, timestamp: TIME - 30 * 86_400_000 });
  await q.produce("t", batch([old("0"), old("1")]));
  await q.produce("t", batch([old("2")]));
  assert.deepEqual(await trim(q, 1), ["NONE", 1]);
  assert.equal((await q.fetch("t", 1)).error, "NONE");
});

test("DeleteRecords survives a crash", async () => {
  const before = await startQuirks();
  await before.topic("t");
  await before.produce("t", batch(["0", "1", "2"]));
  await trim(before, 2);
  const q = await restarted(before, { clean: false });
  assert.equal((await q.fetch("t", 1)).error, "OFFSET_OUT_OF_RANGE");
  assert.equal((await q.fetch("t", 2)).error, "NONE");
});

// Configs.

interface Shown {
  readonly value: string | null;
  readonly configSource: number;
  readonly readOnly: boolean;
  readonly synonyms: readonly { readonly name: string; readonly source: number }[];
}

async function configOf(q: Quirks, type: number, name: string, key: string) {
  const answer = await q.call(describeConfigsApi, 4, {
    resources: [{ resourceType: type, resourceName: name, configurationKeys: [key] }],
    includeSynonyms: true,
  });
  const [result] = answer.results;
  assert.equal(errorName(result!.errorCode), "NONE");
  return result!.configs[0] as Shown | undefined;
}

async function change(
  q: Quirks,
  name: string,
  changes: readonly (readonly [key: string, operation: number, value: string | null])[],
  { type = BROKER, validateOnly = false } = {},
) {
  const configs = changes.map(([key, configOperation, value]) => ({
    name: key,
    configOperation,
    value,
  }));
  const answer = await q.call(incrementalAlterConfigsApi, 1, {
    resources: [{ resourceType: type, resourceName: name, configs }],
    validateOnly,
  });
  return named(answer.responses[0]!);
}

async function replace(
  q: Quirks,
  type: number,
  name: string,
  configs: Readonly<Record<string, string | null>>,
  { validateOnly = false, version = 2 } = {},
) {
  const answer = await q.call(alterConfigsApi, version, {
    resources: [{
      resourceType: type,
      resourceName: name,
      configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
    }],
    validateOnly,
  });
  return named(answer.responses[0]!).error;
}

test("AlterConfigs replaces all: keys that are not named go back to their default", async () => {
  const q = await startQuirks();
  await q.topic("t", 1, { "retention.ms": "5000", "retention.bytes": "7" });
  for (const version of [0, 1, 2]) {
    assert.equal(await replace(q, TOPIC, "t", { "segment.ms": "9" }, { version }), "NONE");
    assert.equal((await configOf(q, TOPIC, "t", "retention.ms"))!.value, "604800000");
    assert.equal((await configOf(q, TOPIC, "t", "retention.bytes"))!.configSource, 5);
    assert.equal((await configOf(q, TOPIC, "t", "segment.ms"))!.value, "9");
    await replace(q, TOPIC, "t", { "retention.ms": "5000", "retention.bytes": "7" });
  }
  assert.equal(await replace(q, TOPIC, "t", {}), "NONE");
  assert.equal((await configOf(q, TOPIC, "t", "retention.bytes"))!.value, "-1");
});

test("AlterConfigs: refusals, of which nothing is applied, and a dry run", async () => {
  const q = await startQuirks();
  await q.topic("t", 1, { "retention.ms": "5000" });
  assert.equal(await replace(q, TOPIC, "t", { "no.such": "1" }), "INVALID_CONFIG");
  assert.equal(await replace(q, TOPIC, "t", { "retention.ms": "soon" }), "INVALID_CONFIG");
  assert.equal(await replace(q, TOPIC, "t", { "retention.ms": null }), "INVALID_REQUEST");
  assert.equal(await replace(q, TOPIC, "u", {}), "UNKNOWN_TOPIC_OR_PARTITION");
  assert.equal(await replace(q, TOPIC, "a b", {}), "INVALID_TOPIC_EXCEPTION");
  assert.equal(await replace(q, BROKER, "7", {}), "INVALID_REQUEST");
  assert.equal(await replace(q, BROKER, "x", {}), "INVALID_REQUEST");
  assert.equal(await replace(q, 8, "1", {}), "INVALID_REQUEST");
  assert.equal(await replace(q, TOPIC, "t", {}, { validateOnly: true }), "NONE");
  const resource = { resourceType: TOPIC, resourceName: "t", configs: [] };
  const twice = await q.call(alterConfigsApi, 2, {
    resources: [resource, resource],
    validateOnly: false,
  });
  assert.deepEqual(twice.responses.map((one) => named(one).error), [
    "INVALID_REQUEST",
    "INVALID_REQUEST",
  ]);
  assert.equal((await configOf(q, TOPIC, "t", "retention.ms"))!.value, "5000");
});

test("an internal topic keeps its cleanup.policy, whatever else is set", async () => {
  const q = await startQuirks();
  await q.topic("t");
  await q.commit("g", "t", 1);
  const offsets = "__consumer_offsets";
  assert.equal(await replace(q, TOPIC, offsets, { "segment.ms": "9" }), "POLICY_VIOLATION");
  const deletes: [string, number, string][] = [["cleanup.policy", SET, "delete"]];
  const { error } = await change(q, offsets, deletes, { type: TOPIC });
  assert.equal(error, "POLICY_VIOLATION");
  const kept = { "segment.ms": "9", "cleanup.policy": "compact" };
  assert.equal(await replace(q, TOPIC, offsets, kept), "NONE");
  assert.equal((await configOf(q, TOPIC, offsets, "segment.ms"))!.value, "9");
});

test("replicas to throttle are lists of partition:broker, or *", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const key = "leader.replication.throttled.replicas";
  for (const value of ["", "*", "0:1", "0:1,1:1"]) {
    assert.equal(await replace(q, TOPIC, "t", { [key]: value }), "NONE", value);
  }
  for (const value of ["1", "a:b", "0:1,x", "0:1:2"]) {
    assert.equal(await replace(q, TOPIC, "t", { [key]: value }), "INVALID_CONFIG", value);
  }
});

test("lags of compaction that contradict each other are refused together", async () => {
  const q = await startQuirks();
  await q.topic("t", 1, { "min.compaction.lag.ms": "10" });
  const { error, errorMessage } = await change(
    q,
    "t",
    [["max.compaction.lag.ms", SET, "9"]],
    { type: TOPIC },
  );
  assert.equal(error, "INVALID_CONFIG");
  assert.match(errorMessage ?? "", /min.compaction.lag.ms \(10\) > max.compaction.lag.ms \(9\)/);
  const both = { "min.compaction.lag.ms": "3", "max.compaction.lag.ms": "9" };
  assert.equal(await replace(q, TOPIC, "t", both), "NONE");
});

test("a broker setting changes topics' defaults in running partitions at once, and says where it is from", async () => {
  const q = await startQuirks({ "message.max.bytes": "9000" });
  await q.topic("t");
  const size = async () => (await q.produce("t", batch(["x".repeat(5000)]))).error;
  assert.equal(await size(), "NONE");
  assert.equal((await change(q, "", [["message.max.bytes", SET, "1000"]])).error, "NONE");
  assert.equal(await size(), "MESSAGE_TOO_LARGE");
  assert.equal((await change(q, "1", [["message.max.bytes", SET, "8000"]])).error, "NONE");
  assert.equal(await size(), "NONE");
  const topic = await configOf(q, TOPIC, "t", "max.message.bytes");
  assert.deepEqual([topic!.value, topic!.configSource], ["8000", 2]);
  assert.deepEqual(topic!.synonyms.map(({ name, source }) => [name, source]), [
    ["message.max.bytes", 2],
    ["message.max.bytes", 3],
    ["message.max.bytes", 4],
    ["message.max.bytes", 5],
  ]);
  const broker = await configOf(q, BROKER, "1", "message.max.bytes");
  assert.deepEqual([broker!.value, broker!.configSource, broker!.readOnly], ["8000", 2, false]);
  const all = await configOf(q, BROKER, "", "message.max.bytes");
  assert.deepEqual([all!.value, all!.configSource], ["1000", 3]);
  await change(q, "1", [["message.max.bytes", DELETE, null]]);
  assert.equal(await size(), "MESSAGE_TOO_LARGE");
  await change(q, "", [["message.max.bytes", DELETE, null]]);
  assert.equal(await size(), "NONE");
  assert.equal(await configOf(q, BROKER, "", "message.max.bytes"), undefined);
});

test("read-only broker settings are refused in Kafka's words, and so are bad values and other brokers", async () => {
  const q = await startQuirks();
  const fixed = await change(q, "1", [["num.partitions", SET, "2"], [
    "log.retention.hours",
    SET,
    "1",
  ]]);
  assert.equal(fixed.error, "INVALID_REQUEST");
  assert.equal(
    fixed.errorMessage,
    "Cannot update these configs dynamically: Set(num.partitions, log.retention.hours)",
  );
  const refused = async (name: string, key: string, value: string) =>
    (await change(q, name, [[key, SET, value]])).error;
  assert.equal(await refused("1", "message.max.bytes", "x"), "INVALID_REQUEST");
  assert.equal(await refused("1", "no.such", "1"), "INVALID_REQUEST");
  assert.equal(await refused("2", "message.max.bytes", "1000"), "INVALID_REQUEST");
  assert.equal((await configOf(q, BROKER, "1", "num.partitions"))!.readOnly, true);
  const dry = await change(q, "1", [["message.max.bytes", SET, "1000"]], { validateOnly: true });
  assert.equal(dry.error, "NONE");
  assert.equal((await configOf(q, BROKER, "1", "message.max.bytes"))!.value, "1048588");
});

test("AlterConfigs on a broker replaces what was set while it runs, and both survive a crash", async () => {
  const before = await startQuirks();
  await change(before, "1", [["message.max.bytes", SET, "1000"]]);
  assert.equal(await replace(before, BROKER, "1", { "log.retention.ms": "7" }), "NONE");
  const q = await restarted(before, { clean: false });
  assert.equal((await configOf(q, BROKER, "1", "message.max.bytes"))!.value, "1048588");
  const kept = await configOf(q, BROKER, "1", "log.retention.ms");
  assert.deepEqual([kept!.value, kept!.configSource], ["7", 2]);
  await q.topic("t");
  assert.equal((await configOf(q, TOPIC, "t", "retention.ms"))!.value, "7");
});

test("max.connections counts from the next connection on", async () => {
  const q = await startQuirks();
  await change(q, "", [["max.connections", SET, "1"]]);
  await q.node.connect().closed;
  await change(q, "", [["max.connections", SET, "2"]]);
  const second = q.node.connect();
  assert.equal((await second.call(apiVersionsApi, 0, {})).errorCode, 0);
});

// DescribeLogDirs.

async function sizes(q: Quirks, topics: Record<string, number[]> | null, version = 4) {
  const answer = await q.call(describeLogDirsApi, version, {
    topics: topics === null
      ? null
      : Object.entries(topics).map(([topic, partitions]) => ({ topic, partitions })),
  });
  assert.equal(answer.errorCode, 0);
  assert.equal(answer.results.length, 1);
  const [dir] = answer.results;
  assert.deepEqual([dir!.errorCode, dir!.totalBytes, dir!.usableBytes], [0, -1, -1]);
  return Object.fromEntries(
    dir!.topics.flatMap(({ name, partitions }) =>
      partitions.map((one) => [`${name}-${one.partitionIndex}`, one.partitionSize])
    ),
  );
}

test("DescribeLogDirs: bytes of each partition, from the log start on", async () => {
  const q = await startQuirks();
  await q.topic("t", 2);
  await q.topic("u");
  const sent = batch(["x".repeat(1000)]);
  await q.produce("t", sent, { partition: 1 });
  for (const version of [1, 2, 3, 4]) {
    assert.deepEqual(await sizes(q, null, version), { "t-0": 0, "t-1": sent.length, "u-0": 0 });
  }
  assert.deepEqual(await sizes(q, { t: [1, 1, 9, -1], nobody: [0] }), { "t-1": sent.length });
  assert.deepEqual(await sizes(q, {}), {});
  const after = await restarted(q, { clean: false });
  assert.equal((await sizes(after, null))["t-1"], sent.length, "opened for the question");
});

/** Calls of the store, by name. */
function counted(store: ObjectStore): { store: ObjectStore; calls: Map<string, number> } {
  const calls = new Map<string, number>();
  const count = (name: string) => void calls.set(name, (calls.get(name) ?? 0) + 1);
  return {
    calls,
    store: new Proxy(store, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...args: unknown[]): unknown => {
          count(String(name));
          return Reflect.apply(value, target, args);
        };
      },
    }),
  };
}

test("DescribeLogDirs: a log that was closed well is not opened, nor taken over, nor read twice", async () => {
  const q = await startQuirks();
  await q.topic("t", 2, { "segment.bytes": "1048576" });
  for (let n = 0; n < 3; n++) await q.produce("t", batch(["x".repeat(700_000)]), { partition: 1 });
  await q.topic("never");
  assert.deepEqual(await trim(q, 1, { partition: 1 }), ["NONE", 1]);
  const open = await sizes(q, null);
  await q.node.close();
  const { store, calls } = counted(q.node.store);
  const after = await startQuirks({}, { clock: q.node.clock, store, seed: 99 });
  assert.ok(open["t-1"]! > 1_400_000);
  calls.clear();
  assert.deepEqual(await sizes(after, null), open);
  assert.deepEqual([...calls.keys()], ["get"], "opening writes to the metadata");
  calls.clear();
  assert.deepEqual(await sizes(after, null), open);
  assert.deepEqual([...calls.keys()], []);
  await after.produce("t", batch(["more"]), { partition: 1 });
  assert.ok((await sizes(after, null))["t-1"]! > open["t-1"]!);
});

// OffsetDelete.

async function forget(q: Quirks, groupId: string, topics: Record<string, number[]>) {
  const answer = await q.call(offsetDeleteApi, 0, {
    groupId,
    topics: Object.entries(topics).map(([name, partitions]) => ({
      name,
      partitions: partitions.map((partitionIndex) => ({ partitionIndex })),
    })),
  });
  return {
    error: errorName(answer.errorCode),
    errors: answer.topics.flatMap(({ partitions }) => partitions.map((one) => named(one).error)),
  };
}

async function committed(q: Quirks, groupId: string, topic: string): Promise<number> {
  const answer = await q.call(offsetFetchApi, 7, {
    groupId,
    topics: [{ name: topic, partitionIndexes: [0] }],
  });
  return answer.topics[0]!.partitions[0]!.committedOffset;
}

test("OffsetDelete forgets offsets of an empty group, for good", async () => {
  const before = await startQuirks();
  await before.topic("t");
  await before.topic("u");
  await before.commit("g", "t", 1);
  await before.commit("g", "u", 2);
  const answer = await forget(before, "g", { t: [0, 7], nobody: [0] });
  assert.deepEqual(answer, {
    error: "NONE",
    errors: ["NONE", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION"],
  });
  assert.deepEqual([await committed(before, "g", "t"), await committed(before, "g", "u")], [-1, 2]);
  const q = await restarted(before, { clean: false });
  assert.deepEqual([await committed(q, "g", "t"), await committed(q, "g", "u")], [-1, 2]);
  await q.commit("g", "t", 5);
  assert.equal(await committed(q, "g", "t"), 5);
});

test("OffsetDelete: groups that there are not, and topics that members read", async () => {
  const q = await startQuirks();
  await q.topic("t");
  await q.topic("u");
  assert.deepEqual(await forget(q, "", { t: [0] }), { error: "INVALID_GROUP_ID", errors: [] });
  assert.deepEqual(await forget(q, "g", { t: [0] }), { error: "GROUP_ID_NOT_FOUND", errors: [] });
  const metadata = encodeVersioned(consumerProtocolSubscription, 0, {
    topics: ["t"],
    userData: null,
  });
  const member = new GroupMember(q, { protocols: [["range", metadata]] });
  await member.enter();
  await member.sync({ [member.id]: "all" }, { protocolType: "consumer", protocolName: "range" });
  const as = { generation: member.generation, memberId: member.id };
  assert.equal(await q.commit("g", "t", 1, as), "NONE");
  assert.equal(await q.commit("g", "u", 2, as), "NONE");
  const answer = await forget(q, "g", { t: [0], u: [0] });
  assert.deepEqual(answer, { error: "NONE", errors: ["GROUP_SUBSCRIBED_TO_TOPIC", "NONE"] });
  assert.deepEqual([await committed(q, "g", "t"), await committed(q, "g", "u")], [1, -1]);
});

test("OffsetDelete: consumers whose subscriptions cannot be read keep all offsets", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const member = new GroupMember(q, { protocols: [["range", "not a subscription"]] });
  await member.enter();
  await member.sync({ [member.id]: "all" }, { protocolType: "consumer", protocolName: "range" });
  assert.deepEqual(await forget(q, "g", { t: [0] }), {
    error: "NONE",
    errors: ["GROUP_SUBSCRIBED_TO_TOPIC"],
  });
});

test("OffsetDelete: members of another protocol type are NON_EMPTY_GROUP", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const member = new GroupMember(q, { protocolType: "connect" });
  await member.enter();
  await member.sync({ [member.id]: "all" }, { protocolType: "connect", protocolName: "range" });
  assert.deepEqual(await forget(q, "g", { t: [0] }), { error: "NON_EMPTY_GROUP", errors: [] });
});

// Client quotas.

type Entity = readonly (readonly [type: string, name: string | null])[];
type Op = readonly [key: string, value: number | null];

async function quota(q: Quirks, entity: Entity, ops: readonly Op[], validateOnly = false) {
  const answer = await q.call(alterClientQuotasApi, 1, {
    entries: [{
      entity: entity.map(([entityType, entityName]) => ({ entityType, entityName })),
      ops: ops.map(([key, value]) => ({ key, value: value ?? 0, remove: value === null })),
    }],
    validateOnly,
  });
  return errorName(answer.entries[0]!.errorCode);
}

type Component = readonly [type: string, match: number, name?: string];

async function quotas(q: Quirks, components: readonly Component[] = [], strict = false) {
  const answer = await q.call(describeClientQuotasApi, 1, {
    components: components.map(([entityType, matchType, match = null]) => ({
      entityType,
      matchType,
      match,
    })),
    strict,
  });
  if (answer.errorCode !== 0) {
    assert.equal(answer.entries, null);
    return errorName(answer.errorCode);
  }
  return answer.entries!.map(({ entity, values }) => [
    entity.map(({ entityType, entityName }) => `${entityType}=${entityName}`).join(" "),
    values.map(({ key, value }) => `${key}=${value}`).join(" "),
  ]).toSorted();
}

test("client quotas are kept, filtered by entity, and survive a crash", async () => {
  const before = await startQuirks();
  const set = (entity: Entity, ...ops: Op[]) => quota(before, entity, ops);
  assert.equal(await set([["user", "a"]], ["producer_byte_rate", 1000]), "NONE");
  assert.equal(
    await set([["user", "a"], ["client-id", null]], ["request_percentage", 12.5]),
    "NONE",
  );
  assert.equal(await set([["client-id", "c"]], ["consumer_byte_rate", 7]), "NONE");
  assert.equal(await set([["ip", "10.0.0.1"]], ["connection_creation_rate", 3]), "NONE");
  assert.equal(await set([["user", null]], ["controller_mutation_rate", 0.5]), "NONE");
  assert.equal(await set([["user", null]], ["controller_mutation_rate", null]), "NONE");
  assert.equal(await set([["user", "z"]], ["producer_byte_rate", null]), "NONE");
  const q = await restarted(before, { clean: false });
  const user = ["user=a", "producer_byte_rate=1000"];
  const pair = ["client-id=null user=a", "request_percentage=12.5"];
  const client = ["client-id=c", "consumer_byte_rate=7"];
  const address = ["ip=10.0.0.1", "connection_creation_rate=3"];
  assert.deepEqual(await quotas(q), [client, pair, address, user].toSorted());
  assert.deepEqual(await quotas(q, [["user", 0, "a"]]), [pair, user]);
  assert.deepEqual(await quotas(q, [["user", 0, "a"]], true), [user]);
  assert.deepEqual(await quotas(q, [["user", 0, "a"], ["client-id", 1]], true), [pair]);
  assert.deepEqual(await quotas(q, [["client-id", 2]]), [client, pair]);
  assert.deepEqual(await quotas(q, [["client-id", 1]]), [pair]);
  assert.deepEqual(await quotas(q, [["ip", 2]]), [address]);
  assert.deepEqual(await quotas(q, [["user", 0, "b"]]), []);
});

test("client quotas: entities, keys and numbers that Kafka refuses", async () => {
  const q = await startQuirks();
  const one: Op = ["producer_byte_rate", 1];
  const cases: [Entity, Op][] = [
    [[], one],
    [[["group", "a"]], one],
    [[["user", ""]], one],
    [[["user", "a"], ["user", "b"]], one],
    [[["user", "a"], ["ip", "10.0.0.1"]], one],
    [[["ip", "not an address"]], ["connection_creation_rate", 1]],
    [[["ip", "10.0.0.1"]], one],
    [[["user", "a"]], ["connection_creation_rate", 1]],
    [[["user", "a"]], ["no_such", 1]],
    [[["user", "a"]], ["no_such", null]],
    [[["user", "a"]], ["producer_byte_rate", 0]],
    [[["user", "a"]], ["producer_byte_rate", -1]],
    [[["user", "a"]], ["producer_byte_rate", 1.5]],
    [[["user", "a"]], ["request_percentage", Infinity]],
  ];
  for (const [entity, op] of cases) {
    assert.equal(await quota(q, entity, [op]), "INVALID_REQUEST", JSON.stringify([entity, op]));
  }
  assert.equal(await quota(q, [["user", "a"]], [one, ["no_such", 1]]), "INVALID_REQUEST");
  assert.equal(await quota(q, [["user", "a"]], [one], true), "NONE");
  assert.deepEqual(await quotas(q), []);
});

test("client quotas: filters that make no sense", async () => {
  const q = await startQuirks();
  assert.equal(await quotas(q, [["", 2]]), "INVALID_REQUEST");
  assert.equal(await quotas(q, [["group", 2]]), "UNSUPPORTED_VERSION");
  assert.equal(await quotas(q, [["user", 3]]), "INVALID_REQUEST");
  assert.equal(await quotas(q, [["user", 0]]), "INVALID_REQUEST");
  assert.equal(await quotas(q, [["user", 1, "a"]]), "INVALID_REQUEST");
  assert.equal(await quotas(q, [["user", 2], ["user", 1]]), "INVALID_REQUEST");
  assert.equal(await quotas(q, [["user", 2], ["ip", 2]]), "INVALID_REQUEST");
});

// Features.

async function features(q: Quirks, version = 4) {
  const answer = await q.call(apiVersionsApi, version, {
    clientSoftwareName: "quirk",
    clientSoftwareVersion: "1",
  });
  return {
    epoch: answer.finalizedFeaturesEpoch,
    supported: answer.supportedFeatures.map((one) => [one.name, one.minVersion, one.maxVersion]),
    finalized: Object.fromEntries(
      answer.finalizedFeatures.map((one) => [one.name, one.maxVersionLevel]),
    ),
  };
}

async function update(
  q: Quirks,
  updates: readonly { feature: string; maxVersionLevel: number; upgradeType?: number }[],
  { version = 2, validateOnly = false, allowDowngrade = false } = {},
) {
  const answer = await q.call(updateFeaturesApi, version, {
    featureUpdates: updates.map((one) => ({ ...one, allowDowngrade })),
    validateOnly,
  });
  return errorName(answer.errorCode);
}

const TXN = "transaction.version";
const DOWN = 2;

test("features: levels go up and, with leave, down; each change raises the epoch", async () => {
  const before = await startQuirks();
  const first = await features(before);
  assert.deepEqual(first.supported.find(([name]) => name === TXN), [TXN, 0, 2]);
  assert.deepEqual((await features(before, 3)).supported, [], "a minimum of 0 breaks old clients");
  assert.equal(first.finalized[TXN], 2);
  const down = { feature: TXN, maxVersionLevel: 1 };
  assert.equal(await update(before, [down]), "INVALID_UPDATE_VERSION");
  const allowed = { ...down, upgradeType: DOWN };
  assert.equal(await update(before, [allowed], { validateOnly: true }), "NONE");
  assert.equal((await features(before)).epoch, first.epoch);
  assert.equal(await update(before, [allowed]), "NONE");
  const q = await restarted(before, { clean: false });
  const lower = await features(q, 3);
  assert.deepEqual([lower.finalized[TXN], lower.epoch > first.epoch], [1, true]);
  assert.equal(
    await update(q, [{ ...down, maxVersionLevel: 0 }], { version: 0, allowDowngrade: true }),
    "NONE",
  );
  const off = await features(q);
  assert.deepEqual([off.finalized[TXN], off.epoch > lower.epoch], [undefined, true]);
  assert.equal(await update(q, [{ feature: TXN, maxVersionLevel: 2 }], { version: 1 }), "NONE");
  assert.equal((await features(q)).finalized[TXN], 2);
});

test("features: all of an update or nothing", async () => {
  const q = await startQuirks();
  const fine = { feature: TXN, maxVersionLevel: 1, upgradeType: DOWN };
  const bad = [
    { feature: "metadata.version", maxVersionLevel: 20 },
    { feature: TXN, maxVersionLevel: 3 },
    { feature: "group.version", maxVersionLevel: -1, upgradeType: DOWN },
    { feature: "group.version", maxVersionLevel: 1, upgradeType: 9 },
  ];
  for (const one of bad) {
    const updates = one.feature === TXN ? [one] : [fine, one];
    assert.equal(await update(q, updates), "INVALID_UPDATE_VERSION", JSON.stringify(one));
  }
  assert.equal(await update(q, [fine, fine]), "INVALID_REQUEST");
  assert.equal((await features(q)).finalized[TXN], 2);
});
