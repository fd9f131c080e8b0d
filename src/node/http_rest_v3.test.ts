import assert from "node:assert/strict";
import { test } from "node:test";
import { createHttpNode } from "../../tests/support/http_node.ts";

type Node = Awaited<ReturnType<typeof createHttpNode>>;

async function withNode(
  work: (node: Node & { readonly base: string }) => Promise<void>,
): Promise<void> {
  const node = await createHttpNode();
  await node.ask("/v1/topics", { body: { name: "t", partitions: 2 } });
  const { json } = await node.ask("/v3/clusters");
  try {
    await work({ ...node, base: `/v3/clusters/${json.data[0].cluster_id}` });
  } finally {
    await node.close();
  }
}

/** Reports stand one behind the other. */
function reportsIn(text: string): Record<string, unknown>[] {
  return text.trim().split("\n").map((line) => JSON.parse(line));
}

test("clusters and brokers, at both paths", () =>
  withNode(async ({ ask, base }) => {
    const list = await ask("/v3/clusters");
    const [one] = list.json.data;
    assert.deepEqual([list.json.kind, one.kind], ["KafkaClusterList", "KafkaCluster"]);
    assert.equal(list.json.metadata.self, "http://node/v3/clusters");
    assert.equal(one.metadata.self, `http://node${base}`);
    assert.equal(one.metadata.resource_name, `crn:///kafka=${one.cluster_id}`);
    assert.equal(one.topics.related, `http://node${base}/topics`);
    assert.deepEqual((await ask(base)).json, one);
    const cloud = await ask(`/kafka${base}`);
    assert.equal(cloud.json.metadata.self, `http://node/kafka${base}`);
    const brokers = await ask(`${base}/brokers`);
    assert.deepEqual(brokers.json.data.map((b: { broker_id: number }) => b.broker_id), [1]);
    assert.equal((await ask(`${base}/brokers/1`)).json.kind, "KafkaBroker");
    assert.equal((await ask(`${base}/brokers/2`)).status, 404);
    assert.equal((await ask("/v3/clusters/other/topics")).status, 404);
  }));

test("topics are listed, made, grown and deleted", () =>
  withNode(async ({ ask, base }) => {
    const created = await ask(`${base}/topics`, {
      body: {
        topic_name: "made",
        partitions_count: 1,
        replication_factor: 3,
        configs: [{ name: "retention.ms", value: "5000" }],
      },
    });
    assert.equal(created.status, 201);
    assert.equal(created.headers.get("location"), `http://node${base}/topics/made`);
    assert.deepEqual([created.json.kind, created.json.partitions_count], ["KafkaTopic", 1]);
    const list = await ask(`${base}/topics`);
    assert.deepEqual(list.json.data.map((x: { topic_name: string }) => x.topic_name), [
      "made",
      "t",
    ]);
    const again = await ask(`${base}/topics`, { body: { topic_name: "made" } });
    assert.deepEqual([again.status, again.json.error_code], [400, 40_002]);
    const grown = await ask(`${base}/topics/made`, {
      method: "PATCH",
      body: { partitions_count: 3 },
    });
    assert.equal(grown.json.partitions_count, 3);
    const partitions = await ask(`${base}/topics/made/partitions`);
    assert.deepEqual(
      partitions.json.data.map((x: { partition_id: number }) => x.partition_id),
      [0, 1, 2],
    );
    const one = await ask(`${base}/topics/made/partitions/2`);
    assert.deepEqual([one.json.kind, one.json.partition_id], ["KafkaPartition", 2]);
    const replicas = await ask(`${base}/topics/t/partitions/0/replicas`);
    assert.equal(replicas.json.kind, "KafkaReplicaList");
    assert.equal((await ask(`${base}/topics/made`, { method: "DELETE" })).status, 204);
    const gone = await ask(`${base}/topics/made`);
    assert.deepEqual([gone.status, gone.json.error_code], [404, 40_403]);
    const validate = { topic_name: "x", validate_only: true };
    assert.equal((await ask(`${base}/topics`, { body: validate })).status, 400);
  }));

