/** Metadata and the making, growing and deleting of topics. */
import { ZERO_UUID } from "../../../src/lib/uuid.ts";
import { metadataApi } from "../../../src/protocol/message/03_metadata.ts";
import { createTopicsApi } from "../../../src/protocol/message/19_create_topics.ts";
import { deleteTopicsApi } from "../../../src/protocol/message/20_delete_topics.ts";
import { createPartitionsApi } from "../../../src/protocol/message/37_create_partitions.ts";
import type { Scenario } from "../script.ts";

const NO_ID = "000102030405060708090a0b0c0d0e0f";

interface NewTopic {
  readonly name: string;
  readonly numPartitions?: number;
  readonly replicationFactor?: number;
  readonly assignments?: readonly {
    readonly partitionIndex: number;
    readonly brokerIds: readonly number[];
  }[];
  readonly configs?: Readonly<Record<string, string | null>>;
}

function creation(...topics: readonly NewTopic[]) {
  return {
    topics: topics.map(({ configs = {}, ...topic }) => ({
      numPartitions: 1,
      replicationFactor: 1,
      assignments: [],
      ...topic,
      configs: Object.entries(configs).map(([name, value]) => ({ name, value })),
    })),
    timeoutMs: 10_000,
  };
}

const metadata: Scenario = {
  name: "metadata",
  async run(script) {
    const id = await script.topic("d-meta", { partitions: 3 });
    const none = { topics: null, allowAutoTopicCreation: false };
    const named = (...names: string[]) => ({
      topics: names.map((name) => ({ name })),
      allowAutoTopicCreation: false,
    });
    await script.versions("named", metadataApi, named("d-meta"));
    await script.versions("unknown", metadataApi, named("d-meta-none"), { from: 4 });
    await script.versions("none", metadataApi, { ...none, topics: [] }, { from: 1 });
    const asked = (
      topics: readonly { readonly topicId?: string; readonly name: string | null }[],
    ) => ({
      topics,
      allowAutoTopicCreation: false,
    });
    for (const version of [10, 11, 12, 13]) {
      await script.check(
        `id v${version}`,
        metadataApi,
        version,
        asked([{ topicId: id, name: null }]),
      );
      await script.check(
        `id and name v${version}`,
        metadataApi,
        version,
        asked([{ topicId: id, name: "d-meta" }]),
      );
      await script.check(
        `unknown id v${version}`,
        metadataApi,
        version,
        asked([{ topicId: NO_ID, name: null }]),
      );
      await script.check(
        `null name, no id v${version}`,
        metadataApi,
        version,
        asked([{ name: null }]),
      );
    }
    await script.check(
      "id beside name",
      metadataApi,
      12,
      asked([{ topicId: id, name: null }, { name: "d-meta-none" }]),
    );
    for (const name of ["", ".", "..", "a b", "ä", "a".repeat(249), "a".repeat(250)]) {
      await script.check(
        `name ${name.slice(0, 3)} of ${name.length}`,
        metadataApi,
        12,
        named(name),
      );
    }
    await script.check("twice", metadataApi, 12, named("d-meta", "d-meta"));
    for (const version of [8, 10]) {
      await script.check(`operations v${version}`, metadataApi, version, {
        ...named("d-meta"),
        includeClusterAuthorizedOperations: true,
        includeTopicAuthorizedOperations: true,
      });
    }
    await script.check("topic operations v13", metadataApi, 13, {
      ...named("d-meta"),
      includeTopicAuthorizedOperations: true,
    });
    await script.check("all v0", metadataApi, 0, { topics: [] });
    for (const version of [1, 9, 13]) {
      await script.check(`all v${version}`, metadataApi, version, none);
    }
    await script.check("created by asking", metadataApi, 12, {
      ...named("d-meta-auto"),
      allowAutoTopicCreation: true,
    });
    await script.settled("d-meta-auto");
    await script.check("created by asking, again", metadataApi, 12, named("d-meta-auto"));
    await script.check("bad name, create", metadataApi, 12, {
      ...named("a b"),
      allowAutoTopicCreation: true,
    });
    await script.check("collision, create", metadataApi, 12, {
      ...named("d.meta"),
      allowAutoTopicCreation: true,
    });
  },
};

