/** WebSockets of a broker: kafkajs over one, records in and out over another, and how they end. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { kafkaOver, roundTrip } from "../../examples/kafka_over_websocket.ts";
import { type Broker, createBroker } from "../../mod.ts";
import { HTTP_SOCKET_MESSAGE_BYTES_MAX } from "../../src/lib/limits.ts";
import { until } from "./until.ts";

let broker: Broker;
before(async () => {
  broker = await createBroker({
    store: "memory:",
    kafka: { "group.initial.rebalance.delay.ms": "0", "message.max.bytes": "4000000" },
  });
});
after(() => broker.close());

function urlOf({ http }: Broker, path: string): string {
  return `${http.url.replace("http", "ws")}${path}`;
}

interface Client {
  readonly ws: WebSocket;
  readonly messages: unknown[];
  readonly closed: Promise<number>;
}

async function connect(url: string, protocol: string): Promise<Client> {
  const ws = new WebSocket(url, [protocol]);
  ws.binaryType = "arraybuffer";
  const messages: unknown[] = [];
  ws.addEventListener("message", ({ data }) => {
    messages.push(typeof data === "string" ? JSON.parse(data) : new Uint8Array(data));
  });
  const closed = new Promise<number>((resolve) => {
    ws.addEventListener("close", ({ code }) => resolve(code));
  });
  await new Promise((resolve, reject) => {
    ws.addEventListener("open", resolve);
    ws.addEventListener("error", reject);
  });
  return { ws, messages, closed };
}

async function gauge(name: string): Promise<number> {
  const text = await (await fetch(`${broker.http.url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
}

const GAUGES = [
  "skerry_kafka_connections",
  "skerry_http_streams_open",
  'skerry_http_sockets{kind="kafka"}',
  'skerry_http_sockets{kind="topic"}',
];

async function allGone(): Promise<void> {
  await until("sockets are gone", async () => {
    const counts = await Promise.all(GAUGES.map(gauge));
    return counts.every((count) => count === 0);
  });
}

/** ApiVersions v0 with correlation id 7. */
const API_VERSIONS = new Uint8Array([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 255, 255]);

test("kafkajs writes and reads as a member of a group, also records beyond one message", async () => {
  const large = "x".repeat(900_000);
  const messages = [
    { key: "a", value: "small" },
    { key: "b", value: large },
    { key: "c", value: large },
  ];
  const got = await roundTrip(kafkaOver(urlOf(broker, "/v1/kafka")), "over-ws", messages);
  assert.deepEqual(got.toSorted(), ["a=small", `b=${large}`, `c=${large}`]);
  const page = await fetch(`${broker.http.url}/v1/topics/over-ws/records?limit=1`);
  const { records } = await page.json() as { records: { value: string }[] };
  assert.equal(records[0]!.value, "small");
  await allGone();
});

test("the Kafka stream may be cut anywhere", async () => {
  const { ws, messages } = await connect(urlOf(broker, "/v1/kafka"), "kafka");
  for (const byte of API_VERSIONS) ws.send(new Uint8Array([byte]));
  await until("messages", () => messages.length > 0);
  const answer = messages[0] as Uint8Array;
  assert.equal(answer[7], 7);
  ws.close();
  await allGone();
});

test("what is not Kafka, or too large a message, ends the socket", async () => {
  const text = await connect(urlOf(broker, "/v1/kafka"), "kafka");
  text.ws.send("GET / HTTP/1.1");
  assert.equal(await text.closed, 1003);
  const junk = await connect(urlOf(broker, "/v1/kafka"), "kafka");
  junk.ws.send(new Uint8Array(16).fill(255));
  assert.equal(await junk.closed, 1008);
  const giant = await connect(urlOf(broker, "/v1/kafka"), "kafka");
  giant.ws.send(new Uint8Array(HTTP_SOCKET_MESSAGE_BYTES_MAX + 1));
  assert.equal(await giant.closed, 1009);
  await allGone();
});

test("records in with acknowledgements, and out with credit, at the same offsets as elsewhere", async () => {
  const { ws, messages } = await connect(urlOf(broker, "/v1/topics/native/ws"), "skerry");
  const produce = [{ key: "k", value: "one" }, { value: "two" }];
  const message = JSON.stringify({ produce, id: 1, idempotencyKey: "once" });
  const cut = await connect(urlOf(broker, "/v1/topics/native/ws"), "skerry");
  cut.ws.send(message);
  await until("an acknowledgement", () => cut.messages.length === 1);
  cut.ws.close();
  // As after a cut: the same again, on another socket.
  ws.send(message);
  await until("messages", () => messages.length === 1);
  const [{ ack, results }] = messages as [{ ack: number; results: { offset: number }[] }];
  assert.equal(ack, 1);
  assert.deepEqual(results.map(({ offset }) => offset), [0, 1]);
  ws.send(JSON.stringify({ credit: 1 }));
  ws.send(JSON.stringify({ subscribe: { from: "earliest" } }));
  await until("messages", () => messages.length === 3);
  const read = (i: number) => messages[i] as { cursor: string; records: { value: string }[] };
  assert.deepEqual(read(2).records.map(({ value }) => value), ["one"]);
  const next = await fetch(
    `${broker.http.url}/v1/topics/native/records?cursor=${encodeURIComponent(read(2).cursor)}`,
  );
  const page = await next.json() as { records: { value: string }[] };
  assert.deepEqual(page.records.map(({ value }) => value), ["two"], "cursors are the same");
  ws.send(JSON.stringify({ credit: 10 }));
  await until("messages", () => messages.length === 4);
  await fetch(`${broker.http.url}/v1/topics/native/records`, { method: "POST", body: "three" });
  await until("messages", () => messages.length === 5);
  assert.deepEqual(read(4).records.map(({ value }) => value), ["three"]);
  ws.close();
  await allGone();
});

test("a broker that stops tells its sockets", async () => {
  const other = await createBroker({ store: "memory:" });
  const kafka = await connect(urlOf(other, "/v1/kafka"), "kafka");
  const topic = await connect(urlOf(other, "/v1/topics/t/ws"), "skerry");
  topic.ws.send(JSON.stringify({ produce: [{ value: "a" }] }));
  await until("messages", () => topic.messages.length === 1);
  await other.close();
  assert.deepEqual(await Promise.all([kafka.closed, topic.closed]), [1012, 1012]);
  assert.deepEqual(topic.messages.at(-1), { end: { reason: "server-stop" } });
});