test("settings are listed, read, set, taken back and altered", () =>
  withNode(async ({ ask, base }) => {
    const path = `${base}/topics/t/configs`;
    const list = await ask(path);
    assert.equal(list.json.kind, "KafkaTopicConfigList");
    const retention = () => ask(`${path}/retention.ms`);
    assert.equal((await retention()).json.is_default, true);
    const put = { method: "PUT", body: { value: "1234" } };
    assert.equal((await ask(`${path}/retention.ms`, put)).status, 204);
    const set = (await retention()).json;
    assert.deepEqual([set.value, set.is_default, set.source], [
      "1234",
      false,
      "DYNAMIC_TOPIC_CONFIG",
    ]);
    assert.equal((await ask(`${path}/retention.ms`, { method: "DELETE" })).status, 204);
    assert.equal((await retention()).json.is_default, true);
    const data = [
      { name: "retention.ms", value: "99" },
      { name: "cleanup.policy", operation: "DELETE" },
    ];
    assert.equal((await ask(`${path}:alter`, { body: { data } })).status, 204);
    assert.equal((await retention()).json.value, "99");
    const bad = await ask(`${path}/retention.ms`, { method: "PUT", body: { value: "x" } });
    assert.deepEqual([bad.status, bad.json.error_code], [400, 40_002]);
    assert.equal((await ask(`${path}/nothing`)).status, 404);
    const all = await ask(`${base}/topics/-/configs`);
    assert.equal(all.json.data.length, list.json.data.length);
  }));

test("one record is reported with where it is, its types and sizes", () =>
  withNode(async ({ ask, base }) => {
    const answer = await ask(`${base}/topics/t/records`, {
      body: {
        partition_id: 1,
        headers: [{ name: "h", value: "AQI=" }, { name: "n" }],
        key: { type: "STRING", data: "k\u00e9" },
        value: { type: "JSON", data: { a: 1 } },
        timestamp: "2023-01-02T03:04:05.678Z",
      },
    });
    assert.deepEqual([answer.status, answer.type], [200, "application/json"]);
    assert.deepEqual(answer.json, {
      error_code: 200,
      cluster_id: base.split("/")[3],
      topic_name: "t",
      partition_id: 1,
      offset: 0,
      timestamp: "2023-01-02T03:04:05.678Z",
      key: { type: "STRING", size: 3 },
      value: { type: "JSON", size: 7 },
    });
    const read = await ask("/v1/topics/t/partitions/1/records");
    const [{ key, value, headers, timestamp }] = read.json.records;
    assert.deepEqual([key, value, timestamp], ["k\u00e9", '{"a":1}', 1_672_628_645_678]);
    assert.deepEqual(headers, [["h", "\u0001\u0002"], ["n", null]]);
  }));

test("records stand one behind the other, with or without space; one that fails ends nothing", () =>
  withNode(async ({ ask, base }) => {
    const value = (data: unknown) =>
      `{"partition_id":0,"value":{"type":"JSON","data":${JSON.stringify(data)}}}`;
    const odd = 'a}{"\\';
    const body = `${value(odd)}${value([1])} \n ${
      value({ x: "}" })
    }{"value":{"type":"AVRO","data":1}}${value(4)}`;
    const answer = await ask(`${base}/topics/t/records`, { body });
    assert.equal(answer.status, 200);
    const reports = reportsIn(answer.text);
    assert.deepEqual(
      reports.map((report) => [report["error_code"], report["offset"]]),
      [[200, 0], [200, 1], [200, 2], [400, undefined], [200, 3]],
    );
    assert.match(String(reports[3]!["message"]), /schema registry/);
    const read = await ask("/v1/topics/t/partitions/0/records?encoding=json");
    assert.deepEqual(read.json.records.map((r: { value: unknown }) => r.value), [odd, [1], {
      x: "}",
    }, 4]);
  }));

test("a body in any parts is the same records", () =>
  withNode(async ({ base, fetch, settled }) => {
    const text =
      '{"value":{"type":"STRING","data":"\u00e9\\"}"}} {"value":{"type":"BINARY","data":"AA=="}}';
    const bytes = new TextEncoder().encode(text);
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    });
    const init = { method: "POST", body, duplex: "half" } as RequestInit;
    const answer = await settled(fetch(new Request(`http://node${base}/topics/t/records`, init)));
    const reports = reportsIn(await settled(answer.text()));
    assert.deepEqual(reports.map((report) => report["error_code"]), [200, 200]);
  }));

