import assert from "node:assert/strict";
import { test } from "node:test";
import { createHttpNode, type Told } from "../../tests/support/http_node.ts";

type Node = Awaited<ReturnType<typeof createHttpNode>>;

const V2 = "application/vnd.kafka.v2+json";
const JSON_V2 = "application/vnd.kafka.json.v2+json";
const BINARY_V2 = "application/vnd.kafka.binary.v2+json";
const TEXT_V2 = "application/vnd.kafka.text.v2+json";

async function withNode(
  work: (node: Node) => Promise<void>,
  kafka: Readonly<Record<string, string>> = {},
): Promise<void> {
  const node = await createHttpNode(kafka);
  await node.ask("/v1/topics", { body: { name: "t", partitions: 2 } });
  await node.ask("/v1/topics", { body: { name: "one", partitions: 1 } });
  try {
    await work(node);
  } finally {
    await node.close();
  }
}

/** An instance `i` of group `g`, and its routes. */
async function instanceOf({ ask }: Node, told: Record<string, unknown> = {}, name = "i") {
  const made = await ask("/rest/consumers/g", { body: { name, ...told }, type: V2 });
  assert.equal(made.status, 200, made.text);
  const path = `/rest/consumers/g/instances/${name}`;
  return {
    made,
    at: (rest: string, asked: Told = {}) => ask(`${path}${rest}`, { type: V2, ...asked }),
    async values(query = "?timeout=0") {
      const answer = await ask(`${path}/records${query}`);
      assert.equal(answer.status, 200, answer.text);
      return answer.json.map((record: { value: unknown }) => record.value);
    },
  };
}

function produce({ ask }: Node, ...values: unknown[]) {
  return ask("/rest/topics/one", {
    type: JSON_V2,
    body: { records: values.map((value) => ({ value })) },
  });
}

test("the format of a body is its type: base64, JSON byte for byte, text", () =>
  withNode(async ({ ask }) => {
    const json = await ask("/rest/topics/one", {
      type: JSON_V2,
      body: '{"records":[{"key":"k","value":{"b":1.0, "a":[ ]}},{"value":"text"},{"value":null}]}',
    });
    assert.deepEqual([json.status, json.type], [200, V2]);
    assert.deepEqual(json.json, {
      offsets: [0, 1, 2].map((offset) => ({ partition: 0, offset, error_code: null, error: null })),
      key_schema_id: null,
      value_schema_id: null,
    });
    const binary = await ask("/rest/topics/one", {
      type: BINARY_V2,
      body: { records: [{ key: "a2V5", value: "AP8=" }] },
    });
    assert.equal(binary.json.offsets[0].offset, 3);
    const text = await ask("/rest/topics/one", {
      type: TEXT_V2,
      body: {
        records: [{
          key: "k",
          value: "plain",
          timestamp: 5,
          headers: [{ key: "h", value: "AQI=" }],
        }],
      },
    });
    assert.deepEqual(text.json, { offsets: [{ partition: 0, offset: 4 }] });
    const read = await ask("/v1/topics/one/partitions/0/records");
    assert.deepEqual(
      read.json.records.map((r: { key: unknown; value: unknown }) => [r.key, r.value]),
      [
        ['"k"', '{"b":1.0, "a":[ ]}'],
        [null, '"text"'],
        [null, null],
        ["key", { $base64: "AP8=" }],
        ["k", "plain"],
      ],
    );
    assert.deepEqual(read.json.records[4].headers, [["h", "\u0001\u0002"]]);
    assert.equal(read.json.records[4].timestamp, 5);
  }));

