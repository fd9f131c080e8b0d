/** Streams of records over real sockets: results come while the request is still being sent. */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { describe, test } from "node:test";
import { testEnv } from "../../tests/support/test_env.ts";
import { systemTestClock } from "../../tests/support/system_test_clock.ts";
import { PRODUCE_PERMIT_BYTES } from "../lib/limits.ts";
import { Semaphore } from "../lib/semaphore.ts";
import type { Gateway, RecordInput, Written } from "../http/port.ts";
import type { ProduceOptions } from "../http/write_port.ts";
import { createBodyRooms } from "../http/read_body.ts";
import { streamRecords } from "../http/produce/stream_route.ts";
import { serveHttp } from "./http_serve.ts";

/** A gateway that counts; offsets are given out in order. */
function countingGateway() {
  let count = 0;
  const produce = (_: string, records: readonly RecordInput[], options?: ProduceOptions) => {
    const first = count;
    count += records.length;
    options?.onAdmitted?.();
    return Promise.resolve(
      records.map((_record, i): Written => ({
        ok: true,
        partition: 0,
        offset: first + i,
        timestampMs: 1,
      })),
    );
  };
  return { gateway: { produce } as unknown as Gateway, count: () => count };
}

async function withStream(
  work: (port: number, state: ReturnType<typeof countingGateway> & Held) => Promise<void>,
): Promise<void> {
  const counting = countingGateway();
  const env = testEnv({ clock: systemTestClock });
  const producePermits = new Semaphore(PRODUCE_PERMIT_BYTES);
  const rooms = createBodyRooms(env.clock);
  const recordStreams = new Semaphore(8);
  const { gateway } = counting;
  const services = { gateway, env, rooms, producePermits, recordStreams };
  const server = await serveHttp(
    (request) => streamRecords(services, request, { topic: "t", partition: null }, { bare: false }),
    { host: "127.0.0.1", port: 0 },
  );
  try {
    await work(server.port, { ...counting, held: () => producePermits.used + rooms.medium.used });
  } finally {
    await server.close(0);
  }
}

interface Held {
  readonly held: () => number;
}

const HEAD = "POST /records:stream HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n" +
  "Transfer-Encoding: chunked\r\n\r\n";

async function open(port: number): Promise<{ socket: Socket; text: () => string }> {
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("error", () => {});
  let text = "";
  socket.on("data", (part) => void (text += String(part)));
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  socket.write(HEAD);
  return { socket, text: () => text };
}

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let turn = 0; turn < 5_000 && !condition(); turn++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  assert.ok(condition(), what);
}

describe("streams of records", () => {
  test("each result comes before the next record is sent", async () => {
    await withStream(async (port) => {
      const { socket, text } = await open(port);
      for (let i = 0; i < 5; i++) {
        socket.write(chunk(i === 3 ? "no json\n" : '{"value":"v"}\n'));
        const expected = i === 3 ? '"line":4' : `"offset":${i < 3 ? i : i - 1}`;
        await until(() => text().includes(expected), `${i}: ${text()}`);
      }
      socket.write("0\r\n\r\n");
      const end = '{"end":{"records":5,"failed":1,"reason":"complete"}}\n';
      await until(() => text().includes(end), text());
      await until(() => text().endsWith("0\r\n\r\n"), "the answer ends");
      socket.destroy();
    });
  });

  test("a client that takes no results is not read any further", async () => {
    await withStream(async (port, { count, held }) => {
      const { socket } = await open(port);
      socket.pause();
      const records = '{"value":"v"}\n'.repeat(5_000);
      const total = 400 * 5_000;
      let sent = 0;
      let isStopped = false;
      const write = (): void => {
        while (!isStopped && sent < total) {
          sent += 5_000;
          if (!socket.write(chunk(records))) return void socket.once("drain", write);
        }
      };
      write();
      let last = -1;
      for (let still = 0; still < 100; last = count()) {
        await new Promise((resolve) => setTimeout(resolve, 2));
        still = count() === last ? still + 1 : 0;
      }
      isStopped = true;
      assert.ok(count() < total / 2, `${count()} of ${total} records were taken in`);
      socket.destroy();
      await until(() => held() === 0, "nothing is held");
    });
  });
});
