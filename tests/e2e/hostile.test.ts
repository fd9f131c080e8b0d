/**
 * Clients that mean harm or know no better, over real sockets: whatever they send or do not take, the
 * broker answers or hangs up as Kafka does, its memory stays bounded, and others go on.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { createCodecs } from "../../src/adapters/codecs.ts";
import { type Random, seededRandom } from "../../src/env/random.ts";
import { fromHex, toUtf8 } from "../../src/lib/bytes.ts";
import type { Api } from "../../src/protocol/api.ts";
import { APIS } from "../../src/protocol/api_key.ts";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import { fetchApi } from "../../src/protocol/message/01_fetch.ts";
import { metadataApi } from "../../src/protocol/message/03_metadata.ts";
import { apiVersionsApi } from "../../src/protocol/message/18_api_versions.ts";
import { buildBatch } from "../../src/protocol/record_batch.ts";
import { isFlexible } from "../../src/protocol/schema.ts";
import { type BrokerProcess, startBroker, tempDir, within } from "../support/broker_process.ts";
import { readResponse, requestFrame } from "../support/wire.ts";
import { RawClient } from "./raw_client.ts";

const MIB = 1 << 20;
const CONNECTIONS_MAX = 700;
const codecs = createCodecs();
const dir = tempDir();
let broker: BrokerProcess;

before(async () => {
  const limit = ["--set", `max.connections=${CONNECTIONS_MAX}`];
  broker = await startBroker({ args: ["--store", `dir:${dir.path}`, ...limit] });
});
after(async () => {
  assert.equal(await broker.stop(), 0, broker.output());
  assert.doesNotMatch(broker.output(), /"level":"error"/);
  dir.remove();
});

function batch(value: Uint8Array): Uint8Array {
  return buildBatch({
    records: [{ key: null, value, headers: [], timestampMs: 1_700_000_000_000 }],
    codec: null,
    codecs,
  });
}

function produceRequest(topic: string, value: Uint8Array) {
  return {
    transactionalId: null,
    acks: -1,
    timeoutMs: 30_000,
    topicData: [{ name: topic, partitionData: [{ index: 0, records: batch(value) }] }],
  };
}

function fetchRequest(topic: string, offset: number, bytes: number) {
  return {
    replicaId: -1,
    maxWaitMs: 100,
    minBytes: 1,
    maxBytes: bytes,
    isolationLevel: 0,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [{
      topic,
      partitions: [{
        partition: 0,
        currentLeaderEpoch: -1,
        fetchOffset: offset,
        logStartOffset: -1,
        partitionMaxBytes: bytes,
      }],
    }],
    forgottenTopicsData: [],
    rackId: "",
  };
}

/** What everybody else does meanwhile: a produce and a fetch of it on a fresh connection. */
async function othersGoOn(topic = "others"): Promise<void> {
  const client = await RawClient.connect(broker.kafka);
  await client.call(metadataApi, 9, { topics: [{ name: topic }], allowAutoTopicCreation: true });
  const value = toUtf8(`still here ${performance.now()}`);
  const produced = await client.call(produceApi, 9, produceRequest(topic, value));
  const answer = produced.responses[0]!.partitionResponses[0]!;
  assert.equal(answer.errorCode, 0);
  const fetched = await client.call(fetchApi, 11, fetchRequest(topic, answer.baseOffset, MIB));
  const records = fetched.responses[0]!.partitions[0]!.records as Uint8Array;
  assert.ok(Buffer.from(records).includes(Buffer.from(value)), "what was produced is fetched");
  client.close();
}

async function connections(): Promise<number> {
  const text = await (await fetch(`${broker.http}/metrics`)).text();
  return Number(/^skerry_kafka_connections (\d+)$/m.exec(text)?.[1] ?? 0);
}