test("Fluent Bit's request, byte for byte, is 200 with a body", () =>
  withNode(async ({ ask, fetch, settled }) => {
    // Its plug-in sends these headers, no Accept, and takes anything but 200 with a body for a failure.
    const body =
      '{"records":[{"key":"my_key","value":{"@timestamp":"2026-11-30T18:00:00.123456789Z",' +
      '"_flb-key":"cpu.0","cpu_p":0.5,"log":"caf\u00e9 \\"x\\""}},' +
      '{"key":"my_key","value":{"@timestamp":"2026-11-30T18:00:01.000000000Z","_flb-key":"cpu.0","cpu_p":1e2}}]}';
    const answer = await settled(fetch(
      new Request("http://node/rest/topics/fluent-bit", {
        method: "POST",
        headers: { "User-Agent": "Fluent-Bit", "Content-Type": JSON_V2 },
        body,
      }),
    ));
    assert.equal(answer.status, 200);
    assert.ok((await answer.text()).length > 0);
    const { partition } =
      (await ask("/v1/topics/fluent-bit/records?from=earliest")).json.records[0];
    const read = await ask(`/v1/topics/fluent-bit/partitions/${partition}/records`);
    assert.deepEqual(
      read.json.records.map(({ value }: { value: string }) => value),
      [
        '{"@timestamp":"2026-11-30T18:00:00.123456789Z","_flb-key":"cpu.0","cpu_p":0.5,"log":"caf\u00e9 \\"x\\""}',
        '{"@timestamp":"2026-11-30T18:00:01.000000000Z","_flb-key":"cpu.0","cpu_p":1e2}',
      ],
    );
  }));

test("topics, partitions, offsets, brokers", () =>
  withNode(async ({ ask }) => {
    assert.deepEqual((await ask("/rest/topics")).json, ["one", "t"]);
    const replicas = [{ broker: 1, leader: true, in_sync: true }];
    const topic = await ask("/rest/topics/t");
    assert.equal(topic.json.name, "t");
    assert.equal(topic.json.configs["cleanup.policy"], "delete");
    const partitions = [0, 1].map((partition) => ({ partition, leader: 1, replicas }));
    assert.deepEqual(topic.json.partitions, partitions);
    assert.deepEqual((await ask("/rest/topics/t/partitions")).json, partitions);
    assert.deepEqual((await ask("/rest/topics/t/partitions/1")).json, partitions[1]);
    await produce({ ask } as Node, 1, 2);
    assert.deepEqual((await ask("/rest/topics/one/partitions/0/offsets")).json, {
      beginning_offset: 0,
      end_offset: 2,
    });
    assert.deepEqual((await ask("/rest/brokers")).json, { brokers: [1] });
    const created = await ask("/rest/admin/topics", {
      body: { topic_name: "made", partitions_count: 3, replication_factor: 3 },
    });
    assert.equal(created.status, 201);
    assert.equal((await ask("/rest/topics/made/partitions")).json.length, 3);
    assert.equal((await ask("/rest/status/ready")).status, 200);
    assert.equal(typeof (await ask("/rest")).json.bridge_version, "string");
  }));

test("records to one partition, and without waiting", () =>
  withNode(async ({ ask }) => {
    const body = { records: [{ value: "YQ==" }] };
    const one = await ask("/rest/topics/t/partitions/1", { type: BINARY_V2, body });
    assert.equal(one.json.offsets[0].partition, 1);
    const async = await ask("/rest/topics/t/partitions/1?async=true", { type: BINARY_V2, body });
    assert.deepEqual([async.status, async.text], [204, ""]);
    assert.equal((await ask("/rest/topics/t/partitions/1/offsets")).json.end_offset, 2);
  }));

test("a read of a partition needs no instance, but all three parameters", () =>
  withNode(async ({ ask }) => {
    await produce({ ask } as Node, { a: 1 }, "b");
    const path = "/rest/topics/one/partitions/0/records";
    const read = await ask(`${path}?offset=0&timeout=10&max_bytes=100000`, {
      headers: { accept: JSON_V2 },
    });
    assert.equal(read.type, JSON_V2);
    assert.deepEqual(read.json, [
      { topic: "one", key: null, value: { a: 1 }, partition: 0, offset: 0 },
      { topic: "one", key: null, value: "b", partition: 0, offset: 1 },
    ]);
    const binary = await ask(`${path}?offset=1&timeout=10&max_bytes=1`);
    assert.deepEqual(binary.json[0].value, "ImIi");
    assert.equal((await ask(`${path}?offset=0&timeout=10`)).status, 400);
    assert.deepEqual((await ask(`${path}?offset=2&timeout=10&max_bytes=9`)).json, []);
    assert.equal((await ask(`${path}?offset=9&timeout=10&max_bytes=9`)).json.error_code, 40_002);
  }));

