/**
 * What programs do with @upstash/kafka, as a worker: the behaviours that the client's own repository tests, and its
 * errors. It runs in workerd and in Node alike; the answer is a line for each case, the status tells of failures.
 */
import { Kafka, UpstashError } from "@upstash/kafka";

function equal(actual, expected, what) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a} instead of ${b}`);
}

const CASES = {
  async "produce answers where the record is; any value is JSON"({ producer, topic }) {
    const first = await producer.produce(topic, "text", {
      key: "k",
      headers: [{ key: "h", value: "v" }],
    });
    equal([first.topic, first.partition, first.offset], [topic, 0, 0], "first");
    equal((await producer.produce(topic, { a: [1] })).offset, 1, "second");
  },
  async "produceMany keeps the order, for several topics"({ producer, topic, other }) {
    const many = await producer.produceMany([
      { topic, value: "one" },
      { topic: other, value: { two: 2 }, partition: 0 },
      { topic, value: "three" },
    ]);
    equal(many.map((one) => [one.topic, one.offset]), [[topic, 2], [other, 0], [topic, 3]], "many");
  },
  async "fetch reads from offsets, alone and in parallel"({ consumer, topic, other }) {
    const [first] = await consumer.fetch({ topic, partition: 0, offset: 0 });
    equal(
      [first.key, first.value, first.headers],
      ["k", "text", [{ key: "h", value: "v" }]],
      "first",
    );
    const topicPartitionOffsets = [
      { topic, partition: 0, offset: 1 },
      { topic: other, partition: 0, offset: 0 },
    ];
    for (const parallel of [true, false]) {
      const found = await consumer.fetch({ topicPartitionOffsets }, { parallel });
      equal(
        found.map(({ value }) => value).toSorted(),
        ["one", "three", '{"a":[1]}', '{"two":2}'],
        "all",
      );
    }
  },
  async "consume begins where it is told, goes on, and is listed"(
    { consumer, admin, topic, group },
  ) {
    const asked = {
      consumerGroupId: group,
      instanceId: "i",
      topics: [topic],
      autoOffsetReset: "earliest",
      autoCommit: false,
      timeout: 2_000,
    };
    equal((await consumer.consume(asked)).length, 4, "consumed");
    equal((await consumer.consume({ ...asked, timeout: 100 })).length, 0, "and then");
    const found = (await admin.consumers()).find(({ name }) => name === group);
    equal(found.instances, [{ name: "i", topics: [{ topic, partitions: [0] }] }], "listed");
  },
  async "commit stores what was consumed, or the offset as it is given"(
    { consumer, admin, topic, group },
  ) {
    const ids = { consumerGroupId: group, instanceId: "i" };
    const topicPartitions = [{ topic, partition: 0 }];
    equal((await consumer.commit(ids)).result, "Success", "commit");
    const committed = async () => (await consumer.committed({ ...ids, topicPartitions }))[0].offset;
    equal(await committed(), 4, "consumed");
    await consumer.commit({ ...ids, offset: { topic, partition: 0, offset: 1 } });
    equal(await committed(), 1, "given");
    const [same] = await admin.committedOffsets({ ...ids, topicPartition: topicPartitions[0] });
    equal(same.offset, 1, "by the administrator");
  },
  async "offsets by time, and the topics there are"({ admin, topic }) {
    const at = async (timestamp) => {
      const topicPartition = { topic, partition: 0 };
      return (await admin.topicPartitionOffsets({ timestamp, topicPartition }))[0].offset;
    };
    equal([await at("earliest"), await at("latest")], [0, 4], "words");
    equal(await at(Math.floor(Date.now() / 1_000) - 3_600), 0, "an hour ago in seconds");
    equal(await at(Date.now() + 3_600_000), 4, "in an hour");
    equal((await admin.topics())[topic], 1, "topics");
  },
  async "an instance that was removed is gone, and an error is an UpstashError"({ admin, group }) {
    await admin.removeConsumerInstance(group, "i");
    try {
      // The client tries this for 15 s.
      await admin.removeConsumerInstance(group, "i");
    } catch (error) {
      equal(
        [error instanceof UpstashError, error.status, error.result],
        [true, 404, "Error"],
        "error",
      );
      return;
    }
    throw new Error("no error");
  },
};

export const worker = {
  async fetch(_request, { URL: url, RUN: run }) {
    const kafka = new Kafka({ url, username: "user", password: "password" });
    const [producer, consumer, admin] = [kafka.producer(), kafka.consumer(), kafka.admin()];
    const [topic, other, group] = ["a", "b", "g"].map((name) => `upstash-${run}-${name}`);
    const lines = [];
    let failed = 0;
    for (const [name, run] of Object.entries(CASES)) {
      try {
        await run({ producer, consumer, admin, topic, other, group });
        lines.push(`ok ${name}`);
      } catch (error) {
        failed += 1;
        lines.push(`FAILED ${name}: ${error}`);
      }
    }
    return new Response(lines.join("\n"), { status: failed === 0 ? 200 : 500 });
  },
};
