/**
 * Brokers over real HTTP on our S3 server while it refuses, loses answers, delays, repeats or swallows
 * requests: clients are served or told to come again, nothing acknowledged is lost, no restart is needed.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { type S3Call, type S3Fault, type S3Server, startS3Server } from "../support/s3_server.ts";
import { brokerOnS3, pause, post, valuesOf } from "./s3_world.ts";

type Fault = (call: S3Call) => S3Fault | undefined;

const TROUBLE_MS = 1_500;

const troubles: readonly [string, Fault][] = [
  ["503 SlowDown", () => ({ refuse: { status: 503, code: "SlowDown" } })],
  [
    "500 InternalError to writes",
    ({ op }) => op === "put" ? { refuse: { status: 500, code: "InternalError" } } : undefined,
  ],
  ["403 AccessDenied", () => ({ refuse: { status: 403, code: "AccessDenied" } })],
  [
    "409 conflict to creates",
    ({ isConditional }) =>
      isConditional ? { refuse: { status: 409, code: "ConditionalRequestConflict" } } : undefined,
  ],
  ["lost answers", ({ number }) => number % 2 === 0 ? { loseAnswer: true } : undefined],
  ["requests cut off", ({ number }) => number % 3 !== 0 ? { dropRequest: true } : undefined],
  [
    "late PUTs",
    ({ op, number }) => op === "put" && number % 2 === 0 ? { lateEffectMs: 700 } : undefined,
  ],
  ["repeated PUTs", ({ op }) => op === "put" ? { repeatAfterMs: 400 } : undefined],
  ["slow", () => ({ delayMs: 300 })],
  ["a proxy without the store", () => ({ reply: { status: 404, body: "404 page not found" } })],
  ["pages of somebody else", () => ({ reply: { status: 200, body: "<html>Log in</html>" } })],
  ["redirects", () => ({ reply: { status: 307, headers: { location: "/elsewhere" } } })],
];

let server: S3Server;
/** By prefix: each broker has its own trouble. */
const active = new Map<string, Fault>();
/** All at the same time, for they mostly wait; each test looks at its own. */
const runs = new Map<string, Promise<unknown>>();

before(async () => {
  server = await startS3Server();
  server.onCall((call) => active.get(call.key.split("/")[0]!)?.(call));
  for (const [name, fault] of troubles) {
    runs.set(name, underLoad(name.replaceAll(" ", "-"), fault).then(() => null, (error) => error));
  }
  runs.set("black hole", besideBlackHole().then(() => null, (error) => error));
});
after(() => server.close());

async function underLoad(prefix: string, fault: Fault): Promise<void> {
  const broker = await brokerOnS3(server, prefix);
  const kafka = new Kafka({
    brokers: [`${broker.kafka.host}:${broker.kafka.port}`],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 30, maxRetryTime: 200, retries: 100 },
  });
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  assert.equal((await post(broker.http.url, "t", "first")).status, 200);

  let isOver = false;
  const sent: string[] = [];
  const sending = (async () => {
    for (let i = 0; !isOver; i++) {
      const value = `kafka-${i}`;
      await producer.send({ topic: "t", acks: -1, messages: [{ value }] });
      sent.push(value);
      await pause(10);
    }
  })();
  const posted: string[] = [];
  const posting = (async () => {
    for (let i = 0; !isOver; i++) {
      const { status, retriable } = await post(broker.http.url, "t", `http-${i}`);
      if (status === 200) posted.push(`http-${i}`);
      else assert.ok(retriable, `${status} is final`);
      await pause(10);
    }
  })();
  await pause(100);
  active.set(prefix, fault);
  const endMs = performance.now() + TROUBLE_MS;
  while (performance.now() < endMs) {
    assert.equal((await valuesOf(broker.http.url, "t"))[0], "first", "hot reads go on");
    await pause(50);
  }
  active.delete(prefix);
  await pause(100);
  isOver = true;
  await Promise.all([sending, posting]);
  await producer.disconnect();

  const check = (found: readonly string[]) => {
    assert.deepEqual(found.filter((value) => value.startsWith("kafka-")), sent);
    const missing = posted.filter((value) => !found.includes(value));
    assert.deepEqual(missing, []);
  };
  assert.ok(sent.length > 0 && posted.length > 0);
  check(await valuesOf(broker.http.url, "t"));
  await broker.close();
  const again = await brokerOnS3(server, prefix);
  check(await valuesOf(again.http.url, "t"));
  assert.equal((await again.fetch(new Request(`${again.http.url}/readyz`))).status, 200);
  await again.close();
}

for (const [name] of troubles) {
  test(`S3 trouble under load: ${name}`, async () => {
    const failure = await runs.get(name);
    if (failure !== null) throw failure;
  });
}

async function besideBlackHole(): Promise<void> {
  const dark = await brokerOnS3(server, "dark");
  const bright = await brokerOnS3(server, "bright");
  assert.equal((await post(dark.http.url, "t", "a")).status, 200);
  active.set("dark", () => ({ delayMs: 2_000 }));
  const late = post(dark.http.url, "t", "b");
  for (let i = 0; i < 10; i++) {
    assert.equal((await post(bright.http.url, "t", `v${i}`)).status, 200);
    assert.deepEqual(await valuesOf(dark.http.url, "t"), ["a"], "hot reads go on");
  }
  active.delete("dark");
  assert.equal((await late).status, 200);
  assert.deepEqual(await valuesOf(dark.http.url, "t"), ["a", "b"]);
  await Promise.all([dark.close(), bright.close()]);
}

test("one bucket in a black hole does not touch another broker of the process", async () => {
  const failure = await runs.get("black hole");
  if (failure !== null) throw failure;
});
