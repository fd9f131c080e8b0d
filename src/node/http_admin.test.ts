import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { nodeOptions } from "../../tests/support/node_options.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { createMemoryStore } from "../object/memory.ts";
import { type RunningNode, startNode } from "./node.ts";

type Json = Record<string, unknown>;

const clock = createFakeClock();
const started: RunningNode[] = [];
after(async () => {
  for (const node of started) await node.close();
});

async function start(kafka: Record<string, string> = {}) {
  const base = nodeOptions(createMemoryStore(clock), { env: testEnv({ clock }) });
  const node = await startNode({ ...base, settings: { ...base.settings, kafka } });
  started.push(node);
  const ask = async (method: string, path: string, body?: unknown) => {
    const answer = await node.fetch(
      new Request(`http://node${path}`, {
        method,
        ...(body === undefined ? {} : {
          body: JSON.stringify(body),
          headers: { "content-type": "application/json" },
        }),
      }),
    );
    const text = await answer.text();
    const json = text === "" ? null : JSON.parse(text) as Json;
    return { status: answer.status, json };
  };
  const create = async (name: string, partitions = 1, configs: Json = {}) => {
    assert.equal((await ask("POST", "/v1/topics", { name, partitions, configs })).status, 201);
  };
  const write = (topic: string, partition: number, values: readonly string[]) =>
    ask(
      "POST",
      `/v1/topics/${topic}/partitions/${partition}/records`,
      values.map((value) => ({ value })),
    );
  return { node, ask, create, write };
}

function configNamed(json: Json | null, name: string): Json {
  const configs = (json as { configs: Json[] }).configs;
  const found = configs.find((one) => one["name"] === name);
  assert.ok(found !== undefined, name);
  return found;
}

test("settings are shown with what holds without them, changed together or not at all", async () => {
  const { ask, create } = await start({ "log.retention.ms": "7200000" });
  await create("t", 1, { "retention.ms": 3_600_000 });
  const path = "/v1/topics/t/configs";
  const shown = configNamed((await ask("GET", path)).json, "retention.ms");
  assert.equal(shown["value"], "3600000");
  assert.equal(shown["default"], "7200000");
  assert.equal(shown["source"], "topic");
  const refused = await ask("PATCH", path, { "retention.ms": null, "cleanup.policy": "nonsense" });
  assert.equal(refused.status, 400);
  assert.equal((refused.json!["kafka"] as Json)["name"], "INVALID_CONFIG");
  assert.equal(configNamed((await ask("GET", path)).json, "retention.ms")["source"], "topic");
  const changed = await ask("PATCH", path, { "retention.ms": null, "cleanup.policy": "compact" });
  assert.equal(changed.status, 200);
  const retention = configNamed(changed.json, "retention.ms");
  assert.equal(retention["value"], "7200000");
  assert.equal(retention["source"], "staticBroker");
  assert.equal(configNamed(changed.json, "cleanup.policy")["value"], "compact");
  assert.equal((await ask("PATCH", path, { "no.such.thing": 1 })).status, 400);
  assert.equal((await ask("PATCH", path, { ["__proto__x"]: 1 })).status, 400);
  assert.equal((await ask("PATCH", path, [1])).status, 400);
  assert.equal((await ask("GET", "/v1/topics/none/configs")).status, 404);
  assert.equal((await ask("PATCH", "/v1/topics/none/configs", {})).status, 404);
});

test("a topic grows and is configured in one request, of which nothing is done when a part is refused", async () => {
  const { ask, create } = await start();
  await create("t", 2);
  const path = "/v1/topics/t";
  const shrink = await ask("PATCH", path, { partitions: 1, configs: { "retention.ms": 1 } });
  assert.equal(shrink.status, 400);
  assert.equal((shrink.json!["kafka"] as Json)["name"], "INVALID_PARTITIONS");
  assert.deepEqual((await ask("GET", path)).json!["configs"], {});
  const grown = await ask("PATCH", path, { partitions: 3, configs: { "retention.ms": "1000" } });
  assert.equal(grown.status, 200);
  assert.equal(grown.json!["partitions"], 3);
  assert.deepEqual(grown.json!["configs"], { "retention.ms": "1000" });
  const more = await ask("POST", `${path}/partitions`, { partitions: 4 });
  assert.equal(more.json!["partitions"], 4);
  assert.equal((await ask("POST", `${path}/partitions`, { partitions: 1e9 })).status, 400);
  assert.equal((await ask("POST", `${path}/partitions`, { partitions: 4.5 })).status, 400);
  assert.equal((await ask("POST", "/v1/topics/none/partitions", { partitions: 4 })).status, 404);
  const unknown = await ask("PATCH", path, { partitons: 5 });
  assert.equal(unknown.status, 400);
  assert.match(String(unknown.json!["detail"]), /partitons/);
});

test("partitions are shown with leader, offsets and size, page by page", async () => {
  const { ask, create, write } = await start();
  await create("t", 3);
  await write("t", 1, ["a", "b"]);
  const all = await ask("GET", "/v1/topics/t/partitions");
  const partitions = all.json!["partitions"] as Json[];
  assert.deepEqual(partitions.map((one) => one["partition"]), [0, 1, 2]);
  assert.equal(all.json!["next"], null);
  const one = (await ask("GET", "/v1/topics/t/partitions/1")).json!;
  assert.deepEqual(one, partitions[1]);
  const { bytes, ...offsets } = one["log"] as { bytes: number };
  assert.deepEqual(offsets, { earliest: 0, latest: 2, lastStable: 2 });
  assert.ok(bytes > 0);
  assert.equal(one["leader"], 1);
  const page = (await ask("GET", "/v1/topics/t/partitions?from=1&limit=1")).json!;
  assert.deepEqual((page["partitions"] as Json[]).map((row) => row["partition"]), [1]);
  assert.equal(page["next"], 2);
  const beyond = await ask("GET", "/v1/topics/t/partitions?from=3");
  assert.deepEqual(beyond.json, { partitions: [], next: null });
  assert.equal((await ask("GET", "/v1/topics/t/partitions/3")).status, 404);
  assert.equal((await ask("GET", "/v1/topics/t/partitions?limit=1001")).status, 400);
  assert.equal((await ask("GET", "/v1/topics/none/partitions")).status, 404);
});