test("an instance is made, subscribes, reads, commits, and is deleted", () =>
  withNode(async (node) => {
    await produce(node, { n: 1 }, { n: 2 });
    const { made, at, values } = await instanceOf(node, {
      format: "json",
      "auto.offset.reset": "earliest",
      "auto.commit.enable": "false",
    });
    assert.deepEqual(made.json, {
      instance_id: "i",
      base_uri: "http://node/rest/consumers/g/instances/i",
    });
    const subscribed = await at("/subscription", { body: { topics: ["one"] } });
    assert.deepEqual([subscribed.status, subscribed.text], [204, ""]);
    assert.deepEqual((await at("/subscription")).json, { topics: ["one"] });
    assert.deepEqual(await values(), [{ n: 1 }, { n: 2 }]);
    assert.deepEqual(await values(), []);
    const asked = { body: { partitions: [{ topic: "one", partition: 0 }] } };
    assert.deepEqual((await at("/offsets:query", asked)).json, { offsets: [] });
    const committed = await at("/offsets", { method: "POST" });
    assert.deepEqual([committed.status, committed.json], [200, []]);
    const where = { topic: "one", partition: 0, offset: 2, metadata: "" };
    assert.deepEqual((await at("/offsets:query", asked)).json, { offsets: [where] });
    const inQuery = encodeURIComponent(JSON.stringify(asked.body.partitions));
    assert.deepEqual((await at(`/offsets?partitions=${inQuery}`)).json, { offsets: [where] });
    const deleted = await at("", { method: "DELETE" });
    assert.deepEqual([deleted.status, deleted.text], [204, ""]);
    const gone = await at("/records");
    assert.deepEqual([gone.status, gone.json.error_code], [404, 40_403]);
  }));

test("Confluent's commit is of the last record that is done, the others' of the next one", () =>
  withNode(async (node) => {
    await produce(node, 1, 2, 3);
    const offsets = [{ topic: "one", partition: 0, offset: 1, metadata: "m" }];
    const asked = { body: { partitions: [{ topic: "one", partition: 0 }] } };
    for (
      const [name, told, body, expected, status] of [
        ["a", { "auto.commit.enable": false }, { offsets }, 2, 200],
        ["b", { "enable.auto.commit": false }, { offsets }, 1, 204],
        ["c", { "auto.commit.enable": false }, { partitions: offsets }, 1, 204],
      ] as const
    ) {
      const { at } = await instanceOf(node, told, name);
      const answer = await at("/offsets", { body });
      assert.equal(answer.status, status, name);
      const [found] = (await at("/offsets:query", asked)).json.offsets;
      assert.deepEqual([found.offset, found.metadata], [expected, "m"], name);
    }
  }));

test("Strimzi's instances show headers and timestamps, and the partitions of a subscription", () =>
  withNode(async (node) => {
    await node.ask("/rest/topics/one", {
      type: TEXT_V2,
      body: { records: [{ value: "v", timestamp: 9, headers: [{ key: "h", value: "AQ==" }] }] },
    });
    const { at } = await instanceOf(node, { format: "text", "auto.offset.reset": "earliest" });
    await at("/subscription", { body: { topics: ["one"] } });
    const read = await at("/records?timeout=0", { headers: { accept: TEXT_V2 } });
    assert.deepEqual(read.json, [{
      topic: "one",
      key: null,
      value: "v",
      partition: 0,
      offset: 0,
      headers: [{ key: "h", value: "AQ==" }],
      timestamp: 9,
    }]);
    assert.deepEqual((await at("/subscription")).json, {
      topics: ["one"],
      partitions: [{ one: [0] }],
    });
  }));

test("partitions by hand, positions, and where both are refused", () =>
  withNode(async (node) => {
    await produce(node, 0, 1, 2, 3);
    const { at, values } = await instanceOf(node, {
      format: "json",
      "auto.offset.reset": "earliest",
    });
    const empty = await at("/records");
    assert.deepEqual([empty.status, empty.json.error_code], [409, 40_903]);
    const partitions = [{ topic: "one", partition: 0 }];
    assert.equal((await at("/assignments", { body: { partitions } })).status, 204);
    assert.deepEqual((await at("/assignments")).json, { partitions });
    const both = await at("/subscription", { body: { topics: ["one"] } });
    assert.deepEqual([both.status, both.json.error_code], [409, 40_903]);
    assert.deepEqual(await values(), [0, 1, 2, 3]);
    const to = (offset: number) =>
      at("/positions", { body: { offsets: [{ topic: "one", partition: 0, offset }] } });
    assert.equal((await to(2)).status, 204);
    assert.deepEqual(await values(), [2, 3]);
    assert.equal((await at("/positions/beginning", { body: { partitions } })).status, 204);
    assert.deepEqual(await values(), [0, 1, 2, 3]);
    await at("/positions/beginning", { body: { partitions } });
    assert.equal((await at("/positions/end", { body: { partitions } })).status, 204);
    assert.deepEqual(await values(), []);
    const timestamps = [{ topic: "one", partition: 0, timestamp: "1999-01-01T00:00:00Z" }];
    assert.equal((await at("/positions", { body: { timestamps } })).status, 204);
    assert.deepEqual(await values(), [0, 1, 2, 3]);
    const other = await at("/positions/end", {
      body: { partitions: [{ topic: "t", partition: 0 }] },
    });
    assert.equal(other.json.error_code, 40_903);
    const none = await at("/assignments", { body: { partitions: [{ topic: "t", partition: 7 }] } });
    assert.deepEqual([none.status, none.json.error_code], [404, 40_401]);
  }));