const create: Scenario = {
  name: "create topics",
  async run(script) {
    const call = (label: string, ...topics: readonly NewTopic[]) =>
      script.check(label, createTopicsApi, 7, creation(...topics));
    await script.versions(
      "fresh",
      createTopicsApi,
      (version) => creation({ name: `d-new-${version}` }),
    );
    await script.versions("exists", createTopicsApi, creation({ name: "d-new-2" }));
    await script.check(
      "defaults v4",
      createTopicsApi,
      4,
      creation({
        name: "d-new-default",
        numPartitions: -1,
        replicationFactor: -1,
      }),
    );
    await script.check(
      "defaults v3",
      createTopicsApi,
      3,
      creation({
        name: "d-new-default-3",
        numPartitions: -1,
        replicationFactor: -1,
      }),
    );
    for (const name of ["", ".", "..", "a b", "ä", "a/b", "a".repeat(250)]) {
      await call(`name ${name.slice(0, 3)} of ${name.length}`, { name });
    }
    await call("longest name", { name: "b".repeat(249) });
    await call("collision with one that exists", { name: "d.new-2" });
    await call("same name twice", { name: "d-twice" }, { name: "d-twice" });
    await call("one good, one bad", { name: "d-good" }, { name: "d-bad", numPartitions: 0 });
    for (const numPartitions of [0, -2, -1, 2]) {
      await call(`partitions ${numPartitions}`, { name: `d-p${numPartitions}`, numPartitions });
    }
    for (const replicationFactor of [0, -2, 2, 32767]) {
      await call(`factor ${replicationFactor}`, {
        name: `d-f${replicationFactor}`,
        replicationFactor,
      });
    }
    const by = (...assignments: readonly (readonly [number, readonly number[]])[]) => ({
      numPartitions: -1,
      replicationFactor: -1,
      assignments: assignments.map(([partitionIndex, brokerIds]) => ({
        partitionIndex,
        brokerIds,
      })),
    });
    await call("assigned", { name: "d-a1", ...by([0, [1]], [1, [1]]) });
    await call("assigned and counted", { name: "d-a2", ...by([0, [1]]), numPartitions: 1 });
    await call("assigned and factor", { name: "d-a3", ...by([0, [1]]), replicationFactor: 1 });
    await call("assigned to an unknown broker", { name: "d-a4", ...by([0, [99]]) });
    await call("assigned twice to one broker", { name: "d-a5", ...by([0, [1, 1]]) });
    await call("assigned with a hole", { name: "d-a6", ...by([0, [1]], [2, [1]]) });
    await call("assigned from 1", { name: "d-a7", ...by([1, [1]]) });
    await call("assigned partition twice", { name: "d-a8", ...by([0, [1]], [0, [1]]) });
    await call("assigned to nobody", { name: "d-a9", ...by([0, []]) });
    await call("assigned unevenly", { name: "d-a10", ...by([0, [1]], [1, []]) });
    await script.check("validate only", createTopicsApi, 7, {
      ...creation({ name: "d-val" }),
      validateOnly: true,
    });
    await script.check("validate only, bad", createTopicsApi, 7, {
      ...creation({ name: "d-val", numPartitions: 0 }),
      validateOnly: true,
    });
    await script.check("validate only, exists", createTopicsApi, 7, {
      ...creation({ name: "d-new-2" }),
      validateOnly: true,
    });
    await script.check("validated was not made", metadataApi, 12, {
      topics: [{ name: "d-val" }],
      allowAutoTopicCreation: false,
    });
    await call("nothing");
    await call("internal name", { name: "__consumer_offsets" });
    await call("underscore name", { name: "__d_own" });
    await call("collision", { name: "d-x.y" }, { name: "d-x_y" });
  },
};

