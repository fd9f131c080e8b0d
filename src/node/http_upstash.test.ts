import assert from "node:assert/strict";
import { test } from "node:test";
import { createHttpNode } from "../../tests/support/http_node.ts";

type Node = Awaited<ReturnType<typeof createHttpNode>>;

async function withNode(work: (node: Node) => Promise<void>): Promise<void> {
  const node = await createHttpNode();
  await node.ask("/v1/topics", { body: { name: "blue", partitions: 2 } });
  await node.ask("/v1/topics", { body: { name: "red", partitions: 1 } });
  try {
    await work(node);
  } finally {
    await node.close();
  }
}

const FORM = "application/x-www-form-urlencoded";

test("one record, several, and several topics answer a list; a record in the path answers itself", () =>
  withNode(async ({ ask }) => {
    const one = await ask("/upstash/produce/red/hello%20world?key=k");
    assert.deepEqual([one.status, one.json.topic, one.json.partition, one.json.offset], [
      200,
      "red",
      0,
      0,
    ]);
    assert.equal(typeof one.json.timestamp, "number");
    // curl -d says that JSON is a form.
    const two = await ask("/upstash/produce/red", { type: FORM, body: '{"value":"a"}' });
    assert.deepEqual(two.json.map((x: { offset: number }) => x.offset), [1]);
    const many = await ask("/upstash/produce", {
      body: [
        { topic: "red", value: "b", partition: 0, timestamp: 7 },
        { topic: "blue", value: { a: 1 }, key: "x", headers: [{ key: "h", value: "v" }] },
      ],
    });
    assert.deepEqual(many.json.map((x: { topic: string }) => x.topic), ["red", "blue"]);
    assert.equal(many.json[0].timestamp, 7);
    const read = await ask("/upstash/fetch", {
      body: { topic: "red", partition: 0, offset: 0 },
    });
    assert.deepEqual(
      read.json.map((x: Record<string, unknown>) => [x["key"], x["value"], x["offset"]]),
      [["k", "hello world", 0], ["", "a", 1], ["", "b", 2]],
    );
    const { partition } = many.json[1];
    const blue = await ask("/upstash/fetch", {
      body: { topicPartitionOffsets: [{ topic: "blue", partition, offset: 0 }], timeout: 10 },
    });
    assert.equal(blue.json[0].value, '{"a":1}');
    assert.deepEqual(blue.json[0].headers, [{ key: "h", value: "v" }]);
  }));

test("fetch waits its time and answers an empty list", () =>
  withNode(async ({ ask, clock }) => {
    const before = clock.monotonicMs();
    const read = await ask("/upstash/fetch", { body: { topic: "red", partition: 0, offset: 0 } });
    assert.deepEqual([read.status, read.json], [200, []]);
    assert.ok(clock.monotonicMs() - before >= 1000);
  }));

test("an instance begins at the end, gets what comes, goes on behind it, and is listed", () =>
  withNode(async ({ ask }) => {
    await ask("/upstash/produce/red/old");
    const consume = () => ask("/upstash/consume/g/i", { body: { topic: "red", timeout: 100 } });
    assert.deepEqual((await consume()).json, []);
    await ask("/upstash/produce/red/new");
    const got = await consume();
    assert.deepEqual(got.json.map((x: { value: string }) => x.value), ["new"]);
    assert.deepEqual((await consume()).json, []);
    const consumers = await ask("/upstash/consumers");
    assert.deepEqual(consumers.json, [
      { name: "g", instances: [{ name: "i", topics: [{ topic: "red", partitions: [0] }] }] },
    ]);
    assert.deepEqual((await ask("/upstash/topics")).json, { blue: 2, red: 1 });
  }));

test("earliest begins at the beginning, by the header of the first request", () =>
  withNode(async ({ ask }) => {
    await ask("/upstash/produce/red/old");
    const got = await ask("/upstash/consume/g/i/red?timeout=100", {
      headers: { "kafka-auto-offset-reset": "earliest" },
    });
    assert.deepEqual(got.json.map((x: { value: string }) => x.value), ["old"]);
  }));

