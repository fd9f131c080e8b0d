/** What a connection does before any API is looked at: sheet sections 2.1, 3.1 and the order rows of 7. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteReader, ByteWriter, concatBytes } from "../../src/lib/bytes.ts";
import { readResponseHeader } from "../../src/protocol/header.ts";
import { readResponse } from "../support/wire.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import { fetchApi } from "../../src/protocol/message/01_fetch.ts";
import { metadataApi } from "../../src/protocol/message/03_metadata.ts";
import { findCoordinatorApi } from "../../src/protocol/message/10_find_coordinator.ts";
import { apiVersionsApi } from "../../src/protocol/message/18_api_versions.ts";
import { decode, type Schema } from "../../src/protocol/schema.ts";
import { correlationIdOf, RawClient } from "./quirk_node.ts";
import { batch, fetchRequest, produceRequest, type Quirks, startQuirks } from "./quirks.ts";

const SOFTWARE = { clientSoftwareName: "quirk", clientSoftwareVersion: "1.0" };

/** A frame from its header's fields and whatever follows them. */
function frame(
  key: number,
  version: number,
  correlationId: number,
  clientId: string | null,
  rest: (writer: ByteWriter) => void = () => {},
): Uint8Array {
  const writer = new ByteWriter();
  writer.i32(0);
  writer.i16(key);
  writer.i16(version);
  writer.i32(correlationId);
  const name = new TextEncoder().encode(clientId ?? "");
  writer.i16(clientId === null ? -1 : name.length);
  writer.bytes(name);
  rest(writer);
  writer.patchI32(0, writer.length - 4);
  return writer.view();
}

function length(value: number): Uint8Array {
  const writer = new ByteWriter();
  writer.i32(value);
  return writer.view();
}

/** Answers a request, so that nobody can say the broker is just slow. */
async function assertAlive(q: Quirks): Promise<void> {
  assert.equal((await q.call(apiVersionsApi, 3, SOFTWARE)).errorCode, 0);
}

test("a negative frame length closes the connection", async () => {
  const q = await startQuirks();
  q.client.push(length(-1));
  await q.client.closed;
  assert.equal(q.client.unread, 0);
});

test("an empty frame closes the connection", async () => {
  const q = await startQuirks();
  q.client.push(length(0));
  await q.client.closed;
});

test("a frame above socket.request.max.bytes closes the connection, one at the limit does not", async () => {
  const q = await startQuirks({ "socket.request.max.bytes": "2000" });
  const other = q.node.connect();
  other.push(length(2001));
  await other.closed;
  q.client.push(frame(3, 1, 7, "c", (body) => {
    body.i32(1);
    body.i16(1970);
    body.bytes(new Uint8Array(1970).fill(97));
  }));
  assert.equal(correlationIdOf(await q.client.next()), 7);
});

test("the limit is 100 MiB by default", async () => {
  const q = await startQuirks();
  q.client.push(length(104_857_601));
  await q.client.closed;
  const other = q.node.connect();
  other.push(length(104_857_600));
  await q.node.clock.settle();
  assert.equal(other.isClosed, false);
});

test("a null client id is legal, in classic and in flexible headers", async () => {
  const q = await startQuirks();
  q.client.push(frame(3, 1, 1, null, (body) => body.i32(0)));
  assert.equal(correlationIdOf(await q.client.next()), 1);
  q.client.push(frame(3, 9, 2, null, (body) => {
    body.uvarint(0);
    body.uvarint(1);
    for (let flag = 0; flag < 3; flag++) body.u8(0);
    body.uvarint(0);
  }));
  assert.equal(correlationIdOf(await q.client.next()), 2);
});

test("tagged fields that nobody knows are skipped, in header and body", async () => {
  const q = await startQuirks();
  const unknownTag = (body: ByteWriter) => {
    body.uvarint(1);
    body.uvarint(99);
    body.uvarint(2);
    body.bytes(Uint8Array.of(1, 2));
  };
  q.client.push(frame(3, 9, 5, "c", (body) => {
    unknownTag(body);
    body.uvarint(1);
    for (let flag = 0; flag < 3; flag++) body.u8(0);
    unknownTag(body);
  }));
  assert.equal(correlationIdOf(await q.client.next()), 5);
});

