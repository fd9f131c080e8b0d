import assert from "node:assert/strict";
import { test } from "node:test";
import { askForSocket, FakeSocket, HANDSHAKE } from "../../../tests/support/fake_socket.ts";
import { createHttpTopic } from "../../../tests/support/http_topic.ts";
import { HTTP_SOCKETS_MAX } from "../../lib/limits.ts";

test("a handshake opens a socket with the subprotocol of the route, if any is offered", async () => {
  const { app } = createHttpTopic();
  for (const [path, name] of [["/v1/kafka", "kafka"], ["/v1/topics/t/ws", "skerry"]] as const) {
    const plain = await askForSocket(app, path);
    assert.equal(plain.response.status, 200);
    assert.equal(plain.offer?.protocol, null);
    const named = await askForSocket(app, path, {
      ...HANDSHAKE,
      upgrade: "h2c, WebSocket",
      "sec-websocket-protocol": `other,${name}`,
    });
    assert.equal(named.offer?.protocol, name);
  }
});

test("what is no handshake, or one that cannot be met, is a problem", async () => {
  const { app } = createHttpTopic();
  const { upgrade: _, ...noUpgrade } = HANDSHAKE;
  const cases: readonly (readonly [Record<string, string>, number])[] = [
    [noUpgrade, 426],
    [{ ...HANDSHAKE, upgrade: "h2c" }, 426],
    [{ ...HANDSHAKE, "sec-websocket-version": "8" }, 426],
    [{ ...HANDSHAKE, "sec-websocket-protocol": "mqtt" }, 400],
    [{ ...HANDSHAKE, origin: "https://elsewhere.example" }, 403],
  ];
  for (const [headers, status] of cases) {
    const { response, offer } = await askForSocket(app, "/v1/kafka", headers);
    assert.equal(response.status, status);
    assert.equal(offer, null);
    assert.equal(response.headers.get("content-type"), "application/problem+json");
    if (status === 426) assert.equal(response.headers.get("upgrade"), "websocket");
    if (status === 426) assert.equal(response.headers.get("sec-websocket-version"), "13");
  }
  const query = await askForSocket(app, "/v1/topics/t/ws?from=earliest");
  assert.equal(query.response.status, 400);
});

test("a host that only passes requests opens no socket", async () => {
  const { app } = createHttpTopic();
  const request = new Request("http://node/v1/kafka", { headers: HANDSHAKE });
  assert.equal((await app.fetch(request)).status, 501);
});

test("pages of the origins that are named may open sockets", async () => {
  const { app } = createHttpTopic(1, undefined, { corsOrigins: ["https://app.example"] });
  const from = async (origin: string) =>
    (await askForSocket(app, "/v1/kafka", { ...HANDSHAKE, origin })).offer !== null;
  assert.equal(await from("https://app.example"), true);
  assert.equal(await from("https://app.example.org"), false);
  const any = createHttpTopic(1, undefined, { corsOrigins: ["*"] });
  const { offer } = await askForSocket(any.app, "/v1/kafka", { ...HANDSHAKE, origin: "null" });
  assert.notEqual(offer, null);
});

test("there are only so many sockets, of both kinds, and each gives its place back", async () => {
  const { app, env } = createHttpTopic();
  const closers: (() => void)[] = [];
  for (let i = 0; i < HTTP_SOCKETS_MAX; i++) {
    const { offer } = await askForSocket(app, i === 0 ? "/v1/topics/t/ws" : "/v1/kafka");
    const handler = offer!.open(new FakeSocket());
    closers.push(() => handler.closed());
  }
  assert.match(env.metrics.render(), /skerry_http_sockets\{kind="topic"\} 1\n/);
  const { response } = await askForSocket(app, "/v1/kafka");
  assert.equal(response.status, 503);
  assert.equal(response.headers.get("retry-after"), "1");
  closers.pop()!();
  assert.equal((await askForSocket(app, "/v1/kafka")).response.status, 200);
});
