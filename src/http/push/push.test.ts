import assert from "node:assert/strict";
import { test } from "node:test";
import { createPushWorld } from "../../../tests/support/push_world.ts";
import { TOPIC_ID } from "../../../tests/support/http_topic.ts";
import { utf8 } from "../../lib/bytes.ts";
import {
  PUSH_COMMIT_MS,
  PUSH_PARTITION_WINDOW_BYTES,
  PUSH_PARTITION_WINDOW_RECORDS,
  PUSH_RECORD_BYTES_MAX,
  PUSH_REFRESH_MS,
  PUSH_WINDOW_BYTES,
} from "../../lib/limits.ts";

const RETRY = { attempts: 3, minMs: 1_000, maxMs: 4_000 };

function values(count: number, key: string | null = null) {
  return Array.from({ length: count }, (_, i) => ({ key, value: `v${i}` }));
}

test("records are delivered as a batch that says where they are, and committed once they are taken", async () => {
  const world = createPushWorld();
  world.append(0, { key: "k", value: "one", headers: [["h", "x"]] }, { value: "two" });
  await world.subscribe();
  const [first] = world.got;
  assert.equal(world.got.length, 1);
  assert.deepEqual(JSON.parse(utf8(first!.request.body)), {
    subscription: "s",
    topic: "t",
    topicId: TOPIC_ID,
    records: [
      {
        partition: 0,
        offset: 0,
        timestamp: 1_700_000_000_000,
        key: "k",
        value: "one",
        headers: [["h", "x"]],
      },
      {
        partition: 0,
        offset: 1,
        timestamp: 1_700_000_000_000,
        key: null,
        value: "two",
        headers: [],
      },
    ],
  });
  const { headers, url, method } = first!.request;
  assert.equal(method, "POST");
  assert.equal(url.href, "https://hooks.example/in?a=b");
  assert.equal(headers["skerry-delivery"], `${TOPIC_ID}-0-0`);
  assert.equal(headers["skerry-subscription"], "s");
  assert.equal(headers["skerry-attempt"], "1");
  assert.equal(world.committed.get(0), 0, "where it began");
  await first!.answer(204);
  await world.clock.advance(PUSH_COMMIT_MS);
  assert.equal(world.committed.get(0), 2);
  assert.deepEqual([world.held, world.status().status?.heldBytes], [0, 0]);
  world.push.close();
});

test("raw is one record a request: its value, with the rest as headers", async () => {
  const world = createPushWorld();
  world.append(0, { key: "k", value: "one", headers: [["h", "x"]] }, { value: "two" });
  await world.subscribe({ format: "raw" });
  assert.deepEqual(world.got.map(({ request }) => utf8(request.body)), ["one", "two"]);
  const { headers } = world.got[0]!.request;
  assert.equal(headers["kafka-topic"], "t");
  assert.equal(headers["kafka-topic-id"], TOPIC_ID);
  assert.equal(headers["kafka-offset"], "0");
  assert.equal(headers["kafka-key"], "k");
  assert.equal(headers["kafka-header-h"], "x");
  world.push.close();
});

test("the latest is where the log ends when it begins, also for the next node", async () => {
  const world = createPushWorld();
  world.append(0, ...values(3));
  await world.subscribe({ from: "latest" });
  assert.equal(world.committed.get(0), 3);
  world.append(0, { value: "new" });
  await world.clock.settle();
  assert.deepEqual(world.got.map(({ offsets }) => offsets), [[3]]);
  await world.restart();
  assert.deepEqual(world.got.at(-1)!.offsets, [3], "not the end of now");
  world.push.close();
});

