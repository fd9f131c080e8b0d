/** Live streams through the runtime's own HTTP server: back-pressure, clients that go away, the end. */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { createHttpTopic, type HttpTopic } from "../../tests/support/http_topic.ts";
import { HTTP_STREAM_HOLD_MS } from "../lib/limits.ts";
import { type HttpServer, serveHttp } from "./http_serve.ts";

const HOST = "127.0.0.1";

async function withTopic(
  work: (topic: HttpTopic, open: (path?: string) => Promise<Socket>) => Promise<void>,
): Promise<void> {
  const topic = createHttpTopic();
  const server: HttpServer = await serveHttp((request) => topic.app.fetch(request), {
    host: HOST,
    port: 0,
  });
  const sockets: Socket[] = [];
  const open = async (path = "/v1/topics/t/stream"): Promise<Socket> => {
    const socket = connect({ host: HOST, port: server.port });
    sockets.push(socket);
    socket.on("error", () => {});
    await new Promise<void>((resolve) => socket.once("connect", resolve));
    socket.pause();
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    return socket;
  };
  try {
    await work(topic, open);
  } finally {
    for (const socket of sockets) socket.destroy();
    topic.streams.close();
    await server.close(0);
  }
}

async function until(condition: () => boolean): Promise<boolean> {
  for (let turn = 0; turn < 4_000 && !condition(); turn++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return condition();
}

/** Waits until the number stops to grow. */
async function settled(current: () => number): Promise<number> {
  for (let still = 0, last = -1; still < 60; last = current()) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    still = current() === last ? still + 1 : 0;
  }
  return current();
}

/** Many MiB, so that no socket buffer takes all of it. */
function fill(topic: HttpTopic): void {
  const value = "x".repeat(100_000);
  for (let i = 0; i < 400; i++) topic.append(0, { value });
}

test("a reader that stops holds a page, then nothing; its records come when it goes on", async () => {
  await withTopic(async (topic, open) => {
    fill(topic);
    const socket = await open();
    assert.ok(await until(() => topic.held > 0));
    await settled(() => topic.clock.timers + topic.held);
    const text: string[] = [];
    await topic.clock.advance(HTTP_STREAM_HOLD_MS + 2_000);
    assert.equal(topic.held, 0);
    socket.on("data", (part) => void text.push(String(part)));
    socket.resume();
    const seen = () => [...text.join("").matchAll(/"offset":(\d+)/g)];
    assert.ok(await until(() => text.length > 0 && seen().length === 400));
    assert.deepEqual(seen().map(([, offset]) => Number(offset)), seen().map((_, i) => i));
  });
});

test("a client that goes away while it waits, reads or has stopped is noticed", async () => {
  await withTopic(async (topic, open) => {
    const idle = await open();
    idle.resume();
    assert.ok(await until(() => topic.waiting === 1));
    idle.destroy();
    assert.ok(await until(() => topic.waiting === 0 && topic.streams.size === 0), "waiting");
    fill(topic);
    const stopped = await open();
    assert.ok(await until(() => topic.held === 1));
    await settled(() => topic.reads.length);
    stopped.destroy();
    assert.ok(await until(() => topic.held === 0 && topic.streams.size === 0), "stopped");
    const reading = await open();
    reading.resume();
    assert.ok(await until(() => topic.streams.size === 1));
    reading.destroy();
    assert.ok(await until(() => topic.held === 0 && topic.streams.size === 0), "reading");
  });
});

test("the first bytes come at once, records as they come, and the end is clean", async () => {
  await withTopic(async (topic, open) => {
    const socket = await open();
    let text = "";
    let isEnded = false;
    socket.on("data", (part) => void (text += String(part)));
    socket.on("end", () => void (isEnded = true));
    socket.resume();
    assert.ok(await until(() => text.includes("event: cursor")), text);
    topic.append(0, { value: "one" });
    assert.ok(await until(() => text.includes('"value":"one"')), text);
    topic.streams.close();
    assert.ok(await until(() => text.includes("server-stop") && text.includes("0\r\n\r\n")), text);
    assert.equal(isEnded, false, "the connection stays");
  });
});
