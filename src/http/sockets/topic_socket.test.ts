import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { openSocket } from "../../../tests/support/fake_socket.ts";
import { createHttpTopic, type HttpTopic } from "../../../tests/support/http_topic.ts";
import { utf8 } from "../../lib/bytes.ts";
import {
  HTTP_HEARTBEAT_MS,
  HTTP_SOCKET_MESSAGE_BYTES_MAX,
  HTTP_SOCKET_PRODUCES_MAX,
  HTTP_SOCKET_RECORD_BYTES_MAX,
  HTTP_STREAM_HOLD_MS,
  WRITE_STALL_MS,
} from "../../lib/limits.ts";
import type { Gateway, RecordInput, Written } from "../port.ts";
import { ProblemError } from "../problem.ts";

async function open(topic: HttpTopic) {
  const { socket, handler } = await openSocket(topic.app, "/v1/topics/t/ws");
  return {
    socket,
    handler,
    async say(...messages: unknown[]) {
      for (const message of messages) {
        handler.message(typeof message === "string" ? message : JSON.stringify(message));
      }
      await topic.clock.settle();
    },
    /** What has come since the last time. */
    heard() {
      return socket.sent.splice(0).map((text) => JSON.parse(text as string));
    },
    async leave() {
      socket.lose();
      handler.closed();
      await topic.clock.settle();
    },
  };
}

function valuesOf(messages: readonly { records?: readonly { value: unknown }[] }[]): unknown[] {
  return messages.flatMap(({ records = [] }) => records.map(({ value }) => value));
}

/** Takes records, each as durable as the test says. */
function memoryProduce() {
  const values: string[] = [];
  const waiting: (() => void)[] = [];
  let isSlow = false;
  const produce: Gateway["produce"] = async (topic, records, options) => {
    if (topic !== "t") throw new Error("another topic");
    const first = values.length;
    values.push(...records.map(({ value }: RecordInput) => utf8(value!)));
    options?.onAdmitted?.();
    if (isSlow) await new Promise<void>((resolve) => void waiting.push(resolve));
    return records.map((_, i): Written =>
      values[first + i] === "refused"
        ? { ok: false, error: "INVALID_RECORD" }
        : { ok: true, partition: 0, offset: first + i, timestampMs: 7 }
    );
  };
  return {
    produce,
    values,
    waiting,
    slow: () => void (isSlow = true),
  };
}

test("records are acknowledged by message, with a result for each", async () => {
  const { produce, values } = memoryProduce();
  const topic = createHttpTopic(1, undefined, { produce });
  const { say, heard } = await open(topic);
  await say(
    { produce: [{ value: "a" }, { key: "k", value: "refused" }], id: 1 },
    // The text of a value is kept as it was written.
    '{"id":"two","produce":[{"value":{"n":1.0, "n":2}}]}',
    { produce: [{ value: "c" }] },
  );
  assert.deepEqual(values, ["a", "refused", '{"n":1.0, "n":2}', "c"]);
  const [first, second, third] = heard();
  assert.deepEqual(first.ack, 1);
  assert.deepEqual(first.results[0], { partition: 0, offset: 0, timestamp: 7 });
  assert.equal(first.results[1].error.name, "INVALID_RECORD");
  assert.deepEqual(second, { ack: "two", results: [{ partition: 0, offset: 2, timestamp: 7 }] });
  assert.equal(third.ack, null);
});

