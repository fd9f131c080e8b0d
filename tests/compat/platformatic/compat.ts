/** The behaviours of the matrix, with @platformatic/kafka against one broker. Usage: bun compat.ts BOOTSTRAP */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import process from "node:process";
import {
  Admin,
  ConfigResourceTypes,
  Consumer,
  GroupProtocols,
  ListOffsetTimestamps,
  ProduceAcks,
  Producer,
  stringDeserializers,
  stringSerializers,
} from "@platformatic/kafka";
import { platformaticAt } from "../../support/clients.ts";
import {
  behaviour,
  BOOTSTRAP,
  numbered,
  pause,
  RECORDS,
  RUN,
  same,
  skip,
  TRANSFORMED,
  until,
  version,
} from "../program.ts";

const base = platformaticAt(BOOTSTRAP, "compat");
const admin = new Admin(base);

async function make(name: string, partitions = 1): Promise<string> {
  const topic = `${RUN}-${name}`;
  await admin.createTopics({ topics: [topic], partitions, replicas: 1 });
  return topic;
}

function producer(options: object = {}) {
  return new Producer({ ...base, serializers: stringSerializers, ...options });
}

interface Record {
  readonly key?: string;
  readonly value?: string;
  readonly headers?: { readonly [name: string]: string };
  readonly timestamp?: bigint;
  readonly partition?: number;
}

async function send(
  topic: string,
  records: readonly Record[],
  options: object = {},
  acks: number = ProduceAcks.ALL,
) {
  const one = producer(options);
  await one.send({ acks, messages: records.map((record) => ({ topic, ...record })) });
  await one.close();
}

const plain = (values: readonly string[]) => values.map((value) => ({ value }));

interface Got {
  readonly key: string | undefined;
  readonly value: string | undefined;
  readonly headers: ReadonlyMap<string, string>;
  readonly partition: number;
  readonly offset: bigint;
}

interface Place {
  readonly offset?: bigint;
  readonly isolationLevel?: number;
  readonly waitMs?: number;
}

/** Reads partition 0 from a place until there are `count` records, or the time is over. */
async function read(topic: string, count: number, place: Place = {}): Promise<Got[]> {
  const groupId = `${topic}-${Math.random()}`;
  const consumer = new Consumer({ ...base, groupId, deserializers: stringDeserializers });
  const stream = await consumer.consume({
    topics: [topic],
    ...(place.offset === undefined
      ? { mode: "earliest" as const }
      : { mode: "manual" as const, offsets: [{ topic, partition: 0, offset: place.offset }] }),
    autocommit: false,
    isolationLevel: place.isolationLevel ?? 0,
    maxWaitTime: 200,
  });
  const got: Got[] = [];
  const timer = setTimeout(() => void stream.close(), place.waitMs ?? 30_000);
  for await (const message of stream) {
    got.push(message as unknown as Got);
    if (got.length >= count) break;
  }
  clearTimeout(timer);
  await stream.close();
  await consumer.close(true);
  return got;
}

const valuesOf = (records: readonly Got[]) => records.map(({ value }) => value);
const committed = (topic: string, count: number, waitMs = 30_000) =>
  read(topic, count, { isolationLevel: 1, waitMs });

async function produceAndRead(name: string, options: object, acks?: number): Promise<void> {
  const topic = await make(name);
  await send(topic, plain(numbered(RECORDS)), options, acks);
  same(valuesOf(await read(topic, RECORDS)), numbered(RECORDS));
}

async function producing(): Promise<void> {
  for (const compression of ["none", "gzip", "snappy", "lz4", "zstd"] as const) {
    await behaviour(`produce ${compression}`, () => produceAndRead(compression, { compression }));
  }
  const acks = { 0: ProduceAcks.NO_RESPONSE, 1: ProduceAcks.LEADER, all: ProduceAcks.ALL };
  for (const [name, each] of Object.entries(acks)) {
    await behaviour(`acks ${name}`, () => produceAndRead(`acks-${name}`, {}, each));
  }
  await behaviour("keys, headers, nulls", async () => {
    const topic = await make("shapes");
    await send(topic, [{ key: "k", value: "v", headers: { a: "1", b: "2" } }]);
    await send(topic, [{ key: "k" }]);
    await send(topic, [{ value: "last" }]);
    const [whole, tombstone, last] = await read(topic, 3);
    same([whole!.key, whole!.value, [...whole!.headers]], ["k", "v", [["a", "1"], ["b", "2"]]]);
    same([tombstone!.key, tombstone!.value ?? null], ["k", null]);
    same([last!.key ?? null, last!.value], [null, "last"]);
  });
  await behaviour("large batch", async () => {
    const topic = await make("large");
    const values = Array.from({ length: 1000 }, (_, i) => i + "x".repeat(900));
    await send(topic, plain(values));
    same(valuesOf(await read(topic, 1000)), values);
  });
  await behaviour("idempotent producer", () => produceAndRead("idempotent", { idempotent: true }));
}

