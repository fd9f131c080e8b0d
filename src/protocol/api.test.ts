/** Whole frames: headers, requests as other clients' encoders write them, answers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readResponse, requestFrame } from "../../tests/support/wire.ts";
import { ByteReader, concatBytes, DecodeError, fromHex, toHex } from "../lib/bytes.ts";
import { REQUEST_ELEMENTS_MAX } from "../lib/limits.ts";
import { type Api, readRequest, responseFrame, supports } from "./api.ts";
import { APIS, findApi } from "./api_key.ts";
import { readRequestHeader } from "./header.ts";
import { produceApi } from "./message/00_produce.ts";
import { fetchRequest } from "./message/01_fetch.ts";
import { metadataApi, metadataRequest } from "./message/03_metadata.ts";
import { heartbeatApi } from "./message/12_heartbeat.ts";
import { apiVersionsApi } from "./message/18_api_versions.ts";
import { deleteTopicsApi } from "./message/20_delete_topics.ts";
import { decode } from "./schema.ts";

/** Written by kafkajs 2.2.4, length prefix included. */
const KAFKAJS = {
  metadata6: "0000001a000300060000000700036b6a730000000100066f726465727300",
  fetch11:
    "0000005a0001000b0000000700036b6a73ffffffff000001f400000001001000000100000000ffffffff0000000100066f72646572730000000100000003000000040000011f71fb04cbffffffffffffffff000100000000000000027231",
  join5:
    "0000003f000b00050000000700036b6a73000167000075300000ea6000036d2d31ffff0008636f6e73756d657200000001000a526f756e64526f62696e000000020001",
  commit5:
    "00000037000800050000000700036b6a730001670000000200036d2d310000000100066f72646572730000000100000000000000000000002affff",
  apiVersions2: "0000000d001200020000000700036b6a73",
};

/** Request bodies written by @platformatic/kafka 2.12.1. */
const PLATFORMATIC = {
  metadata12: "0200000000000000000000000000000000076f726465727300010000",
  fetch17:
    "000001f400000001001000000100000000ffffffff0212345678123412341234123456789abc0200000003000000040000011f71fb04cbffffffffffffffffffffffff0001000000000103723100",
};

function readFrame(hex: string): { readonly api: Api; readonly request: unknown } {
  const frame = fromHex(hex);
  const reader = new ByteReader(frame.subarray(4));
  const header = readRequestHeader(reader);
  assert.equal(header.correlationId, 7);
  assert.equal(header.clientId, "kjs");
  const api = findApi(header.apiKey);
  assert.ok(api !== undefined && supports(api, header.apiVersion));
  const request = readRequest(api, header, reader);
  const call = { version: header.apiVersion, correlationId: 7, clientId: "kjs" };
  assert.equal(toHex(requestFrame(api, call, request)), hex);
  return { api, request };
}

test("librdkafka's Metadata request for all topics, with the bytes that it leaves behind", () => {
  // Written by librdkafka 2.16.0: four bytes for a null list that takes one.
  const frame = fromHex("0003000d00000003000772646b61666b610000000000010000");
  const reader = new ByteReader(frame);
  const request = readRequest(metadataApi, readRequestHeader(reader), reader);
  assert.equal(request.topics, null);
  assert.equal(reader.remaining, 3);
});

test("requests of kafkajs", () => {
  assert.deepEqual(readFrame(KAFKAJS.metadata6).request, {
    topics: [{ topicId: "0".repeat(32), name: "orders" }],
    allowAutoTopicCreation: false,
    includeClusterAuthorizedOperations: false,
    includeTopicAuthorizedOperations: false,
  });
  assert.deepEqual(readFrame(KAFKAJS.fetch11).request, {
    clusterId: null,
    replicaId: -1,
    replicaState: { replicaId: -1, replicaEpoch: -1 },
    maxWaitMs: 500,
    minBytes: 1,
    maxBytes: 1_048_576,
    isolationLevel: 1,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [{
      topic: "orders",
      topicId: "0".repeat(32),
      partitions: [{
        partition: 3,
        currentLeaderEpoch: 4,
        fetchOffset: 1_234_567_890_123,
        lastFetchedEpoch: -1,
        logStartOffset: -1,
        partitionMaxBytes: 65_536,
        replicaDirectoryId: "0".repeat(32),
        highWatermark: Number.MAX_SAFE_INTEGER,
      }],
    }],
    forgottenTopicsData: [],
    rackId: "r1",
  });
  assert.deepEqual(readFrame(KAFKAJS.join5).request, {
    groupId: "g",
    sessionTimeoutMs: 30_000,
    rebalanceTimeoutMs: 60_000,
    memberId: "m-1",
    groupInstanceId: null,
    protocolType: "consumer",
    protocols: [{ name: "RoundRobin", metadata: fromHex("0001") }],
    reason: null,
  });
  assert.deepEqual(readFrame(KAFKAJS.commit5).request, {
    groupId: "g",
    generationIdOrMemberEpoch: 2,
    memberId: "m-1",
    groupInstanceId: null,
    retentionTimeMs: -1,
    topics: [{
      name: "orders",
      topicId: "0".repeat(32),
      partitions: [{
        partitionIndex: 0,
        committedOffset: 42,
        committedLeaderEpoch: -1,
        committedMetadata: null,
      }],
    }],
  });
  assert.equal(readFrame(KAFKAJS.apiVersions2).api.name, "ApiVersions");
});