test("response headers are tagged in flexible versions only, and never for ApiVersions", async () => {
  const q = await startQuirks();
  const inspect = async <R, In>(
    id: number,
    tagged: boolean,
    schema: Schema<R, In>,
    version: number,
  ) => {
    const reader = new ByteReader(await q.client.next());
    readResponseHeader(reader, id, tagged);
    decode(schema, version, reader);
  };
  for (const [version, tagged] of [[8, false], [9, true]] as const) {
    const id = q.client.post(metadataApi, version, { topics: [] });
    await inspect(id, tagged, metadataApi.response, version);
  }
  for (const version of [2, 3, 4]) {
    const id = q.client.post(apiVersionsApi, version, SOFTWARE);
    await inspect(id, false, apiVersionsApi.response, version);
  }
});

test("an unknown API key closes the connection without an answer", async () => {
  const q = await startQuirks();
  for (const key of [-1, 4, 7, 17, 24, 36, 68, 71, 93, 999]) {
    const client = q.node.connect();
    client.push(frame(key, 0, 1, "c"));
    await client.closed;
    assert.equal(client.unread, 0);
  }
  await assertAlive(q);
});

test("a version outside the range closes the connection without an answer", async () => {
  const q = await startQuirks();
  for (const [key, version] of [[3, 14], [3, -1], [1, 3], [1, 19], [2, 0], [8, 1], [32, 0]]) {
    const client = q.node.connect();
    client.push(frame(key!, version!, 1, "c"));
    await client.closed;
    assert.equal(client.unread, 0);
  }
});

test("Produce 0 to 2 is listed and refused by closing, as Kafka 4 does", async () => {
  const q = await startQuirks();
  for (const version of [0, 1, 2]) {
    const client = q.node.connect();
    client.push(frame(0, version, 1, "c"));
    await client.closed;
    assert.equal(client.unread, 0);
  }
});

test("a body that does not parse closes the connection; others go on", async () => {
  const q = await startQuirks();
  const cut = q.node.connect();
  cut.push(frame(3, 1, 1, "c", (body) => body.i32(5)));
  await cut.closed;
  await assertAlive(q);
});

test("bytes after a body are ignored, as Kafka does: librdkafka leaves some", async () => {
  const q = await startQuirks();
  const surplus = q.node.connect();
  surplus.push(frame(3, 1, 1, "c", (body) => {
    body.i32(0);
    body.u8(1);
  }));
  const answer = readResponse(metadataApi, { version: 1, correlationId: 1 }, await surplus.next());
  assert.equal(answer.brokers.length, 1);
  assert.ok(!surplus.isClosed);
});

test("ApiVersions of an unknown version is answered in layout 0 with key 18 alone (KIP-511)", async () => {
  const q = await startQuirks();
  for (const version of [5, 99, 32_767]) {
    q.client.push(frame(18, version, 3, "c", (body) => body.bytes(Uint8Array.of(9, 9, 9, 9))));
    const answer = readResponse(
      apiVersionsApi,
      { version: 0, correlationId: 3 },
      await q.client.next(),
    );
    assert.equal(errorName(answer.errorCode), "UNSUPPORTED_VERSION");
    assert.deepEqual(answer.apiKeys, [{ apiKey: 18, minVersion: 0, maxVersion: 4 }]);
  }
  await assertAlive(q);
});

test("ApiVersions with a bad software name is INVALID_REQUEST and keeps the connection", async () => {
  const q = await startQuirks();
  const bad = ["", "-a", "a-", ".a", "a.", "a b", "a_b", "ä"];
  for (const name of bad) {
    for (
      const request of [
        { clientSoftwareName: name, clientSoftwareVersion: "1" },
        { clientSoftwareName: "a", clientSoftwareVersion: name },
      ]
    ) {
      const { errorCode } = await q.call(apiVersionsApi, 3, request);
      assert.equal(errorName(errorCode), "INVALID_REQUEST", name);
    }
  }
  for (const name of ["a", "a-b.c", "librdkafka", "1.2.3-rc1", "A"]) {
    const request = { clientSoftwareName: name, clientSoftwareVersion: name };
    assert.equal((await q.call(apiVersionsApi, 4, request)).errorCode, 0, name);
  }
});