async function untilConnections(count: number): Promise<void> {
  for (let i = 0; i < 200; i++) {
    if (await connections() === count) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.equal(await connections(), count);
}

async function openMany(count: number): Promise<RawClient[]> {
  return await Promise.all(Array.from({ length: count }, () => RawClient.connect(broker.kafka)));
}

/** Resident bytes may grow by at most `mib` meanwhile, on systems that tell. */
async function boundedBy(mib: number, work: () => Promise<void>): Promise<void> {
  const beforeBytes = broker.residentBytes();
  let mostBytes = 0;
  const timer = setInterval(() => {
    mostBytes = Math.max(mostBytes, broker.residentBytes() ?? 0);
  }, 50);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  if (beforeBytes === null) return;
  const grown = Math.round((mostBytes - beforeBytes) / MIB);
  assert.ok(grown <= mib, `resident memory grew by ${grown} MiB, allowed are ${mib}`);
}

function frame(length: number, bytes: Uint8Array = new Uint8Array(0)): Uint8Array {
  const out = new Uint8Array(4 + bytes.length);
  new DataView(out.buffer).setInt32(0, length);
  out.set(bytes, 4);
  return out;
}

/** A frame of its own length with a request header v1, or v2 for flexible requests. */
function request(key: number, version: number, body: Uint8Array, flexible = false): Uint8Array {
  const header = new Uint8Array(flexible ? 11 : 10);
  const view = new DataView(header.buffer);
  view.setInt16(0, key);
  view.setInt16(2, version);
  view.setInt32(4, 1);
  view.setInt16(8, -1);
  const bytes = Uint8Array.of(...header, ...body);
  return frame(bytes.length, bytes);
}

async function hangsUp(bytes: Uint8Array, what: string): Promise<void> {
  const client = await RawClient.connect(broker.kafka);
  client.send(bytes);
  assert.equal(await client.next(), null, `${what} is answered`);
  assert.notEqual(await within(client.closed.then(() => true), 5000), null, `${what} stays open`);
}

test("500 idle connections", async () => {
  await othersGoOn();
  await boundedBy(100, async () => {
    const idle = await openMany(500);
    await untilConnections(500);
    for (let i = 0; i < 20; i++) await othersGoOn();
    const answer = await idle[250]!.call(metadataApi, 9, { topics: [] });
    assert.equal(answer.brokers.length, 1, "an idle connection still works");
    for (const client of idle) client.close();
  });
  await untilConnections(0);
});

test("more connections than allowed: the surplus is closed, the others live", async () => {
  const many = await openMany(CONNECTIONS_MAX);
  await untilConnections(CONNECTIONS_MAX);
  const surplus = await openMany(20);
  for (const client of surplus) {
    assert.notEqual(await within(client.closed.then(() => true), 5000), null);
  }
  const answer = await many[0]!.call(metadataApi, 9, { topics: [] });
  assert.equal(answer.brokers.length, 1);
  for (const client of many) client.close();
  await untilConnections(0);
  await othersGoOn();
});

test("lengths that are negative or too large end the connection", async () => {
  for (const length of [-1, -(2 ** 31), 104_857_601, 2 ** 31 - 1]) {
    await hangsUp(frame(length, new Uint8Array(20)), `length ${length}`);
  }
  await othersGoOn();
});

test("unknown APIs and versions end the connection; ApiVersions tells its range", async () => {
  await hangsUp(request(999, 0, new Uint8Array(10)), "an unknown key");
  await hangsUp(request(-1, 0, new Uint8Array(10)), "a negative key");
  await hangsUp(request(3, 99, new Uint8Array(10)), "an unknown version");
  await hangsUp(request(1, -1, new Uint8Array(10)), "a negative version");
  const client = await RawClient.connect(broker.kafka);
  client.send(request(apiVersionsApi.key, 99, Uint8Array.of(1, 2, 3)));
  const answer = readResponse(
    apiVersionsApi,
    { version: 0, correlationId: 1 },
    (await client.next())!,
  );
  assert.equal(answer.errorCode, 35);
  assert.deepEqual(answer.apiKeys.map(({ apiKey }) => apiKey), [apiVersionsApi.key]);
  const again = await client.call(apiVersionsApi, 3, {
    clientSoftwareName: "test",
    clientSoftwareVersion: "1",
  });
  assert.equal(again.errorCode, 0, "the same connection goes on with a version that both know");
  client.close();
});

test("other protocols on the Kafka port, and none on the HTTP port", async () => {
  const tls = Uint8Array.of(0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03);
  await hangsUp(toUtf8("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP");
  await hangsUp(tls, "TLS");
  const random = seededRandom(7);
  for (let i = 0; i < 50; i++) {
    const client = await RawClient.connect(broker.kafka);
    client.send(Uint8Array.from({ length: 1 + random.float() * 2000 }, () => random.float() * 256));
    client.close();
  }
  const place = new URL(broker.http).host;
  for (
    const text of ["\0\0\0\0garbage", "GET\r\n\r\n", `POST / HTTP/1.1\r\nA: ${"x".repeat(99_999)}`]
  ) {
    const client = await RawClient.connect(place);
    client.send(toUtf8(text));
    client.close();
  }
  assert.equal((await fetch(`${broker.http}/livez`)).status, 200);
  await othersGoOn();
  await untilConnections(0);
});

interface Golden {
  readonly message: string;
  readonly version: number;
  readonly hex: string;
}

/** Bodies of all requests in all versions, made by Kafka's rules from values that no client would send. */
function strangeRequests() {
  const golden = JSON.parse(
    readFileSync(new URL("../golden/protocol_messages.json", import.meta.url), "utf8"),
  ) as Golden[];
  return golden.flatMap(({ message, version, hex }) => {
    const found = APIS.find(({ name }) => `${name}Request` === message) as Api | undefined;
    return found === undefined ? [] : [{ api: found, version, body: fromHex(hex) }];
  });
}

function flip(bytes: Uint8Array, from: number, random: Random): Uint8Array {
  const flipped = bytes.slice();
  for (let left = 1 + random.float() * 4; left > 0; left--) {
    flipped[from + Math.floor(random.float() * (bytes.length - from))] = random.float() * 256;
  }
  return flipped;
}

test("every request in every version with strange values is answered", async () => {
  const silent: string[] = [];
  let answered = 0;
  for (const { api, version, body } of strangeRequests()) {
    const client = await RawClient.connect(broker.kafka);
    client.send(request(api.key, version, body, isFlexible(api, version)));
    const ended = await within(client.next().then((answer) => ({ answer })), 1000);
    client.close();
    if (ended?.answer != null) {
      readResponse(api, { version, correlationId: 1 }, ended.answer);
      answered += 1;
    } else silent.push(`${api.name} v${version} is ${ended === null ? "not answered" : "cut off"}`);
  }
  assert.deepEqual(silent, []);
  assert.ok(answered > 300, `${answered} were answered`);
});

test("every request in every version, cut or with wrong bits", async () => {
  const random = seededRandom(11);
  for (const { api, version, body } of strangeRequests()) {
    const whole = request(api.key, version, body, isFlexible(api, version));
    const client = await RawClient.connect(broker.kafka);
    if (random.float() < 0.3) {
      const cut = whole.subarray(4, 4 + random.float() * (whole.length - 4));
      client.send(frame(cut.length, cut));
    } else client.send(flip(whole, 14, random));
    await within(client.next(), 5);
    client.close();
  }
  await othersGoOn();
  await untilConnections(0);
});

test("true frames with wrong bits", async () => {
  const random = seededRandom(13);
  const call = { version: 9, correlationId: 1 };
  const produce = requestFrame(produceApi, call, produceRequest("flipped", new Uint8Array(200)));
  const fetching = requestFrame(fetchApi, { ...call, version: 11 }, fetchRequest("others", 0, MIB));
  for (let i = 0; i < 300; i++) {
    const bytes = flip(i % 2 === 0 ? produce : fetching, 4, random);
    const client = await RawClient.connect(broker.kafka);
    client.send(bytes.subarray(0, i % 10 === 0 ? bytes.length / 2 : bytes.length));
    await within(client.next(), 20);
    client.close();
  }
  await othersGoOn();
  await untilConnections(0);
});

test("frames that promise much and bring little", async () => {
  await boundedBy(200, async () => {
    const slow = await openMany(200);
    for (const [i, client] of slow.entries()) {
      // Half promise what is trusted at once, half the most that is allowed.
      client.send(frame(i % 2 === 0 ? 4 * MIB - 1 : 104_857_600, new Uint8Array(10)));
    }
    for (let round = 0; round < 20; round++) {
      for (const client of slow) client.send(Uint8Array.of(0));
      await othersGoOn();
    }
    assert.ok(slow.every((client) => !client.isClosed), "slow is not yet wrong");
    for (const client of slow) client.close();
  });
  await untilConnections(0);
});

test("clients that fetch much and never read", async () => {
  const writer = await RawClient.connect(broker.kafka);
  await writer.call(metadataApi, 9, { topics: [{ name: "big" }], allowAutoTopicCreation: true });
  for (let i = 0; i < 48; i++) {
    const produced = await writer.call(
      produceApi,
      9,
      produceRequest("big", new Uint8Array(MIB - 200)),
    );
    assert.equal(produced.responses[0]!.partitionResponses[0]!.errorCode, 0);
  }
  writer.close();
  await boundedBy(400, async () => {
    const greedy = await openMany(40);
    for (const client of greedy) {
      client.stopReading();
      for (let i = 0; i < 30; i++) {
        const call = { version: 11, correlationId: i };
        client.send(requestFrame(fetchApi, call, fetchRequest("big", 0, 50 * MIB)));
      }
    }
    for (let i = 0; i < 20; i++) {
      await othersGoOn();
      await new Promise((done) => setTimeout(done, 50));
    }
    const page = await fetch(`${broker.http}/v1/topics/others/partitions/0/records?limit=1`);
    assert.equal(page.status, 200);
    for (const client of greedy) client.close();
  });
  await untilConnections(0);
});

test("connections that are cut in the middle of everything", async () => {
  const call = { version: 9, correlationId: 1 };
  const bytes = requestFrame(produceApi, call, produceRequest("cut", new Uint8Array(300_000)));
  const random = seededRandom(17);
  for (let round = 0; round < 10; round++) {
    const clients = await openMany(20);
    for (const client of clients) {
      client.send(bytes);
      client.send(bytes.subarray(0, random.float() * bytes.length));
      client.send(requestFrame(fetchApi, { ...call, version: 11 }, fetchRequest("cut", 0, MIB)));
    }
    await new Promise((done) => setTimeout(done, random.float() * 20));
    for (const client of clients) client.close();
  }
  await untilConnections(0);
  await othersGoOn();
});