async function listed(topic: string, timestamp: bigint): Promise<bigint> {
  const partitions = [{ partitionIndex: 0, timestamp }];
  const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions }] });
  return found!.partitions[0]!.offset;
}

async function offsets(): Promise<void> {
  const topic = await make("offsets");
  await send(topic, numbered(10).map((value, i) => ({ value, timestamp: BigInt(1000 * (i + 1)) })));
  await behaviour("consume from an offset", async () => {
    same(valuesOf(await read(topic, 3, { offset: 7n })), ["v7", "v8", "v9"]);
  });
  await behaviour("consume from a time", async () => {
    const offset = await listed(topic, 4500n);
    same(offset, 4n);
    same(valuesOf(await read(topic, 1, { offset })), ["v4"]);
  });
  await behaviour("list offsets", async () => {
    // One after the other: two that are asked at once may both get the answer of one.
    same(await listed(topic, ListOffsetTimestamps.EARLIEST), 0n);
    same(await listed(topic, ListOffsetTimestamps.LATEST), 10n);
  });
}

/** A member that commits as it reads; `seen` counts how often each record was read. */
async function join(topic: string, groupId: string, isNew: boolean, seen: Map<string, number>) {
  const consumer = new Consumer({
    ...base,
    groupId,
    deserializers: stringDeserializers,
    ...(isNew
      ? { groupProtocol: GroupProtocols.CONSUMER }
      : { sessionTimeout: 6000, rebalanceTimeout: 6000, heartbeatInterval: 200 }),
  });
  const stream = await consumer.consume({
    topics: [topic],
    mode: "committed",
    fallbackMode: "earliest",
    autocommit: false,
    maxWaitTime: 200,
  });
  const reading = (async () => {
    for await (const message of stream) {
      const place = `${message.partition}/${message.offset}`;
      seen.set(place, (seen.get(place) ?? 0) + 1);
      await message.commit();
    }
  })();
  return {
    partitions: () =>
      consumer.assignments?.find((each) => each.topic === topic)?.partitions.length ?? 0,
    async leave() {
      await stream.close();
      await reading;
      await consumer.close(true);
    },
  };
}

async function offsetsOf(group: string): Promise<bigint[]> {
  const [found] = await admin.listConsumerGroupOffsets({ groups: [group] });
  return found!.topics.flatMap(({ partitions }) => partitions.map((each) => each.committedOffset));
}

async function committedSum(group: string): Promise<number> {
  return (await offsetsOf(group)).reduce((sum, offset) => sum + Number(offset), 0);
}

async function twoMembers(topic: string, group: string, isNew: boolean, seen: Map<string, number>) {
  const members = [await join(topic, group, isNew, seen), await join(topic, group, isNew, seen)];
  await until("two partitions each", () => members.every((each) => each.partitions() === 2));
  // What a fetch from before the last rebalance brings is taken too, a second time.
  await pause(600);
  const spread = (count: number) =>
    numbered(count).map((value, i) => ({ value, key: `k${i}`, partition: i % 4 }));
  await send(topic, spread(100));
  await until("all read", () => seen.size === 100);
  for (const member of members) await member.leave();
  await send(topic, spread(40));
}

async function resumes(topic: string, group: string, isNew: boolean, seen: Map<string, number>) {
  const member = await join(topic, group, isNew, seen);
  await until("the rest is read", () => seen.size === 140);
  await member.leave();
  same([...seen].filter(([, times]) => times > 1), [], "read twice");
  same(await committedSum(group), 140);
}

