/** The advertised list: sheet sections 1 (rules), 2.2-2.15 (what each client looks for), 7 (version list). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { apiVersionsApi } from "../../src/protocol/message/18_api_versions.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { PLAUSIBLE } from "./plausible.ts";
import { type Quirks, startQuirks } from "./quirks.ts";

const SOFTWARE = { clientSoftwareName: "quirk", clientSoftwareVersion: "1.0" };

type Range = readonly [min: number, max: number];

/** Kafka 4.2's stable ranges of what is served; Produce from 0. */
const EXPECTED: ReadonlyMap<number, Range> = new Map([
  [0, [0, 13]],
  [1, [4, 18]],
  [2, [1, 11]],
  [3, [0, 13]],
  [8, [2, 10]],
  [9, [1, 10]],
  [10, [0, 6]],
  [11, [0, 9]],
  [12, [0, 4]],
  [13, [0, 5]],
  [14, [0, 5]],
  [15, [0, 6]],
  [16, [0, 5]],
  [18, [0, 4]],
  [19, [2, 7]],
  [20, [1, 6]],
  [21, [0, 2]],
  [22, [0, 5]],
  [23, [2, 4]],
  [24, [0, 5]],
  [25, [0, 4]],
  [26, [0, 5]],
  [27, [1, 2]],
  [28, [0, 5]],
  [32, [1, 4]],
  [33, [0, 2]],
  [35, [1, 4]],
  [37, [0, 3]],
  [42, [0, 2]],
  [43, [0, 2]],
  [44, [0, 1]],
  [45, [0, 1]],
  [46, [0, 0]],
  [47, [0, 0]],
  [48, [0, 1]],
  [49, [0, 1]],
  [57, [0, 2]],
  [60, [0, 2]],
  [61, [0, 0]],
  [65, [0, 0]],
  [66, [0, 2]],
  [68, [0, 1]],
  [69, [0, 1]],
  [74, [0, 1]],
  [75, [0, 0]],
  [76, [1, 1]],
  [77, [1, 1]],
  [78, [1, 2]],
  [79, [1, 2]],
  [90, [0, 1]],
  [91, [0, 0]],
  [92, [0, 0]],
]);

async function listed(q: Quirks, version = 3): Promise<Map<number, Range>> {
  const { errorCode, apiKeys } = await q.call(apiVersionsApi, version, SOFTWARE);
  assert.equal(errorName(errorCode), "NONE");
  return new Map(
    apiKeys.map(({ apiKey, minVersion, maxVersion }) => [apiKey, [minVersion, maxVersion]]),
  );
}

function covers(range: Range | undefined, version: number): boolean {
  return range !== undefined && range[0] <= version && version <= range[1];
}

test("the list is exactly what is served, in every version of ApiVersions", async () => {
  const q = await startQuirks();
  for (let version = 0; version <= 4; version++) {
    assert.deepEqual(await listed(q, version), EXPECTED, `ApiVersions ${version}`);
  }
});

test("no minimum lies above its maximum (aiokafka and rskafka assert it)", async () => {
  for (const [min, max] of (await listed(await startQuirks())).values()) assert.ok(min <= max);
});

test("there is a plausible request for every listed API", async () => {
  const keys = [...(await listed(await startQuirks())).keys()];
  assert.deepEqual(keys, PLAUSIBLE.map(({ key }) => key));
});

for (const one of PLAUSIBLE) {
  test(`${one.name}: every listed version is answered, decodes to the last byte, keeps the connection`, async () => {
    const q = await startQuirks();
    const topicId = await q.topic("t");
    const range = (await listed(q)).get(one.key);
    assert.ok(range !== undefined);
    // Produce 0-2 is listed for old librdkafka and hung up on; connection.test.ts has that.
    const from = one.key === 0 ? 3 : range[0];
    for (let version = from; version <= range[1]; version++) {
      const sent = one.send({ client: q.client, topic: "t", topicId, version });
      await q.node.clock.advance(0);
      const answer = await sent;
      const text = JSON.stringify(answer);
      assert.doesNotMatch(
        text,
        /"errorCode":-1\b/,
        `${one.name} ${version} answers an unknown error`,
      );
    }
    assert.equal((await listed(q)).size, EXPECTED.size);
  });
}

test("what is not listed is not answered either", async () => {
  const q = await startQuirks();
  for (let key = 0; key <= 92; key++) {
    if (EXPECTED.has(key)) continue;
    const client = q.node.connect();
    client.push(Uint8Array.of(0, 0, 0, 10, 0, key, 0, 0, 0, 0, 0, 1, 255, 255));
    await client.closed;
    assert.equal(client.unread, 0, `key ${key}`);
  }
});

test("telemetry is not listed, so clients stay silent", async () => {
  const keys = await listed(await startQuirks());
  for (const key of [71, 72]) assert.equal(keys.has(key), false);
});

test("SASL and ACLs are absent rather than stubs", async () => {
  const keys = await listed(await startQuirks());
  for (const key of [17, 29, 30, 31, 36]) {
    assert.equal(keys.has(key), false, `key ${key}`);
  }
});

