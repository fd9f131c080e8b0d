import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { concatBytes, fromHex, toHex, viewOf } from "../lib/bytes.ts";
import {
  CONNECTION_DRAIN_MS,
  CONNECTION_REQUESTS_MAX,
  FETCH_WAIT_MS_MAX,
  FRAME_GRACE_MS,
  HANDLERS_END_MS,
  REQUEST_BYTES_MAX,
  WRITE_BYTES_MAX,
} from "../lib/limits.ts";
import { fetchApi } from "../protocol/message/01_fetch.ts";
import { produceApi } from "../protocol/message/00_produce.ts";
import { apiVersionsApi } from "../protocol/message/18_api_versions.ts";
import { metadataApi } from "../protocol/message/03_metadata.ts";
import { decode } from "../protocol/schema.ts";
import { type BrokerWorld, createBrokerWorld } from "../../tests/support/broker_world.ts";
import { collected } from "../../tests/support/garbage.ts";
import {
  createMemoryConnection,
  type MemoryConnection,
} from "../../tests/support/memory_connection.ts";
import { requestFrame } from "../../tests/support/wire.ts";
import { bind } from "./broker.ts";
import { produceHandler } from "./api/00_produce.ts";
import { fetchHandler } from "./api/01_fetch.ts";
import { metadataHandler } from "./api/03_metadata.ts";
import { createServer, type KafkaServer } from "./server.ts";
import { writesOf } from "./connection.ts";

interface Rig {
  readonly broker: BrokerWorld;
  readonly server: KafkaServer;
  connect(): MemoryConnection;
  /** Lets everything that can run without time passing do so. */
  settle(): Promise<void>;
}

async function rig(properties: Record<string, string> = {}): Promise<Rig> {
  const broker = await createBrokerWorld({
    properties,
    routes: (services) => [
      bind(produceHandler(services)),
      bind(fetchHandler(services)),
      bind(metadataHandler(services)),
    ],
  });
  await broker.createTopic("t");
  await broker.log("t");
  const { services } = broker;
  const listener = { host: "127.0.0.1", port: 9092 };
  const server = createServer({ services, broker: broker.broker, listener });
  return {
    broker,
    server,
    connect() {
      const connection = createMemoryConnection();
      void server.serve(connection);
      return connection;
    },
    settle: () => broker.clock.settle(),
  };
}

function produce(broker: BrokerWorld, correlationId: number, acks = -1, size = 10): Uint8Array {
  const records = broker.batch("x".repeat(size));
  return requestFrame(produceApi, { version: 9, correlationId }, {
    acks,
    timeoutMs: 30_000,
    topicData: [{ name: "t", partitionData: [{ index: 0, records }] }],
  });
}

function fetchAll(correlationId: number, fetchOffset = 0, maxWaitMs = 0): Uint8Array {
  return requestFrame(fetchApi, { version: 11, correlationId }, {
    maxWaitMs,
    minBytes: 1,
    topics: [{ topic: "t", partitions: [{ partition: 0, fetchOffset, partitionMaxBytes: 1e7 }] }],
  });
}

function metadata(correlationId: number): Uint8Array {
  return requestFrame(metadataApi, { version: 9, correlationId }, { topics: [] });
}

function versions(correlationId: number): Uint8Array {
  return requestFrame(apiVersionsApi, { version: 3, correlationId }, {
    clientSoftwareName: "test",
    clientSoftwareVersion: "1.0",
  });
}

test("pipelined produces are appended in order, wait side by side, and are answered in order", async () => {
  const { broker, connect, settle } = await rig();
  const log = await broker.log("t");
  log.durability = "manual";
  const connection = connect();
  connection.push(concatBytes([1, 2, 3, 4, 5].map((id) => produce(broker, id))));
  await settle();
  assert.equal(log.logEndOffset, 5, "none waited for the one before");
  assert.deepEqual(connection.answers(), []);
  log.confirm();
  await settle();
  assert.deepEqual(connection.answers(), [1, 2, 3, 4, 5]);
  const bases = connection.frames().map((frame) => {
    const body = frame.subarray(5);
    return decode(produceApi.response, 9, body).responses[0]!.partitionResponses[0]!.baseOffset;
  });
  assert.deepEqual(bases, [0, 1, 2, 3, 4]);
});

