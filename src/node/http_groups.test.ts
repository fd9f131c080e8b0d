import assert from "node:assert/strict";
import { test } from "node:test";
import { drive, FaultWorld } from "../../tests/faults/world.ts";
import { GroupMember } from "../../tests/quirks/group_member.ts";
import { offsetFetchApi } from "../protocol/message/09_offset_fetch.ts";
import { batch } from "../../tests/quirks/quirks.ts";
import { type Acked, HttpGroup, offsetsOf, type Polled } from "../../tests/support/http_group.ts";

interface Problem {
  readonly title: string;
  readonly detail: string;
  readonly lost?: unknown;
  readonly kafka?: { readonly name: string };
}

/** As Kafka's clients see it. */
async function committed({ clock, q }: FaultWorld): Promise<number> {
  const answer = await drive(
    clock,
    q.call(offsetFetchApi, 7, {
      groupId: "g",
      topics: [{ name: "t", partitionIndexes: [0] }],
      requireStable: false,
    }),
  );
  return answer.topics![0]!.partitions[0]!.committedOffset;
}

async function setup(records = 10, partitions = 1) {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("t", partitions));
  const write = async (count: number, partition = 0) => {
    const values = Array.from({ length: count }, (_, i) => `v${i}`);
    const answer = await drive(world.clock, q.produce("t", batch(values), { partition }));
    assert.equal(answer.error, "NONE");
  };
  for (let partition = 0; partition < partitions; partition++) {
    if (records > 0) await write(records, partition);
  }
  return {
    world,
    q,
    write,
    group: new HttpGroup(world),
    close: () => drive(world.clock, world.q.node.close()),
  };
}

function writesOf(world: FaultWorld): number {
  return world.store.count("put") + world.store.count("putParts");
}

test("a poll leases records, an acknowledgement commits them, and the next poll goes on", async () => {
  const { world, group, close } = await setup();
  const first = await group.poll({ max: 4 });
  assert.deepEqual(offsetsOf(first), [0, 1, 2, 3]);
  const [record] = first.records;
  assert.deepEqual(Object.keys(record!), [
    "topic",
    "partition",
    "offset",
    "timestamp",
    "key",
    "value",
    "headers",
  ]);
  assert.deepEqual([record!.topic, record!.partition, record!.value], ["t", 0, "v0"]);
  const acked = await group.ack(first.ack);
  assert.deepEqual(acked, { offsets: [{ topic: "t", partition: 0, committed: 4 }], lost: [] });
  assert.equal(await committed(world), 4);
  assert.deepEqual(offsetsOf(await group.poll({ max: 100 })), [4, 5, 6, 7, 8, 9]);
  await close();
});

test("acknowledging twice is as once, and writes nothing the second time", async () => {
  const { world, group, close } = await setup();
  const { ack } = await group.poll({ max: 4 });
  const once = await group.ack(ack);
  const before = writesOf(world);
  assert.deepEqual(await group.ack(ack), once);
  assert.equal(writesOf(world), before);
  await close();
});

test("in order, a partition of which something is leased gives out nothing", async () => {
  const { world, group, close } = await setup(4, 2);
  const first = await group.poll({ max: 2 });
  assert.deepEqual(new Set(first.records.map(({ partition }) => partition)).size, 2);
  assert.deepEqual((await group.poll()).records, []);
  await world.clock.advance(30_000);
  const again = await group.poll();
  assert.equal(again.records.length, 8);
  assert.deepEqual(
    again.records.filter(({ deliveryCount }) => deliveryCount === 2).map(({ offset }) => offset),
    [0, 0],
  );
  await close();
});

test("without order two polls share a partition, and gaps hold the committed offset", async () => {
  const { world, group, close } = await setup();
  const order = "none";
  const one = await group.poll({ max: 3, order });
  const two = await group.poll({ max: 3, order });
  assert.deepEqual([offsetsOf(one), offsetsOf(two)], [[0, 1, 2], [3, 4, 5]]);
  assert.equal((await group.ack(two.ack)).offsets[0]!.committed, null);
  assert.equal(await committed(world), -1);
  assert.equal((await group.ack(one.ack)).offsets[0]!.committed, 6);
  assert.equal(await committed(world), 6);
  await close();
});

