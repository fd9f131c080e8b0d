/** Share groups (KIP-932) on the wire: sheet section 3.19, and what Apache Kafka 4.2.1 answers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryStore } from "../../src/object/memory.ts";
import { ZERO_UUID } from "../../src/lib/uuid.ts";
import { deleteTopicsApi } from "../../src/protocol/message/20_delete_topics.ts";
import { describeConfigsApi } from "../../src/protocol/message/32_describe_configs.ts";
import { alterShareGroupOffsetsApi } from "../../src/protocol/message/91_alter_share_group_offsets.ts";
import { createFakeClock } from "../support/fake_clock.ts";
import { faultOnCall, faultyStore } from "../support/faulty_store.ts";
import { deleteRecordsApi } from "../../src/protocol/message/21_delete_records.ts";
import { batch, type Quirks, restarted, startQuirks } from "./quirks.ts";
import { ACCEPT, REJECT, RELEASE, RENEW, setGroup, ShareMember } from "./share_member.ts";

const LOCK_MS = 30_000;

interface World {
  readonly q: Quirks;
  readonly topicId: string;
  readonly a: ShareMember;
}

/** A topic, a group that begins at its first record, and a member with an open session. */
async function start(kafka: Readonly<Record<string, string>> = {}): Promise<World> {
  const q = await startQuirks(kafka);
  const topicId = await q.topic("t");
  assert.equal(await setGroup(q, "g", { "share.auto.offset.reset": "earliest" }), "NONE");
  const a = await new ShareMember(q, topicId).join();
  return { q, topicId, a };
}

function values(count: number, from = 0): string[] {
  return Array.from({ length: count }, (_, at) => `v${from + at}`);
}

test("records are given out once, and are done when they are accepted", async () => {
  const { q, topicId, a } = await start();
  await q.produce("t", batch(values(3)));
  await q.produce("t", batch(values(2, 3)));
  const first = await a.fetch();
  assert.deepEqual(first.values, values(5));
  assert.deepEqual(first.acquired, [[0, 4, 1]]);
  assert.equal(first.lockMs, LOCK_MS);
  const b = await new ShareMember(q, topicId).join();
  assert.deepEqual((await b.fetch()).acquired, [], "nobody else gets them");
  const next = await a.fetch({ acks: [[0, 4, ACCEPT]] });
  assert.equal(next.ackError, "NONE");
  assert.deepEqual(next.acquired, []);
  await q.produce("t", batch(values(1, 5)));
  assert.deepEqual((await b.fetch()).acquired, [[5, 5, 1]]);
  await q.node.close();
});

test("a fetch waits for records, and for records that others give back", async () => {
  const { q, topicId, a } = await start();
  const b = await new ShareMember(q, topicId).join();
  const waiting = a.fetch({ maxWaitMs: 10_000 });
  await q.produce("t", batch(values(2)));
  assert.deepEqual((await waiting).acquired, [[0, 1, 1]], "woken up by the records");
  const freed = b.fetch({ maxWaitMs: 10_000 });
  assert.equal(await a.ack([[0, 1, [ACCEPT, RELEASE]]]), "NONE");
  assert.deepEqual((await freed).acquired, [[1, 1, 2]], "woken up by what was released");
  await q.node.close();
});

test("an empty fetch ends at its time, and says nothing of the partition", async () => {
  const { q, a } = await start();
  const waiting = a.fetch({ maxWaitMs: 500, bare: true });
  await q.node.clock.advance(499);
  assert.equal(a.client.unread, 0);
  await q.node.clock.advance(1);
  const answer = await waiting;
  assert.deepEqual([answer.error, answer.partitions], ["NONE", 0]);
  await q.node.close();
});

test("a lock that ends gives its records back with one more delivery", async () => {
  const { q, topicId, a } = await start();
  await q.produce("t", batch(values(2)));
  await a.fetch();
  const b = await new ShareMember(q, topicId).join();
  await q.node.clock.advance(LOCK_MS - 1);
  assert.deepEqual((await b.fetch()).acquired, []);
  await q.node.clock.advance(1);
  assert.deepEqual((await b.fetch()).acquired, [[0, 1, 2]]);
  assert.equal(await a.ack([[0, 1, ACCEPT]]), "INVALID_RECORD_STATE", "it came too late");
  await q.node.close();
});

