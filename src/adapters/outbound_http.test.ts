import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { after, describe, test } from "node:test";
import { LOCALHOST_CERT, LOCALHOST_KEY } from "../../tests/support/localhost_tls.ts";
import type { OutboundRequest } from "../env/outbound_http.ts";
import { reachOf } from "../lib/ip_address.ts";
import { toUtf8 } from "../lib/bytes.ts";
import { createOutboundHttp } from "./outbound_http.ts";

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

type Handle = (response: ServerResponse, seen: Seen) => void;

async function withServer(
  handle: Handle,
  work: (base: string, seen: readonly Seen[], server: Server) => Promise<void>,
): Promise<void> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      seen.push({ method, url, headers, body });
      handle(response, seen.at(-1)!);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  try {
    await work(`http://127.0.0.1:${address.port}`, seen, server);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

function requestTo(url: string, over: Partial<OutboundRequest> = {}): OutboundRequest {
  return {
    url: new URL(url),
    method: "POST",
    headers: { "content-type": "text/plain", "x-one": "1" },
    body: toUtf8("body"),
    mayConnectTo: (address) => reachOf(address) === "loopback",
    answerBytesMax: 1_000,
    signal: new AbortController().signal,
    ...over,
  };
}

describe("outbound HTTP", () => {
  const outbound = createOutboundHttp();
  after(() => outbound.close());

  test("carries method, path, query, headers and body, and answers status and Retry-After", () =>
    withServer(
      (response) => response.writeHead(503, { "retry-after": "7" }).end("wait"),
      async (base, seen) => {
        const answer = await outbound.send(requestTo(`${base}/a/b?c=d`));
        assert.deepEqual(answer, { ok: true, status: 503, retryAfter: "7" });
        const [{ method, url, headers, body }] = seen as [Seen];
        assert.deepEqual([method, url, body], ["POST", "/a/b?c=d", "body"]);
        assert.equal(headers["x-one"], "1");
        assert.equal(headers["content-length"], "4");
        assert.equal(headers.host, base.slice("http://".length));
      },
    ));

  test("a name is checked at its address, and so is an address", () =>
    withServer((response) => response.end("ok"), async (base, seen) => {
      const asked: string[] = [];
      const mayConnectTo = (address: string) => {
        asked.push(address);
        return false;
      };
      const byName = base.replace("127.0.0.1", "localhost");
      for (const url of [base, byName]) {
        const answer = await outbound.send(requestTo(url, { mayConnectTo }));
        assert.equal(!answer.ok && answer.kind, "refused", url);
      }
      assert.deepEqual(asked.filter((one) => reachOf(one) !== "loopback"), []);
      assert.equal(seen.length, 0, "nothing was sent");
      assert.deepEqual(await outbound.send(requestTo(byName)), {
        ok: true,
        status: 200,
        retryAfter: null,
      });
    }));

  test("of several addresses only those that are allowed are used", () =>
    withServer((response) => response.end("ok"), async (base, seen) => {
      const mayConnectTo = (address: string) => address === "127.0.0.1";
      const url = base.replace("127.0.0.1", "localhost");
      assert.equal((await outbound.send(requestTo(url, { mayConnectTo }))).ok, true);
      assert.equal(seen.length, 1);
    }));

  test("a redirect is an answer like any other", () =>
    withServer(
      (response, { url }) =>
        response.writeHead(url === "/" ? 302 : 200, { location: "/there" }).end(),
      async (base, seen) => {
        assert.deepEqual(await outbound.send(requestTo(`${base}/`)), {
          ok: true,
          status: 302,
          retryAfter: null,
        });
        assert.equal(seen.length, 1);
      },
    ));

  test("an answer that does not end is cut off behind its first bytes", () =>
    withServer((response) => {
      const pour = () => {
        while (!response.destroyed && response.write("x".repeat(10_000)));
        if (!response.destroyed) response.once("drain", pour);
      };
      pour();
    }, async (base) => {
      const answer = await outbound.send(requestTo(base));
      assert.deepEqual(answer, { ok: true, status: 200, retryAfter: null });
    }));

  test("one that never comes ends with the signal", () =>
    withServer(() => {}, async (base, seen) => {
      const stop = new AbortController();
      const sending = outbound.send(requestTo(base, { signal: stop.signal }));
      while (seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      stop.abort();
      const answer = await sending;
      assert.equal(!answer.ok && answer.kind, "aborted");
      const again = await outbound.send(requestTo(base, { signal: stop.signal }));
      assert.equal(!again.ok && again.kind, "aborted");
    }));

  test("a host that is not there, or hangs up, is a failure without addresses", () =>
    withServer((response) => response.destroy(), async (base) => {
      for (const url of [base, "http://127.0.0.1:1/", "http://name.invalid/"]) {
        const answer = await outbound.send(requestTo(url));
        assert.equal(!answer.ok && answer.kind, "failed", url);
        assert.doesNotMatch(!answer.ok ? answer.reason : "", /127\.0\.0\.1/);
      }
    }));

  test("connections are used again", () =>
    withServer((response) => response.end("ok"), async (base, _, server) => {
      let connections = 0;
      server.on("connection", () => (connections += 1));
      for (let i = 0; i < 5; i++) assert.equal((await outbound.send(requestTo(base))).ok, true);
      assert.equal(connections, 1);
    }));

  test("a connection that was closed while it was idle is no failure", () =>
    withServer((response) => response.end("ok"), async (base, seen, server) => {
      for (let i = 0; i < 3; i++) {
        assert.equal((await outbound.send(requestTo(base))).ok, true);
        // The next request finds a connection that the host has ended, whether it knows that yet or not.
        server.closeIdleConnections();
      }
      assert.equal(seen.length, 3);
    }));

  test("over TLS the certificate is that of the name, and of somebody who is trusted", async () => {
    const names: unknown[] = [];
    const server = createSecureServer(
      { key: LOCALHOST_KEY, cert: LOCALHOST_CERT },
      (request, response) => {
        names.push(request.headers.host);
        response.end("ok");
      },
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    assert.ok(typeof address === "object" && address !== null);
    const trusting = createOutboundHttp({ ca: LOCALHOST_CERT });
    try {
      const url = `https://localhost:${address.port}/in`;
      for (let i = 0; i < 2; i++) {
        assert.deepEqual(await trusting.send(requestTo(url)), {
          ok: true,
          status: 200,
          retryAfter: null,
        });
      }
      const unknown = await outbound.send(requestTo(url));
      assert.equal(!unknown.ok && unknown.kind, "failed", "nobody vouches for it");
      const other = await trusting.send(requestTo(url.replace("localhost", "127.0.0.1")));
      assert.equal(!other.ok && other.kind, "failed", "it is of another name");
      assert.deepEqual(names, Array.from({ length: 2 }, () => `localhost:${address.port}`));
    } finally {
      trusting.close();
      server.closeAllConnections();
      server.close();
    }
  });
});
