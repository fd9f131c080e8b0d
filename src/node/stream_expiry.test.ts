import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { STREAM_SWEEP_MS } from "../lib/limits.ts";
import type { TopicRow } from "../controller/image.ts";
import type { BrokerServices } from "../broker/handler.ts";
import { StreamExpiry } from "./stream_expiry.ts";
import { StreamLineage } from "./stream_lineage.ts";

const [US, THEM] = [1, 2];

function world(configs: Record<string, string>) {
  const clock = createFakeClock();
  const row = { topicId: "aa", name: "s", partitions: 1, configs, internal: false } as
    & TopicRow
    & { configs: Record<string, string> };
  const topics = new Map([[row.topicId, row]]);
  const removed: string[] = [];
  let leader: number | null = US;
  let listener: (change: { topics: Set<string> }) => void = () => {};
  const metadata = {
    view: () => ({ topics }),
    onChange: (one: typeof listener) => {
      listener = one;
      return () => void (listener = () => {});
    },
  };
  const services = {
    env: testEnv({ clock }),
    nodeId: US,
    metadata,
    partitions: { leaderOf: () => ({ leader }) },
  } as unknown as BrokerServices;
  const expiry = new StreamExpiry(services, new StreamLineage(services.metadata), (one) => {
    removed.push(one.name);
    topics.delete(one.topicId);
    listener({ topics: new Set([one.topicId]) });
    return Promise.resolve({ ok: true });
  });
  const lead = (by: number | null) => void (leader = by);
  return { clock, row, expiry, removed, lead, isOver: () => expiry.isOver(row) };
}

test("only who leads a stream ends it, and gives it its whole time from then on", async () => {
  const { clock, expiry, removed, lead, isOver } = world({ "skerry.stream.ttl.seconds": "30" });
  await clock.advance(20_000);
  lead(THEM);
  await clock.advance(61_000);
  assert.equal(isOver(), false, "only they know how it is used");
  assert.deepEqual(removed, []);
  lead(US);
  assert.equal(isOver(), false);
  await clock.advance(29_000);
  assert.equal(isOver(), false);
  await clock.advance(1_000);
  assert.equal(isOver(), true);
  await clock.advance(STREAM_SWEEP_MS);
  assert.deepEqual(removed, ["s"]);
  assert.equal(clock.timers, 0, "nothing is left to look at");
  expiry.close();
});

test("a date is for everybody, and one that nobody leads is anybody's", async () => {
  const first = createFakeClock();
  const { clock, removed, lead, isOver, expiry } = world({
    "skerry.stream.expires.ms": String(first.nowMs() + 5_000),
  });
  lead(null);
  await clock.advance(4_999);
  assert.equal(isOver(), false);
  await clock.advance(STREAM_SWEEP_MS);
  assert.deepEqual(removed, ["s"]);
  expiry.close();
});

test("what is over is not revived by a late use", async () => {
  const { clock, expiry, row, isOver } = world({ "skerry.stream.ttl.seconds": "2" });
  await clock.advance(1_999);
  expiry.touch(row);
  await clock.advance(1_999);
  assert.equal(isOver(), false);
  await clock.advance(1);
  expiry.touch(row);
  assert.equal(isOver(), true);
  expiry.close();
  assert.equal(clock.timers, 0);
});

test("topics without an end cost no timer", () => {
  const { clock, isOver, expiry } = world({ "retention.ms": "-1" });
  assert.equal(isOver(), false);
  assert.equal(clock.timers, 0);
  expiry.close();
});
