/** What one node has made is there for the clients of another one at once, not only when that looks again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Uuid, ZERO_UUID } from "../../src/lib/uuid.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { listOffsetsApi } from "../../src/protocol/message/02_list_offsets.ts";
import { metadataApi } from "../../src/protocol/message/03_metadata.ts";
import { findCoordinatorApi } from "../../src/protocol/message/10_find_coordinator.ts";
import { deleteTopicsApi } from "../../src/protocol/message/20_delete_topics.ts";
import { describeConfigsApi } from "../../src/protocol/message/32_describe_configs.ts";
import { incrementalAlterConfigsApi } from "../../src/protocol/message/44_incremental_alter_configs.ts";
import { describeTopicPartitionsApi } from "../../src/protocol/message/75_describe_topic_partitions.ts";
import { LOOKS_AT_ONCE_MAX, METADATA_POLL_MS } from "../../src/lib/limits.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { batch, named, type Quirks, startQuirks } from "./quirks.ts";

/** Counts what is read of the store. */
function counting(store: ObjectStore): { store: ObjectStore; reads: () => number } {
  let reads = 0;
  return {
    reads: () => reads,
    store: new Proxy(store, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...args: unknown[]): unknown => {
          if (name === "get") reads += 1;
          return Reflect.apply(value, target, args);
        };
      },
    }),
  };
}

async function twoNodes() {
  spentMs = 0;
  const first = await startQuirks({ "auto.create.topics.enable": "false" });
  const { store, reads } = counting(first.node.store);
  const second = await startQuirks({ "auto.create.topics.enable": "false" }, {
    clock: first.node.clock,
    store,
    seed: 77,
    nodeId: 2,
    createCluster: false,
  });
  const close = async () => {
    assert.ok(spentMs < METADATA_POLL_MS, "nobody has looked by itself");
    await second.node.close();
    await first.node.close();
  };
  return { first, second, reads, close };
}

let spentMs = 0;

/** Two writers of the metadata log wait for each other a little; far shorter than an idle node waits. */
async function soon<T>({ node }: Quirks, work: Promise<T>): Promise<T> {
  let isDone = false;
  const done = work.finally(() => void (isDone = true));
  done.catch(() => {});
  for (let turns = 0; !isDone && turns < 100; turns++) {
    await node.clock.settle();
    if (isDone) break;
    spentMs += 10;
    await node.clock.advance(10);
  }
  return await done;
}

/** Topics are spread by id: one whose partition this node leads. */
async function topicLedBy(q: Quirks, leader: number, prefix: string): Promise<[string, Uuid]> {
  for (let n = 0; n < 50; n++) {
    const name = `${prefix}-${n}`;
    const id = await soon(q, q.topic(name));
    const { topics } = await q.call(metadataApi, 12, { topics: [{ name, topicId: id }] });
    if (topics[0]!.partitions[0]?.leaderId === leader) return [name, id];
  }
  return assert.fail("no topic is led by it");
}

test("a topic that another node has just made is known by name and by id, for all that is asked of it", async () => {
  const { first, second, close } = await twoNodes();
  const asks: Readonly<Record<string, (name: string, id: Uuid) => Promise<number>>> = {
    "metadata by name": async (name) => {
      const { topics } = await second.call(metadataApi, 8, { topics: [{ name }] });
      return topics[0]!.errorCode;
    },
    "metadata by id": async (_, topicId) => {
      const asked = { topics: [{ name: null, topicId }] };
      return (await second.call(metadataApi, 12, asked)).topics[0]!.errorCode;
    },
    "describe partitions": async (name) => {
      const { topics } = await second.call(describeTopicPartitionsApi, 0, { topics: [{ name }] });
      return topics[0]!.errorCode;
    },
    "describe configs": async (resourceName) => {
      const resources = [{ resourceType: 2, resourceName, configurationKeys: null }];
      return (await second.call(describeConfigsApi, 4, { resources })).results[0]!.errorCode;
    },
    "alter configs": async (resourceName) => {
      const configs = [{ name: "retention.ms", configOperation: 0, value: "1000" }];
      const resources = [{ resourceType: 2, resourceName, configs }];
      const asked = { resources, validateOnly: false };
      const answer = await second.call(incrementalAlterConfigsApi, 1, asked);
      return answer.responses[0]!.errorCode;
    },
    "delete by name": async (name) => {
      const asked = { topics: [{ name, topicId: ZERO_UUID }], timeoutMs: 1000 };
      return (await second.call(deleteTopicsApi, 6, asked)).responses[0]!.errorCode;
    },
    "delete by id": async (_, topicId) => {
      const asked = { topics: [{ name: null, topicId }], timeoutMs: 1000 };
      return (await second.call(deleteTopicsApi, 6, asked)).responses[0]!.errorCode;
    },
    "over HTTP": async (name) => {
      const { status } = await second.node.node.fetch(new Request(`http://x/v1/topics/${name}`));
      return status === 200 ? 0 : status;
    },
  };
  for (const [n, [what, ask]] of Object.entries(asks).entries()) {
    const name = `t${n}`;
    const id = await soon(first, first.topic(name));
    assert.equal(errorName(await soon(second, ask(name, id))), "NONE", what);
  }
  await close();
});

test("the leader takes records and reads of a topic that it did not know", async () => {
  const { first, second, close } = await twoNodes();
  for (const way of ["produce", "fetch", "list offsets"] as const) {
    // Asked at the first node, which has made it: the second one hears of it from the client.
    const [name, id] = await topicLedBy(first, 2, way.replace(" ", "-"));
    const error = way === "produce"
      ? (await soon(second, second.produce(name, batch(["a"])))).error
      : way === "fetch"
      ? (await soon(second, second.fetch({ id }, 0, { version: 13 }))).error
      : named(
        (await soon(
          second,
          second.call(listOffsetsApi, 7, {
            replicaId: -1,
            topics: [{ name, partitions: [{ partitionIndex: 0, timestamp: -1 }] }],
          }),
        )).topics[0]!.partitions[0]!,
      ).error;
    assert.equal(error, "NONE", way);
  }
  await close();
});

test("a group's coordinator is found at each node once the other has made the offsets topic", async () => {
  const { first, second, close } = await twoNodes();
  const find = async (q: Quirks) => {
    const answer = await q.call(findCoordinatorApi, 4, { keyType: 0, coordinatorKeys: ["g"] });
    const { error, nodeId } = named(answer.coordinators[0]!);
    return [error, nodeId];
  };
  const [error, nodeId] = await soon(first, find(first));
  assert.equal(error, "NONE");
  assert.deepEqual(await soon(second, find(second)), ["NONE", nodeId]);
  await close();
});

test("names that nobody has made cost a few reads, however many they are", async () => {
  const { second, reads, close } = await twoNodes();
  const before = reads();
  for (let n = 0; n < 200; n++) {
    const { topics } = await second.call(metadataApi, 8, { topics: [{ name: `made-up-${n}` }] });
    assert.equal(errorName(topics[0]!.errorCode), "UNKNOWN_TOPIC_OR_PARTITION");
  }
  const many = Array.from({ length: 1000 }, (_, n) => ({ name: `more-${n}` }));
  assert.equal((await second.call(metadataApi, 8, { topics: many })).topics.length, 1000);
  assert.ok(reads() - before <= 2 * LOOKS_AT_ONCE_MAX, `${reads() - before} reads`);
  await close();
});