test("memory of a produce goes back once it is appended, that of other requests is theirs", async () => {
  const { broker, connect, settle } = await rig();
  const log = await broker.log("t");
  log.durability = "manual";
  const connection = connect();
  const produces = concatBytes([produce(broker, 1), produce(broker, 2)]);
  connection.push(produces);
  await settle();
  assert.deepEqual(connection.answers(), []);
  assert.deepEqual(connection.released, [produces]);
  connection.push(concatBytes([produce(broker, 3), metadata(4)]));
  log.confirm();
  await settle();
  assert.equal(connection.released.length, 1);
});

test("answers that are ready together share one write", async () => {
  const { broker, connect, settle } = await rig();
  const log = await broker.log("t");
  log.durability = "manual";
  const connection = connect();
  connection.stalled = true;
  connection.push(concatBytes([metadata(1), ...[2, 3, 4].map((id) => produce(broker, id))]));
  await settle();
  log.confirm();
  await settle();
  assert.equal(connection.written.length, 1);
  connection.resume();
  await settle();
  assert.equal(connection.written.length, 2);
  assert.deepEqual(connection.answers(), [1, 2, 3, 4]);
});

test("requests of other APIs wait for the produce before them, and it for theirs", async () => {
  const { broker, connect, settle } = await rig();
  const log = await broker.log("t");
  log.durability = "manual";
  const connection = connect();
  connection.push(concatBytes([fetchAll(1, 0, 5000), produce(broker, 2), metadata(3)]));
  await settle();
  assert.deepEqual(connection.answers(), []);
  assert.equal(log.logEndOffset, 0, "the long poll holds the connection");
  await broker.clock.advance(5000);
  assert.deepEqual(connection.answers(), [1]);
  assert.equal(log.logEndOffset, 1);
  log.confirm();
  await settle();
  assert.deepEqual(connection.answers(), [1, 2, 3]);
});

test("acks=0 has no answer, and does not shift those of others", async () => {
  const { broker, connect, settle } = await rig();
  const connection = connect();
  connection.push(concatBytes([produce(broker, 1, 0), metadata(2), produce(broker, 3, 0)]));
  connection.push(versions(4));
  await settle();
  assert.deepEqual(connection.answers(), [2, 4]);
  assert.equal((await broker.log("t")).logEndOffset, 2);
});

test("ApiVersions of an unknown version is answered in version 0, anything else unknown hangs up", async () => {
  const { connect, settle } = await rig();
  const connection = connect();
  // Key 18, version 99, correlation id 7, client "x", then bytes that no version has.
  connection.push(fromHex("0000000e 0012 0063 00000007 0001 78 ffffff"));
  await settle();
  assert.deepEqual(connection.frames().map(toHex), [
    "00000007" + "0023" + "00000001" + "0012" + "0000" + "0004",
  ]);
  connection.push(versions(8));
  await settle();
  assert.deepEqual(connection.answers(), [7, 8]);
  const refused: [string, string][] = [
    ["an unknown key", "0000000b 03e7 0000 00000001 0001 78"],
    ["a version that is too new", "0000000b 0003 0063 00000001 0001 78"],
    ["Produce 2, which is listed and refused", "0000000b 0000 0002 00000001 0001 78"],
    ["a body that is cut off", "0000000b 0003 0009 00000001 0001 78"],
    ["a negative length", "ffffffff"],
    ["a length above the limit", "06400001"],
    ["an empty frame", "00000000"],
    ["a header that is cut off", "00000003 000300"],
  ];
  for (const [name, bytes] of refused) {
    const other = connect();
    other.push(fromHex(bytes));
    await settle();
    assert.ok(other.closed, name);
    assert.deepEqual(other.answers(), [], name);
  }
  assert.equal(connection.closed, false, "only the connection at fault is closed");
});