const CONFIGS: readonly (readonly [string, string | null])[] = [
  ["cleanup.policy", "compact"],
  ["cleanup.policy", "compact,delete"],
  ["cleanup.policy", "delete, compact"],
  ["cleanup.policy", "delete,delete"],
  ["cleanup.policy", ""],
  ["cleanup.policy", "none"],
  ["cleanup.policy", null],
  ["compression.type", "zstd"],
  ["compression.type", "GZIP"],
  ["compression.type", "none"],
  ["compression.gzip.level", "9"],
  ["compression.gzip.level", "10"],
  ["compression.gzip.level", "0"],
  ["compression.lz4.level", "17"],
  ["compression.lz4.level", "18"],
  ["compression.zstd.level", "22"],
  ["compression.zstd.level", "23"],
  ["retention.ms", "-1"],
  ["retention.ms", "-2"],
  ["retention.ms", "0"],
  ["retention.ms", "1.5"],
  ["retention.ms", " 5 "],
  ["retention.ms", "9223372036854775807"],
  ["retention.ms", "9223372036854775808"],
  ["retention.bytes", "-2"],
  ["retention.bytes", "-1"],
  ["segment.bytes", "1048576"],
  ["segment.bytes", "1048575"],
  ["segment.bytes", "2147483648"],
  ["segment.ms", "0"],
  ["segment.ms", "1"],
  ["segment.index.bytes", "3"],
  ["segment.index.bytes", "4"],
  ["segment.jitter.ms", "-1"],
  ["max.message.bytes", "-1"],
  ["max.message.bytes", "0"],
  ["max.message.bytes", "x"],
  ["min.insync.replicas", "0"],
  ["min.insync.replicas", "1"],
  ["min.insync.replicas", "2"],
  ["min.cleanable.dirty.ratio", "1.1"],
  ["min.cleanable.dirty.ratio", "-0.1"],
  ["min.cleanable.dirty.ratio", "0.5"],
  ["min.compaction.lag.ms", "-1"],
  ["max.compaction.lag.ms", "0"],
  ["max.compaction.lag.ms", "1"],
  ["delete.retention.ms", "-1"],
  ["file.delete.delay.ms", "-1"],
  ["flush.messages", "0"],
  ["flush.messages", "1"],
  ["flush.ms", "-1"],
  ["index.interval.bytes", "-1"],
  ["message.timestamp.type", "LogAppendTime"],
  ["message.timestamp.type", "logappendtime"],
  ["message.timestamp.before.max.ms", "-1"],
  ["message.timestamp.after.max.ms", "-1"],
  ["message.timestamp.difference.max.ms", "1000"],
  ["message.format.version", "3.0"],
  ["message.downconversion.enable", "true"],
  ["preallocate", "true"],
  ["preallocate", "TRUE"],
  ["preallocate", "yes"],
  ["unclean.leader.election.enable", "true"],
  ["leader.replication.throttled.replicas", "*"],
  ["leader.replication.throttled.replicas", "none"],
  ["leader.replication.throttled.replicas", "0:1,1:1"],
  ["leader.replication.throttled.replicas", "0-1"],
  ["follower.replication.throttled.replicas", "0:1"],
  ["remote.storage.enable", "true"],
  ["remote.storage.enable", "false"],
  ["local.retention.ms", "-3"],
  ["local.retention.ms", "1000"],
  ["local.retention.bytes", "-2"],
  ["remote.log.copy.disable", "true"],
  ["remote.log.delete.on.disable", "true"],
  ["no.such.config", "1"],
  ["", "1"],
];

const createConfigs: Scenario = {
  name: "create topics with configs",
  async run(script) {
    for (const [index, [name, value]] of CONFIGS.entries()) {
      await script.check(`${name}=${value}`, createTopicsApi, 7, {
        ...creation({ name: `d-config-${index}`, configs: { [name]: value } }),
        validateOnly: true,
      });
    }
    const both = (configs: Readonly<Record<string, string>>) => ({
      ...creation({ name: "d-config", configs }),
      validateOnly: true,
    });
    await script.check(
      "lags crossed",
      createTopicsApi,
      7,
      both({
        "min.compaction.lag.ms": "2000",
        "max.compaction.lag.ms": "1000",
      }),
    );
    await script.check(
      "local above retention",
      createTopicsApi,
      7,
      both({
        "retention.ms": "1000",
        "local.retention.ms": "2000",
      }),
    );
    await script.check(
      "two bad values",
      createTopicsApi,
      7,
      both({
        "segment.ms": "0",
        "flush.messages": "0",
      }),
    );
    await script.check("same key twice", createTopicsApi, 7, {
      topics: [{
        name: "d-config-twice",
        numPartitions: 1,
        replicationFactor: 1,
        assignments: [],
        configs: [{ name: "retention.ms", value: "1" }, { name: "retention.ms", value: "2" }],
      }],
      validateOnly: true,
    });
  },
};

