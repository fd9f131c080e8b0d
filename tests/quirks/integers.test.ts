/**
 * 64-bit integers of requests (the numbers row of sheet section 7, design 3a): JavaScript has no place for
 * all of them, and none may cost a client its connection.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Type } from "../../src/protocol/codec.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { offsetCommitApi } from "../../src/protocol/message/08_offset_commit.ts";
import { offsetFetchApi } from "../../src/protocol/message/09_offset_fetch.ts";
import { apiVersionsApi } from "../../src/protocol/message/18_api_versions.ts";
import { listOffsetsApi } from "../../src/protocol/message/02_list_offsets.ts";
import { int64 } from "../../src/protocol/primitive.ts";
import { PLAUSIBLE } from "./plausible.ts";
import { startQuirks } from "./quirks.ts";

const LONG_MAX = 2n ** 63n - 1n;
const LONG_MIN = -(2n ** 63n);
const SAFE = 2n ** 53n;
const EXTREMES = [LONG_MAX, LONG_MIN, LONG_MIN + 1n, SAFE, SAFE - 1n, 1n - SAFE, -SAFE, -2n, -7n];

/** Paths of fields that do not decode when they are out of the safe range. */
function refusing(type: Type, path: string): string[] {
  if (type === int64) return [path];
  if (type.element !== undefined) return refusing(type.element, `${path}[]`);
  return Object.entries(type.fields ?? {}).flatMap(([name, field]) =>
    refusing(field.type, `${path}.${name}`)
  );
}

test("no request has a 64-bit field that hangs up instead of being answered", () => {
  assert.deepEqual(PLAUSIBLE.flatMap(({ name, request }) => refusing(request, name)), []);
});

test("extremes in every 64-bit field of every advertised API are answered, and the connection goes on", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t");
  const software = { clientSoftwareName: "quirk", clientSoftwareVersion: "1" };
  const { apiKeys } = await q.call(apiVersionsApi, 3, software);
  const seen = new Set<string>();
  for (const { apiKey, minVersion, maxVersion } of apiKeys) {
    const one = PLAUSIBLE.find(({ key }) => key === apiKey)!;
    for (let version = apiKey === 0 ? 3 : minVersion; version <= maxVersion; version++) {
      for (const value of EXTREMES) {
        const place = { client: q.client, topic: "t", topicId, version };
        const sent = one.sendWith(place, value);
        if (sent === null) continue;
        await q.node.clock.advance(0);
        const text = JSON.stringify(await sent);
        assert.doesNotMatch(text, /"errorCode":-1\b/, `${one.name} ${version} ${value}`);
        seen.add(one.name);
      }
    }
  }
  assert.deepEqual([...seen], [
    "Fetch",
    "ListOffsets",
    "OffsetCommit",
    "DeleteRecords",
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "WriteTxnMarkers",
    "TxnOffsetCommit",
    "ListTransactions",
    "ShareAcknowledge",
    "AlterShareGroupOffsets",
  ]);
  assert.equal(q.client.isClosed, false);
});

test("an offset past 2^53 is refused for its partition, others of the commit are stored", async () => {
  const q = await startQuirks();
  await q.topic("t", 4);
  const offsets = [7, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, -1];
  const answer = await q.call(offsetCommitApi, 9, {
    groupId: "g",
    memberId: "",
    topics: [{
      name: "t",
      partitions: offsets.map((committedOffset, partitionIndex) => ({
        partitionIndex,
        committedOffset,
        committedLeaderEpoch: -5,
        committedMetadata: "",
      })),
    }],
  });
  assert.deepEqual(
    answer.topics[0]!.partitions.map(({ errorCode }) => errorName(errorCode)),
    ["NONE", "INVALID_COMMIT_OFFSET_SIZE", "INVALID_COMMIT_OFFSET_SIZE", "NONE"],
  );
  const fetched = await q.call(offsetFetchApi, 7, {
    groupId: "g",
    topics: [{ name: "t", partitionIndexes: [0, 1, 2, 3] }],
  });
  const stored = fetched.topics[0]!.partitions;
  assert.deepEqual(stored.map(({ committedOffset }) => committedOffset), [7, -1, -1, -1]);
});

test("a time past every record finds none, a negative one that nobody knows is UNSUPPORTED_VERSION", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const at = async (timestamp: number) => {
    const answer = await q.call(listOffsetsApi, 7, {
      replicaId: -1,
      isolationLevel: 0,
      topics: [{ name: "t", partitions: [{ partitionIndex: 0, timestamp }] }],
    });
    const { errorCode, offset } = answer.topics[0]!.partitions[0]!;
    return errorCode === 0 ? offset : errorName(errorCode);
  };
  assert.equal(await at(Number.MAX_SAFE_INTEGER), -1);
  assert.equal(await at(Number.MIN_SAFE_INTEGER), "UNSUPPORTED_VERSION");
});