test("records that were given back come again after their delay, alone", async () => {
  const { world, group, close } = await setup();
  const order = "none";
  const { ack } = await group.poll({ max: 4, order });
  const nack = [{ topic: "t", partition: 0, offset: 1, delay: 5_000 }];
  assert.deepEqual((await group.ack(ack, { nack })).offsets[0]!.committed, 1);
  // The same again, as after a lost answer: 1 is not acknowledged by it either.
  assert.deepEqual((await group.ack(ack, { nack })).lost, []);
  assert.deepEqual(offsetsOf(await group.poll({ max: 2, order })), [4, 5]);
  await world.clock.advance(5_000);
  const again = await group.poll({ max: 100, order });
  assert.deepEqual(
    again.records.map(({ offset, deliveryCount }) => [offset, deliveryCount]),
    [[1, 2]],
  );
  await close();
});

test("a lease can be extended; one that was lost cannot, and says what was lost", async () => {
  const { world, group, close } = await setup(4);
  const { ack } = await group.poll({ lease: 10_000 });
  await world.clock.advance(9_000);
  assert.deepEqual(await group.ack(ack, { extend: 10_000 }), {
    offsets: [{ topic: "t", partition: 0, committed: null }],
    lost: [],
  });
  await world.clock.advance(9_000);
  assert.deepEqual((await group.poll()).records, []);
  await world.clock.advance(1_000);
  const other = await group.poll({ max: 3 });
  assert.deepEqual(offsetsOf(other), [0, 1, 2]);
  const partly = await group.ack(ack);
  assert.deepEqual(partly.lost, [{ topic: "t", partition: 0, from: 0, to: 2 }]);
  const lost = await drive(
    world.clock,
    group.send<Problem>("POST", "/ack", { ack, extend: 1_000 }),
  );
  assert.equal(lost.status, 200);
  await group.ack(other.ack);
  const late = await drive(
    world.clock,
    group.send<Problem>("POST", "/ack", {
      ack: other.ack,
      upTo: [],
      nack: [{ topic: "t", partition: 0, offset: 2 }],
    }),
  );
  assert.equal(late.status, 409);
  assert.deepEqual(late.body.lost, [{ topic: "t", partition: 0, from: 2, to: 2 }]);
  await close();
});

test("polls at the same time get different records, and all of them", async () => {
  const { world, group, close } = await setup(30, 2);
  const body = { topics: ["t"], max: 5, order: "none", wait: 1_000 };
  const polls = Array.from({ length: 12 }, () => group.send<Polled>("POST", "/poll", body));
  const answers = await drive(world.clock, Promise.all(polls));
  const places = answers.flatMap(({ body: { records } }) =>
    records.map(({ partition, offset }) => `${partition}/${offset}`)
  );
  assert.equal(new Set(places).size, places.length);
  assert.equal(places.length, 60);
  await close();
});

test("upTo acknowledges a part and leaves the rest leased", async () => {
  const { group, close } = await setup(6);
  const { ack } = await group.poll();
  const upTo = [{ topic: "t", partition: 0, offset: 2 }];
  assert.equal((await group.ack(ack, { upTo })).offsets[0]!.committed, 3);
  assert.deepEqual((await group.poll()).records, []);
  assert.equal((await group.ack(ack)).offsets[0]!.committed, 6);
  await close();
});

test("a late acknowledgement counts while nobody else has got the records", async () => {
  const { world, group, close } = await setup(4);
  const { ack } = await group.poll({ lease: 1_000 });
  await world.clock.advance(60_000);
  assert.equal((await group.ack(ack)).offsets[0]!.committed, 4);
  assert.deepEqual((await group.poll()).records, []);
  await close();
});

test("the same poll again finds the records of a lost answer, and no more deliveries", async () => {
  const { group, close } = await setup(6);
  const ask = { max: 3, member: "m", retry: "1" };
  const first = await group.poll(ask);
  assert.deepEqual(await group.poll(ask), first);
  assert.deepEqual((await group.poll({ ...ask, retry: "2" })).records, []);
  await group.ack(first.ack);
  assert.deepEqual(offsetsOf(await group.poll({ ...ask, retry: "2" })), [3, 4, 5]);
  await close();
});