test("answers before a broken frame still go out", async () => {
  const { connect, settle } = await rig();
  const connection = connect();
  connection.push(concatBytes([metadata(1), fromHex("0000000b 03e7 0000 00000001 0001 78")]));
  connection.push(metadata(3));
  await settle();
  assert.deepEqual(connection.answers(), [1]);
  assert.ok(connection.closed);
});

test("property: no bytes crash the server, and others go on", async () => {
  const { broker, connect, settle, server } = await rig();
  const witness = connect();
  const valid = fc.constantFrom(metadata(1), fetchAll(2), produce(broker, 3), versions(4));
  const mutated = fc.tuple(valid, fc.nat(), fc.nat(255)).map(([frame, at, byte]) => {
    const copy = frame.slice();
    copy[4 + at % (copy.length - 4)] = byte;
    return copy;
  });
  const cut = fc.tuple(valid, fc.nat()).map(([frame, at]) => frame.slice(0, at % frame.length));
  const noise = fc.uint8Array({ maxLength: 64 });
  const framed = noise.map((bytes) => concatBytes([Uint8Array.of(0, 0, 0, bytes.length), bytes]));
  const chunks = fc.array(fc.oneof(noise, framed, mutated, cut, valid), { maxLength: 5 });
  let correlationId = 100;
  await fc.assert(
    fc.asyncProperty(chunks, async (sent) => {
      const connection = connect();
      for (const chunk of sent) connection.push(chunk);
      connection.push(null);
      // A client that leaves while bytes of it wait behind a long poll is noticed when the poll is over.
      for (let polls = 0; polls <= sent.length && !connection.closed; polls++) {
        correlationId += 1;
        witness.push(metadata(correlationId));
        await settle();
        await broker.clock.advance(FETCH_WAIT_MS_MAX + FRAME_GRACE_MS);
        assert.equal(witness.answers().at(-1), correlationId);
      }
      assert.ok(connection.closed);
    }),
    { numRuns: 60 },
  );
  assert.equal(server.connections, 1);
  assert.equal(broker.services.permits.produce.free, 1 << 28, "all permits are back");
});

test("without produce permits producers are not read any further; fetches and others go on", async () => {
  const { broker, connect, settle } = await rig();
  const { produce: permits } = broker.services.permits;
  await broker.log("t");
  const first = connect();
  first.push(produce(broker, 1));
  await settle();
  assert.deepEqual(first.answers(), [1]);
  assert.ok(permits.tryAcquire(permits.limit), "others hold all of them");
  const producers = [connect(), connect()];
  for (let i = 0; i < 50; i++) {
    for (const producer of producers) producer.push(produce(broker, i));
    await settle();
  }
  // The chunk that waits, and one more that is read ahead.
  for (const { reads } of producers) assert.ok(reads <= 3, `${reads} chunks were read`);
  assert.equal((await broker.log("t")).logEndOffset, 1, "nothing was admitted");
  const consumer = connect();
  consumer.push(concatBytes([metadata(1), fetchAll(2)]));
  await settle();
  assert.deepEqual(consumer.answers(), [1, 2]);
  permits.release(permits.limit);
  await settle();
  assert.equal((await broker.log("t")).logEndOffset, 101);
  for (const producer of producers) assert.equal(producer.answers().length, 50);
  assert.equal(permits.free, permits.limit);
});