test("a message that cannot be used is an error with its id, and the others go on", async () => {
  const { produce, values } = memoryProduce();
  const topic = createHttpTopic(1, undefined, { produce });
  const { say, heard, socket } = await open(topic);
  const bad: readonly unknown[] = [
    "{",
    "",
    [],
    null,
    {},
    { produce: [], id: 5 },
    { produce: [{ value: "x" }], id: 5, more: 1 },
    { produce: [{ value: "x", kee: "k" }], id: 5 },
    { produce: { value: "x" }, id: 5 },
    { produce: [{ value: "x" }], id: {} },
    { produce: [{ value: "x" }], id: 5, idempotencyKey: "" },
    { produce: [{ value: "x" }], id: 5, idempotencyKey: "\u00e9" },
    { produce: [{ value: "x" }], id: 5, idempotencyKey: "k".repeat(256) },
    { credit: 0 },
    { credit: 1.5 },
    { credit: 2 ** 53 },
    { credit: 1, id: 1 },
    { subscribe: { from: "yesterday" } },
    { subscribe: { form: "latest" } },
    { subscribe: { cursor: "nonsense" } },
    { subscribe: { partitions: [9] } },
    { unsubscribe: true },
    `{"produce":[${"[".repeat(600)}${"]".repeat(600)}]}`,
    '{"produce":[{"value":1}],"produce":[{"value":2}]}',
  ];
  for (const message of bad) {
    await say(message);
    const answers = heard();
    assert.equal(answers.length, 1, JSON.stringify(message));
    assert.ok([400, 404].includes(answers[0].error.status), JSON.stringify(answers[0]));
    const id = (message as { id?: unknown } | null)?.id;
    if (id === 5) assert.equal(answers[0].id, 5);
  }
  assert.deepEqual(values, []);
  await say({ produce: [{ value: "good" }], id: 6 });
  assert.equal(heard()[0].ack, 6);
  assert.equal(socket.closed, null);
});

test("answers keep the order of the messages, and memory goes back", async () => {
  const memory = memoryProduce();
  memory.slow();
  const topic = createHttpTopic(1, undefined, memory);
  const { say, heard } = await open(topic);
  await say({ produce: [{ value: "a" }], id: 1 }, "broken", { produce: [{ value: "b" }], id: 2 });
  assert.deepEqual(heard(), []);
  memory.waiting[1]!();
  await topic.clock.settle();
  assert.deepEqual(heard(), []);
  memory.waiting[0]!();
  await topic.clock.settle();
  const answers = heard();
  assert.deepEqual(answers.map(({ ack, error }) => ack ?? error.status), [1, 400, 2]);
  assert.equal(topic.producePermits.used, 0);
});

test("a failure of the whole message is its error", async () => {
  const problem = { status: 503, title: "Busy", detail: "later" };
  let error: Error = new ProblemError(problem);
  const topic = createHttpTopic(1, undefined, { produce: () => Promise.reject(error) });
  const { say, heard, socket } = await open(topic);
  await say({ produce: [{ value: "a" }], id: 1 });
  assert.deepEqual(heard(), [{ error: { type: "about:blank", ...problem }, id: 1 }]);
  error = new Error("secret");
  await say({ produce: [{ value: "a" }], id: 2 });
  const [answer] = heard();
  assert.equal(answer.error.status, 500);
  assert.doesNotMatch(JSON.stringify(answer), /secret/);
  assert.equal(socket.closed, null);
});

test("produce that is not durable yet is bounded: the rest waits, and is closed beyond a bound", async () => {
  const memory = memoryProduce();
  memory.slow();
  const topic = createHttpTopic(1, undefined, memory);
  const { say, socket, leave } = await open(topic);
  for (let i = 0; i < 2 * HTTP_SOCKET_PRODUCES_MAX; i++) await say({ produce: [{ value: "x" }] });
  assert.equal(memory.waiting.length, HTTP_SOCKET_PRODUCES_MAX);
  assert.equal(socket.closed, null);
  const value = "x".repeat(HTTP_SOCKET_MESSAGE_BYTES_MAX - 100);
  for (let i = 0; i < 20 && socket.closed === null; i++) await say({ produce: [{ value }] });
  assert.equal((socket.closed as readonly unknown[] | null)?.[0], 1013);
  await leave();
  for (const go of memory.waiting) go();
  await topic.clock.settle();
  assert.equal(memory.values.length, HTTP_SOCKET_PRODUCES_MAX);
  assert.equal(topic.producePermits.used, 0);
});