test("a renewed lock lasts from then on; renewing needs version 2, a flag and an idle fetch", async () => {
  const { q, topicId, a } = await start();
  await q.produce("t", batch(values(2)));
  await a.fetch();
  await q.node.clock.advance(LOCK_MS - 1);
  assert.equal(await a.ack([[0, 1, RENEW]]), "INVALID_REQUEST", "without the flag");
  assert.equal(await a.ack([[0, 1, RENEW]], { version: 1 }), "INVALID_REQUEST");
  assert.equal(await a.ack([[0, 1, RENEW]], { isRenewAck: true }), "NONE");
  const busy = await a.fetch({ acks: [[0, 1, RENEW]], isRenewAck: true });
  assert.equal(busy.error, "INVALID_REQUEST");
  const idle = { maxBytes: 0, minBytes: 0, maxRecords: 0, maxWaitMs: 0 };
  const renewed = await a.fetch({ acks: [[0, 1, RENEW]], isRenewAck: true, ...idle });
  assert.deepEqual([renewed.error, renewed.ackError], ["NONE", "NONE"]);
  await a.beat();
  await q.node.clock.advance(LOCK_MS - 1);
  const b = await new ShareMember(q, topicId).join();
  assert.deepEqual((await b.fetch()).acquired, []);
  assert.equal(await a.ack([[0, 1, ACCEPT]]), "NONE");
  await q.node.close();
});

test("a record that fails comes in smaller parts, alone at last, and then no more", async () => {
  const { q, a } = await start();
  await q.produce("t", batch(values(8)));
  const seen: (readonly (readonly number[])[])[] = [];
  for (let i = 0; i < 40; i++) {
    const { acquired } = await a.fetch();
    if (acquired.length === 0) break;
    seen.push(acquired);
    for (const [first, last] of acquired) {
      assert.equal(await a.ack([[first, last, RELEASE]]), "NONE");
    }
  }
  assert.deepEqual(seen.slice(0, 4), [[[0, 7, 1]], [[0, 7, 2]], [[0, 7, 3]], [[0, 3, 4]]]);
  const counts = new Map<number, number>();
  for (const [first, last] of seen.flat()) {
    for (let at = first!; at <= last!; at++) counts.set(at, (counts.get(at) ?? 0) + 1);
  }
  assert.deepEqual([...counts.values()], Array(8).fill(5), "five deliveries each");
  const alone = seen.flat().filter(([, , count]) => count === 5);
  assert.equal(alone.length, 8, "the last one alone");
  await q.node.close();
});

test("sessions: opened by 0, counted up, ended by -1", async () => {
  const { q, topicId, a } = await start();
  await q.produce("t", batch(values(4)));
  assert.equal((await a.fetch({ epoch: 7 })).error, "INVALID_SHARE_SESSION_EPOCH");
  assert.equal((await a.fetch({ epoch: 0, acks: [[0, 0, ACCEPT]] })).error, "INVALID_REQUEST");
  assert.equal(await a.ack([[0, 0, ACCEPT]], { epoch: 0 }), "INVALID_SHARE_SESSION_EPOCH");
  assert.equal(await a.ack([[0, 0, ACCEPT]], { epoch: 9 }), "INVALID_SHARE_SESSION_EPOCH");
  const b = new ShareMember(q, topicId);
  assert.equal((await b.fetch({ epoch: 1 })).error, "SHARE_SESSION_NOT_FOUND");
  assert.equal((await b.fetch({ epoch: -1 })).error, "SHARE_SESSION_NOT_FOUND");
  assert.equal(await b.ack([[0, 0, ACCEPT]], { epoch: 1 }), "SHARE_SESSION_NOT_FOUND");
  assert.deepEqual((await a.fetch({ bare: true })).acquired, [[0, 3, 1]], "it remembers");
  const forgot = await a.fetch({ bare: true, forget: [0], acks: [] });
  assert.equal(forgot.error, "NONE");
  await q.produce("t", batch(values(1, 4)));
  assert.deepEqual((await a.fetch({ bare: true })).acquired, [], "it was told to forget");
  const ended = await a.fetch({ epoch: -1, acks: [[0, 1, ACCEPT]] });
  assert.deepEqual([ended.error, ended.ackError, ended.acquired], ["NONE", "NONE", []]);
  assert.equal((await a.fetch({ epoch: 1 })).error, "SHARE_SESSION_NOT_FOUND");
  await q.node.close();
});

