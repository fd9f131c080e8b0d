/** A share partition whose writes wait, fail and are refused as the test says. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { createHarness, DEFAULT_LOG_CONFIG } from "../../../tests/support/partition_harness.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { FaultError } from "../../lib/errors.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import { assignOffsets, buildBatch } from "../../protocol/record_batch.ts";
import { ShardMemory } from "../shard/shard_memory.ts";
import { SharePartition } from "./share_partition.ts";
import type { ShareStateChange } from "./share_state.ts";
import { ACCEPT, RELEASE, ShareWindow } from "./window.ts";

const LOCK_MS = 1_000;

async function start() {
  const harness = await createHarness(DEFAULT_LOG_CONFIG);
  const clock = createFakeClock();
  const env = testEnv({ clock });
  const written: ShareStateChange[] = [];
  const outcomes: ((outcome: ErrorName | null | FaultError) => void)[] = [];
  const told: string[] = [];
  const inFlight = new ShardMemory(100);
  let isRefused = false;
  for (let at = 0; at < 2; at++) {
    harness.log.append(buildBatch({
      records: Array.from({ length: 5 }, () => ({
        key: null,
        value: new Uint8Array(1),
        headers: [],
        timestampMs: 1_700_000_000_000,
      })),
      codec: null,
      codecs: env.codecs,
    }));
  }
  const partition = new SharePartition({
    env,
    key: { groupId: "g", topicId: "01".repeat(16), partition: 0 },
    log: harness.log,
    stateEpoch: 0,
    window: new ShareWindow({ startOffset: 0, batches: [], deliveriesMax: 2, recordsMax: 100 }),
    recordLockMs: () => LOCK_MS,
    inFlight,
    onFenced: () => void told.push("fenced"),
    store(change) {
      if (isRefused) {
        return Promise.reject(new FaultError("overloaded", "full", { retriable: true }));
      }
      written.push(change);
      const outcome = new Promise<ErrorName | null>((resolve, reject) => {
        outcomes.push((one) => one instanceof FaultError ? reject(one) : resolve(one));
      });
      outcome.catch(() => {});
      return Promise.resolve({ outcome });
    },
  });
  partition.onAdvance(() => void told.push("advance"));
  return {
    partition,
    clock,
    written,
    told,
    inFlight,
    refuse: (yes: boolean) => void (isRefused = yes),
    async end(outcome: ErrorName | null | FaultError) {
      await clock.advance(0);
      outcomes.shift()!(outcome);
      await clock.advance(0);
    },
    async take(member: string, recordsMax = 100) {
      const { fetchOffset } = partition;
      if (fetchOffset === null) return [];
      const read = await harness.log.read(fetchOffset, {
        bytesMax: 1 << 20,
        isolation: "uncommitted",
      });
      assert.ok(read !== null && read.ok);
      const request = { member, isRecordLimit: true, batchSize: 100, recordsMax };
      return partition.acquire(request, { fetchOffset, batches: read.batches, aborted: [] })
        .acquired;
    },
  };
}

test("nobody else gets what is being acknowledged, and it is answered when it is durable", async () => {
  const { partition, take, end, written } = await start();
  assert.deepEqual(await take("a"), [{ first: 0, last: 9, count: 1 }]);
  let answer: ErrorName | null | undefined;
  const acked = partition.acknowledge("a", [{ first: 0, last: 4, types: [RELEASE] }])
    .then((error) => void (answer = error));
  assert.deepEqual(await take("b"), [], "it is under way");
  assert.equal(
    await partition.acknowledge("a", [{ first: 0, last: 0, types: [ACCEPT] }]),
    "INVALID_RECORD_STATE",
  );
  assert.equal(answer, undefined);
  await end(null);
  await acked;
  assert.equal(answer, null);
  assert.deepEqual(written[0]?.batches, [{ first: 0, last: 4, state: "available", count: 1 }]);
  assert.deepEqual(await take("b"), [{ first: 0, last: 4, count: 2 }]);
});

test("when a write fails the records are what they were, and may be acknowledged again", async () => {
  for (const how of ["refused", "unknown", "away"] as const) {
    const { partition, take, end, refuse, told } = await start();
    await take("a");
    refuse(how === "refused");
    const acked = partition.acknowledge("a", [{ first: 0, last: 9, types: [ACCEPT] }]);
    if (how === "unknown") {
      await end(new FaultError("store-unavailable", "gone", { retriable: true }));
    }
    if (how === "away") await end("NOT_COORDINATOR");
    assert.equal(await acked, "KAFKA_STORAGE_ERROR", how);
    refuse(false);
    assert.deepEqual(await take("b"), []);
    const again = partition.acknowledge("a", [{ first: 0, last: 9, types: [ACCEPT] }]);
    await end(null);
    assert.equal(await again, null);
    assert.equal(partition.fetchOffset, 10);
    assert.ok(!told.includes("fenced"));
  }
});

test("a lock that ended while its acknowledgement failed has ended", async () => {
  const { partition, take, end, clock, written } = await start();
  await take("a");
  const acked = partition.acknowledge("a", [{ first: 0, last: 9, types: [ACCEPT] }]);
  await clock.advance(LOCK_MS);
  assert.deepEqual(await take("b"), [], "it may still succeed");
  await end("NOT_COORDINATOR");
  assert.equal(await acked, "KAFKA_STORAGE_ERROR");
  await clock.advance(0);
  assert.deepEqual(written[1]?.batches, [{ first: 0, last: 9, state: "available", count: 1 }]);
  assert.deepEqual(await take("b", 10), [{ first: 0, last: 9, count: 2 }]);
});

test("locks end by themselves, the last delivery for good, and that is written", async () => {
  const { take, clock, written, told } = await start();
  await take("a", 3);
  await clock.advance(LOCK_MS / 2);
  await take("b", 2);
  await clock.advance(LOCK_MS / 2 - 1);
  assert.deepEqual(written, []);
  await clock.advance(1);
  assert.deepEqual(written.map(({ batches }) => batches), [
    [{ first: 0, last: 2, state: "available", count: 1 }],
  ]);
  assert.ok(told.includes("advance"));
  assert.deepEqual(await take("c", 3), [{ first: 0, last: 2, count: 2 }]);
  await clock.advance(LOCK_MS);
  assert.deepEqual(written.slice(1).map(({ batches }) => batches), [
    [{ first: 3, last: 4, state: "available", count: 1 }],
    [{ first: 0, last: 2, state: "archived", count: 2 }],
  ]);
});

test("who was replaced is told once, and its member looks for the new leader", async () => {
  for (const error of ["FENCED_STATE_EPOCH", "FENCED_LEADER_EPOCH"] as const) {
    const { partition, take, end, told } = await start();
    await take("a");
    const acked = partition.acknowledge("a", [{ first: 0, last: 9, types: [ACCEPT] }]);
    await end(error);
    assert.equal(await acked, "NOT_LEADER_OR_FOLLOWER");
    assert.deepEqual(told.filter((one) => one === "fenced"), ["fenced"]);
  }
});

test("the node's bound on records under way keeps new ones back, not those between others", async () => {
  const { partition, take, end, inFlight } = await start();
  await take("a", 5);
  assert.equal(inFlight.bytes, 5);
  inFlight.change(95);
  assert.deepEqual(await take("b"), [], "no room for more");
  const acked = partition.acknowledge("a", [{ first: 1, last: 1, types: [RELEASE] }]);
  await end(null);
  assert.equal(await acked, null);
  assert.deepEqual(await take("b"), [{ first: 1, last: 1, count: 2 }]);
  inFlight.change(-95);
  partition.close();
  assert.equal(inFlight.bytes, 0, "all is given back");
});

test("one fetch reads at a time; those that wait are called in turn, and when it closes", async () => {
  const { partition, told } = await start();
  assert.ok(partition.tryLock(() => told.push("a")));
  assert.ok(!partition.tryLock(() => told.push("b")));
  partition.unlock();
  assert.deepEqual(told, ["b"]);
  assert.ok(partition.tryLock(() => told.push("b")));
  assert.ok(!partition.tryLock(() => told.push("c")));
  partition.close();
  assert.ok(told.includes("c"));
  assert.ok(!partition.tryLock(() => {}), "closed for good");
  assert.equal(partition.fetchOffset, null);
  assert.equal(
    await partition.acknowledge("a", [{ first: 0, last: 0, types: [ACCEPT] }]),
    "NOT_LEADER_OR_FOLLOWER",
  );
});

test("what was aborted is not given out and is done; markers are left to the client", async () => {
  const { partition, told } = await start();
  const { codecs } = testEnv();
  const records = [1, 2].map(() => ({
    key: null,
    value: new Uint8Array(1),
    headers: [],
    timestampMs: 1_700_000_000_000,
  }));
  const batches = [7, 8, 7].map((producerId, at) => {
    const batch = buildBatch({
      records,
      codec: null,
      codecs,
      producerId,
      producerEpoch: 0,
      baseSequence: 0,
      transactional: true,
    });
    assignOffsets(batch, 2 * at, 1);
    return batch;
  });
  const request = { member: "a", isRecordLimit: false, batchSize: 100, recordsMax: 100 };
  const aborted = [{ producerId: 7, firstOffset: 0 }];
  const taken = partition.acquire(request, { fetchOffset: 0, batches, aborted });
  assert.deepEqual(taken.acquired, [{ first: 2, last: 3, count: 1 }]);
  assert.deepEqual(taken.batches, [batches[1]], "only what has them is sent");
  assert.equal(partition.fetchOffset, 6);
  assert.deepEqual(told, []);
});

test("what a compacted log has lost counts once for the node, not for each of its offsets", async () => {
  const { partition, inFlight } = await start();
  const batches = [0, 3_000_000].map((base) => {
    const batch = buildBatch({
      records: [{
        key: null,
        value: new Uint8Array(1),
        headers: [],
        timestampMs: 1_700_000_000_000,
      }],
      codec: null,
      codecs: testEnv().codecs,
    });
    assignOffsets(batch, base, 1);
    return batch;
  });
  const request = { member: "a", isRecordLimit: true, batchSize: 100, recordsMax: 1 };
  for (const [at, fetchOffset] of [0, 1].entries()) {
    const read = { fetchOffset, batches: batches.slice(at), aborted: [] };
    assert.equal(partition.acquire(request, read).acquired.length, 1);
  }
  assert.ok(inFlight.bytes <= 20_000, `${inFlight.bytes} records`);
  partition.close();
  assert.equal(inFlight.bytes, 0);
});