test("records come only with credit, and never more", async () => {
  const topic = createHttpTopic();
  topic.append(0, ...["a", "b", "c", "d", "e"].map((value) => ({ value })));
  const { say, heard } = await open(topic);
  await say({ subscribe: { from: "earliest" } });
  const [opening] = heard();
  assert.deepEqual(Object.keys(opening), ["cursor"]);
  assert.equal(topic.reads.length, 0, "nothing is read without credit");
  await say({ credit: 2 });
  assert.deepEqual(valuesOf(heard()), ["a", "b"]);
  assert.equal(topic.held, 0, "and nothing is held");
  await say({ credit: 2 }, { credit: 3 });
  assert.deepEqual(valuesOf(heard()), ["c", "d", "e"]);
  topic.append(0, { value: "f" }, { value: "g" }, { value: "h" });
  await topic.clock.settle();
  assert.deepEqual(valuesOf(heard()), ["f", "g"]);
});

test("credit may come before the subscription, of which there is one", async () => {
  const topic = createHttpTopic();
  topic.append(0, { value: "a" }, { value: "b" });
  const { say, heard } = await open(topic);
  await say({ credit: 1 }, { subscribe: { from: "earliest" } }, { subscribe: {} });
  const answers = heard();
  assert.deepEqual(valuesOf(answers), ["a"]);
  assert.equal(answers.filter(({ error }) => error?.status === 400).length, 1);
});

test("each cursor goes on behind its records: any cuts, each record once", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat({ max: 2 }), { minLength: 1, maxLength: 30 }),
      fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 30, maxLength: 30 }),
      async (partitions, credits) => {
        const topic = createHttpTopic(3);
        for (const [i, partition] of partitions.entries()) {
          topic.append(partition, { value: String(i) });
        }
        const got: unknown[] = [];
        let cursor: string | undefined;
        for (const credit of credits) {
          const { say, heard, leave } = await open(topic);
          await say({ subscribe: cursor === undefined ? { from: "earliest" } : { cursor } });
          await say({ credit });
          const messages = heard();
          const values = valuesOf(messages);
          assert.ok(values.length <= credit);
          got.push(...values);
          cursor = messages.at(-1)!.cursor as string;
          await leave();
        }
        assert.deepEqual(got.toSorted(), partitions.map((_, i) => String(i)).toSorted());
        assert.equal(topic.held, 0);
        assert.equal(topic.waiting, 0);
        assert.equal(topic.streams.size, 0);
      },
    ),
    { numRuns: 20 },
  );
});

test("keys and isolation go to the reader", async () => {
  const topic = createHttpTopic();
  topic.append(0, { key: "a", value: "1" }, { key: "b", value: "2" }, { key: "a", value: "3" });
  const { say, heard } = await open(topic);
  await say(
    { credit: 9 },
    { subscribe: { from: "earliest", keys: ["a"], isolation: "read_committed" } },
  );
  assert.deepEqual(valuesOf(heard()), ["1", "3"]);
  assert.equal(topic.reads[0]!.query.isolation, "committed");
  topic.append(0, { key: "b", value: "4" });
  await topic.clock.settle();
  assert.deepEqual(heard(), []);
  await topic.clock.advance(HTTP_HEARTBEAT_MS);
  const [told] = heard();
  const again = await open(topic);
  await again.say({ credit: 9 }, { subscribe: { cursor: told.cursor } });
  topic.append(0, { key: "c", value: "5" });
  await topic.clock.settle();
  assert.deepEqual(valuesOf(again.heard()), ["5"], "nothing comes twice");
});