test("what a session has is free when it ends: by its member, or with its connection", async () => {
  const { q, topicId, a } = await start();
  await q.produce("t", batch(values(4)));
  await a.fetch();
  const b = await new ShareMember(q, topicId).join();
  assert.equal(await a.ack([[0, 1, ACCEPT]], { epoch: -1 }), "NONE");
  assert.deepEqual((await b.fetch()).acquired, [[2, 3, 2]]);
  const c = await new ShareMember(q, topicId).join();
  const freed = c.fetch({ maxWaitMs: 10_000 });
  b.client.push(null);
  assert.deepEqual((await freed).acquired, [[2, 3, 3]]);
  await q.node.close();
});

test("only so many sessions, and the refusal takes its time", async () => {
  const { q, topicId, a } = await start({ "group.share.max.share.sessions": "1" });
  const b = new ShareMember(q, topicId);
  const refused = b.fetch({ maxWaitMs: 500 });
  await q.node.clock.advance(499);
  assert.equal(b.client.unread, 0);
  await q.node.clock.advance(1);
  assert.equal((await refused).error, "SHARE_SESSION_LIMIT_REACHED");
  assert.equal((await a.fetch({ epoch: 0 })).error, "NONE", "its own may be opened again");
  await q.node.close();
});

test("requests that cannot be are refused, and the records are what they were", async () => {
  const { q, topicId, a } = await start();
  await q.produce("t", batch(values(4)));
  await a.fetch();
  assert.equal(await a.ack([[0, 9, ACCEPT]]), "INVALID_REQUEST", "past what was given out");
  assert.equal(await a.ack([[2, 1, ACCEPT]]), "INVALID_REQUEST");
  assert.equal(await a.ack([[2, 3, ACCEPT], [0, 1, ACCEPT]]), "INVALID_REQUEST", "out of order");
  assert.equal(await a.ack([[0, 3, [ACCEPT, ACCEPT]]]), "INVALID_REQUEST");
  assert.equal(await a.ack([[0, 3, []]]), "INVALID_REQUEST");
  assert.equal(await a.ack([[0, 3, 9]]), "INVALID_REQUEST");
  assert.equal(await a.ack([[0, 3, -1]]), "INVALID_REQUEST");
  for (const far of [2 ** 53 - 1, Number.MIN_SAFE_INTEGER]) {
    assert.equal(await a.ack([[0, far, ACCEPT]]), "INVALID_REQUEST");
    assert.equal(await a.ack([[far, far, ACCEPT]]), "INVALID_REQUEST");
  }
  assert.equal(await a.ack([[-4, 3, [1, 1, 1, 1, 1, 1, 1, 9]]]), "INVALID_REQUEST");
  assert.equal(await a.ack([[0, 3, ACCEPT]], { partition: 1 }), "UNKNOWN_TOPIC_OR_PARTITION");
  const b = await new ShareMember(q, topicId).join();
  assert.equal(await b.ack([[0, 3, ACCEPT]]), "INVALID_RECORD_STATE", "they are another's");
  assert.equal(await a.ack([[1, 1, ACCEPT], [2, 2, REJECT]]), "NONE");
  assert.equal(await a.ack([[0, 3, ACCEPT]]), "INVALID_RECORD_STATE", "all or nothing");
  assert.equal(await a.ack([[0, 0, ACCEPT], [3, 3, ACCEPT]]), "NONE");
  assert.equal(await a.ack([[0, 3, ACCEPT]]), "NONE", "below the start: done already");
  for (const id of ["", "x".repeat(37)]) {
    const { error } = await a.fetch({ more: { memberId: id } });
    assert.equal(error, "INVALID_REQUEST", `member id of ${id.length} characters`);
  }
  await q.node.close();
});