test("a poll acknowledges the one before it", async () => {
  const { world, group, close } = await setup(6);
  const { ack } = await group.poll({ max: 3 });
  const next = await group.poll({ max: 3, ack });
  assert.deepEqual(offsetsOf(next), [3, 4, 5]);
  assert.equal(await committed(world), 3);
  await close();
});

test("autoCommit acknowledges before it answers", async () => {
  const { world, group, close } = await setup(6);
  const polled = await group.poll({ max: 4, autoCommit: true });
  assert.deepEqual([polled.ack, offsetsOf(polled)], [null, [0, 1, 2, 3]]);
  assert.equal(await committed(world), 4);
  assert.deepEqual(offsetsOf(await group.poll({ autoCommit: true })), [4, 5]);
  await close();
});

test("a poll waits for records, for a lease that ends, and for an acknowledgement", async () => {
  const { world, group, write, close } = await setup(2);
  const wait = 20_000;
  const first = await group.poll({ lease: 5_000 });
  const startedMs = world.clock.nowMs();
  const second = await group.poll({ wait, lease: 15_000 });
  assert.deepEqual(offsetsOf(second), [0, 1]);
  const waitedMs = world.clock.nowMs() - startedMs;
  assert.ok(waitedMs >= 4_000 && waitedMs <= 6_000, `${waitedMs}`);
  assert.notEqual(first.ack, second.ack);

  await write(1);
  const third = group.send<Polled>("POST", "/poll", { topics: ["t"], wait });
  await world.clock.settle();
  await group.ack(second.ack);
  assert.deepEqual(offsetsOf((await drive(world.clock, third)).body), [2]);

  const fourth = group.send<Polled>("POST", "/poll", { topics: ["t"], wait, order: "none" });
  await world.clock.settle();
  await write(2);
  assert.deepEqual(offsetsOf((await drive(world.clock, fourth)).body), [3, 4]);
  await close();
});

test("a client that is gone before its answer has leased nothing, and waits no longer", async () => {
  const { world, group, write, close } = await setup(0);
  const gone = new AbortController();
  const waiting = group.send<Polled>("POST", "/poll", { topics: ["t"], wait: 30_000 }, gone.signal);
  waiting.catch(() => {});
  await world.clock.settle();
  assert.equal(await world.metric("skerry_http_group_polls_waiting"), 1);
  gone.abort();
  await world.clock.settle();
  assert.equal(await world.metric("skerry_http_group_polls_waiting"), 0);
  await write(3);
  const { records } = await group.poll();
  assert.deepEqual(records.map(({ offset, deliveryCount }) => [offset, deliveryCount]), [
    [0, undefined],
    [1, undefined],
    [2, undefined],
  ]);
  await close();
});

test("a group from the end begins where it was first asked for, empty polls write nothing", async () => {
  const { world, group, write, close } = await setup(5);
  assert.deepEqual((await group.poll({ from: "latest" })).records, []);
  assert.equal(await committed(world), 5);
  const before = writesOf(world);
  for (let i = 0; i < 5; i++) assert.deepEqual((await group.poll({ from: "latest" })).records, []);
  assert.equal(writesOf(world), before);
  await write(2);
  assert.deepEqual(offsetsOf(await group.poll({ from: "latest" })), [5, 6]);
  await close();
});

test("while a Kafka member is in the group nothing is leased; it begins where the group is", async () => {
  const { q, world, group, close } = await setup(6);
  const { ack } = await group.poll({ max: 4 });
  await group.ack(ack, { upTo: [{ topic: "t", partition: 0, offset: 1 }] });
  const member = new GroupMember(q);
  assert.equal((await drive(world.clock, member.enter())).error, "NONE");
  assert.equal((await drive(world.clock, member.sync())).error, "NONE");
  const refused = await drive(world.clock, group.send<Problem>("POST", "/poll", { topics: ["t"] }));
  assert.deepEqual([refused.status, refused.body.kafka?.name], [409, "NON_EMPTY_GROUP"]);
  assert.equal((await drive(world.clock, group.send("POST", "/ack", { ack }))).status, 409);
  assert.equal(await committed(world), 2);

  const commit = q.commit("g", "t", 5, { generation: member.generation, memberId: member.id });
  assert.equal(await drive(world.clock, commit), "NONE");
  assert.equal(await drive(world.clock, member.leave()), "NONE");
  // What it has committed counts, and the lease from before is over.
  assert.deepEqual(offsetsOf(await group.poll()), [5]);
  await close();
});