async function groups(): Promise<void> {
  const topic = await make("group", 4);
  const group = `${RUN}-classic`;
  const seen = new Map<string, number>();
  await behaviour("group: two members", () => twoMembers(topic, group, false, seen));
  await behaviour("group: resume", () => resumes(topic, group, false, seen));
  await behaviour("committed offsets", async () => {
    const partitionOffsets = [{ partition: 0, offset: 3n }];
    await admin.alterConsumerGroupOffsets({
      groupId: group,
      topics: [{ name: topic, partitionOffsets }],
    });
    same((await offsetsOf(group)).toSorted(), [3n, 35n, 35n, 35n]);
  });
  await behaviour("group: KIP-848", async () => {
    const other = await make("kip848", 4);
    const counts = new Map<string, number>();
    await twoMembers(other, `${RUN}-kip848`, true, counts);
    await resumes(other, `${RUN}-kip848`, true, counts);
  });
}

/** Without these it says that it is producer 0 in epoch 0, which a broker that knows the name must refuse. */
const NOBODY = { producerId: -1n, producerEpoch: -1 };

function transactional(name: string) {
  return producer({
    transactionalId: `${RUN}-${name}`,
    idempotent: true,
    // It is the time-out of transactions too; two groups form while one is open, and each takes over 3 s.
    timeout: 60_000,
    ...NOBODY,
  });
}

async function transactions(): Promise<void> {
  await behaviour("txn: commit", async () => {
    const topic = await make("txn-commit");
    const one = transactional("commit");
    for (let i = 0; i < 3; i++) {
      const transaction = await one.beginTransaction();
      await transaction.send({ messages: numbered(10).map((value) => ({ topic, value })) });
      await transaction.commit();
    }
    await one.close();
    same((await committed(topic, 30)).length, 30);
  });
  await behaviour("txn: abort", async () => {
    const topic = await make("txn-abort");
    const one = transactional("abort");
    // One of three: it remembers one aborted transaction of a producer per answer.
    for (const value of ["a", "b", "c"]) {
      const transaction = await one.beginTransaction();
      await transaction.send({ messages: [{ topic, value }] });
      await ("ac".includes(value) ? transaction.commit() : transaction.abort());
    }
    await one.close();
    same(valuesOf(await committed(topic, 2)), ["a", "c"]);
    same(valuesOf(await read(topic, 3)), ["a", "b", "c"]);
  });
  await behaviour("txn: read_committed", async () => {
    const topic = await make("txn-open");
    const one = transactional("open");
    const transaction = await one.beginTransaction();
    await transaction.send({ messages: [{ topic, value: "open" }] });
    await send(topic, plain(["v0", "v1"]));
    same((await read(topic, 3)).length, 3, "seen by others");
    same((await committed(topic, 1, 2000)).length, 0, "seen before the end");
    await transaction.commit();
    await one.close();
    same(valuesOf(await committed(topic, 3)), ["open", "v0", "v1"]);
  });
  await behaviour("txn: fencing", async () => {
    const topic = await make("txn-fence");
    const old = transactional("fence");
    const open = await old.beginTransaction();
    await open.send({ messages: [{ topic, value: "old" }] });
    const young = transactional("fence");
    const transaction = await young.beginTransaction();
    await transaction.send({ messages: [{ topic, value: "new" }] });
    await transaction.commit();
    await assert.rejects(open.commit());
    await young.close();
    same(valuesOf(await committed(topic, 1)), ["new"]);
  });
  await behaviour("txn: consume-transform-produce", transform);
}

async function transform(): Promise<void> {
  const source = await make("txn-in");
  const target = await make("txn-out");
  const groupId = `${RUN}-transform`;
  await send(source, plain(numbered(6)));
  for (const isCommit of [false, true, true]) {
    const consumer = new Consumer({ ...base, groupId, deserializers: stringDeserializers });
    const stream = await consumer.consume({
      topics: [source],
      mode: "committed",
      fallbackMode: "earliest",
      autocommit: false,
      maxWaitTime: 200,
    });
    const one = transactional("transform");
    const transaction = await one.beginTransaction();
    await transaction.addConsumer(consumer);
    let count = 0;
    for await (const message of stream) {
      await transaction.send({ messages: [{ topic: target, value: `${message.value}!` }] });
      await transaction.addOffset(message);
      if (++count === 3) break;
    }
    await (isCommit ? transaction.commit() : transaction.abort());
    await one.close();
    await stream.close();
    await consumer.close(true);
  }
  same(valuesOf(await committed(target, 6)), TRANSFORMED);
  same(await committedSum(groupId), 6);
}