test("a pattern means topics that come later too", () =>
  withNode(async (node) => {
    const { at, values } = await instanceOf(node, {
      format: "json",
      "auto.offset.reset": "earliest",
    });
    assert.equal((await at("/subscription", { body: { topic_pattern: "log-.*" } })).status, 204);
    assert.deepEqual((await at("/subscription")).json, { topics: [] });
    await node.ask("/rest/topics/log-a", { type: JSON_V2, body: { records: [{ value: 1 }] } });
    assert.deepEqual(await values("?timeout=20000"), [1]);
    assert.deepEqual((await at("/subscription")).json, { topics: ["log-a"] });
    const wrong = await at("/subscription", { body: { topic_pattern: "(" } });
    assert.equal(wrong.status, 400);
    assert.deepEqual(await values(), [], "it stays as it was");
    assert.equal((await at("/subscription", { method: "DELETE" })).status, 204);
    assert.equal((await at("/records")).json.error_code, 40_903);
  }));

test("a record that is no JSON stands in the way of a JSON instance until it goes past it", () =>
  withNode(async (node) => {
    await produce(node, 1);
    await node.ask("/rest/topics/one", { type: TEXT_V2, body: { records: [{ value: "{" }] } });
    await produce(node, 3);
    const { at, values } = await instanceOf(node, {
      format: "json",
      "auto.offset.reset": "earliest",
    });
    await at("/subscription", { body: { topics: ["one"] } });
    assert.deepEqual(await values(), [1]);
    const stuck = await at("/records?timeout=0");
    assert.deepEqual([stuck.status, stuck.json.error_code], [406, 40_601]);
    assert.match(stuck.json.message, /offset 1 of partition 0 of one/);
    await at("/positions", { body: { offsets: [{ topic: "one", partition: 0, offset: 2 }] } });
    assert.deepEqual(await values(), [3]);
  }));

test("fetch.min.bytes waits for more, and no longer than the time", () =>
  withNode(async (node) => {
    const { at, values } = await instanceOf(node, {
      format: "json",
      "auto.offset.reset": "earliest",
      "fetch.min.bytes": 100_000,
    });
    await at("/subscription", { body: { topics: ["one"] } });
    await produce(node, 1);
    const before = node.clock.monotonicMs();
    assert.deepEqual(await values("?timeout=3000"), [1]);
    assert.ok(node.clock.monotonicMs() - before >= 3000);
    await produce(node, "x".repeat(100_000));
    const then = node.clock.monotonicMs();
    assert.equal((await values("?timeout=3000")).length, 1);
    assert.ok(node.clock.monotonicMs() - then < 3000);
  }));