test("ApiVersions may come at any time and again", async () => {
  const q = await startQuirks();
  await assertAlive(q);
  await q.metadata([]);
  await assertAlive(q);
});

test("answers come in the order of the requests, whatever each of them takes", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const first = batch(["a"]);
  const ids = [
    q.client.post(produceApi, 9, produceRequest("t", first)),
    q.client.post(metadataApi, 9, { topics: [] }),
    q.client.post(fetchApi, 11, fetchRequest("t", 0)),
    q.client.post(produceApi, 9, produceRequest("t", batch(["b"]))),
    q.client.post(findCoordinatorApi, 3, { key: "g" }),
    q.client.post(apiVersionsApi, 3, SOFTWARE),
  ];
  const answered: number[] = [];
  for (const _ of ids) answered.push(correlationIdOf(await q.client.next()));
  assert.deepEqual(answered, ids);
});

test("a long poll holds what comes behind it on the same connection only", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const poll = q.client.post(fetchApi, 11, fetchRequest("t", 0, { maxWaitMs: 1000 }));
  const behind = q.client.post(metadataApi, 9, { topics: [] });
  await q.node.clock.settle();
  assert.equal(q.client.unread, 0);
  assert.equal((await q.node.connect().call(metadataApi, 9, { topics: [] })).errorCode, 0);
  await q.node.clock.advance(1000);
  assert.equal(correlationIdOf(await q.client.next()), poll);
  assert.equal(correlationIdOf(await q.client.next()), behind);
});

test("five produce requests in flight are applied in order, in frames cut anywhere", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const recorder = new RawClient();
  const sent: Uint8Array[] = [];
  recorder.push = (bytes) => void (bytes !== null && sent.push(bytes));
  for (let sequence = 0; sequence < 5; sequence++) {
    const records = batch([`${sequence}`], { producer: [7, 0, sequence] });
    recorder.post(produceApi, 9, produceRequest("t", records));
  }
  const bytes = concatBytes(sent);
  for (let at = 0; at < bytes.length; at += 50) q.client.push(bytes.slice(at, at + 50));
  for (let id = 1; id <= 5; id++) {
    const answer = readResponse(
      produceApi,
      { version: 9, correlationId: id },
      await q.client.next(),
    );
    const { errorCode, baseOffset } = answer.responses[0]!.partitionResponses[0]!;
    assert.deepEqual([errorName(errorCode), baseOffset], ["NONE", id - 1]);
  }
});

test("acks=0 gets no answer, so later correlation ids do not shift", async () => {
  const q = await startQuirks();
  await q.topic("t");
  q.client.post(produceApi, 9, produceRequest("t", batch(["a"]), { acks: 0 }));
  const next = q.client.post(metadataApi, 9, { topics: [] });
  assert.equal(correlationIdOf(await q.client.next()), next);
  assert.equal(q.client.unread, 0);
});

test("acks=0 with a failed partition closes the connection", async () => {
  const q = await startQuirks();
  await q.topic("t");
  q.client.post(produceApi, 9, produceRequest("t", batch(["a"]), { acks: 0, partition: 9 }));
  await q.client.closed;
});

test("a request whose entries all fail is answered normally and at once", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const waiting = fetchRequest("nope", 0, { maxWaitMs: 10_000 });
  const fetched = await q.call(fetchApi, 11, waiting);
  assert.equal(
    errorName(fetched.responses[0]!.partitions[0]!.errorCode),
    "UNKNOWN_TOPIC_OR_PARTITION",
  );
  assert.equal((await q.produce("nope", batch(["a"]))).error, "UNKNOWN_TOPIC_OR_PARTITION");
});

test("a client that leaves in a long poll frees its connection", async () => {
  const q = await startQuirks();
  await q.topic("t");
  q.client.post(fetchApi, 11, fetchRequest("t", 0, { maxWaitMs: 300_000 }));
  await q.node.clock.settle();
  q.client.push(null);
  await q.client.closed;
});

test("an idle connection is closed after connections.max.idle.ms", async () => {
  const q = await startQuirks({ "connections.max.idle.ms": "5000" });
  await assertAlive(q);
  await q.node.clock.advance(5001);
  await q.client.closed;
});