test("what is no record, or not there, ends the stream with a report", () =>
  withNode(async ({ ask, base }) => {
    const path = `${base}/topics/t/records`;
    const empty = await ask(path, { method: "POST" });
    assert.deepEqual([empty.status, empty.json.error_code], [422, 422]);
    const spaces = await ask(path, { body: "  " });
    assert.equal(reportsIn(spaces.text)[0]!["error_code"], 422);
    const between = await ask(path, { body: '{"value":null},{"value":null}' });
    assert.deepEqual(reportsIn(between.text).map((one) => one["error_code"]), [200, 400]);
    const more = await ask(path, { body: '{"value":null}]{"value":null}' });
    assert.deepEqual(reportsIn(more.text).map((one) => one["error_code"]), [200, 400]);
    const cut = await ask(path, { body: '{"value":null}{"value":' });
    assert.deepEqual(reportsIn(cut.text).map((one) => one["error_code"]), [200, 400]);
    const unknown = await ask(path, { body: { value: null, partition_id: 9 } });
    assert.equal(unknown.json.error_code, 40_403);
  }));

test("a batch answers 207 with what succeeded and what did not, by id", () =>
  withNode(async ({ ask, base }) => {
    const path = `${base}/topics/t/records:batch`;
    const answer = await ask(path, {
      body: {
        entries: [
          { id: "a", partition_id: 0, value: { type: "STRING", data: "x" } },
          { id: "b", value: { type: "STRING", data: 1 } },
          { id: "c", partition_id: 9 },
          { id: "d", partition_id: 0, value: { type: "JSON", data: null } },
        ],
      },
    });
    assert.equal(answer.status, 207);
    const { successes, failures } = answer.json;
    assert.deepEqual(
      successes.map((one: Record<string, unknown>) => [one["id"], one["offset"]]),
      [["a", 0], ["d", 1]],
    );
    assert.deepEqual(
      failures.map((one: Record<string, unknown>) => [one["id"], one["error_code"]]),
      [["b", 400], ["c", 40_403]],
    );
    const many = Array.from({ length: 11 }, (_, i) => ({ id: `${i}` }));
    for (
      const entries of [[], many, [{ id: "x" }, { id: "x" }], [{ id: "" }], [{
        id: "x".repeat(81),
      }]]
    ) {
      const refused = await ask(path, { body: { entries } });
      assert.deepEqual([refused.status, refused.json.error_code], [422, 42_208]);
    }
    assert.equal((await ask(path, { body: { entries: [{}] } })).status, 400);
  }));

test("groups, their consumers, and how far they are behind", () =>
  withNode(async ({ ask, base }) => {
    const body = { name: "i", format: "json", "auto.offset.reset": "earliest" };
    await ask("/rest/consumers/g", { body });
    await ask("/rest/consumers/g/instances/i/subscription", { body: { topics: ["t"] } });
    await ask("/rest/consumers/g/instances/i/records?timeout=0");
    for (const partition_id of [0, 1, 1]) {
      await ask(`${base}/topics/t/records`, { body: { partition_id, value: null } });
    }
    await ask("/rest/consumers/g/instances/i/records?timeout=0");
    await ask("/rest/consumers/g/instances/i/offsets", { method: "POST" });
    await ask(`${base}/topics/t/records`, { body: { partition_id: 1, value: null } });
    const group = await ask(`${base}/consumer-groups/g`);
    assert.deepEqual(
      [group.json.kind, group.json.state, group.json.type, group.json.is_simple],
      ["KafkaConsumerGroup", "STABLE", "CONSUMER", false],
    );
    const groups = await ask(`${base}/consumer-groups`);
    assert.deepEqual(groups.json.data, [group.json]);
    const consumers = await ask(`${base}/consumer-groups/g/consumers`);
    assert.deepEqual(consumers.json.data.map((x: { consumer_id: string }) => x.consumer_id), ["i"]);
    const assignments = await ask(`${base}/consumer-groups/g/consumers/i/assignments`);
    assert.deepEqual(
      assignments.json.data.map((x: { partition_id: number }) => x.partition_id),
      [0, 1],
    );
    const lags = await ask(`${base}/consumer-groups/g/lags`);
    assert.deepEqual(
      lags.json.data.map((x: Record<string, unknown>) => [
        x["partition_id"],
        x["current_offset"],
        x["log_end_offset"],
        x["lag"],
        x["consumer_id"],
      ]).toSorted(),
      [[0, 1, 1, 0, "i"], [1, 2, 3, 1, "i"]],
    );
    assert.equal((await ask(`${base}/consumer-groups/g/lags/t/partitions/1`)).json.lag, 1);
    const summary = (await ask(`${base}/consumer-groups/g/lag-summary`)).json;
    assert.deepEqual([summary.max_lag, summary.total_lag, summary.max_lag_partition_id], [1, 1, 1]);
    assert.equal((await ask(`${base}/consumer-groups/none`)).status, 404);
    assert.equal((await ask(`${base}/acls`)).json.error_code, 404);
  }));