test("what is refused comes again after pauses that double, and then with its attempt", async () => {
  const world = createPushWorld();
  world.append(0, { value: "one" });
  await world.subscribe({ retry: RETRY });
  const pauses: number[] = [];
  for (let i = 1; i <= 4; i++) {
    assert.equal(world.got.length, i);
    assert.equal(world.got[i - 1]!.request.headers["skerry-attempt"], String(i));
    await world.got[i - 1]!.answer(500);
    const fromMs = world.clock.monotonicMs();
    while (world.got.length === i) await world.clock.advance(10);
    pauses.push(world.got[i]!.atMs - fromMs);
  }
  for (const [i, full] of [1_000, 2_000, 4_000, 4_000].entries()) {
    assert.ok(pauses[i]! >= full / 2 && pauses[i]! <= full, `${pauses[i]}`);
  }
  assert.match(world.status().status!.problem!, /answered 500/);
  await world.got[4]!.answer(200);
  assert.equal(world.status().status!.problem, null);
  world.push.close();
});

test("a handler that asks for time gets it, for all of its records", async () => {
  const world = createPushWorld({ partitions: 2 });
  world.append(0, { value: "one" });
  await world.subscribe({ retry: RETRY });
  await world.got[0]!.answer(429, "60");
  world.append(1, { value: "other" });
  await world.clock.advance(59_000);
  assert.equal(world.got.length, 1);
  await world.clock.advance(1_100);
  assert.equal(world.underWay().length, 1, "then one delivery at a time");
  await world.underWay()[0]!.answer(200);
  assert.equal(world.underWay().length, 1);
  world.push.close();
});

test("after so many attempts a record goes to the dead-letter topic, and its key goes on", async () => {
  const world = createPushWorld();
  world.append(0, { key: "k", value: "bad", headers: [["h", "x"]] }, { key: "k", value: "good" });
  await world.subscribe({ retry: RETRY, deadLetter: "dlq", batch: { records: 1 } });
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(world.underWay().map(({ offsets }) => offsets), [[0]]);
    await world.underWay()[0]!.answer(422);
    await world.clock.advance(RETRY.maxMs);
  }
  const [letter] = world.dead;
  assert.equal(world.dead.length, 1);
  assert.deepEqual([utf8(letter!.key!), utf8(letter!.value!)], ["k", "bad"]);
  assert.deepEqual(letter!.headers.map(({ name, value }) => [name, utf8(value!)]), [
    ["h", "x"],
    ["skerry-dead-letter-subscription", "s"],
    ["skerry-dead-letter-reason", "answered 422"],
    ["skerry-dead-letter-attempts", "3"],
    ["skerry-dead-letter-topic", "t"],
    ["skerry-dead-letter-topic-id", TOPIC_ID],
    ["skerry-dead-letter-partition", "0"],
    ["skerry-dead-letter-offset", "0"],
    ["skerry-dead-letter-timestamp", "1700000000000"],
  ]);
  assert.deepEqual(world.underWay().map(({ offsets }) => offsets), [[1]]);
  await world.underWay()[0]!.answer(200);
  await world.clock.advance(PUSH_COMMIT_MS);
  assert.equal(world.committed.get(0), 2);
  world.push.close();
});

test("a record that is refused takes no others of its batch along", async () => {
  const world = createPushWorld();
  world.append(0, ...values(3));
  await world.subscribe({ retry: RETRY, deadLetter: "dlq", maxInFlight: 1 });
  assert.deepEqual(world.got[0]!.offsets, [0, 1, 2]);
  await world.got[0]!.answer(400);
  for (let i = 0; i < 20; i++) {
    await world.clock.advance(RETRY.maxMs);
    for (const one of world.underWay()) {
      assert.equal(one.offsets.length, 1);
      await one.answer(one.offsets[0] === 1 ? 400 : 200);
    }
  }
  assert.deepEqual(world.dead.map(({ value }) => utf8(value!)), ["v1"]);
  assert.equal(world.committed.get(0), 3);
  world.push.close();
});

test("without a dead-letter topic a record is tried for ever", async () => {
  const world = createPushWorld();
  world.append(0, { value: "one" });
  await world.subscribe({ retry: RETRY });
  for (let i = 0; i < 10; i++) {
    await world.underWay()[0]!.answer(500);
    await world.clock.advance(RETRY.maxMs);
  }
  assert.equal(world.got.length, 11);
  assert.equal(world.committed.get(0), 0);
  world.push.close();
});

