/** WebSockets of each runtime's HTTP server; clients are the runtime's own, and bytes written by hand. */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { describe, test } from "node:test";
import type { ServerSocket, SocketHandler } from "../http/sockets/socket_port.ts";
import { HTTP_SOCKET_MESSAGE_BYTES_MAX } from "../lib/limits.ts";
import { type HttpServer, serveHttp } from "./http_serve.ts";
import type { FetchHandler } from "./runtime_types.ts";

const HOST = "127.0.0.1";
const MIB = 1024 * 1024;
const runtime = globalThis as unknown as { Bun?: unknown; Deno?: unknown };
const isNode = runtime.Bun === undefined && runtime.Deno === undefined;
/** Node 20 has no client. */
const hasClient = (globalThis as { WebSocket?: unknown }).WebSocket !== undefined;

class Recorder implements SocketHandler {
  readonly messages: (string | Uint8Array)[] = [];
  readonly socket: ServerSocket;
  closes = 0;

  constructor(socket: ServerSocket) {
    this.socket = socket;
  }
  message(message: string | Uint8Array): void {
    this.messages.push(message);
    if (message === "echo") this.socket.send("echoed");
  }
  closed(): void {
    this.closes += 1;
  }
}

interface Opened {
  readonly server: HttpServer;
  readonly opened: Recorder[];
}

async function withSockets(
  work: (opened: Opened) => Promise<void>,
  protocol: string | null = null,
): Promise<void> {
  const opened: Recorder[] = [];
  const handler: FetchHandler = async (request, host) => {
    await Promise.resolve();
    if (new URL(request.url).pathname === "/refused") return new Response("no", { status: 403 });
    host?.upgrade({
      protocol,
      open(socket) {
        const recorder = new Recorder(socket);
        opened.push(recorder);
        return recorder;
      },
    });
    return new Response(host === undefined ? "plain" : null);
  };
  const server = await serveHttp(handler, { host: HOST, port: 0 });
  try {
    await work({ server, opened });
  } finally {
    await server.close(0);
  }
}

