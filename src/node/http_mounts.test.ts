import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeOptions } from "../../tests/support/node_options.ts";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { createMemoryStore } from "../object/memory.ts";
import { type ServeHttp, startNode } from "./node.ts";

type Handler = Parameters<ServeHttp>[0];

async function nodeWith(mounts: string) {
  const clock = createFakeClock();
  const store = createMemoryStore(clock);
  const handlers = new Map<number, Handler>();
  const closed: number[] = [];
  const base = nodeOptions(store, {
    env: testEnv({ clock }),
    serveHttp: (handler, { host, port }) => {
      handlers.set(port, handler);
      const close = () => Promise.resolve(void closed.push(port));
      return Promise.resolve({ url: `http://${host}:${port}`, close });
    },
  });
  const node = await startNode({
    ...base,
    settings: {
      ...base.settings,
      httpListen: { host: "127.0.0.1", port: 8080 },
      kafka: { "skerry.http.mounts": mounts },
    },
  });
  const ask = async (port: number, path: string, body?: string) => {
    const type = "application/vnd.kafka.v2+json";
    const init = body === undefined
      ? {}
      : { method: "POST", body, headers: { "content-type": type } };
    const answer = await handlers.get(port)!(new Request(`http://host:${port}${path}`, init));
    return { status: answer.status, text: await answer.text() };
  };
  return { node, ask, handlers, closed };
}

test("a dialect stands at the root of its port, beside health, and version 3 beside version 2", async () => {
  const { node, ask, handlers, closed } = await nodeWith("8082:rest, 8083:upstash");
  assert.deepEqual([...handlers.keys()], [8080, 8082, 8083]);
  await ask(8080, "/rest/admin/topics", '{"topic_name":"t","partitions_count":2}');
  assert.equal((await ask(8082, "/topics")).text, '["t"]');
  assert.equal((await ask(8083, "/topics")).text, '{"t":2}');
  assert.match((await ask(8082, "/")).text, /bridge_version/);
  assert.match((await ask(8082, "/v3/clusters")).text, /"self":"http:\/\/host:8082\/v3\/clusters"/);
  assert.equal((await ask(8083, "/v3/clusters")).status, 404);
  for (const port of [8080, 8082, 8083]) assert.equal((await ask(port, "/livez")).status, 200);
  assert.equal((await ask(8082, "/v1/topics")).status, 404, "native routes stay where they are");
  const made = JSON.parse((await ask(8082, "/consumers/g", '{"name":"i"}')).text);
  assert.equal(made.base_uri, "http://host:8082/consumers/g/instances/i");
  await node.close();
  assert.deepEqual(closed.toSorted(), [8080, 8082, 8083]);
});

test("a port or a dialect that cannot be is refused before anything starts", async () => {
  for (const mounts of ["8082", "8082:v1", "x:rest", "70000:rest"]) {
    await assert.rejects(() => nodeWith(mounts), /skerry\.http\.mounts/, mounts);
  }
});