test("a dead letter that cannot be written is not given up", async () => {
  const world = createPushWorld();
  world.append(0, { key: "k", value: "bad" }, { key: "k", value: "next" });
  world.setDeadError("NOT_ENOUGH_REPLICAS");
  await world.subscribe({
    retry: { ...RETRY, attempts: 1 },
    deadLetter: "dlq",
    batch: { records: 1 },
  });
  await world.underWay()[0]!.answer(400);
  assert.match(world.status().status!.problem!, /Cannot write to dlq/);
  await world.clock.advance(RETRY.maxMs);
  assert.deepEqual(world.underWay().map(({ offsets }) => offsets), [[0]], "tried again meanwhile");
  world.setDeadError(null);
  await world.underWay()[0]!.answer(400);
  assert.deepEqual(world.dead.map(({ value }) => utf8(value!)), ["bad"]);
  assert.deepEqual(world.underWay().map(({ offsets }) => offsets), [[1]]);
  world.push.close();
});

test("a record too large to be pushed is named in the dead-letter topic", async () => {
  const world = createPushWorld();
  world.append(0, { value: new Uint8Array(PUSH_RECORD_BYTES_MAX + 1) }, { value: "small" });
  await world.subscribe({ deadLetter: "dlq" });
  assert.deepEqual(world.got.map(({ offsets }) => offsets), [[1]]);
  const [letter] = world.dead;
  assert.equal(letter!.value, null);
  const texts = new Map(letter!.headers.map(({ name, value }) => [name, utf8(value!)]));
  assert.equal(texts.get("skerry-dead-letter-offset"), "0");
  assert.match(texts.get("skerry-dead-letter-reason")!, /too large/);
  world.push.close();
});

test("a handler that hangs is cut off after its time", async () => {
  const world = createPushWorld();
  world.append(0, { value: "one" });
  await world.subscribe({ timeoutMs: 5_000, retry: RETRY });
  await world.clock.advance(4_999);
  assert.equal(world.got[0]!.isOver, false);
  await world.clock.advance(1);
  assert.equal(world.got[0]!.isOver, true);
  assert.match(world.status().status!.problem!, /did not answer within 5000 ms/);
  world.push.close();
});

test("what is held of one partition is bounded, and of all of them together", async () => {
  for (
    const [partitions, bytesMax] of [
      [1, 2 * PUSH_PARTITION_WINDOW_BYTES],
      [8, PUSH_WINDOW_BYTES + PUSH_PARTITION_WINDOW_BYTES],
    ] as const
  ) {
    const world = createPushWorld({ partitions });
    const large = { value: new Uint8Array(100_000) };
    for (let partition = 0; partition < partitions; partition++) {
      world.append(partition, ...Array.from({ length: 40 }, () => large));
    }
    await world.subscribe();
    const { heldBytes } = world.status().status!;
    assert.ok(heldBytes > bytesMax / 2 && heldBytes <= bytesMax, `${heldBytes} of ${bytesMax}`);
    assert.equal(world.held, 0, "the log's own memory is free");
    world.push.close();
  }
});

test("a handler that does not answer bounds what is read and what is sent", async () => {
  const world = createPushWorld({ partitions: 3 });
  for (const partition of [0, 1, 2]) {
    const large = { value: new Uint8Array(100_000) };
    world.append(partition, ...Array.from({ length: 40 }, () => large));
  }
  await world.subscribe({ maxInFlight: 2, batch: { records: 1 } });
  assert.equal(world.underWay().length, 2);
  const { heldBytes } = world.status().status!;
  assert.ok(heldBytes >= 700_000 && heldBytes < 2 * PUSH_WINDOW_BYTES, `${heldBytes}`);
  for (let i = 0; i < 200; i++) {
    assert.ok(world.underWay().length <= 2);
    for (const one of world.underWay()) await one.answer(200);
  }
  await world.clock.advance(PUSH_COMMIT_MS);
  assert.deepEqual([...world.committed.values()], [40, 40, 40]);
  assert.equal(world.status().status!.heldBytes, 0);
  world.push.close();
});

