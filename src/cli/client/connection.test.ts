/** What a client says of a port that is closed, silent, or no broker. */
import assert from "node:assert/strict";
import { createServer, type Server, type Socket } from "node:net";
import { test } from "node:test";
import { runCli } from "../../../tests/support/cli_io.ts";

async function listening(onSocket: (socket: Socket) => void): Promise<{
  readonly address: string;
  close(): Promise<void>;
}> {
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    onSocket(socket);
  });
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    address: `127.0.0.1:${port}`,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((done) => void server.close(() => done()));
    },
  };
}

test("a closed port is exit 3 at once, not after the time-out", async () => {
  const { address, close } = await listening(() => {});
  await close();
  const { code, out, err } = await runCli(["topic", "list", "-b", address]);
  assert.equal(code, 3);
  assert.equal(out, "");
  assert.match(err, new RegExp(`^Cannot connect to ${address}: ECONNREFUSED\n$`));
});

test("a silent port is exit 3 within the time-out", async () => {
  const { address, close } = await listening(() => {});
  const { code, err } = await runCli(["topic", "list", "-b", address, "--timeout", "0.2"]);
  assert.equal(code, 3);
  assert.match(err, /^No answer from .* within 1 s\n$/);
  await close();
});

test("the second address serves when the first does not", async () => {
  const closed = await listening(() => {});
  await closed.close();
  const open = await listening((socket) => socket.end());
  const { code, err } = await runCli(
    ["topic", "list", "-b", `${closed.address},${open.address}`],
  );
  assert.equal(code, 3);
  assert.match(err, new RegExp(`^Lost the connection to ${open.address}`));
  await open.close();
});

test("what is no broker is told", async () => {
  for (const answer of ["HTTP/1.1 400 Bad Request\r\n\r\n", "\0\0\0\u0006\0\0\0\u0001\0\0\0\0"]) {
    const { address, close } = await listening((socket) => socket.write(answer));
    const { code, err } = await runCli(["topic", "list", "-b", address, "--timeout", "5"]);
    assert.ok(code === 1 || code === 3, `${code}`);
    assert.match(err, /^(Lost the connection to|Cannot understand) 127\.0\.0\.1:\d+.*\n$/);
    await close();
  }
});