test("a commit stores the offset as it is given, an empty one what was consumed", () =>
  withNode(async ({ ask }) => {
    for (const value of ["a", "b", "c"]) await ask(`/upstash/produce/red/${value}`);
    const headers = {
      "kafka-auto-offset-reset": "earliest",
      "kafka-enable-auto-commit": "false",
    };
    const body = { topics: ["red"], timeout: 100 };
    assert.equal((await ask("/upstash/consume/g/i", { body, headers })).json.length, 3);
    const at = [{ topic: "red", partition: 0 }];
    const committed = () => ask("/upstash/committed/g/i", { body: at });
    assert.deepEqual((await committed()).json, [{ topic: "red", partition: 0, offset: -1 }]);
    const said = await ask("/upstash/commit/g/i", { body: { ...at[0], offset: 1 } });
    assert.deepEqual(said.json, { result: "Success", status: 200 });
    assert.equal((await committed()).json[0].offset, 1);
    await ask("/upstash/consume/g/i", { body, headers });
    await ask("/upstash/commit/g/i", { method: "POST" });
    assert.equal((await committed()).json[0].offset, 1, "what was said counts");
    await ask("/upstash/produce/red/d");
    assert.equal((await ask("/upstash/consume/g/i", { body, headers })).json.length, 1);
    await ask("/upstash/commit/g/i", { method: "POST" });
    assert.equal((await committed()).json[0].offset, 4);
  }));

test("offsets by time: seconds, milliseconds, and the two words", () =>
  withNode(async ({ ask }) => {
    const body = { topic: "red", partition: 0 };
    for (const ms of [1_700_000_000_000, 1_700_000_001_000]) {
      await ask("/upstash/produce/red", { body: { value: "x", timestamp: ms } });
    }
    for (
      const [text, offset] of [
        ["1700000001", 1],
        ["1700000000500", 1],
        ["1600000000", 0],
        ["1800000000", 2],
        ["earliest", 0],
        ["latest", 2],
      ] as const
    ) {
      const answer = await ask(`/upstash/offsets/${text}`, { body: [body] });
      assert.deepEqual(answer.json, [{ ...body, offset }], text);
    }
  }));

test("a deleted instance is gone, an unknown one an error; errors have result, error and status", () =>
  withNode(async ({ ask }) => {
    await ask("/upstash/consume/g/i", { body: { topic: "red", timeout: 0 } });
    const deleted = await ask("/upstash/delete-consumer/g/i", { method: "POST" });
    assert.deepEqual([deleted.status, deleted.json], [200, { result: "Success", status: 200 }]);
    const again = await ask("/upstash/delete-consumer/g/i", { method: "DELETE" });
    assert.equal(again.status, 404);
    assert.deepEqual(Object.keys(again.json), ["result", "error", "status"]);
    assert.equal(again.json.status, 404);
    assert.deepEqual((await ask("/upstash/consumers")).json, []);
  }));

test("what is wrong is refused in the same shape", () =>
  withNode(async ({ ask }) => {
    for (
      const [path, told, status] of [
        ["/upstash/produce", { body: "{" }, 400],
        ["/upstash/produce/red", { body: "" }, 400],
        ["/upstash/produce/red", { body: { value: "a", other: 1 } }, 400],
        ["/upstash/produce/red", { body: { value: "a", partition: 9 } }, 404],
        ["/upstash/fetch", { body: { topic: "none", partition: 0, offset: 0 } }, 404],
        ["/upstash/fetch", { body: { topic: "red", partition: 0, offset: 5 } }, 416],
        ["/upstash/consume/g/i", { body: {} }, 400],
        ["/upstash/commit/g/none", { method: "POST" }, 404],
        ["/upstash/nothing", {}, 404],
        ["/upstash/topics", { body: "", method: "POST" }, 405],
        ["/upstash/offsets/soon", { body: [{ topic: "red", partition: 0 }] }, 400],
        ["/upstash/webhook", { body: "x" }, 400],
      ] as const
    ) {
      const answer = await ask(path, told);
      assert.equal(answer.status, status, path);
      assert.equal(answer.json.status, status);
      assert.equal(typeof answer.json.error, "string");
    }
  }));

