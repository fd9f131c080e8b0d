import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeSocket } from "../../../tests/support/fake_socket.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { isFault } from "../../lib/errors.ts";
import {
  CONNECTION_READ_AHEAD_BYTES,
  HTTP_SOCKET_MESSAGE_BYTES_MAX,
  HTTP_SOCKET_QUEUE_BYTES_MAX,
  HTTP_SOCKETS_QUEUED_BYTES_MAX,
} from "../../lib/limits.ts";
import type { Connection } from "../../env/listener.ts";
import { openKafkaSocket } from "./kafka_socket.ts";
import { OpenSockets } from "./open_sockets.ts";

function open(sockets = new OpenSockets(testEnv())) {
  const socket = new FakeSocket();
  let connection: Connection | null = null;
  const handler = openKafkaSocket(socket, sockets, (one) => (connection = one));
  return { socket, handler, connection: connection as unknown as Connection, sockets };
}

const bytes = (...values: number[]) => new Uint8Array(values);

test("messages are a byte pipe, in order, whether somebody waits or not", async () => {
  const { handler, connection } = open();
  assert.equal(connection.remote, "192.0.2.1:40000");
  const first = connection.read();
  handler.message(bytes(1));
  handler.message(bytes());
  handler.message(bytes(2, 3));
  handler.message(bytes(4));
  assert.deepEqual(await first, bytes(1));
  assert.deepEqual(await connection.read(), bytes(2, 3));
  assert.deepEqual(await connection.read(), bytes(4));
});

test("what is left when the client goes is gone, and reads and writes end", async () => {
  const { handler, connection, socket } = open();
  const read = connection.read();
  socket.setRoom(false);
  const write = connection.write(bytes(1));
  socket.lose();
  handler.closed();
  assert.equal(await read, null);
  assert.equal(await connection.read(), null);
  await assert.rejects(write, (error) => isFault(error, "closed"));
  await assert.rejects(connection.write(bytes(2)), (error) => isFault(error, "closed"));
});

test("a write waits for room", async () => {
  const { connection, socket } = open();
  await connection.write(bytes(1));
  socket.setRoom(false);
  let isDone = false;
  const write = connection.write(bytes(2)).then(() => (isDone = true));
  await new Promise((resolve) => setTimeout(resolve, 1));
  assert.equal(isDone, false);
  socket.setRoom(true);
  await write;
  assert.deepEqual(socket.sent, [bytes(1), bytes(2)]);
});

test("text is no Kafka", async () => {
  const { handler, connection, socket } = open();
  handler.message("hello");
  assert.equal(socket.closed?.[0], 1003);
  assert.equal(await connection.read(), null);
});

test("why the server ends a connection is a close code", () => {
  const codes = {
    client: 1000,
    drained: 1012,
    idle: 1001,
    slow: 1008,
    protocol: 1008,
    failed: 1011,
    refused: 1013,
  } as const;
  for (const [reason, code] of Object.entries(codes)) {
    const { connection, socket } = open();
    connection.close(reason as keyof typeof codes);
    connection.close();
    assert.equal(socket.closed?.[0], code, reason);
  }
});

test("a client that sends more than is read waits where the host can, and is closed where it cannot", async () => {
  const { handler, connection, socket } = open();
  const chunk = new Uint8Array(CONNECTION_READ_AHEAD_BYTES / 4);
  for (let i = 0; i < 4; i++) handler.message(chunk);
  assert.equal(socket.isHeld, true);
  await connection.read();
  assert.equal(socket.isHeld, false);
  const large = new Uint8Array(HTTP_SOCKET_MESSAGE_BYTES_MAX);
  const most = HTTP_SOCKET_QUEUE_BYTES_MAX / large.length;
  for (let i = 0; i < most; i++) handler.message(large);
  assert.deepEqual(socket.closed?.[0], 1013);
  assert.equal(socket.isHeld, false, "the answer to our close has to be read");
  assert.equal(await connection.read(), null);
});

test("a million empty or tiny messages count too", () => {
  const { handler, socket } = open();
  let sent = 0;
  for (; socket.closed === null && sent < 200_000; sent++) handler.message(bytes(1));
  assert.equal(socket.closed?.[0], 1013);
});

test("all sockets share a bound, and give back what they hold", async () => {
  const sockets = new OpenSockets(testEnv());
  const chunk = new Uint8Array(HTTP_SOCKET_MESSAGE_BYTES_MAX - 1024);
  const opened = Array.from(
    { length: HTTP_SOCKETS_QUEUED_BYTES_MAX / HTTP_SOCKET_QUEUE_BYTES_MAX },
    () => open(sockets),
  );
  for (const { handler, socket } of opened) {
    for (let i = 0; i < HTTP_SOCKET_QUEUE_BYTES_MAX / HTTP_SOCKET_MESSAGE_BYTES_MAX; i++) {
      handler.message(chunk);
    }
    assert.equal(socket.closed, null);
  }
  const late = open(sockets);
  late.handler.message(chunk);
  assert.equal(late.socket.closed?.[0], 1013);
  const [first] = opened as [ReturnType<typeof open>];
  await first.connection.read();
  first.handler.message(chunk);
  assert.equal(first.socket.closed, null, "what is read is not held");
  for (const { handler } of opened) handler.closed();
  const next = open(sockets);
  next.handler.message(chunk);
  assert.equal(next.socket.closed, null);
});