test("what is wrong is refused with its code", () =>
  withNode(async (node) => {
    const { ask } = node;
    await instanceOf(node, { format: "json" });
    const i = "/rest/consumers/g/instances/i";
    const records = [{ value: 1 }];
    for (
      const [path, told, status, code] of [
        ["/rest/topics/none", {}, 404, 40_401],
        ["/rest/topics/none", { type: JSON_V2, body: { records } }, 404, 40_401],
        ["/rest/topics/t/partitions/7", {}, 404, 40_402],
        ["/rest/topics/t/partitions/7", { type: JSON_V2, body: { records } }, 404, 40_402],
        ["/rest/topics/t/partitions/x", {}, 400, 400],
        ["/rest/topics/t", { type: "text/plain", body: "x" }, 415, 415],
        [
          "/rest/topics/t",
          {
            type: "application/vnd.kafka.avro.v2+json",
            body: { records },
          },
          415,
          415,
        ],
        ["/rest/topics/t", { type: JSON_V2, body: "" }, 422, 42_206],
        ["/rest/topics/t", { type: JSON_V2, body: { records: [] } }, 422, 42_206],
        ["/rest/topics/t", { type: JSON_V2, body: "{" }, 400, 400],
        ["/rest/topics/t", { type: JSON_V2, body: { records, other: 1 } }, 400, 400],
        [
          "/rest/topics/t",
          { type: JSON_V2, body: { records: [{ value: 1, other: 1 }] } },
          400,
          400,
        ],
        ["/rest/topics/t", { type: BINARY_V2, body: { records: [{ value: "?" }] } }, 400, 400],
        ["/rest/topics/t", { type: TEXT_V2, body: { records } }, 400, 400],
        ["/rest/topics/t?dialect=other", { type: JSON_V2, body: { records } }, 400, 400],
        ["/rest/consumers/g", { body: { name: "i" } }, 409, 40_902],
        ["/rest/consumers/g", { body: { format: "avro" } }, 422, 42_204],
        ["/rest/consumers/g", { body: { other: 1 } }, 400, 400],
        [`${i}/records`, { headers: { accept: BINARY_V2 } }, 406, 40_601],
        [`${i}/subscription`, { body: {} }, 409, 40_903],
        [`${i}/offsets`, {}, 400, 400],
        [
          `${i}/positions`,
          { body: { offsets: [{ topic: "t", partition: 0, offset: 1 }] } },
          409,
          40_903,
        ],
        ["/rest/consumers/g/instances/none", { method: "DELETE" }, 404, 40_403],
        ["/rest/nothing", {}, 404, 404],
        ["/rest/brokers", { method: "DELETE" }, 405, 405],
      ] as const
    ) {
      const answer = await ask(path, { type: V2, ...told });
      assert.equal(answer.status, status, `${path}: ${answer.text}`);
      assert.equal(answer.json.error_code, code, path);
      assert.equal(typeof answer.json.message, "string");
      assert.equal(answer.type, V2);
    }
  }, { "auto.create.topics.enable": "false" }));

test("some records may fail where others do not", () =>
  withNode(async ({ ask }) => {
    const records = [{ value: 1, partition: 0 }, { value: 2, partition: 9 }];
    const body = { records };
    const confluent = await ask("/rest/topics/t", { type: JSON_V2, body });
    assert.equal(confluent.status, 200);
    assert.equal(confluent.json.offsets[0].error_code, null);
    assert.equal(confluent.json.offsets[1].error_code, 40_401);
    const strimzi = await ask("/rest/topics/t?dialect=strimzi", { type: JSON_V2, body });
    assert.deepEqual(Object.keys(strimzi.json.offsets[1]), ["error_code", "message"]);
  }));

test("a jump holds after a restart until a commit overtakes it; what was not committed comes again", () =>
  withNode(async (node) => {
    await produce(node, 0, 1, 2, 3);
    const { at, values } = await instanceOf(node, {
      format: "json",
      "auto.offset.reset": "earliest",
      "auto.commit.enable": false,
    });
    await at("/subscription", { body: { topics: ["one"] } });
    assert.deepEqual(await values(), [0, 1, 2, 3]);
    await at("/positions", { body: { offsets: [{ topic: "one", partition: 0, offset: 2 }] } });
    await node.restart();
    assert.deepEqual(await values("?timeout=5000"), [2, 3]);
    await at("/offsets", { method: "POST" });
    await produce(node, 4);
    await node.restart();
    assert.deepEqual(await values("?timeout=5000"), [4]);
    await node.restart();
    assert.deepEqual(await values("?timeout=5000"), [4]);
    assert.deepEqual((await at("/subscription")).json, { topics: ["one"] });
  }));

test("partitions by hand hold after a restart, and at another node", () =>
  withNode(async (node) => {
    const { at, values } = await instanceOf(node, { format: "json" });
    await at("/assignments", { body: { partitions: [{ topic: "one", partition: 0 }] } });
    assert.deepEqual(await values(), []);
    await produce(node, 1);
    await node.restart();
    assert.deepEqual(await values("?timeout=5000"), [1], "it began before this one was written");
    await at("/offsets", { method: "POST" });
    await produce(node, 2);
    await node.restart(2);
    for (let tries = 0; tries < 60; tries++) {
      if ((await at("/records?timeout=0")).status === 200) break;
      await node.clock.advance(1_000);
    }
    await at("/positions/beginning", { body: { partitions: [{ topic: "one", partition: 0 }] } });
    assert.deepEqual(await values("?timeout=5000"), [1, 2]);
  }));