test("flexible requests of @platformatic/kafka", () => {
  const metadata = decode(metadataRequest, 12, fromHex(PLATFORMATIC.metadata12));
  assert.deepEqual(metadata.topics, [{ topicId: "0".repeat(32), name: "orders" }]);
  const fetch = decode(fetchRequest, 17, fromHex(PLATFORMATIC.fetch17));
  assert.equal(fetch.topics[0]?.topicId, "12345678123412341234123456789abc");
  assert.equal(fetch.topics[0]?.partitions[0]?.fetchOffset, 1_234_567_890_123);
  assert.equal(fetch.rackId, "r1");
});

test("header 2: classic client id, then a tagged section that is skipped", () => {
  const frame = fromHex("0003 0009 00000005 ffff 01 05 02 aabb 00 01 00 00 00");
  const reader = new ByteReader(frame);
  const header = readRequestHeader(reader);
  assert.deepEqual(header, { apiKey: 3, apiVersion: 9, correlationId: 5, clientId: "" });
  assert.equal(readRequest(metadataApi, header, reader).topics, null);
  for (let length = 0; length < frame.length; length++) {
    const cut = new ByteReader(frame.subarray(0, length));
    assert.throws(() => readRequest(metadataApi, readRequestHeader(cut), cut), DecodeError);
  }
});

test("answers: the header is tagged in flexible versions, for ApiVersions never", () => {
  const heartbeat = { errorCode: 27 };
  const classic = concatBytes(responseFrame(heartbeatApi, 3, 9, heartbeat));
  assert.equal(toHex(classic), "0000000a 00000009 00000000 001b".replaceAll(" ", ""));
  const flexible = concatBytes(responseFrame(heartbeatApi, 4, 9, heartbeat));
  assert.equal(toHex(flexible), "0000000c 00000009 00 00000000 001b 00".replaceAll(" ", ""));
  const versions = { errorCode: 0, apiKeys: [], throttleTimeMs: 1 };
  const answer = concatBytes(responseFrame(apiVersionsApi, 3, 9, versions));
  assert.equal(toHex(answer), "0000000c 00000009 0000 01 00000001 00".replaceAll(" ", ""));
});

test("an unknown ApiVersions version is answered in the layout of version 0 (KIP-511)", () => {
  const apiKeys = [{ apiKey: 18, minVersion: 0, maxVersion: 4 }];
  const answer = concatBytes(responseFrame(apiVersionsApi, 0, 1, { errorCode: 35, apiKeys }));
  assert.equal(
    toHex(answer),
    "00000010 00000001 0023 00000001 0012 0000 0004".replaceAll(" ", ""),
  );
});

test("answers read back on the client's side", () => {
  for (const version of [3, 4]) {
    const call = { version, correlationId: 3 };
    const frame = concatBytes(responseFrame(heartbeatApi, version, 3, { errorCode: 25 }));
    assert.equal(readResponse(heartbeatApi, call, frame.subarray(4)).errorCode, 25);
    const wrong = { version, correlationId: 4 };
    assert.throws(() => readResponse(heartbeatApi, wrong, frame.subarray(4)), DecodeError);
  }
});

test("the registry", () => {
  const keys = APIS.map((api) => api.key);
  assert.deepEqual(
    keys,
    keys.toSorted((a, b) => a - b),
    "what is served is listed in tests/quirks",
  );
  assert.equal(new Set(keys).size, keys.length);
  assert.equal(findApi(4), undefined);
  assert.equal(findApi(0), produceApi);
  assert.equal(produceApi.advertisedMin, 0);
  assert.equal(supports(produceApi, 2), false);
  for (const api of APIS) assert.ok(api.advertisedMin <= api.min && api.min <= api.max, api.name);
});

function readBack(frame: Uint8Array, of: Api): unknown {
  const reader = new ByteReader(frame.subarray(4));
  return readRequest(of, readRequestHeader(reader), reader);
}

test("a request may hold as many elements as REQUEST_ELEMENTS_MAX, in all its arrays together", () => {
  const header = { version: 4, correlationId: 1, clientId: "" };
  const metadata = (count: number) =>
    requestFrame(metadataApi, header, {
      topics: Array.from({ length: count }, () => ({ name: "" })),
      allowAutoTopicCreation: false,
    });
  readBack(metadata(REQUEST_ELEMENTS_MAX), metadataApi);
  assert.throws(() => readBack(metadata(REQUEST_ELEMENTS_MAX + 1), metadataApi), DecodeError);
  const produce = (topics: number, partitions: number) =>
    requestFrame(produceApi, { ...header, version: 7 }, {
      acks: 1,
      timeoutMs: 1,
      topicData: Array.from({ length: topics }, () => ({
        name: "t",
        partitionData: Array.from({ length: partitions }, (_, index) => ({ index, records: null })),
      })),
    });
  readBack(produce(100, 1_000), produceApi);
  assert.throws(() => readBack(produce(100, 1_200), produceApi), DecodeError);
});

test("a request with a tagged field per few bytes does not decode", () => {
  const header = { version: 6, correlationId: 1, clientId: "" };
  const body = requestFrame(deleteTopicsApi, header, { topics: [], timeoutMs: 1 });
  const tags = new Uint8Array(4 + 2 * 200_000);
  for (let at = 4; at < tags.length; at += 2) tags[at] = 5;
  tags.set([0xc0, 0x9a, 0x0c], 1);
  const many = concatBytes([body.subarray(0, -1), tags.subarray(1)]);
  assert.throws(() => readBack(many, deleteTopicsApi), /too many elements/);
});