test("one record that is stuck bounds how far its partition goes on, and no other", async () => {
  const world = createPushWorld({ partitions: 2 });
  world.append(0, ...values(3 * PUSH_PARTITION_WINDOW_RECORDS));
  world.append(1, ...values(3 * PUSH_PARTITION_WINDOW_RECORDS));
  await world.subscribe({ retry: RETRY, batch: { records: 1_000 }, maxInFlight: 8 });
  for (let i = 0; i < 40; i++) {
    for (const one of world.underWay()) {
      const { partition } = (JSON.parse(utf8(one.request.body)) as {
        records: { partition: number }[];
      }).records[0]!;
      await one.answer(partition === 0 && one.offsets.includes(0) ? 400 : 200);
    }
    await world.clock.advance(RETRY.maxMs);
  }
  assert.equal(world.committed.get(0), 0);
  assert.equal(world.committed.get(1), 3 * PUSH_PARTITION_WINDOW_RECORDS);
  const offsets = world.got.flatMap((one) => one.offsets);
  assert.ok(Math.max(...offsets) < 3 * PUSH_PARTITION_WINDOW_RECORDS);
  world.push.close();
});

test("after a crash what was not committed comes again, under the same id", async () => {
  const world = createPushWorld();
  world.append(0, ...values(4));
  await world.subscribe({ batch: { records: 1 }, maxInFlight: 1 });
  await world.underWay()[0]!.answer(200);
  await world.underWay()[0]!.answer(200);
  await world.clock.advance(PUSH_COMMIT_MS);
  const before = world.underWay()[0]!.request.headers["skerry-delivery"];
  await world.restart();
  assert.deepEqual(world.underWay().map(({ offsets }) => offsets), [[2]]);
  assert.equal(world.underWay()[0]!.request.headers["skerry-delivery"], before);
  world.push.close();
});

test("pausing ends it at once, and it goes on at its offsets", async () => {
  const world = createPushWorld();
  world.append(0, ...values(2));
  await world.subscribe({ batch: { records: 1 }, maxInFlight: 1 });
  await world.underWay()[0]!.answer(200);
  await world.clock.advance(PUSH_COMMIT_MS);
  await world.push.subscriptions.setPaused("s", true);
  await world.clock.settle();
  assert.equal(world.underWay().length, 0, "cut off");
  assert.equal(world.status().state, "paused");
  world.append(0, { value: "more" });
  await world.clock.advance(60_000);
  assert.equal(world.underWay().length, 0);
  await world.push.subscriptions.setPaused("s", false);
  await world.clock.settle();
  assert.deepEqual(world.underWay().map(({ offsets }) => offsets), [[1]]);
  world.push.close();
});

test("only the node that has the group delivers", async () => {
  const world = createPushWorld();
  world.setLeader(false);
  world.append(0, { value: "one" });
  await world.subscribe();
  assert.deepEqual([world.got.length, world.status().state], [0, "elsewhere"]);
  world.setLeader(true);
  await world.texts.change("other", () => "something changed in the metadata");
  await world.clock.settle();
  assert.deepEqual([world.got.length, world.status().state], [1, "delivering"]);
  world.setLeader(false);
  await world.texts.change("other", () => "again");
  await world.clock.settle();
  assert.deepEqual([world.underWay().length, world.status().state], [0, "elsewhere"]);
  world.push.close();
});

test("a group with members is left to them, and taken up where they leave it", async () => {
  const world = createPushWorld();
  world.append(0, ...values(5));
  world.setMembers(1);
  await world.subscribe();
  await world.clock.advance(10_000);
  assert.equal(world.got.length, 0);
  assert.match(world.status().status!.problem!, /has members/);
  world.committed.set(0, 4);
  world.setMembers(0);
  await world.clock.advance(30_000);
  assert.deepEqual(world.got.map(({ offsets }) => offsets), [[4]]);
  world.push.close();
});