test("a client that never reads stops being read, and is closed in the end", async () => {
  const { broker, connect, settle } = await rig();
  const connection = connect();
  connection.stalled = true;
  for (let i = 0; i < 10 * CONNECTION_REQUESTS_MAX; i++) connection.push(produce(broker, i));
  await settle();
  const log = await broker.log("t");
  assert.ok(log.logEndOffset <= 2 * CONNECTION_REQUESTS_MAX, `${log.logEndOffset} were admitted`);
  assert.ok(connection.reads <= 2 * CONNECTION_REQUESTS_MAX + 2);
  await broker.clock.advance(61_000);
  assert.ok(connection.closed);
  assert.equal(broker.services.permits.produce.free, 1 << 28);
});

test("a frame has to come in time, however large; pauses between frames are free", async () => {
  const { broker, connect } = await rig();
  const slow = connect();
  const frame = metadata(1);
  slow.push(frame.slice(0, 6));
  await broker.clock.advance(20_000);
  slow.push(frame.slice(6, 7));
  assert.equal(slow.closed, false);
  await broker.clock.advance(12_000);
  assert.ok(slow.closed);
  const pausing = connect();
  pausing.push(concatBytes([metadata(1), frame.slice(0, 6)]));
  await broker.clock.advance(25_000);
  pausing.push(concatBytes([frame.slice(6), frame.slice(0, 6)]));
  await broker.clock.advance(25_000);
  pausing.push(frame.slice(6));
  await broker.clock.advance(120_000);
  assert.equal(pausing.closed, false);
  assert.equal(pausing.answers().length, 3);
});

test("large frames that do not complete share one bound, and small ones go on", async () => {
  const { connect, settle } = await rig();
  const start = new Uint8Array(100);
  viewOf(start).setInt32(0, REQUEST_BYTES_MAX);
  const senders = Array.from({ length: 5 }, connect);
  for (const sender of senders) {
    for (let i = 0; i < 10; i++) {
      sender.push(start.slice(i === 0 ? 0 : 4));
      await settle();
    }
  }
  // Two of 100 MiB fit; the others are read one chunk ahead and no further.
  assert.deepEqual(senders.map(({ reads }) => reads), [11, 11, 2, 2, 2]);
  const small = connect();
  small.push(metadata(1));
  await settle();
  assert.deepEqual(small.answers(), [1]);
  senders[0]!.push(null);
  await settle();
  assert.equal(senders[2]!.reads, 11);
});

test("closing does not wait for the turn of a large frame", async () => {
  const { server, connect, settle } = await rig();
  const start = new Uint8Array(100);
  viewOf(start).setInt32(0, REQUEST_BYTES_MAX);
  for (let i = 0; i < 3; i++) connect().push(start.slice());
  await settle();
  await server.close();
  assert.equal(server.connections, 0);
});

test("the time that we do not read does not count against a frame", async () => {
  const { broker, connect } = await rig();
  const connection = connect();
  const second = metadata(2);
  connection.push(concatBytes([fetchAll(1, 0, 90_000), second.slice(0, 6)]));
  await broker.clock.advance(89_000);
  assert.equal(connection.closed, false);
  await broker.clock.advance(2_000);
  connection.push(second.slice(6));
  await broker.clock.settle();
  assert.deepEqual(connection.answers(), [1, 2]);
});

test("idle connections are closed after connections.max.idle.ms", async () => {
  const { broker, connect } = await rig();
  const connection = connect();
  await broker.clock.advance(599_000);
  connection.push(metadata(1));
  await broker.clock.advance(599_000);
  assert.equal(connection.closed, false);
  await broker.clock.advance(2_000);
  assert.ok(connection.closed);
  assert.match(broker.env.metrics.render(), /connections_closed_total\{ending="idle"\} 1/);
});

test("connections above the maximum are closed at once", async () => {
  const { connect, server } = await rig({ "max.connections": "2" });
  const all = [connect(), connect(), connect()];
  assert.deepEqual(all.map(({ closed }) => closed), [false, false, true]);
  assert.equal(server.connections, 2);
});

