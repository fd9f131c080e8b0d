/**
 * An S3 that forgets: large puts are read and dropped, so that it costs little beside the broker; all else
 * goes to the fake S3. A process of its own; prints one JSON line when it listens.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import process from "node:process";
import { startS3Server } from "../support/s3_server.ts";

const DROPPED_BYTES_MIN = 64 * 1024;

async function main(): Promise<void> {
  const inner = await startS3Server();

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) chunks.push(chunk as Uint8Array);
    const headers = new Headers();
    for (const [name, value] of Object.entries(request.headers)) {
      if (typeof value === "string" && name !== "host") headers.set(name, value);
    }
    const { method = "GET" } = request;
    const hasBody = method === "PUT" || method === "POST";
    const answer = await fetch(`${inner.url}${request.url}`, {
      method,
      headers,
      ...(hasBody ? { body: Buffer.concat(chunks) } : {}),
    });
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(new Uint8Array(await answer.arrayBuffer()));
  }

  function drop(request: IncomingMessage, response: ServerResponse): void {
    request.on("data", () => {});
    request.on("end", () => {
      response.writeHead(200, { etag: '"dropped"', "content-length": 0 });
      response.end();
    });
  }

  const server = createServer((request, response) => {
    const isLarge = Number(request.headers["content-length"] ?? 0) >= DROPPED_BYTES_MIN;
    if (request.method === "PUT" && isLarge) drop(request, response);
    else forward(request, response).catch(() => request.socket.destroy());
  });
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const line = { event: "ready", url: `http://127.0.0.1:${port}`, bucket: inner.bucket };
    process.stdout.write(`${JSON.stringify(line)}\n`);
  });
}

if (import.meta.main) await main();
