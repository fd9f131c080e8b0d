/**
 * A node id that never comes back. Another node on the same store finds that nobody answers for it, recovers
 * what its WAL held, leads its partitions and, in time, deletes all that it left. One that lives is left alone.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ROLL_CALL_MS } from "../../src/lib/limits.ts";
import { nodeId } from "../../src/lib/brand.ts";
import { walNodePrefix } from "../../src/object/object_key.ts";
import { loadMetadata } from "../../src/inspect/load_metadata.ts";
import { batch } from "../quirks/quirks.ts";
import { check } from "../support/stored_world.ts";
import { testEnv } from "../support/test_env.ts";
import { keysOf } from "../support/keys_of.ts";
import { recovererOf, VICTIM } from "./second_node.ts";
import { assertOnce, drive, FaultWorld } from "./world.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

function neighbourOf(world: FaultWorld, nodeId: number): FaultWorld {
  return new FaultWorld({ clock: world.clock, bucket: world.bucket, seed: 300 * nodeId, nodeId });
}

async function stateOf({ bucket, clock, q }: FaultWorld) {
  const env = testEnv({ clock });
  const loaded = await loadMetadata({ store: bucket, env, clusterId: q.node.node.clusterId });
  assert.ok(loaded.ok);
  return loaded.state;
}

/** Node 1 with two partitions and acknowledged records, some of them only in its WAL, dead by kill -9. */
async function killed(
  kafka: Readonly<Record<string, string>> = {},
): Promise<{ first: FaultWorld; sent: readonly string[] }> {
  const first = new FaultWorld({ kafka });
  await first.start();
  await drive(first.clock, first.q.topic("t", 2));
  const sent: string[] = [];
  for (let i = 0; i < 12; i++) {
    const answer = await drive(first.clock, first.q.produce("t", batch([`v${i}`])));
    assert.equal(answer.error, "NONE");
    sent.push(`v${i}`);
  }
  await first.clock.advance(5_000);
  first.kill();
  // Nothing of it reaches the store any more; it only stops to use the clock.
  await drive(first.clock, first.q.node.close()).catch(() => {});
  return { first, sent };
}

test("another node finds all that was acknowledged, and goes on with it", async () => {
  const { first, sent } = await killed();
  const second = neighbourOf(first, 2);
  await second.start();
  const early = await drive(first.clock, second.q.fetch("t", 0));
  assert.equal(early.error, "NOT_LEADER_OR_FOLLOWER", "nobody knows yet that node 1 is gone");
  await first.clock.advance(ROLL_CALL_MS + 5_000);
  const found = await second.values("t");
  assertOnce(found, sent);
  assert.equal(await second.metric("skerry_recovery_wals_total"), 1);
  const next = await drive(first.clock, second.q.produce("t", batch(["next"])));
  assert.deepEqual([next.error, next.baseOffset], ["NONE", found.length]);
  const other = await drive(
    first.clock,
    second.q.produce("t", batch(["other"]), { partition: 1 }),
  );
  assert.deepEqual([other.error, other.baseOffset], ["NONE", 0]);
  await drive(first.clock, second.q.node.close());
  const { summary, text } = await check(first.bucket);
  assert.equal(summary.verdict, "clean", text);
});

test("a node that lives answers, and keeps what it has; the call costs three entries", async () => {
  const first = new FaultWorld();
  await first.start();
  await drive(first.clock, first.q.topic("t"));
  await drive(first.clock, first.q.produce("t", batch(["a"])));
  const { at } = await stateOf(first);
  const second = neighbourOf(first, 2);
  await second.start();
  await first.clock.advance(ROLL_CALL_MS + 5_000);
  const state = await stateOf(first);
  assert.deepEqual(
    [...state.nodes.values()].map(({ nodeId: id, state: how }) => [id, how]),
    [[1, "live"], [2, "live"]],
  );
  assert.equal(state.at, at + 3, "registration, call, answer");
  const again = await drive(first.clock, first.q.produce("t", batch(["b"])));
  assert.deepEqual([again.error, again.baseOffset], ["NONE", 1]);
  await drive(first.clock, second.q.node.close());
  await drive(first.clock, first.q.node.close());
});

test("a node that cannot reach the store is taken for dead, comes back and lost nothing", async () => {
  const first = new FaultWorld();
  await first.start();
  await drive(first.clock, first.q.topic("t"));
  await drive(first.clock, first.q.produce("t", batch(["a"])));
  first.store.setPlan(() => ({ kind: "fail" }));
  const second = neighbourOf(first, 2);
  await second.start();
  await first.clock.advance(ROLL_CALL_MS + 5_000);
  first.store.setPlan();
  for (let i = 0; i < 120 && await first.ready() !== ""; i++) await first.clock.advance(1_000);
  assert.equal(await first.ready(), "", "registered again");
  const refused = await drive(first.clock, first.q.produce("t", batch(["b"])));
  assert.equal(refused.error, "NOT_LEADER_OR_FOLLOWER");
  assert.deepEqual(await second.values("t"), ["a"]);
  assert.equal((await drive(first.clock, second.q.produce("t", batch(["b"])))).error, "NONE");
  await drive(first.clock, second.q.node.close());
  await drive(first.clock, first.q.node.close());
});