const remove: Scenario = {
  name: "delete topics",
  async run(script) {
    for (let version = 1; version <= 5; version++) {
      await script.topic(`d-del-${version}`);
      await script.check(`by name v${version}`, deleteTopicsApi, version, {
        topicNames: [`d-del-${version}`],
        timeoutMs: 10_000,
      });
    }
    const call = (
      label: string,
      ...topics: readonly { readonly name?: string | null; readonly topicId?: string }[]
    ) =>
      script.check(label, deleteTopicsApi, 6, {
        topics: topics.map(({ name = null, topicId = ZERO_UUID }) => ({ name, topicId })),
        timeoutMs: 10_000,
      });
    await script.versions("unknown", deleteTopicsApi, {
      topicNames: ["d-del-none"],
      timeoutMs: 1000,
    }, { to: 5 });
    await script.topic("d-del-6");
    await call("by name v6", { name: "d-del-6" });
    const id = await script.topic("d-del-7");
    await call("name and id", { name: "d-del-7", topicId: id });
    await call("by id", { topicId: id });
    await call("by id again", { topicId: id });
    await call("unknown id", { topicId: NO_ID });
    await call("unknown name", { name: "d-del-none" });
    await call("neither", {});
    await call("name of a bad form", { name: "a b" });
    await call("empty name", { name: "" });
    const twice = await script.topic("d-del-8");
    await call("name twice", { name: "d-del-8" }, { name: "d-del-8" });
    await call("id twice", { topicId: twice }, { topicId: twice });
    await call("id and name of one", { name: "d-del-8" }, { topicId: twice });
    await call("still there or not", { name: "d-del-8" });
    await call("nothing");
    const first = await script.topic("d-del-9");
    await call("before it is made again", { name: "d-del-9" });
    const second = await script.topic("d-del-9");
    script.note("a topic made again has a new id", first !== second);
    await call("by its old id", { topicId: first });
    await script.check("metadata by the old id", metadataApi, 12, {
      topics: [{ topicId: first, name: null }],
    });
    await script.check("metadata by the new id", metadataApi, 12, {
      topics: [{ topicId: second, name: null }],
    });
  },
};

const grow: Scenario = {
  name: "create partitions",
  async run(script) {
    const request = (
      name: string,
      count: number,
      brokers: readonly (readonly number[])[] | null = null,
    ) => ({
      topics: [{
        name,
        count,
        assignments: brokers === null ? null : brokers.map((brokerIds) => ({ brokerIds })),
      }],
      timeoutMs: 10_000,
      validateOnly: false,
    });
    const call = (label: string, ...of: Parameters<typeof request>) =>
      script.check(label, createPartitionsApi, 3, request(...of));
    await script.topic("d-grow");
    await script.versions(
      "grows",
      createPartitionsApi,
      (version) => request("d-grow", version + 2),
    );
    await call("same count", "d-grow", 5);
    await call("fewer", "d-grow", 4);
    await call("none", "d-grow", 0);
    await call("negative", "d-grow", -1);
    await call("unknown topic", "d-grow-none", 2);
    await call("empty name", "", 2);
    await call("assigned", "d-grow", 6, [[1]]);
    await call("assigned too few", "d-grow", 8, [[1]]);
    await call("assigned too many", "d-grow", 7, [[1], [1]]);
    await call("assigned to an unknown broker", "d-grow", 7, [[99]]);
    await call("assigned twice to one broker", "d-grow", 7, [[1, 1]]);
    await call("assigned to nobody", "d-grow", 7, [[]]);
    await script.check("validate only", createPartitionsApi, 3, {
      ...request("d-grow", 9),
      validateOnly: true,
    });
    await script.check("topic twice", createPartitionsApi, 3, {
      ...request("d-grow", 9),
      topics: [9, 10].map((count) => ({ name: "d-grow", count, assignments: null })),
    });
    await script.check("partitions now", metadataApi, 12, { topics: [{ name: "d-grow" }] });
  },
};

export const TOPICS = [metadata, create, createConfigs, remove, grow];