test("a partition that stands in a request twice counts once, with what comes last", async () => {
  const { q, topicId, a } = await start();
  await q.produce("t", batch(values(2)));
  await a.fetch();
  const partitions = [0, 1].map((at) => ({
    partitionIndex: 0,
    acknowledgementBatches: [{ firstOffset: at, lastOffset: at, acknowledgeTypes: [ACCEPT] }],
  }));
  assert.equal(await a.ack([], { more: { topics: [{ topicId, partitions }] } }), "NONE");
  assert.equal(await a.ack([[0, 0, RELEASE]]), "NONE");
  const b = await new ShareMember(q, topicId).join();
  assert.deepEqual((await b.fetch()).acquired, [[0, 0, 2]], "it was not accepted");
  await q.node.close();
});

test("unknown topics and partitions have errors of their own, and others go on", async () => {
  const { q, a } = await start();
  await q.produce("t", batch(values(1)));
  const lost = await a.fetch({ epoch: 0, partition: 5 });
  assert.equal(lost.fetchError, "UNKNOWN_TOPIC_OR_PARTITION");
  const nobody = "ab".repeat(16);
  const answer = await a.raw({
    epoch: 0,
    more: {
      topics: [a.topicId, nobody].map((topicId) => ({
        topicId,
        partitions: [{ partitionIndex: 0, acknowledgementBatches: [] }],
      })),
    },
  });
  const codes = answer.responses.map(({ topicId, partitions }) => [
    topicId,
    partitions[0]!.errorCode,
    partitions[0]!.acquiredRecords.length,
  ]);
  assert.deepEqual(codes.toSorted(), [[a.topicId, 0, 1], [nobody, 100, 0]].toSorted());
  await q.node.close();
});

test("how much comes: whole batches of the log, or so many records", async () => {
  const { q, a } = await start();
  for (const from of [0, 5, 10]) await q.produce("t", batch(values(5, from)));
  const whole = await a.fetch({ maxRecords: 7, batchSize: 3 });
  assert.deepEqual(whole.acquired, [[0, 4, 1], [5, 9, 1]], "to the end of its batch");
  const exact = await a.fetch({ maxRecords: 2, mode: 1 });
  assert.deepEqual(exact.acquired, [[10, 11, 1]]);
  assert.deepEqual(exact.values, values(5, 10), "the batch comes whole");
  assert.deepEqual((await a.fetch({ maxRecords: 2, mode: 1 })).acquired, [[12, 13, 1]]);
  assert.deepEqual((await a.fetch({ maxRecords: 500 })).acquired, [[14, 14, 1]]);
  await q.node.close();
});

test("no more than the limit is under way; what is in between may still be taken", async () => {
  const { q, a } = await start({ "group.share.partition.max.record.locks": "100" });
  await q.produce("t", batch(values(60)));
  await q.produce("t", batch(values(60, 60)));
  await q.produce("t", batch(values(60, 120)));
  const taken = [...(await a.fetch()).acquired, ...(await a.fetch()).acquired];
  assert.deepEqual(taken, [[0, 119, 1]]);
  assert.deepEqual((await a.fetch()).acquired, [], "it is full");
  assert.equal(await a.ack([[10, 19, RELEASE]]), "NONE");
  assert.deepEqual((await a.fetch()).acquired, [[10, 19, 2]]);
  assert.equal(await a.ack([[0, 59, ACCEPT]]), "NONE");
  assert.deepEqual((await a.fetch()).acquired, [[120, 179, 1]]);
  await q.node.close();
});

test("a group begins at its end when nothing is said, and at a time when that is said", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t");
  await q.produce("t", batch(values(3)));
  const latest = await new ShareMember(q, topicId, "late").join();
  assert.deepEqual((await latest.fetch()).values, [], "it begins with its first fetch");
  await q.produce("t", batch(values(1, 3)));
  assert.deepEqual((await latest.fetch()).values, ["v3"]);
  await q.node.close();
});