test("members that join later stop it, and their offsets count", async () => {
  const world = createPushWorld();
  world.append(0, ...values(6));
  await world.subscribe({ batch: { records: 1 }, maxInFlight: 1 });
  world.setMembers(1);
  await world.clock.advance(PUSH_COMMIT_MS);
  await world.underWay()[0]!.answer(200);
  await world.clock.advance(10_000);
  const sent = world.got.length;
  world.committed.set(0, 5);
  await world.clock.advance(10_000);
  assert.equal(world.got.length, sent, "nothing is sent that cannot be committed");
  world.setMembers(0);
  await world.clock.advance(60_000);
  for (const one of world.underWay()) await one.answer(200);
  assert.deepEqual(world.got.at(-1)!.offsets, [5]);
  await world.clock.advance(PUSH_COMMIT_MS);
  assert.equal(world.committed.get(0), 6);
  world.push.close();
});

test("nothing more is sent while positions cannot be committed", async () => {
  const world = createPushWorld();
  world.append(0, ...values(50));
  await world.subscribe({ batch: { records: 1 }, maxInFlight: 1 });
  await world.clock.advance(PUSH_COMMIT_MS);
  world.setCommitError("NOT_COORDINATOR");
  for (let i = 0; i < 50 && world.underWay().length > 0; i++) {
    await world.underWay()[0]!.answer(200);
  }
  await world.clock.advance(5_000);
  assert.ok(world.got.length < 50, `${world.got.length}`);
  assert.equal(world.underWay().length, 0);
  world.setCommitError("NONE");
  await world.clock.advance(30_000);
  assert.equal(world.underWay().length, 1);
  world.push.close();
});

test("an idle subscription commits nothing but what would expire, and has no other timer", async () => {
  const world = createPushWorld();
  await world.subscribe();
  await world.clock.advance(PUSH_COMMIT_MS);
  const before = world.commits.length;
  await world.clock.advance(PUSH_REFRESH_MS - 2 * PUSH_COMMIT_MS);
  assert.equal(world.commits.length, before);
  await world.clock.advance(2 * PUSH_COMMIT_MS);
  assert.equal(world.commits.length, before + 1);
  assert.equal(world.clock.timers, 1);
  world.push.close();
  await world.clock.settle();
  assert.deepEqual([world.clock.timers, world.waiting], [0, 0]);
});

test("partitions and topics that come later are followed; one that is created again begins anew", async () => {
  const world = createPushWorld();
  world.setTopic(null);
  await world.subscribe();
  assert.equal(world.got.length, 0);
  world.append(0, { value: "one" });
  world.setTopic(TOPIC_ID);
  await world.texts.change("other", () => "a topic was created");
  await world.clock.settle();
  assert.deepEqual(world.got.map(({ offsets }) => offsets), [[0]]);
  world.grow(2);
  world.append(1, { value: "two" });
  await world.clock.settle();
  assert.equal(world.got.length, 2);
  world.committed.clear();
  world.setTopic("ff112233445566778899aabbccddeeff");
  await world.clock.settle();
  const again = world.got.at(-1)!.request.headers["skerry-delivery"]!;
  assert.match(again, /^ff112233445566778899aabbccddeeff-/);
  world.push.close();
});

test("records that retention has deleted are passed over", async () => {
  const world = createPushWorld();
  world.append(0, ...values(5));
  world.committed.set(0, 1);
  world.trim(0, 3);
  await world.subscribe();
  assert.deepEqual(world.got.map(({ offsets }) => offsets), [[3, 4]]);
  world.push.close();
});

test("what was deleted from the memory of a handler that went away stays with nobody", async () => {
  const world = createPushWorld();
  world.append(0, ...values(10));
  await world.subscribe();
  await world.push.subscriptions.delete("s");
  await world.clock.settle();
  assert.equal(world.underWay().length, 0);
  assert.equal(world.held, 0);
  assert.equal(world.clock.timers, 0);
  assert.match(world.env.metrics.render(), /^skerry_push_held_bytes 0$/m);
  assert.match(world.env.metrics.render(), /^skerry_push_bodies_bytes 0$/m);
  world.push.close();
});
