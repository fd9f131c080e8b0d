/** Every example runs, and does what its head says. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import { after, before, test } from "node:test";
import { sendEvents } from "../examples/edge_producer.ts";
import { follow } from "../examples/polling_consumer.ts";
import { type Broker, createBroker } from "../mod.ts";
import "../examples/kafkajs.test.ts";

let broker: Broker;
before(async () => {
  broker = await createBroker({
    store: "memory:",
    // No need to wait for late group members in a test.
    kafka: { "group.initial.rebalance.delay.ms": "0" },
  });
});
after(() => broker.close());

test("the edge producer and the polling consumer meet", async () => {
  const sent = await sendEvents(broker.http.url, "page-views", [
    { key: "/home", value: { ms: 12 } },
    { key: "/home", value: { ms: 7 } },
  ]);
  assert.deepEqual(sent.map(({ offset }) => offset), [0, 1]);
  const stop = new AbortController();
  const got: unknown[] = [];
  for await (const { value } of follow(broker.http.url, "page-views", 0, stop.signal)) {
    got.push(value);
    if (got.length === 2) break;
  }
  assert.deepEqual(got, ['{"ms":12}', '{"ms":7}']);
});

test("the edge producer shows the broker's reason", async () => {
  await assert.rejects(
    sendEvents(broker.http.url, "not a name", [{ key: "k", value: 1 }]),
    /400 .*name/i,
  );
});

const LINE_MS_MAX = 20_000;

/** The first lines of a program's output, once there are enough. */
function firstLines(child: ChildProcess, count: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    let text = "";
    const timer = setTimeout(() => reject(new Error(`no line in time: ${text}`)), LINE_MS_MAX);
    child.stdout!.on("data", (chunk: { toString(): string }) => {
      text += chunk.toString();
      const lines = text.split("\n");
      if (lines.length <= count) return;
      clearTimeout(timer);
      resolve(lines.slice(0, count));
    });
    child.stderr!.on("data", (chunk: { toString(): string }) => void (text += chunk.toString()));
    child.on("exit", (code) => reject(new Error(`ended with ${code}: ${text}`)));
  });
}

async function stopped(child: ChildProcess): Promise<number | null> {
  const ended = new Promise<number | null>((resolve) => child.on("exit", resolve));
  // Deno shows no exit code after child.kill(), whatever the child does with the signal.
  process.kill(child.pid!, "SIGTERM");
  return await ended;
}

test("the broker inside a Bun server", async () => {
  const child = spawn("node_modules/.bin/bun", ["examples/embedded_bun.ts"]);
  const [line] = await firstLines(child, 1);
  const url = /listening on (\S+),/.exec(line!)![1]!.replace(/\/$/, "");
  assert.match(await (await fetch(`${url}/`)).text(), /broker inside/);
  const sent = await sendEvents(url, "t", [{ key: "k", value: "v" }]);
  assert.equal(sent[0]!.offset, 0);
  assert.equal(await stopped(child), 0);
});

test("the broker inside a Deno program, over Web streams too", async () => {
  const child = spawn("node_modules/.bin/deno", [
    "run",
    "-A",
    "--no-check",
    "examples/embedded_deno.ts",
  ]);
  const [first, second] = await firstLines(child, 2);
  const url = /listening on (\S+),/.exec(first!)![1]!;
  const sent = await sendEvents(url, "t", [{ key: "k", value: "v" }]);
  assert.equal(sent[0]!.offset, 0);
  const port = Number(/:(\d+)$/.exec(second!)![1]);
  assert.deepEqual(await apiKeysOver(port), true);
  assert.equal(await stopped(child), 0);
});

for (
  const [runtime, ...args] of [
    ["bun"],
    ["deno", "run", "-A", "--no-check"],
  ] as const
) {
  test(`kafkajs over a WebSocket on ${runtime}`, async () => {
    const child = spawn(`node_modules/.bin/${runtime}`, [
      ...args,
      "examples/kafka_over_websocket.ts",
      `${broker.http.url.replace("http", "ws")}/v1/kafka`,
      `orders-${runtime}`,
    ]);
    let text = "";
    child.stdout.on("data", (chunk: { toString(): string }) => void (text += chunk.toString()));
    await new Promise((resolve) => child.on("close", resolve));
    assert.equal(text, "4711=paid\n4712=open\n");
  });
}

/** Asks for ApiVersions v0 over a plain socket; true when Produce is listed. */
async function apiKeysOver(port: number): Promise<boolean> {
  const { connect } = await import("node:net");
  return await new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    const request = new Uint8Array([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 255, 255]);
    socket.on("connect", () => void socket.write(request));
    socket.on("error", reject);
    socket.on("data", (answer: Uint8Array) => {
      socket.destroy();
      resolve(answer[7] === 7 && answer.length > 100);
    });
  });
}