test("records are deleted before an offset, each partition with its own answer", async () => {
  const { ask, create, write } = await start();
  await create("t", 2);
  await write("t", 0, ["a", "b", "c"]);
  const path = "/v1/topics/t/delete-records";
  const some = await ask("POST", path, {
    partitions: [{ partition: 0, before: 2 }, { partition: 7, before: "all" }],
  });
  assert.equal(some.status, 207);
  const [done, missing] = some.json!["partitions"] as Json[];
  assert.deepEqual(done, { partition: 0, logStart: 2 });
  assert.equal((missing!["error"] as Json)["name"], "UNKNOWN_TOPIC_OR_PARTITION");
  const trimmed = await ask("GET", "/v1/topics/t/partitions/0/records?offset=0");
  assert.equal(trimmed.status, 416);
  assert.equal(trimmed.json!["earliest"], 2);
  const all = await ask("POST", path, { partitions: [{ partition: 0, before: "all" }] });
  assert.deepEqual(all.json, { partitions: [{ partition: 0, logStart: 3 }] });
  const beyond = await ask("POST", path, { partitions: [{ partition: 0, before: 4 }] });
  assert.equal(beyond.status, 416);
  const twice = [{ partition: 0, before: 0 }, { partition: 0, before: 1 }];
  assert.equal((await ask("POST", path, { partitions: twice })).status, 400);
  assert.equal((await ask("POST", path, { partitions: [] })).status, 400);
  const none = { partitions: [{ partition: 0, before: 0 }] };
  assert.equal((await ask("POST", "/v1/topics/none/delete-records", none)).status, 404);
});

test("a topic that is only compacted keeps its records", async () => {
  const { ask, create } = await start();
  await create("t", 1, { "cleanup.policy": "compact" });
  const refused = await ask("POST", "/v1/topics/t/delete-records", {
    partitions: [{ partition: 0, before: "all" }],
  });
  assert.equal(refused.status, 403);
  assert.equal((refused.json!["kafka"] as Json)["name"], "POLICY_VIOLATION");
});

test("quotas are stored in place of those that were there, and removed when there are none", async () => {
  const { ask } = await start();
  const entity = { user: "ada", "client-id": null };
  const put = (limits: Json) => ask("PUT", "/v1/quotas", { entity, limits });
  assert.equal((await put({ producer_byte_rate: 1024, request_percentage: 12.5 })).status, 204);
  const listed = async () => (await ask("GET", "/v1/quotas")).json!["quotas"] as Json[];
  const [first] = await listed();
  assert.deepEqual(first!["entity"], { "client-id": null, user: "ada" });
  assert.deepEqual(first!["limits"], { producer_byte_rate: 1024, request_percentage: 12.5 });
  assert.equal((await put({ consumer_byte_rate: 7 })).status, 204);
  assert.deepEqual((await listed())[0]!["limits"], { consumer_byte_rate: 7 });
  assert.equal((await put({ consumer_byte_rate: 0 })).status, 400);
  assert.equal((await put({ consumer_byte_rate: 1.5 })).status, 400);
  assert.equal((await put({ bytes: 1 })).status, 400);
  assert.equal((await ask("PUT", "/v1/quotas", { entity: {}, limits: {} })).status, 400);
  const mixed = { entity: { ip: "10.0.0.1", user: "ada" }, limits: {} };
  assert.equal((await ask("PUT", "/v1/quotas", mixed)).status, 400);
  assert.equal((await put({})).status, 204);
  assert.deepEqual(await listed(), []);
});

test("the cluster says who is in it, and what the store costs", async () => {
  const { ask, create, write, node } = await start();
  await create("t");
  await write("t", 0, ["a"]);
  const cluster = (await ask("GET", "/v1/cluster")).json!;
  assert.equal(cluster["clusterId"], node.clusterId);
  assert.equal(cluster["nodeId"], 1);
  assert.deepEqual((cluster["nodes"] as Json[]).map((one) => one["nodeId"]), [1]);
  const { requests, costs } = (await ask("GET", "/v1/cost")).json as {
    requests: { writes: number };
    costs: { store: string; total: number }[];
  };
  assert.ok(requests.writes > 0);
  const s3 = costs.find(({ store }) => store === "S3 Standard")!;
  // The list price: five dollars for a million writes, and reads on top.
  assert.ok(s3.total >= requests.writes * 5 / 1e6);
});

test("started is for ever, ready is for now, and both have the names that probes use", async () => {
  const { node } = await start();
  const statusOf = async (path: string) =>
    (await node.fetch(new Request(`http://n${path}`))).status;
  for (
    const path of [
      "/livez",
      "/health",
      "/healthz",
      "/healthy",
      "/ping",
      "/readyz",
      "/ready",
      "/status/ready",
      "/startupz",
      "/readyz?cache=1",
    ]
  ) assert.equal(await statusOf(path), 200, path);
});