test("offsets that are set from elsewhere end the leases of their partition", async () => {
  const { q, world, group, close } = await setup(6);
  const { ack } = await group.poll({ max: 4 });
  assert.equal(await drive(world.clock, q.commit("g", "t", 2)), "NONE");
  assert.deepEqual(offsetsOf(await group.poll({ max: 2 })), [2, 3]);
  const late = await group.ack(ack);
  assert.deepEqual(late.lost, [{ topic: "t", partition: 0, from: 2, to: 3 }]);
  assert.deepEqual(
    await group.put("/offsets", { offsets: [{ topic: "t", partition: 0, offset: "earliest" }] }),
    { offsets: [{ topic: "t", partition: 0, offset: 0 }] },
  );
  assert.deepEqual(
    (await group.poll({ max: 1 })).records.map(({ deliveryCount }) => deliveryCount),
    [
      undefined,
    ],
  );
  await close();
});

test("partitions have their turn, however much one of them has", async () => {
  const { group, close } = await setup(50, 3);
  const seen = new Map<number, number>();
  for (let i = 0; i < 9; i++) {
    const { records } = await group.poll({ max: 1, order: "none" });
    for (const { partition } of records) seen.set(partition, (seen.get(partition) ?? 0) + 1);
  }
  assert.deepEqual([...seen.values()], [3, 3, 3]);
  const { records } = await group.poll({ max: 30, order: "none" });
  for (let partition = 0; partition < 3; partition++) {
    assert.equal(records.filter((one) => one.partition === partition).length, 10);
  }
  await close();
});

test("tools see the group: list, description, offsets, lag; and delete it", async () => {
  const { world, group, close } = await setup(6);
  const none = await drive(world.clock, group.send<Problem>("GET", ""));
  assert.deepEqual([none.status, none.body.kafka?.name], [404, "GROUP_ID_NOT_FOUND"]);
  const { ack } = await group.poll({ max: 4, order: "none" });
  await group.ack(ack, {
    upTo: [{ topic: "t", partition: 0, offset: 1 }],
    nack: [{ topic: "t", partition: 0, offset: 3, delay: 1_000 }],
  });
  const list = await drive(world.clock, world.fetch("/v1/groups"));
  assert.deepEqual(await list.json(), {
    groups: [{ group: "g", type: "classic", state: "Empty", protocolType: "" }],
  });
  assert.deepEqual(await group.get(""), {
    group: "g",
    type: "classic",
    state: "Empty",
    protocolType: "",
    members: [],
    leases: [{
      topic: "t",
      partition: 0,
      start: 2,
      next: 4,
      leased: 1,
      returned: 1,
      acknowledged: 0,
    }],
  });
  const { offsets } = await group.get<{ offsets: { offset: number }[] }>("/offsets");
  assert.deepEqual(offsets.map(({ offset }) => offset), [2]);
  assert.deepEqual(await group.get("/lag"), {
    lag: 4,
    partitions: [{ topic: "t", partition: 0, committed: 2, end: 6, lag: 4 }],
  });
  assert.equal((await drive(world.clock, group.send("DELETE", ""))).status, 204);
  assert.equal((await drive(world.clock, group.send("DELETE", ""))).status, 404);
  const fresh = await group.poll();
  assert.deepEqual(
    fresh.records.map(({ deliveryCount }) => deliveryCount),
    Array.from({ length: 6 }, () => undefined),
  );
  await close();
});

