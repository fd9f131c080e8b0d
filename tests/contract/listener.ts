/** What every Listener must do; clients are plain node:net sockets on loopback. */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { describe, test } from "node:test";
import type { Connection, Listener, Listening } from "../../src/env/listener.ts";
import { isFault } from "../../src/lib/errors.ts";

const HOST = "127.0.0.1";
const MIB = 1024 * 1024;

interface Pair {
  readonly client: Socket;
  readonly connection: Connection;
  readonly listening: Listening;
}

async function client(port: number): Promise<Socket> {
  const socket = connect({ host: HOST, port, allowHalfOpen: true });
  // Resets are part of the tests.
  socket.on("error", () => {});
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  return socket;
}

async function withPair(listener: Listener, work: (pair: Pair) => Promise<void>): Promise<void> {
  let onAccept: (connection: Connection) => void = () => {};
  const accepted = new Promise<Connection>((resolve) => {
    onAccept = resolve;
  });
  const listening = await listener.listen({ host: HOST, port: 0 }, onAccept);
  const socket = await client(listening.port);
  const connection = await accepted;
  try {
    await work({ client: socket, connection, listening });
  } finally {
    socket.destroy();
    connection.close();
    await listening.close();
  }
}

async function readAll(connection: Connection): Promise<number> {
  let bytes = 0;
  for (let part = await connection.read(); part !== null; part = await connection.read()) {
    bytes += part.length;
  }
  return bytes;
}

async function readText(connection: Connection, length: number): Promise<string> {
  let text = "";
  while (text.length < length) {
    const part = await connection.read();
    if (part === null) break;
    text += new TextDecoder().decode(part);
  }
  return text;
}

async function echo(connection: Connection): Promise<void> {
  for (let part = await connection.read(); part !== null; part = await connection.read()) {
    await connection.write(part);
  }
  connection.close();
}

/** Lets I/O run until the condition holds; bounded, so that a broken listener fails instead of hanging. */
async function until(condition: () => boolean): Promise<boolean> {
  for (let turn = 0; turn < 2_000 && !condition(); turn++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return condition();
}

/** Lets I/O run until the number stops to grow; returns it. */
async function settled(current: () => number): Promise<number> {
  let still = 0;
  for (let last = -1; still < 50;) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    still = current() === last ? still + 1 : 0;
    last = current();
  }
  return current();
}

/** Writes until the kernel's buffers are full; returns the writes that it took. */
function flood(connection: Connection, total: number) {
  const state = { taken: 0, failed: 0, error: null as unknown };
  const chunk = new Uint8Array(MIB);
  const run = async () => {
    try {
      for (let i = 0; i < total; i++) {
        await connection.write(chunk);
        state.taken++;
      }
    } catch (error) {
      state.failed++;
      state.error = error;
    }
  };
  return { state, done: run() };
}