test("a webhook is its body, with the headers that are its sender's own", () =>
  withNode(async ({ ask }) => {
    const headers = { "x-github-event": "push", "user-agent": "hook", accept: "*/*" };
    await ask("/upstash/webhook?topic=red&user=u&pass=p", {
      body: "raw \u00e9",
      type: "text/plain",
      headers,
    });
    const read = await ask("/upstash/fetch", { body: { topic: "red", partition: 0, offset: 0 } });
    assert.equal(read.json[0].value, "raw \u00e9");
    assert.deepEqual(read.json[0].headers, [{ key: "x-github-event", value: "push" }]);
  }));

test("two instances share the partitions, and one gets all of them when the other is gone", () =>
  withNode(async ({ ask }) => {
    const headers = { "kafka-auto-offset-reset": "earliest" };
    const consume = (instance: string, timeout = 100) =>
      ask(`/upstash/consume/g/${instance}`, { body: { topic: "blue", timeout }, headers });
    await consume("a");
    await consume("b");
    for (const partition of [0, 1]) {
      await ask("/upstash/produce/blue", { body: { value: `p${partition}`, partition } });
    }
    const values = [...(await consume("a")).json, ...(await consume("b")).json]
      .map((x: { value: string }) => x.value);
    assert.deepEqual(values.toSorted(), ["p0", "p1"]);
    await ask("/upstash/delete-consumer/g/a", { method: "DELETE" });
    for (const partition of [0, 1]) {
      await ask("/upstash/produce/blue", { body: { value: `q${partition}`, partition } });
    }
    const rest = (await consume("b", 5_000)).json.map((x: { value: string }) => x.value);
    assert.deepEqual(rest.toSorted(), ["q0", "q1"]);
  }));

test("an instance goes on after a restart, and at another node id", () =>
  withNode(async ({ ask, restart, clock }) => {
    const headers = { "kafka-auto-commit-interval": "0" };
    const consume = () =>
      ask("/upstash/consume/g/i", { body: { topic: "red", timeout: 5_000 }, headers });
    await consume();
    await ask("/upstash/produce/red/a");
    assert.deepEqual((await consume()).json.map((x: { value: string }) => x.value), ["a"]);
    await ask("/upstash/consume/g/i", { body: { topic: "red", timeout: 0 }, headers });
    await restart();
    await ask("/upstash/produce/red/b");
    assert.deepEqual((await consume()).json.map((x: { value: string }) => x.value), ["b"]);
    await ask("/upstash/consume/g/i", { body: { topic: "red", timeout: 0 }, headers });
    await restart(2);
    // Clients try again while the other node's partitions are taken over.
    for (
      let tries = 0;
      tries < 60 && (await ask("/upstash/produce/red/c")).status !== 200;
      tries++
    ) {
      await clock.advance(1_000);
    }
    assert.deepEqual((await consume()).json.map((x: { value: string }) => x.value), ["c"]);
  }));

test("without a request for its session time an instance ends, and what it was given is committed", () =>
  withNode(async ({ ask, clock }) => {
    const headers = {
      "kafka-session-timeout-ms": "20000",
      "kafka-auto-offset-reset": "earliest",
    };
    await ask("/upstash/produce/red/a");
    await ask("/upstash/consume/g/i", { body: { topic: "red", timeout: 0 }, headers });
    await clock.advance(15_000);
    assert.equal((await ask("/upstash/consumers")).json.length, 1, "its node keeps it in");
    await clock.advance(10_000);
    assert.deepEqual((await ask("/upstash/consumers")).json, []);
    const committed = await ask("/upstash/committed/g/i", {
      body: [{ topic: "red", partition: 0 }],
    });
    assert.equal(committed.json[0].offset, 1);
  }));