test("five minutes without a request end an instance; so do they after a restart", () =>
  withNode(async (node) => {
    const { at } = await instanceOf(node, { format: "json" });
    await at("/subscription", { body: { topics: ["one"] } });
    await node.clock.advance(299_000);
    const cluster = (await node.ask("/v3/clusters")).json.data[0].cluster_id;
    const members = await node.ask(`/v3/clusters/${cluster}/consumer-groups/g/consumers`);
    assert.equal(members.json.data.length, 1, "its node keeps it in the group");
    assert.equal((await at("/subscription")).status, 200);
    await node.clock.advance(200_000);
    await node.restart();
    await node.clock.advance(290_000);
    assert.equal((await at("/assignments")).status, 200, "the time begins again with the node");
    await node.clock.advance(310_000);
    assert.equal((await at("/subscription")).json.error_code, 40_403);
  }));

test("polls that bring nothing and members that stay write nothing", () =>
  withNode(async (node) => {
    const { at, values } = await instanceOf(node, { format: "json" });
    await at("/subscription", { body: { topics: ["one"] } });
    await values();
    await node.clock.advance(60_000);
    const writes = () =>
      [
        ...node.env.metrics.render().matchAll(
          /^skerry_object_store_requests_total\{[^}]*(?:op|operation)="put[^}]*\} (\d+)/gm,
        ),
      ].reduce((sum, [, count]) => sum + Number(count), 0);
    const first = writes();
    assert.ok(first > 0);
    for (let i = 0; i < 20; i++) await values("?timeout=5000");
    assert.equal(writes(), first);
    await produce(node, 1);
    assert.ok(writes() > first, "what is counted are writes");
  }));

test("an instance that was made outlives a crash, with its jumps and commits", () =>
  withNode(async (node) => {
    await produce(node, 0, 1, 2);
    const { at, values } = await instanceOf(node, {
      format: "json",
      "auto.offset.reset": "earliest",
      "auto.commit.enable": false,
    });
    await node.crash();
    assert.equal((await at("/subscription", { body: { topics: ["one"] } })).status, 204);
    await node.crash();
    assert.deepEqual(await values("?timeout=5000"), [0, 1, 2]);
    await at("/positions", { body: { offsets: [{ topic: "one", partition: 0, offset: 1 }] } });
    await node.crash();
    assert.deepEqual(await values("?timeout=5000"), [1, 2]);
    await at("/offsets", { method: "POST" });
    await node.crash();
    await produce(node, 3);
    assert.deepEqual(await values("?timeout=5000"), [3]);
  }));

test("a client that has gone before its answer is made has got nothing", () =>
  withNode(async (node) => {
    const { at, values } = await instanceOf(node, {
      format: "json",
      "auto.offset.reset": "earliest",
    });
    await at("/subscription", { body: { topics: ["one"] } });
    const gone = new AbortController();
    const path = "/rest/consumers/g/instances/i/records?timeout=30000";
    const waiting = node.fetch(new Request(`http://node${path}`, { signal: gone.signal }));
    await node.clock.advance(1_000);
    gone.abort();
    await node.clock.settle();
    await waiting.catch(() => {});
    await produce(node, 1);
    const early = new AbortController();
    const cut = node.fetch(new Request(`http://node${path}`, { signal: early.signal }));
    early.abort();
    await node.clock.settle();
    await cut.catch(() => {});
    assert.deepEqual(await values(), [1]);
  }));

test("a wait for records ends with the node", () =>
  withNode(async (node) => {
    const { at } = await instanceOf(node, { format: "json" });
    await at("/subscription", { body: { topics: ["none-yet"] } });
    const path = "/rest/consumers/g/instances/i/records?timeout=30000";
    const waiting = node.fetch(new Request(`http://node${path}`));
    await node.clock.advance(1_000);
    const before = node.clock.monotonicMs();
    const closing = node.restart();
    await waiting;
    assert.ok(node.clock.monotonicMs() - before < 5_000);
    await closing;
  }));