test("a group may begin at a time", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t");
  const now = q.node.clock.nowMs();
  await q.produce("t", batch([{ value: "old", timestamp: now - 7_200_000 }]));
  await q.produce("t", batch([{ value: "new", timestamp: now - 1_800_000 }]));
  assert.equal(await setGroup(q, "g", { "share.auto.offset.reset": "by_duration:PT1H" }), "NONE");
  const a = await new ShareMember(q, topicId).join();
  assert.deepEqual((await a.fetch()).values, ["new"]);
  await q.node.close();
});

test("what was acknowledged is so after a crash; what was only acquired comes again", async () => {
  const { q, topicId, a } = await start();
  await q.produce("t", batch(values(6)));
  await a.fetch();
  assert.equal(await a.ack([[0, 1, ACCEPT], [3, 3, RELEASE], [5, 5, REJECT]]), "NONE");
  const later = await restarted(q, { clean: false });
  const b = await new ShareMember(later, topicId).join();
  const { acquired } = await b.fetch();
  assert.deepEqual(acquired, [[2, 2, 1], [3, 3, 2], [4, 4, 1]]);
  assert.equal(await b.ack([[2, 4, ACCEPT]]), "NONE");
  assert.deepEqual((await b.fetch()).acquired, []);
  await later.node.close();
});

test("records below the start of the log are done", async () => {
  const { q, a } = await start();
  for (const from of [0, 5]) await q.produce("t", batch(values(5, from)));
  await a.fetch({ maxRecords: 5 });
  await q.call(deleteRecordsApi, 2, {
    topics: [{ name: "t", partitions: [{ partitionIndex: 0, offset: 7 }] }],
    timeoutMs: 1000,
  });
  assert.deepEqual((await a.fetch()).acquired, [[7, 9, 1]]);
  assert.equal(await a.ack([[0, 4, ACCEPT]]), "NONE", "done already");
  assert.equal(await a.ack([[5, 9, ACCEPT]]), "NONE");
  await q.node.close();
});

test("two fetches of one partition take turns, and both get theirs", async () => {
  const { q, topicId, a } = await start();
  const b = await new ShareMember(q, topicId).join();
  const waiting = [a, b].map((one) => one.fetch({ maxWaitMs: 10_000, maxRecords: 1, mode: 1 }));
  await q.produce("t", batch(values(2)));
  const taken = (await Promise.all(waiting)).flatMap(({ acquired }) => acquired);
  assert.deepEqual(taken.toSorted(([x], [y]) => x - y), [[0, 0, 1], [1, 1, 1]]);
  await q.node.close();
});

test("a deleted topic ends its share partitions", async () => {
  const { q, a } = await start();
  await q.produce("t", batch(values(2)));
  await a.fetch();
  const waiting = a.fetch({ maxWaitMs: 10_000, bare: true });
  await q.call(deleteTopicsApi, 6, {
    topics: [{ name: "t", topicId: ZERO_UUID }],
    timeoutMs: 1000,
  });
  assert.equal((await waiting).fetchError, "UNKNOWN_TOPIC_ID");
  assert.equal(await a.ack([[0, 1, ACCEPT]]), "UNKNOWN_TOPIC_ID");
  await q.node.close();
});

test("a group that was never begun has nothing to read, and is told so after its wait", async () => {
  const { q, topicId } = await start();
  const b = new ShareMember(q, topicId, "nobody");
  const waiting = b.fetch({ maxWaitMs: 500 });
  await q.node.clock.advance(499);
  assert.equal(b.client.unread, 0);
  await q.node.clock.advance(1);
  assert.equal((await waiting).fetchError, "KAFKA_STORAGE_ERROR");
  assert.equal(await b.ack([[0, 0, ACCEPT]]), "UNKNOWN_TOPIC_OR_PARTITION");
  await q.node.close();
});

