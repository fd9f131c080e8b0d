import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { describe, test } from "node:test";
import { collected } from "../../tests/support/garbage.ts";
import { isFault } from "../lib/errors.ts";
import { isHostSound, urlOf } from "../http/target.ts";
import { type HttpServer, serveHttp } from "./http_serve.ts";
import type { FetchHandler } from "./runtime_types.ts";

const HOST = "127.0.0.1";
const MIB = 1024 * 1024;

async function withServer(
  handler: FetchHandler,
  work: (server: HttpServer) => Promise<void>,
): Promise<void> {
  const server = await serveHttp(handler, { host: HOST, port: 0 });
  try {
    await work(server);
  } finally {
    await server.close(0);
  }
}

async function rawSocket(port: number): Promise<Socket> {
  const socket = connect({ host: HOST, port });
  socket.on("error", () => {});
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  return socket;
}

async function until(condition: () => boolean): Promise<boolean> {
  for (let turn = 0; turn < 2_000 && !condition(); turn++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return condition();
}

/** Waits until the number stops to grow. */
async function settled(current: () => number): Promise<number> {
  for (let still = 0, last = -1; still < 50; last = current()) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    still = current() === last ? still + 1 : 0;
  }
  return current();
}

describe("serveHttp", () => {
  test("gives the real port and carries method, query, headers, body and status", async () => {
    const handler: FetchHandler = async (request) => {
      const { pathname, searchParams } = new URL(request.url);
      const text = `${request.method} ${pathname} ${searchParams.get("q")} ${
        request.headers.get("x-a")
      } ${await request.text()}`;
      return new Response(text, { status: 201, headers: [["x-b", "1"], ["set-cookie", "a=1"]] });
    };
    await withServer(handler, async ({ url, port, host }) => {
      assert.ok(port > 0);
      assert.equal(url, `http://${host}:${port}`);
      const answer = await fetch(`${url}/v1/x%20y?q=%C3%A9`, {
        method: "POST",
        headers: { "x-a": "b" },
        body: "body",
      });
      assert.equal(await answer.text(), "POST /v1/x%20y é b body");
      assert.equal(answer.status, 201);
      assert.equal(answer.headers.get("x-b"), "1");
      assert.equal(answer.headers.get("set-cookie"), "a=1");
    });
  });

  test("a target is its path and query, whatever the Host header says", async () => {
    const handler: FetchHandler = (request) => {
      const { pathname, search } = urlOf(request);
      return new Response(`<${isHostSound(request)} ${pathname}${search}>`);
    };
    const cases: readonly (readonly [string, string])[] = [
      // As health checks of load balancers do.
      ["GET /readyz?a=/b HTTP/1.0\r\n", "<true /readyz?a=/b>"],
      ["GET /readyz HTTP/1.0\r\nHost: x\r\n", "<true /readyz>"],
      ["GET /readyz HTTP/1.1\r\nHost: \r\n", "<true /readyz>"],
      ["GET /readyz HTTP/1.1\r\nHost: my_host:80\r\n", "<true /readyz>"],
      ["GET /readyz HTTP/1.1\r\nHost: x:99999\r\n", "<true /readyz>"],
      ["GET /readyz HTTP/1.1\r\nHost: [::1]:80\r\n", "<true /readyz>"],
      ["GET //readyz HTTP/1.1\r\nHost: x\r\n", "<true //readyz>"],
      ["GET /nope HTTP/1.1\r\nHost: x/v1/topics/t?\r\n", "<false "],
      ["GET /nope HTTP/1.1\r\nHost: x/livez#\r\n", "<false "],
      ["GET /nope HTTP/1.1\r\nHost: a@x\r\n", "<false "],
    ];
    await withServer(handler, async ({ port }) => {
      for (const [head, expected] of cases) {
        const socket = await rawSocket(port);
        let text = "";
        socket.on("data", (part) => void (text += String(part)));
        socket.write(`${head}\r\n`);
        assert.ok(await until(() => text.includes(">")), `${head}: ${text}`);
        assert.ok(text.includes(expected), `${head}: ${text}`);
        socket.destroy();
      }
    });
  });

  test("HEAD, 204 and unread bodies", async () => {
    const handler: FetchHandler = ({ method }) =>
      method === "DELETE" ? new Response(null, { status: 204 }) : new Response("text");
    await withServer(handler, async ({ url }) => {
      const head = await fetch(url, { method: "HEAD" });
      assert.equal(await head.text(), "");
      assert.equal((await fetch(url, { method: "DELETE" })).status, 204);
      for (let i = 0; i < 3; i++) {
        const answer = await fetch(url, { method: "POST", body: new Uint8Array(100_000) });
        assert.equal(await answer.text(), "text");
      }
    });
  });

  test("a body that is given up half way hurts nobody", async () => {
    const handler: FetchHandler = async ({ body }) => {
      const reader = body!.getReader();
      await reader.read();
      await reader.cancel();
      return new Response("enough");
    };
    await withServer(handler, async ({ port }) => {
      const socket = await rawSocket(port);
      let text = "";
      socket.on("data", (part) => void (text += String(part)));
      const part = `${(64 * 1024).toString(16)}\r\n${"x".repeat(64 * 1024)}\r\n`;
      socket.write("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
      for (let i = 0; i < 64; i++) socket.write(part);
      assert.ok(await until(() => text.includes("enough")), text);
      socket.write("0\r\n\r\n");
      await new Promise((resolve) => setTimeout(resolve, 5));
      socket.destroy();
    });
  });

  test("large bodies in both directions", async () => {
    const handler: FetchHandler = async (request) => new Response(await request.arrayBuffer());
    await withServer(handler, async ({ url }) => {
      const body = new Uint8Array(8 * MIB).map((_, i) => i % 251);
      const back = new Uint8Array(await (await fetch(url, { method: "POST", body })).arrayBuffer());
      assert.equal(back.length, body.length);
      assert.ok(back.every((byte, i) => byte === i % 251));
    });
  });

  test("a streamed answer is not made faster than the client takes it", async () => {
    let pulled = 0;
    const handler: FetchHandler = () =>
      new Response(
        new ReadableStream<Uint8Array>({
          pull(controller) {
            if (++pulled > 64) controller.close();
            else controller.enqueue(new Uint8Array(MIB));
          },
        }),
      );
    await withServer(handler, async ({ port }) => {
      const socket = await rawSocket(port);
      socket.pause();
      socket.write(`GET / HTTP/1.1\r\nHost: x\r\n\r\n`);
      assert.ok(await until(() => pulled > 0));
      const stopped = await settled(() => pulled);
      assert.ok(stopped < 48, `${stopped} MiB were made for a client that reads nothing`);
      let bytes = 0;
      socket.on("data", (part) => void (bytes += part.length));
      socket.resume();
      assert.ok(await until(() => bytes >= 64 * MIB));
      socket.destroy();
    });
  });

  test("a client that goes away aborts the request's signal", async () => {
    let started = false;
    let aborted = false;
    const handler: FetchHandler = ({ signal }) =>
      new Promise((resolve) => {
        started = true;
        signal.addEventListener("abort", () => {
          aborted = true;
          resolve(new Response("late"));
        });
      });
    await withServer(handler, async ({ port }) => {
      const socket = await rawSocket(port);
      socket.write("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
      assert.ok(await until(() => started));
      assert.equal(aborted, false);
      // A handler that waits holds its signal, and nobody the request: it must not take the signal along.
      for (let i = 0; i < 3; i++) await collected([]);
      socket.destroy();
      assert.ok(await until(() => aborted));
    });
  });

  test("a used port is a clear configuration fault", async () => {
    await withServer(() => new Response(""), async ({ port }) => {
      await assert.rejects(serveHttp(() => new Response(""), { host: HOST, port }), (error) => {
        assert.ok(isFault(error, "config"), String(error));
        assert.match(error.message, /in use/);
        return true;
      });
    });
  });

  test("close lets a running request end", async () => {
    let answer: (response: Response) => void = () => {};
    const handler: FetchHandler = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    const server = await serveHttp(handler, { host: HOST, port: 0 });
    const before = answer;
    const text = fetch(server.url).then((response) => response.text());
    assert.ok(await until(() => answer !== before));
    const closed = server.close();
    answer(new Response("in time"));
    assert.equal(await text, "in time");
    await closed;
    await server.close();
    await assert.rejects(fetch(server.url));
  });

  test("close cuts off what does not end, and idle connections at once", async () => {
    let started = false;
    const handler: FetchHandler = ({ url }) => {
      if (new URL(url).pathname !== "/stuck") return new Response("quick");
      started = true;
      return new Promise(() => {});
    };
    const server = await serveHttp(handler, { host: HOST, port: 0 });
    const idle = await rawSocket(server.port);
    let ended = 0;
    idle.on("close", () => void ended++);
    let text = "";
    idle.on("data", (part) => void (text += String(part)));
    idle.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert.ok(await until(() => text.includes("quick")));
    const stuck = await rawSocket(server.port);
    stuck.on("close", () => void ended++);
    stuck.resume();
    stuck.write("GET /stuck HTTP/1.1\r\nHost: x\r\n\r\n");
    assert.ok(await until(() => started));
    await server.close(20);
    assert.ok(await until(() => ended === 2));
  });
});