export function listenerContract(name: string, create: () => Listener): void {
  describe(`listener: ${name}`, () => {
    test("port 0 gives the real port", async () => {
      await withPair(create(), ({ listening }) => {
        assert.ok(listening.port > 0);
        assert.equal(listening.host, HOST);
        return Promise.resolve();
      });
    });

    test("a used port is a clear configuration fault", async () => {
      const listener = create();
      await withPair(listener, async ({ listening }) => {
        const again = listener.listen({ host: HOST, port: listening.port }, () => {});
        await assert.rejects(again, (error) => {
          assert.ok(isFault(error, "config"));
          assert.match(error.message, new RegExp(`${HOST}:${listening.port}: .*in use`));
          return true;
        });
      });
    });

    test("a foreign address is a clear configuration fault", async () => {
      const listening = create().listen({ host: "192.0.2.1", port: 0 }, () => {});
      await assert.rejects(listening, (error) => isFault(error, "config"));
    });

    test("bytes go both ways; the remote is named", async () => {
      await withPair(create(), async ({ client: socket, connection }) => {
        assert.match(connection.remote, /127\.0\.0\.1:\d+/);
        socket.write("ping");
        assert.equal(await readText(connection, 4), "ping");
        const answer = new Promise<string>((resolve) =>
          socket.once("data", (d) => resolve(String(d)))
        );
        await connection.write(new TextEncoder().encode("pong"));
        assert.equal(await answer, "pong");
      });
    });

    test("chunks belong to the reader: they stay intact", async () => {
      await withPair(create(), async ({ client: socket, connection }) => {
        const parts: Uint8Array[] = [];
        socket.end(Uint8Array.from({ length: 3 * MIB }, (_, i) => i % 251));
        for (let part = await connection.read(); part !== null; part = await connection.read()) {
          parts.push(part);
        }
        let at = 0;
        for (const part of parts) {
          assert.equal(part.constructor, Uint8Array);
          for (const byte of part) if (byte !== at++ % 251) assert.fail(`byte ${at - 1} is wrong`);
        }
        assert.equal(at, 3 * MIB);
      });
    });

    test("echoes 32 MiB under back-pressure", async () => {
      await withPair(create(), async ({ client: socket, connection }) => {
        const chunk = new Uint8Array(MIB);
        for (let i = 0; i < chunk.length; i++) chunk[i] = i % 253;
        const done = echo(connection);
        const received = (async () => {
          let bytes = 0;
          for await (const part of socket) {
            const data = part as Uint8Array;
            for (let i = 0; i < data.length; i += 997) {
              if (data[i] !== ((bytes + i) % MIB) % 253) assert.fail(`byte ${bytes + i} is wrong`);
            }
            bytes += data.length;
          }
          return bytes;
        })();
        for (let i = 0; i < 32; i++) {
          if (!socket.write(chunk)) await new Promise<void>((go) => socket.once("drain", go));
        }
        socket.end();
        assert.equal(await received, 32 * MIB);
        await done;
      });
    });

    test("a peer that ends its direction still gets answers", async () => {
      await withPair(create(), async ({ client: socket, connection }) => {
        const answer = (async () => {
          let text = "";
          for await (const part of socket) text += String(part);
          return text;
        })();
        socket.end("question");
        assert.equal(await readText(connection, 8), "question");
        assert.equal(await connection.read(), null);
        assert.equal(await connection.read(), null);
        await connection.write(new TextEncoder().encode("answer"));
        connection.close();
        assert.equal(await answer, "answer");
      });
    });

    test("close after write loses nothing, even with unread input", async () => {
      await withPair(create(), async ({ client: socket, connection }) => {
        socket.write(new Uint8Array(MIB));
        await connection.read();
        const received = (async () => {
          let bytes = 0;
          for await (const part of socket) bytes += (part as Uint8Array).length;
          socket.end();
          return bytes;
        })();
        await connection.write(new Uint8Array(2 * MIB));
        connection.close();
        assert.equal(await received, 2 * MIB);
      });
    });

    test("a reader that does not read stops the sender: memory stays bounded", async () => {
      await withPair(create(), async ({ client: socket, connection }) => {
        let taken = 0;
        const chunk = new Uint8Array(MIB);
        for (let i = 0; i < 64; i++) socket.write(chunk, () => void taken++);
        await connection.read();
        const stopped = await settled(() => taken);
        assert.ok(stopped < 48, `the kernel and the listener took ${stopped} MiB`);
        socket.end();
        await readAll(connection);
        assert.ok(await until(() => taken === 64));
      });
    });

    test("write waits for a peer that does not read", async () => {
      await withPair(create(), async ({ client: socket, connection }) => {
        socket.pause();
        const { state, done } = flood(connection, 64);
        const stopped = await settled(() => state.taken);
        assert.ok(stopped < 48, `${stopped} MiB were taken`);
        let bytes = 0;
        socket.on("data", (part) => void (bytes += part.length));
        socket.resume();
        await done;
        assert.equal(state.error, null);
        assert.ok(await until(() => bytes === 64 * MIB));
      });
    });

    test("a peer's reset ends reading and surfaces in write", async () => {
      await withPair(create(), async ({ client: socket, connection }) => {
        socket.pause();
        const { state, done } = flood(connection, 1_000);
        await settled(() => state.taken);
        socket.resetAndDestroy();
        assert.equal(await readAll(connection), 0);
        await done;
        assert.ok(isFault(state.error, "closed"));
        await assert.rejects(connection.write(new Uint8Array(1)), (e) => isFault(e, "closed"));
      });
    });

    test("close is idempotent, ends a waiting read and refuses writes", async () => {
      await withPair(create(), async ({ client: socket, connection }) => {
        const ended = new Promise<void>((resolve) => socket.once("end", resolve));
        socket.resume();
        const reading = connection.read();
        connection.close();
        connection.close();
        assert.equal(await reading, null);
        assert.equal(await connection.read(), null);
        await assert.rejects(connection.write(new Uint8Array(1)), (e) => isFault(e, "closed"));
        await ended;
      });
    });

    test("close ends a waiting write", async () => {
      await withPair(create(), async ({ client: socket, connection }) => {
        socket.pause();
        const { state, done } = flood(connection, 64);
        await settled(() => state.taken);
        connection.close();
        await done;
        assert.ok(isFault(state.error, "closed"));
      });
    });

    test("after close the port is free and open connections go on", async () => {
      const listener = create();
      await withPair(listener, async ({ client: socket, connection, listening }) => {
        await listening.close();
        await listening.close();
        socket.write("still");
        assert.equal(await readText(connection, 5), "still");
        const again = await listener.listen({ host: HOST, port: listening.port }, () => {});
        await again.close();
      });
    });
  });
}