test("an acknowledgement that is not stored yet is not answered, and a crash leaves it undone", async () => {
  const clock = createFakeClock();
  const store = faultyStore(createMemoryStore(clock), clock);
  const q = await startQuirks({}, { clock, store });
  const topicId = await q.topic("t");
  await setGroup(q, "g", { "share.auto.offset.reset": "earliest" });
  const a = await new ShareMember(q, topicId).join();
  await q.produce("t", batch(values(2)));
  await a.fetch();
  store.setPlan(({ op }) => op === "put" ? { kind: "hang", happens: false } : undefined);
  let answer: string | null = null;
  a.ack([[0, 1, ACCEPT]]).then((error) => void (answer = error), () => {});
  await clock.advance(100);
  assert.equal(answer, null);
  store.setPlan();
  const later = await restarted(q, { clean: false });
  const b = await new ShareMember(later, topicId).join();
  assert.deepEqual((await b.fetch()).acquired, [[0, 1, 1]]);
  await later.node.close();
});

test("a group whose records are settled starts anew where an admin says", async () => {
  const { q, topicId, a } = await start();
  await q.produce("t", batch(values(5)));
  await a.fetch();
  assert.equal(await a.ack([[0, 4, ACCEPT]], { epoch: -1 }), "NONE");
  assert.equal((await a.beat(-1)).error, "NONE");
  const stranger = new ShareMember(q, topicId);
  assert.deepEqual((await stranger.fetch({ epoch: 0 })).acquired, [], "reads without joining");
  const altered = await q.call(alterShareGroupOffsetsApi, 0, {
    groupId: "g",
    topics: [{ topicName: "t", partitions: [{ partitionIndex: 0, startOffset: 3 }] }],
  });
  assert.equal(altered.responses[0]?.partitions[0]?.errorCode, 0);
  assert.deepEqual((await stranger.fetch()).acquired, [[3, 4, 1]]);
  await q.node.close();
});

test("who leaves the group gives back what it has", async () => {
  const { q, topicId, a } = await start();
  await q.produce("t", batch(values(2)));
  await a.fetch();
  const b = await new ShareMember(q, topicId).join();
  const freed = b.fetch({ maxWaitMs: 10_000 });
  assert.equal((await a.beat(-1)).error, "NONE");
  assert.deepEqual((await freed).acquired, [[0, 1, 2]]);
  assert.equal((await a.fetch()).error, "SHARE_SESSION_NOT_FOUND");
  await q.node.close();
});

test("the state topic is nobody's to make, and is never compacted by key", async () => {
  const q = await startQuirks();
  await assert.rejects(q.topic("__share_group_state"), /made with the first share group/);
  const topicId = await q.topic("t");
  await new ShareMember(q, topicId).join();
  const asked = { resourceType: 2, resourceName: "__share_group_state", configurationKeys: null };
  const { results } = await q.call(describeConfigsApi, 4, {
    resources: [asked],
    includeSynonyms: false,
    includeDocumentation: false,
  });
  const found = new Map(results[0]!.configs.map(({ name, value }) => [name, value]));
  assert.deepEqual([found.get("cleanup.policy"), found.get("retention.ms")], ["delete", "-1"]);
  await q.node.close();
});

test("whichever write of the store fails, what was answered as done never comes again", async () => {
  for (const kind of ["fail", "lose-answer"] as const) {
    for (let nth = 1; nth <= 4; nth++) {
      const clock = createFakeClock();
      const store = faultyStore(createMemoryStore(clock), clock);
      const q = await startQuirks({}, { clock, store });
      const topicId = await q.topic("t");
      await setGroup(q, "g", { "share.auto.offset.reset": "earliest" });
      const a = await new ShareMember(q, topicId).join();
      await q.produce("t", batch(values(4)));
      await a.fetch();
      store.setPlan(faultOnCall(nth, { kind }, ["put"]));
      const done: number[] = [];
      for (let at = 0; at < 4; at++) {
        const acked = a.ack([[at, at, ACCEPT]]);
        await clock.advance(2_000);
        if (await acked === "NONE") done.push(at);
      }
      store.setPlan();
      const later = await restarted(q, { clean: false });
      const b = await new ShareMember(later, topicId).join();
      const again = (await b.fetch()).acquired.flatMap(([first, last]) =>
        Array.from({ length: last - first + 1 }, (_, i) => first + i)
      );
      assert.deepEqual(again.filter((at) => done.includes(at)), [], `${kind} ${nth}`);
      assert.equal(new Set([...again, ...done]).size, 4, "and nothing is lost");
      await later.node.close();
    }
  }
});