/** Per client, one version of each API that it cannot do without: section 2.14 and the tables before it. */
const CLIENTS: Readonly<Record<string, Readonly<Record<number, number | readonly number[]>>>> = {
  "librdkafka 2.15": {
    0: 10,
    1: 16,
    2: 7,
    3: 13,
    8: 9,
    9: 9,
    10: 2,
    11: 5,
    12: 3,
    13: 1,
    14: 3,
    15: 5,
    16: 4,
    18: 3,
    19: 4,
    20: 4,
    22: 4,
    23: 2,
    32: 1,
    37: 2,
    42: 2,
    44: 1,
  },
  "librdkafka before 2.11.1": { 0: [0, 2], 11: 0 },
  "Java 3.x and 4.x": { 0: 13, 1: 18, 2: 11, 3: 13, 8: 9, 9: 9, 23: 3, 60: 2, 46: 0 },
  "Java 4.x floor": { 0: 3, 1: 4, 2: 1, 8: 2, 9: 1, 19: 2, 32: 1 },
  kafkajs: {
    0: 7,
    1: 11,
    2: 3,
    3: 6,
    8: 5,
    9: 4,
    10: 2,
    11: 5,
    12: 3,
    13: 3,
    14: 3,
    15: 2,
    16: 2,
    18: [0, 1, 2],
    19: 3,
    20: 1,
    22: 1,
    32: 2,
    37: 1,
    42: 1,
    46: 0,
  },
  platformatic: {
    18: 3,
    0: [7, 11],
    1: [12, 17],
    3: [9, 12],
    2: [5, 9],
    10: [4, 6],
    8: [8, 9],
    9: [8, 9],
    11: [6, 9],
    14: [4, 5],
    12: 4,
    13: [4, 5],
    15: 5,
    16: [4, 5],
    19: 7,
    20: 6,
    37: [1, 3],
    42: 2,
    22: [3, 5],
    32: [2, 4],
    44: 1,
    23: 4,
  },
  "franz-go": { 0: 13, 1: 18, 18: 4, 3: 13 },
  sarama: { 0: 10, 1: 12, 3: 11, 2: 6, 8: 8, 9: 8, 11: 8, 14: 5, 12: 4, 13: 5, 32: 4, 18: 4 },
  "kafka-go": {
    10: 0,
    12: 0,
    11: [1, 2],
    13: 0,
    14: 0,
    16: 1,
    8: 2,
    9: 1,
    2: 1,
    3: [1, 6],
    19: 2,
    20: 1,
    0: [3, 7],
    1: [5, 10],
  },
  "kafka-python": { 1: 12, 0: 9, 11: 7, 8: 8, 9: 8, 2: 10 },
  aiokafka: { 0: 8, 1: 11, 3: 5, 2: 5, 8: 3, 9: 3, 10: 1, 11: [0, 1, 2, 5], 14: [0, 1, 3], 22: 0 },
  rskafka: { 18: [0, 3], 1: 4, 0: [3, 7], 2: [1, 3], 3: [0, 4], 19: 5, 20: 5 },
};

for (const [client, needs] of Object.entries(CLIENTS)) {
  test(`${client} finds the versions that it has`, async () => {
    const keys = await listed(await startQuirks());
    for (const [key, versions] of Object.entries(needs)) {
      for (const version of [versions].flat()) {
        assert.ok(covers(keys.get(Number(key)), version), `key ${key} version ${version}`);
      }
    }
  });
}

test("librdkafka switches its features on: batches v2, zstd, lz4, idempotence, groups", async () => {
  const keys = await listed(await startQuirks());
  const most = (key: number) => keys.get(key)?.[1] ?? -1;
  assert.ok(most(0) >= 7 && most(1) >= 10, "zstd");
  assert.ok(most(0) >= 3 && most(1) >= 4, "record batch v2");
  assert.ok(keys.has(22), "idempotent producer; epoch recovery from version 3");
  assert.ok(most(22) >= 3);
  assert.ok([8, 9, 10, 11, 12, 13, 14].every((key) => keys.has(key)), "balanced consumer, lz4");
});

/** Section 2.15 without the roles that need SASL. */
const ROLES: Readonly<Record<string, readonly number[]>> = {
  "plain producer": [18, 3, 0],
  "idempotent producer": [18, 3, 0, 22],
  "transactional producer": [18, 3, 0, 22, 10, 24, 25, 26, 28],
  "consumer with assigned partitions": [18, 3, 2, 1, 23],
  "classic group consumer": [18, 3, 2, 1, 23, 10, 11, 14, 12, 13, 9, 8],
  "KIP-848 consumer": [18, 3, 2, 1, 23, 10, 68, 9, 8],
  "Connect, distributed": [10, 11, 14, 12, 13, 9, 8, 19, 3, 32, 2, 0, 1],
  "Schema Registry": [10, 11, 14, 12, 13, 60, 19, 32, 0, 1, 2],
};

for (const [role, needed] of Object.entries(ROLES)) {
  test(`${role}: its APIs are all listed`, async () => {
    const keys = await listed(await startQuirks());
    assert.deepEqual(needed.filter((key) => !keys.has(key)), []);
  });
}

test("transactions v2 is finalized, by a feature whose epoch is not -1 and never goes down", async () => {
  const q = await startQuirks();
  let last = 0;
  for (const version of [3, 4, 3]) {
    const answer = await q.call(apiVersionsApi, version, SOFTWARE);
    assert.ok(answer.finalizedFeaturesEpoch >= last);
    last = answer.finalizedFeaturesEpoch;
    const found = answer.finalizedFeatures.find(({ name }) => name === "transaction.version");
    assert.deepEqual([found?.maxVersionLevel, found?.minVersionLevel], [2, 2]);
    if (version < 4) {
      assert.ok(answer.supportedFeatures.every(({ minVersion }) => minVersion > 0), "KAFKA-17492");
    }
  }
});