test("gaps, problems and records that are too large are told", async () => {
  const topic = createHttpTopic();
  topic.append(0, { value: "a" }, { value: new Uint8Array(HTTP_SOCKET_RECORD_BYTES_MAX) }, {
    value: "c",
  });
  topic.trim(0, 1);
  const { say, heard } = await open(topic);
  const { say: say2, heard: heard2 } = await open(topic);
  await say({ credit: 9 }, { subscribe: { from: "earliest" } });
  const [, problem, records] = heard();
  assert.equal(problem.problem.raw, "/v1/topics/t/partitions/0/records/1");
  assert.equal(problem.problem.next, 2);
  assert.deepEqual(valuesOf([records]), ["c"]);
  topic.fail(0, "KAFKA_STORAGE_ERROR");
  await say2({ credit: 9 }, { subscribe: { from: "earliest" } });
  assert.equal(heard2()[1].problem.kafka.name, "KAFKA_STORAGE_ERROR");
});

test("a client that takes nothing holds no page for long, and is closed in the end", async () => {
  const topic = createHttpTopic();
  const value = "x".repeat(50_000);
  topic.append(0, ...Array.from({ length: 9 }, () => ({ value })));
  const { say, heard, socket } = await open(topic);
  await say({ subscribe: { from: "earliest" } });
  heard();
  socket.setRoom(false);
  await say({ credit: 100 });
  assert.equal(heard().length, 1);
  assert.equal(topic.held, 1);
  await topic.clock.advance(HTTP_STREAM_HOLD_MS + 1_000);
  assert.equal(topic.held, 0);
  socket.setRoom(true);
  await topic.clock.settle();
  assert.equal(valuesOf(heard()).length, 7, "it goes on where it was");
  socket.setRoom(false);
  topic.append(0, ...Array.from({ length: 9 }, () => ({ value })));
  await topic.clock.advance(WRITE_STALL_MS + 2_000);
  assert.equal(socket.closed?.[0], 1008);
  await topic.clock.settle();
  assert.equal(topic.held, 0);
  assert.equal(topic.waiting, 0);
});

test("a client that vanishes leaves no waiter behind", async () => {
  const topic = createHttpTopic();
  const { say, leave } = await open(topic);
  await say({ credit: 5 }, { subscribe: {} });
  assert.equal(topic.waiting, 1);
  assert.equal(topic.streams.size, 1);
  await leave();
  assert.equal(topic.waiting, 0);
  assert.equal(topic.streams.size, 0);
  assert.match(topic.env.metrics.render(), /skerry_http_sockets\{kind="topic"\} 0\n/);
});

test("the stop of the node and the end of the topic are told, then closed", async () => {
  const topic = createHttpTopic();
  const idle = await open(topic);
  const reading = await open(topic);
  await reading.say({ credit: 5 }, { subscribe: {} });
  reading.heard();
  topic.setTopic(null);
  await topic.clock.settle();
  assert.deepEqual(reading.heard(), [{ end: { reason: "topic-deleted" } }]);
  assert.deepEqual(reading.socket.closed, [1000, "topic-deleted"]);
  topic.streams.close();
  assert.deepEqual(idle.heard(), [{ end: { reason: "server-stop" } }]);
  assert.deepEqual(idle.socket.closed, [1012, "server-stop"]);
  const late = await open(topic);
  assert.equal(late.socket.closed?.[0], 1013);
});

test("messages that need no acknowledgement take no place for long", async () => {
  const { produce } = memoryProduce();
  const topic = createHttpTopic(1, undefined, { produce });
  const { say, heard } = await open(topic);
  for (let i = 0; i < 3 * HTTP_SOCKET_PRODUCES_MAX; i++) await say({ credit: 1 });
  await say({ produce: [{ value: "a" }], id: 1 });
  assert.equal(heard()[0].ack, 1);
});

test("bytes are no JSON", async () => {
  const { handler, socket } = await open(createHttpTopic());
  handler.message(new Uint8Array([123, 125]));
  assert.equal(socket.closed?.[0], 1003);
});