test("what cannot be used is refused and named", async () => {
  const { world, group, close } = await setup(2);
  const { ack } = await group.poll();
  const other = new HttpGroup(world, "other");
  const cases: readonly (readonly [HttpGroup, string, unknown, number, RegExp])[] = [
    [group, "/poll", { topics: [] }, 400, /names no topic/],
    [group, "/poll", { topics: ["none"] }, 404, /Cannot find topic none/],
    [group, "/poll", { topics: ["t"], lease: 5 }, 400, /lease/],
    [group, "/poll", { topics: ["t"], retry: "1" }, 400, /retry without member/],
    [group, "/poll", { topics: ["t"], wat: 1 }, 400, /wat/],
    [group, "/poll", { topics: ["t"], ack: "x" }, 400, /ack/],
    [group, "/ack", { ack: `${ack}A` }, 400, /damaged/],
    [other, "/ack", { ack }, 400, /another group/],
    [
      group,
      "/ack",
      { ack, upTo: [{ topic: "t", partition: 0, offset: 2 }] },
      400,
      /not in its poll/,
    ],
    [
      group,
      "/ack",
      { ack, nack: [{ topic: "u", partition: 0, offset: 0 }] },
      400,
      /not in its poll/,
    ],
  ];
  for (const [one, path, body, status, detail] of cases) {
    const answer = await drive(world.clock, one.send<Problem>("POST", path, body));
    assert.equal(answer.status, status, JSON.stringify([body, answer.body]));
    assert.match(answer.body.detail, detail);
  }
  const acked: Acked = await group.ack(ack);
  assert.equal(acked.offsets[0]!.committed, 2);
  await close();
});

test("a topic that was deleted and created again is begun anew", async () => {
  const { q, world, group, close } = await setup(6);
  const { ack } = await group.poll({ max: 4 });
  await group.ack(ack, { upTo: [{ topic: "t", partition: 0, offset: 2 }] });
  assert.equal(
    (await drive(world.clock, world.fetch("/v1/topics/t", { method: "DELETE" }))).status,
    204,
  );
  await drive(world.clock, q.topic("t"));
  await drive(world.clock, q.produce("t", batch(["a", "b"])));
  assert.deepEqual(offsetsOf(await group.poll()), [0, 1]);
  await close();
});

test("no memory is held by polls that were answered, waited in vain, or were given up", async () => {
  const { world, q, group, close } = await setup(6);
  const held = async () =>
    await world.metric('skerry_permits_used_bytes{class="hot_fetch"}') +
    await world.metric('skerry_permits_used_bytes{class="cold_fetch"}');
  const { ack } = await group.poll({ max: 2 });
  await group.poll({ ack, wait: 500, max: 2, autoCommit: true });
  const gone = new AbortController();
  const body = { topics: ["t"], autoCommit: true, wait: 1_000 };
  world.store.setPlan(({ op }) => op === "put" ? { kind: "delay", delayMs: 3_000 } : undefined);
  const left = group.send("POST", "/poll", body, gone.signal);
  left.catch(() => {});
  await world.clock.settle();
  gone.abort();
  await world.clock.advance(5_000);
  world.store.setPlan();
  assert.equal(await held(), 0);
  assert.equal((await drive(world.clock, q.produce("t", batch(["x"])))).error, "NONE");
  assert.deepEqual(offsetsOf(await group.poll()), [6]);
  await close();
});

test("records that are gone are passed over", async () => {
  const { world, group, close } = await setup(6);
  const { ack } = await group.poll({ max: 2 });
  await group.ack(ack);
  const deleted = await drive(
    world.clock,
    world.fetch("/v1/topics/t/delete-records", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ partitions: [{ partition: 0, before: 4 }] }),
    }),
  );
  assert.equal(deleted.status, 200, await deleted.text());
  const next = await group.poll();
  assert.deepEqual(offsetsOf(next), [4, 5]);
  assert.equal((await group.ack(next.ack)).offsets[0]!.committed, 6);
  await close();
});

test("a poll that is the first to ask for a partition is woken by its first record", async () => {
  // Nothing has opened the log before: there is none yet that could be listened to.
  const { world, group, write, close } = await setup(0);
  const startedMs = world.clock.nowMs();
  const waiting = group.send<Polled>("POST", "/poll", { topics: ["t"], wait: 30_000 });
  await world.clock.advance(1_000);
  await write(1);
  assert.deepEqual(offsetsOf((await drive(world.clock, waiting)).body), [0]);
  const waitedMs = world.clock.nowMs() - startedMs;
  assert.ok(waitedMs < 5_000, `${waitedMs}`);
  await close();
});