async function configs(): Promise<void> {
  const resource = {
    resourceType: ConfigResourceTypes.TOPIC,
    resourceName: await make("admin-configs"),
  };
  const set = (value: string) =>
    admin.incrementalAlterConfigs({
      resources: [{ ...resource, configs: [{ name: "retention.ms", configOperation: 0, value }] }],
    });
  await set("7200000");
  const [described] = await admin.describeConfigs({
    resources: [{ ...resource, configurationKeys: ["retention.ms"] }],
  });
  same(described!.configs[0]!.value, "7200000");
  await assert.rejects(set("x"));
}

async function adminGroups(): Promise<void> {
  const topic = await make("admin-groups", 2);
  const group = `${RUN}-admin-group`;
  const member = await join(topic, group, false, new Map());
  await until("it is a member", () => member.partitions() === 2);
  const described = (await admin.describeGroups({ groups: [group] })).get(group)!;
  same([described.state, described.members.size], ["Stable", 1]);
  await assert.rejects(admin.deleteGroups({ groups: [group] }));
  await member.leave();
  await behaviour("admin: delete offsets", async () => {
    const partitionOffsets = [0, 1].map((partition) => ({ partition, offset: 1n }));
    await admin.alterConsumerGroupOffsets({
      groupId: group,
      topics: [{ name: topic, partitionOffsets }],
    });
    await admin.deleteConsumerGroupOffsets({
      groupId: group,
      topics: [{ name: topic, partitionIndexes: [0] }],
    });
    same(await offsetsOf(group), [1n]);
  });
  same((await admin.listGroups()).has(group), true);
  await admin.deleteGroups({ groups: [group] });
  same((await admin.listGroups()).has(group), false);
}

async function quotas(): Promise<void> {
  const entities = [{ entityType: "client-id" as const, entityName: RUN }];
  const alter = (remove: boolean) =>
    admin.alterClientQuotas({
      entries: [{ entities, ops: [{ key: "producer_byte_rate", value: 1000, remove }] }],
    });
  const describe = () =>
    admin.describeClientQuotas({
      components: [{ entityType: "client-id", matchType: 0, match: RUN }],
    });
  await alter(false);
  same((await describe())[0]!.values, [{ key: "producer_byte_rate", value: 1000 }]);
  await alter(true);
  same((await describe()).length, 0);
}

async function administration(): Promise<void> {
  await behaviour("admin: cluster", async () => {
    const cluster = await admin.metadata({ topics: [] });
    same([cluster.brokers.size, cluster.id === ""], [1, false]);
  });
  await behaviour("admin: topics", async () => {
    const topic = await make("admin-topics", 2);
    await assert.rejects(admin.createTopics({ topics: [topic], partitions: 2, replicas: 1 }));
    await admin.deleteTopics({ topics: [topic] });
    same((await admin.listTopics()).includes(topic), false);
  });
  await behaviour("admin: partitions", async () => {
    const topic = await make("admin-partitions", 2);
    await admin.createPartitions({ topics: [{ name: topic, count: 5 }] });
    const { topics } = await admin.metadata({ topics: [topic], forceUpdate: true });
    same(topics.get(topic)!.partitionsCount, 5);
  });
  await behaviour("admin: configs", configs);
  await behaviour("admin: delete records", async () => {
    const topic = await make("admin-records");
    await send(topic, plain(numbered(10)));
    const [deleted] = await admin.deleteRecords({
      topics: [{ name: topic, partitions: [{ partition: 0, offset: 4n }] }],
    });
    same(deleted!.partitions[0]!.lowWatermark, 4n);
  });
  await behaviour("admin: groups", adminGroups);
  await behaviour("admin: quotas", quotas);
  await behaviour("admin: log dirs", async () => {
    const topic = await make("admin-dirs");
    await send(topic, plain(numbered(100)));
    const [dirs] = await admin.describeLogDirs({ topics: [{ name: topic, partitions: [0] }] });
    assert.ok(dirs!.results[0]!.topics[0]!.partitions[0]!.partitionSize > 300n);
  });
}

const { version: installed } = JSON.parse(
  readFileSync("node_modules/@platformatic/kafka/package.json", "utf8"),
) as { version: string };
version(installed);
await behaviour("metadata", async () => {
  const topic = await make("metadata", 3);
  const { topics } = await admin.metadata({ topics: [topic] });
  same(topics.get(topic)!.partitionsCount, 3);
  same((await admin.listTopics()).includes(topic), true);
});
await producing();
await offsets();
await groups();
await transactions();
await administration();
skip("not in this client", "admin: describe producers", "admin: describe transactions");
process.exit(0);