test("a client that leaves ends its long poll at once", async () => {
  const { broker, connect, settle, server } = await rig();
  const connection = connect();
  connection.push(fetchAll(1, 0, 60_000));
  await settle();
  connection.push(null);
  await settle();
  assert.ok(connection.closed);
  assert.equal(server.connections, 0);
  assert.equal((await broker.log("t")).listeners, 0);
});

test("closing drains: long polls answer, produces finish, nothing new starts", async () => {
  const { broker, connect, settle, server } = await rig();
  const log = await broker.log("t");
  log.durability = "manual";
  const [polling, producing, idle, refused] = [
    connect(),
    connect(),
    connect(),
    createMemoryConnection(),
  ];
  polling.push(fetchAll(1, 0, 60_000));
  producing.push(concatBytes([produce(broker, 1), produce(broker, 2)]));
  await settle();
  let closed = false;
  const closing = server.close().then(() => {
    closed = true;
  });
  producing.push(produce(broker, 3));
  await server.serve(refused);
  await settle();
  assert.ok(refused.closed && idle.closed && polling.closed);
  assert.deepEqual(polling.answers(), [1]);
  assert.equal(closed, false);
  log.confirm();
  await settle();
  await closing;
  assert.deepEqual(producing.answers(), [1, 2]);
  assert.ok(producing.closed);
});

test("closing does not wait for ever", async () => {
  const { broker, connect, settle, server } = await rig();
  (await broker.log("t")).durability = "manual";
  const connection = connect();
  connection.push(produce(broker, 1));
  await settle();
  const closing = server.close();
  await broker.clock.advance(CONNECTION_DRAIN_MS);
  assert.ok(connection.closed);
  await broker.clock.advance(HANDLERS_END_MS);
  await closing;
});

test("closing waits for handlers whose connections it has cut", async () => {
  const { broker, connect, settle, server } = await rig();
  const log = await broker.log("t");
  log.durability = "manual";
  const connection = connect();
  connection.push(produce(broker, 1));
  await settle();
  let closed = false;
  const closing = server.close().then(() => void (closed = true));
  await broker.clock.advance(CONNECTION_DRAIN_MS);
  assert.ok(connection.closed);
  assert.equal(closed, false, "its handler still runs");
  log.confirm();
  await settle();
  await closing;
});

test("property: cutting and joining keeps the bytes and the bounds", () => {
  const sizes = fc.array(fc.oneof(fc.nat(100), fc.nat(3 * WRITE_BYTES_MAX)), { maxLength: 6 });
  fc.assert(
    fc.property(sizes, (lengths) => {
      const chunks = lengths.map((length, i) => new Uint8Array(length).fill(i));
      const out = [...writesOf(chunks)];
      assert.ok(out.every(({ length }) => length > 0 && length <= WRITE_BYTES_MAX));
      const bytes = (all: readonly Uint8Array[]) =>
        all.reduce((sum, { length }) => sum + length, 0);
      assert.equal(bytes(out), bytes(chunks));
      const edges = (all: readonly Uint8Array[]) =>
        all.filter(({ length }) => length > 0).map((one) => [one[0], one.at(-1)]);
      assert.deepEqual(edges(out).at(0)?.[0], edges(chunks).at(0)?.[0]);
      assert.deepEqual(edges(out).at(-1)?.[1], edges(chunks).at(-1)?.[1]);
    }),
    { numRuns: 30 },
  );
});

test("an open connection does not keep what it has read", async () => {
  const { connect, settle } = await rig();
  const connection = connect();
  const kept: WeakRef<Uint8Array>[] = [];
  const send = async (id: number) => {
    const chunk = versions(id);
    kept.push(new WeakRef(chunk));
    connection.push(chunk);
    await settle();
  };
  for (let id = 0; id < 50; id++) await send(id);
  // The frame lies inside its chunk, so a few may still be in use.
  const gone = await collected(kept);
  assert.ok(gone > 40, `${gone} of ${kept.length} are gone`);
  assert.ok(!connection.closed);
});