test("a node that comes back while another one recovers what it left: its start goes on", async () => {
  for (const isLate of [false, true]) {
    const { first, sent } = await killed();
    const other = await recovererOf(first);
    const epoch = await other.victimEpoch();
    let isOvertaken = false;
    let overtaking: Promise<unknown> = Promise.resolve();
    const back = first.begin(({ op, key }) => {
      // It is about to seal its WAL, and slow.
      if (op !== "put" || !key.includes("/wal/") || isOvertaken) return undefined;
      isOvertaken = true;
      overtaking = isLate ? other.recovery.beginRecovery(VICTIM, epoch) : other.recover(epoch);
      return { kind: "delay", delayMs: 3_000 };
    });
    await drive(first.clock, back, "the start");
    assert.ok(isOvertaken);
    await drive(first.clock, overtaking);
    assertOnce(await first.values("t"), sent);
    const next = await drive(first.clock, first.q.produce("t", batch(["next"])));
    assert.equal(next.error, "NONE");
    await drive(first.clock, first.q.node.close());
    await other.close();
  }
});

test("a successor that dies in the middle is followed by the next, at any call", async () => {
  for (let n = 1;; n += 7) {
    const { first, sent } = await killed();
    const second = neighbourOf(first, 2);
    await second.start();
    let calls = 0;
    second.store.setPlan(() => ++calls >= n ? { kind: "hang", happens: false } : undefined);
    await first.clock.advance(ROLL_CALL_MS + 5_000);
    if (calls < n) {
      second.store.setPlan();
      assertOnce(await second.values("t"), sent);
      break;
    }
    const third = neighbourOf(first, 3);
    await third.start();
    await first.clock.advance(ROLL_CALL_MS + 5_000);
    assertOnce(await third.values("t"), sent);
  }
});

test("what it left is deleted: ids after the retention, its WAL with the seal after a week", async () => {
  const { first } = await killed({ "skerry.upload.interval.ms": "1000" });
  const second = neighbourOf(first, 2);
  await second.start();
  await first.clock.advance(ROLL_CALL_MS + 5_000);
  const blocks = async () =>
    [...(await stateOf(second)).idBlocks.values()].filter(({ nodeId: id }) => id === 1).length;
  const wals = async () =>
    [...(await stateOf(second)).wals.values()].filter(({ nodeId: id }) => id === 1).length;
  const slots = async () => {
    const prefix = walNodePrefix(second.q.node.node.clusterId, nodeId(1));
    return (await keysOf(first.bucket, prefix)).length;
  };
  const before = await blocks();
  await first.clock.advance(20 * MINUTE_MS);
  assert.deepEqual([await wals(), await slots()], [1, 1], "the seal stays");
  assert.deepEqual([before > 0, await blocks()], [true, 0]);
  // A node that restarts often: the age is that of the seal, by the store's clock.
  for (const [days, left] of [[6, 1], [1, 0]] as const) {
    await drive(first.clock, second.q.node.close());
    await first.clock.advance(days * DAY_MS);
    await second.start();
    await first.clock.advance(2 * MINUTE_MS);
    assert.deepEqual([await wals(), await slots()], [left, left], `${days} days later`);
  }
  await drive(first.clock, second.q.node.close());
});

test("scale-in: its shared objects are dropped when what is in them is deleted, and only then", async () => {
  const { first, sent } = await killed({ "skerry.upload.interval.ms": "1000" });
  const second = neighbourOf(first, 2);
  await second.start();
  await first.clock.advance(ROLL_CALL_MS + 5_000);
  const listed = async () => (await stateOf(second)).streamSets.get(nodeId(1))?.length ?? 0;
  const data = async () => {
    const { objects } = await stateOf(second);
    return [...objects.values()].filter(({ nodeId: owner }) => owner === 1).length;
  };
  assertOnce(await second.values("t"), sent);
  await first.clock.advance(2 * 60 * MINUTE_MS);
  assert.ok(await listed() > 0, "records that are alive");
  assert.equal(
    (await drive(first.clock, second.fetch("/v1/topics/t", { method: "DELETE" }))).status,
    204,
  );
  await first.clock.advance(2 * 60 * MINUTE_MS);
  assert.deepEqual([await listed(), await data()], [0, 0]);
  await drive(first.clock, second.q.node.close());
  const { summary, text } = await check(first.bucket);
  assert.equal(summary.verdict, "clean", text);
});

test("a WAL that cannot be recovered keeps its data and its node's partitions, and stops nobody else", async () => {
  const { first } = await killed();
  const prefix = walNodePrefix(first.q.node.node.clusterId, nodeId(1));
  const [key] = await keysOf(first.bucket, prefix);
  const got = (await first.bucket.get(key!))!;
  got.bytes[100]! ^= 1;
  await first.bucket.put(got.key, got.bytes);
  const second = neighbourOf(first, 2);
  await second.start();
  await first.clock.advance(ROLL_CALL_MS + 5_000);
  assert.equal(await second.ready(), "");
  assert.equal(await second.metric("skerry_successions_failed_total"), 1);
  assert.equal((await first.bucket.head(got.key))?.size, got.size, "nothing was deleted");
  await drive(first.clock, second.q.topic("mine", 8));
  const produced = second.q.produce("mine", batch(["x"]));
  assert.equal((await drive(first.clock, produced)).error, "NONE");
  await drive(first.clock, second.q.node.close());
});
