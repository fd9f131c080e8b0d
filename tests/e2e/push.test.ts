/**
 * A subscription of the broker as a process: a handler that fails, hangs, redirects and hangs up, and a broker that
 * is killed in the middle. Each record arrives, those of a key in order, under ids that tell what came twice.
 */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { test } from "node:test";
import { seededRandom } from "../../src/env/random.ts";
import { type BrokerProcess, startBroker, tempDir } from "../support/broker_process.ts";
import { until } from "./until.ts";

const RECORDS = 160;
const ROUND = 80;
const KEYS = 12;
const PARTITIONS = 3;
const GROUP = "handlers";

interface Arrived {
  readonly key: string;
  readonly value: number;
  readonly id: string;
}

interface Body {
  readonly topicId: string;
  readonly records: readonly {
    readonly partition: number;
    readonly offset: number;
    readonly key: string;
    readonly value: string;
  }[];
}

/** What a handler does instead of taking a delivery. */
const TROUBLES: readonly ((response: ServerResponse) => void)[] = [
  (response) => response.writeHead(500).end("no"),
  (response) => response.writeHead(503, { "retry-after": "0" }).end(),
  (response) => response.writeHead(307, { location: "http://127.0.0.1:1/" }).end(),
  (response) => response.destroy(),
  // Nothing: it ends with the time of the delivery.
  () => {},
];

async function readBody(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk as string;
  return text;
}

function base64Url(text: string): Uint8Array<ArrayBuffer> {
  const base64 = text.replaceAll("-", "+").replaceAll("_", "/");
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

/** A detached JWS by the keys that the broker publishes, by the standards alone. */
async function isSigned(http: string, jws: string, body: string): Promise<boolean> {
  const [header = "", , signature = ""] = jws.split(".");
  const { kid } = JSON.parse(new TextDecoder().decode(base64Url(header))) as { kid: string };
  const { keys } = await (await fetch(`${http}/v1/jwks.json`)).json() as {
    keys: (JsonWebKey & { kid: string })[];
  };
  const jwk = keys.find((one) => one.kid === kid)!;
  const key = await crypto.subtle.importKey("jwk", { ...jwk }, "Ed25519", false, ["verify"]);
  const bytes = new TextEncoder().encode(body);
  const payload = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const text = new TextEncoder().encode(`${header}.${payload}`);
  return await crypto.subtle.verify("Ed25519", key, base64Url(signature), text);
}

async function startHandler(seed: number) {
  const random = seededRandom(seed);
  const arrived: Arrived[] = [];
  const samples: { jws: string; body: string }[] = [];
  let troubles = 0;
  const server = createServer((request, response) => {
    readBody(request).then((text) => {
      if (random.float() < 0.3) {
        troubles += 1;
        return TROUBLES[troubles % TROUBLES.length]!(response);
      }
      samples.push({ jws: String(request.headers["skerry-signature"]), body: text });
      const { topicId, records } = JSON.parse(text) as Body;
      for (const { partition, offset, key, value } of records) {
        arrived.push({ key, value: Number(value), id: `${topicId}-${partition}-${offset}` });
      }
      response.writeHead(204).end();
    }, () => {});
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return {
    url: `http://127.0.0.1:${address.port}/in`,
    arrived,
    samples,
    troubles: () => troubles,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function send(http: string, method: string, path: string, body: unknown): Promise<void> {
  const answer = await fetch(`${http}${path}`, {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
}

/** Each value the first time it arrived; a handler that looks at ids sees no others. */
function firstOnes(arrived: readonly Arrived[]): Arrived[] {
  const known = new Set<string>();
  return arrived.filter(({ id }) => !known.has(id) && known.add(id));
}

async function lag(http: string): Promise<number> {
  const answer = await fetch(`${http}/v1/groups/${GROUP}/lag`);
  const { partitions = [] } = await answer.json() as { partitions?: { lag: number | null }[] };
  return partitions.reduce((sum, one) => sum + (one.lag ?? RECORDS), 0);
}

test("a broken handler and a killed broker: every record arrives, those of a key in order", {
  timeout: 120_000,
}, async () => {
  const dir = tempDir();
  const handler = await startHandler(7);
  const args = ["--store", `dir:${dir.path}/store`, "--set", "skerry.push.loopback=true"];
  let broker: BrokerProcess = await startBroker({ args });
  try {
    await send(broker.http, "POST", "/v1/topics", { name: "t", partitions: PARTITIONS });
    await send(broker.http, "PUT", "/v1/subscriptions/s", {
      group: GROUP,
      topics: ["t"],
      url: handler.url,
      from: "earliest",
      batch: { records: 5 },
      maxInFlight: 8,
      timeoutMs: 150,
      retry: { attempts: 1_000, minMs: 100, maxMs: 200 },
    });
    for (let from = 0; from < RECORDS; from += ROUND) {
      const records = Array.from({ length: ROUND }, (_, i) => ({
        key: `k${(from + i) % KEYS}`,
        value: String(from + i),
      }));
      await send(broker.http, "POST", "/v1/topics/t/records", records);
      const seen = handler.arrived.length;
      await until("some more arrive", () => handler.arrived.length > seen + 20);
      await broker.kill9();
      broker = await broker.restart();
    }
    await until("all arrive", () => firstOnes(handler.arrived).length === RECORDS);
    const first = firstOnes(handler.arrived);
    assert.deepEqual(
      first.map(({ value }) => value).toSorted((a, b) => a - b),
      Array.from({ length: RECORDS }, (_, i) => i),
    );
    for (let key = 0; key < KEYS; key++) {
      const values = first.filter((one) => one.key === `k${key}`).map(({ value }) => value);
      assert.deepEqual(values, values.toSorted((a, b) => a - b), `k${key} in order`);
    }
    assert.ok(handler.troubles() > 10, "the handler was in trouble");
    await until("the group has moved to the end", async () => await lag(broker.http) === 0);
    const { jws, body } = handler.samples.at(-1)!;
    assert.equal(await isSigned(broker.http, jws, body), true);
    assert.equal(await isSigned(broker.http, jws, `${body} `), false);
    const count = handler.arrived.length;
    await broker.stop();
    broker = await broker.restart();
    await until("it delivers again", async () => {
      const answer = await fetch(`${broker.http}/v1/subscriptions/s`);
      return (await answer.json() as { state: string }).state === "delivering";
    });
    await send(broker.http, "POST", "/v1/topics/t/records", [{ key: "k0", value: "1000" }]);
    await until("the last one arrives", () => handler.arrived.at(-1)!.value === 1_000);
    assert.equal(handler.arrived.length, count + 1, "what was committed does not come again");
  } finally {
    await broker.kill9().catch(() => {});
    handler.close();
    dir.remove();
  }
});