async function until(condition: () => boolean, turns = 2_000): Promise<boolean> {
  for (let turn = 0; turn < turns && !condition(); turn++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return condition();
}

const HANDSHAKE = [
  "Host: x",
  "Upgrade: websocket",
  "Connection: Upgrade",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "Sec-WebSocket-Version: 13",
];

interface RawPeer {
  readonly socket: Socket;
  /** Everything behind the head of the answer. */
  readonly bytes: () => Uint8Array;
  readonly head: () => string;
  readonly isClosed: () => boolean;
}

async function rawPeer(port: number, lines = HANDSHAKE, path = "/"): Promise<RawPeer> {
  const socket = connect({ host: HOST, port });
  let text = "";
  let isClosed = false;
  socket.on("error", () => {});
  socket.on("close", () => (isClosed = true));
  socket.on("data", (chunk: Uint8Array) => {
    text += Array.from(chunk, (byte) => String.fromCharCode(byte)).join("");
  });
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
  const at = () => text.indexOf("\r\n\r\n");
  assert.ok(await until(() => at() >= 0 || isClosed), "no answer");
  return {
    socket,
    head: () => text.slice(0, at()),
    bytes: () => Uint8Array.from(text.slice(at() + 4), (char) => char.charCodeAt(0)),
    isClosed: () => isClosed,
  };
}

/** A frame of a client as RFC 6455 section 5.2 has it, with a mask of zeroes. */
function frame(opcode: number, payload: Uint8Array, isFinal = true): Uint8Array {
  const first = (isFinal ? 0x80 : 0) | opcode;
  const { length } = payload;
  const head = length < 126
    ? [first, 0x80 | length]
    : length < 65_536
    ? [first, 0x80 | 126, length >> 8, length & 255]
    : [first, 0x80 | 127, 0, 0, 0, 0, ...[24, 16, 8, 0].map((shift) => (length >> shift) & 255)];
  const bytes = new Uint8Array(head.length + 4 + length);
  bytes.set(head);
  bytes.set(payload, head.length + 4);
  return bytes;
}

const text = (value: string) => new TextEncoder().encode(value);

describe("WebSockets of serveHttp", () => {
  test("the handshake of RFC 6455, with the subprotocol that was chosen", async () => {
    await withSockets(async ({ server, opened }) => {
      const peer = await rawPeer(server.port, [
        ...HANDSHAKE,
        "Sec-WebSocket-Protocol: other, kafka",
        "Sec-WebSocket-Extensions: permessage-deflate",
      ]);
      assert.match(peer.head(), /^HTTP\/1\.1 101 /);
      // The answer to the key of the standard's own example.
      assert.match(peer.head(), /sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/i);
      assert.match(peer.head(), /sec-websocket-protocol: kafka\r?$/im);
      // Nothing inflates here.
      assert.doesNotMatch(peer.head(), /permessage-deflate/i);
      assert.ok(await until(() => opened.length === 1));
      assert.match(opened[0]!.socket.remote, /^127\.0\.0\.1:\d+$/);
      peer.socket.destroy();
      assert.ok(await until(() => opened[0]!.closes === 1));
    }, "kafka");
  });

  test("broken handshakes, refusals and plain requests are answered as HTTP", async () => {
    await withSockets(async ({ server, opened }) => {
      const noKey = await rawPeer(server.port, HANDSHAKE.filter((line) => !/Key/.test(line)));
      assert.match(noKey.head(), /^HTTP\/1\.1 400 /);
      noKey.socket.destroy();
      const refused = await rawPeer(server.port, HANDSHAKE, "/refused");
      assert.match(refused.head(), /^HTTP\/1\.1 403 /);
      refused.socket.destroy();
      assert.equal(await (await fetch(`${server.url}/`)).text(), "plain");
      assert.equal(opened.length, 0);
    });
  });

  test("messages both ways, as bytes and as text, whole or in fragments", async () => {
    await withSockets(async ({ server, opened }) => {
      const { socket, bytes } = await rawPeer(server.port);
      socket.write(frame(1, text("echo")));
      assert.ok(await until(() => bytes().length === 8));
      assert.deepEqual(bytes(), new Uint8Array([0x81, 6, ...text("echoed")]));
      socket.write(frame(2, new Uint8Array([1, 2]), false));
      socket.write(frame(9, text("p")));
      socket.write(frame(0, new Uint8Array([3]), true));
      const [{ messages }] = opened as [Recorder];
      assert.ok(await until(() => messages.length === 2));
      const last = messages[1] as Uint8Array;
      assert.deepEqual(last, new Uint8Array([1, 2, 3]));
      assert.equal(last.constructor, Uint8Array);
      // The ping between the fragments has its pong.
      assert.ok(await until(() => bytes().length === 11));
      assert.deepEqual(bytes().slice(8), new Uint8Array([0x8a, 1, ...text("p")]));
      socket.destroy();
    });
  });

  test("too large a message ends the socket", async () => {
    await withSockets(async ({ server, opened }) => {
      const { socket, isClosed } = await rawPeer(server.port);
      socket.write(frame(2, new Uint8Array(HTTP_SOCKET_MESSAGE_BYTES_MAX)));
      const [{ messages }] = opened as [Recorder];
      assert.ok(await until(() => messages.length === 1));
      socket.write(frame(2, new Uint8Array(HTTP_SOCKET_MESSAGE_BYTES_MAX + 1)));
      // Some hosts wait for the peer's close.
      socket.write(frame(8, new Uint8Array([3, 241])));
      assert.ok(await until(() => opened[0]!.closes === 1 && isClosed()));
      assert.equal(messages.length, 1);
    });
  });

  test("a peer that takes nothing leaves no room, and gets everything when it goes on", async () => {
    await withSockets(async ({ server, opened }) => {
      const { socket } = await rawPeer(server.port);
      socket.pause();
      const [{ socket: ours }] = opened as [Recorder];
      const chunk = new Uint8Array(MIB).fill(7);
      let sent = 0;
      let hasRoom = true;
      let room = Promise.resolve(true);
      for (; hasRoom && sent < 64; sent += 1) {
        hasRoom = ours.send(chunk);
        room = ours.room().then(() => (hasRoom = true));
        await until(() => hasRoom, 100);
      }
      assert.ok(sent < 64, "64 MiB were taken for a peer that reads nothing");
      // The caller's again.
      chunk.fill(0);
      let received = 0;
      let sevens = 0;
      socket.on("data", (part: Uint8Array) => {
        received += part.length;
        for (const byte of part) if (byte === 7) sevens += 1;
      });
      socket.resume();
      await room;
      ours.close(1012, "restart");
      assert.ok(await until(() => received >= sent * (MIB + 10)));
      assert.ok(sevens >= sent * MIB);
      socket.destroy();
    });
  });

  test("close sends its code and reason behind what was sent", async () => {
    await withSockets(async ({ server, opened }) => {
      const { socket, bytes } = await rawPeer(server.port);
      const [{ socket: ours }] = opened as [Recorder];
      ours.send("last");
      ours.close(1012, "bye");
      ours.close(1000, "again");
      assert.equal(ours.send("late"), true);
      await ours.room();
      const expected = [0x81, 4, ...text("last"), 0x88, 5, 3, 0xf4, ...text("bye")];
      assert.ok(await until(() => bytes().length >= expected.length));
      assert.deepEqual(bytes(), new Uint8Array(expected));
      socket.write(frame(8, new Uint8Array([3, 0xf4])));
      assert.ok(await until(() => opened[0]!.closes === 1));
      socket.destroy();
    });
  });

  test("room ends when the peer goes away", async () => {
    await withSockets(async ({ server, opened }) => {
      const { socket } = await rawPeer(server.port);
      socket.pause();
      const [{ socket: ours }] = opened as [Recorder];
      while (ours.send(new Uint8Array(MIB)));
      const room = ours.room();
      socket.resetAndDestroy();
      await room;
      assert.ok(await until(() => opened[0]!.closes === 1));
    });
  });

  test(
    "where the host can, a peer whose messages wait is slowed down",
    { skip: !isNode },
    async () => {
      await withSockets(async ({ server, opened }) => {
        const { socket } = await rawPeer(server.port);
        const [{ socket: ours, messages }] = opened as [Recorder];
        ours.hold(true);
        let taken = 0;
        for (let i = 0; i < 32; i++) {
          socket.write(frame(2, new Uint8Array(MIB / 2)), () => void (taken += 1));
        }
        await until(() => taken === 32, 200);
        assert.ok(taken < 32 && messages.length <= 1, `${taken} were taken`);
        ours.hold(false);
        assert.ok(await until(() => messages.length === 32));
        socket.destroy();
      });
    },
  );

  test("the runtime's own client", { skip: !hasClient }, async () => {
    await withSockets(async ({ server, opened }) => {
      const client = new WebSocket(`ws://${HOST}:${server.port}/`, ["kafka"]);
      const got: unknown[] = [];
      client.addEventListener("message", ({ data }) => void got.push(data));
      await new Promise((resolve) => client.addEventListener("open", resolve));
      assert.equal(client.protocol, "kafka");
      client.send("echo");
      assert.ok(await until(() => got.length === 1));
      assert.deepEqual(got, ["echoed"]);
      const closed = new Promise<CloseEvent>((resolve) => {
        client.addEventListener("close", resolve);
      });
      opened[0]!.socket.close(1013, "later");
      const { code, reason } = await closed;
      assert.deepEqual([code, reason], [1013, "later"]);
      assert.ok(await until(() => opened[0]!.closes === 1));
    }, "kafka");
  });

  test("the end of the server ends sockets", async () => {
    const all: Recorder[] = [];
    await withSockets(async ({ server, opened }) => {
      const { socket, isClosed } = await rawPeer(server.port);
      await server.close(0);
      socket.write(frame(8, new Uint8Array([3, 0xf4])));
      assert.ok(await until(isClosed));
      all.push(...opened);
    });
    assert.ok(await until(() => all[0]!.closes === 1));
  });
});
