/** The client and a real node: over sockets, through connections that break, and without any socket. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { type Broker, createBroker } from "../../mod.ts";
import {
  type Client,
  type ConsumedRecord,
  createClient,
  SkerryError,
} from "../../src/client/mod.ts";
import { type Host, systemHost } from "../../src/client/host.ts";
import { Http } from "../../src/client/http.ts";
import { Topic } from "../../src/client/topic.ts";
import { seededRandom } from "../../src/env/random.ts";
import { cuttingProxy } from "../support/cutting_proxy.ts";

let broker: Broker;
let client: Client;
before(async () => {
  broker = await createBroker({ store: "memory:", kafka: { "num.partitions": "3" } });
  client = createClient({ url: broker.http.url });
});
after(() => broker.close());

async function take<V>(
  records: AsyncIterable<ConsumedRecord<V>>,
  count: number,
): Promise<ConsumedRecord<V>[]> {
  const got: ConsumedRecord<V>[] = [];
  for await (const record of records) {
    got.push(record);
    if (got.length === count) break;
  }
  return got;
}

test("topics are made, listed, described and deleted", async () => {
  const made = await client.topics.create({
    name: "made",
    partitions: 2,
    configs: { "cleanup.policy": "compact" },
  });
  assert.equal(made.partitions, 2);
  assert.ok((await client.topics.list()).some(({ name }) => name === "made"));
  assert.equal((await client.topics.describe("made"))?.topicId, made.topicId);
  await assert.rejects(client.topics.create({ name: "made" }), { code: "TOPIC_ALREADY_EXISTS" });
  await client.topics.delete("made");
  assert.equal(await client.topics.describe("made"), null);
  await assert.rejects(client.topics.delete("made"), { status: 404 });
});

test("what is written is read: keys, bytes, headers, tombstones, times, partitions", async () => {
  const topic = client.topic("values");
  const at = 1_700_000_000_000;
  const given = [
    { key: "k", value: "text ä", headers: { a: "1", b: new Uint8Array([255]), c: null } },
    { key: new Uint8Array([254]), value: new Uint8Array([0, 255]) },
    { value: null, key: "gone" },
    { value: { $base64: "AA==", deep: [1] } },
    { value: 5, timestamp: at },
  ];
  const stored = await topic.produce(given.map((record) => ({ ...record, partition: 1 })));
  assert.deepEqual(stored.map(({ partition, offset }) => [partition, offset]), [
    [1, 0],
    [1, 1],
    [1, 2],
    [1, 3],
    [1, 4],
  ]);
  const got = await take(topic.consume(), 5);
  assert.deepEqual(got.map(({ key }) => key), ["k", new Uint8Array([254]), "gone", null, null]);
  assert.deepEqual(got.map(({ value }) => value), [
    "text ä",
    new Uint8Array([0, 255]),
    null,
    '{"$base64":"AA==","deep":[1]}',
    "5",
  ]);
  // The first record of a batch with a key has a header of the broker's.
  const own = got[0]!.headers.filter(([name]) => name !== "skerry-idempotency");
  assert.deepEqual(own, [["a", "1"], ["b", new Uint8Array([255])], ["c", null]]);
  assert.equal(got[4]!.timestamp, at);
  const [last] = await take(topic.consume<number>({ cursor: got[3]!.cursor, encoding: "json" }), 1);
  assert.equal(last!.value, 5);
  const [keyed] = await take(topic.consume({ keys: [new Uint8Array([254])] }), 1);
  assert.equal(keyed!.offset, 1);
  const [tagged] = await take(topic.consume({ headers: { b: new Uint8Array([255]) } }), 1);
  assert.equal(tagged!.offset, 0);
});

test("a key of the caller's own stores once, from any program", async () => {
  const send = () =>
    createClient({ url: broker.http.url }).topic("deliveries").produce(
      { value: "paid" },
      { idempotencyKey: "delivery-17" },
    );
  const first = await send();
  assert.deepEqual(await send(), { ...first, duplicate: true });
});

test("records that are too large harm no others, in whatever turn they come", async () => {
  const topic = client.topic("large");
  await client.topics.create({
    name: "large",
    partitions: 1,
    configs: { "max.message.bytes": 1000 },
  });
  const values = ["a", "b", "x".repeat(2000), "c", "d"];
  const settled = await Promise.allSettled(values.map((value) => topic.produce({ value })));
  assert.deepEqual(settled.map(({ status }) => status === "fulfilled"), [
    true,
    true,
    false,
    true,
    true,
  ]);
  assert.equal((settled[2] as PromiseRejectedResult).reason.code, "MESSAGE_TOO_LARGE");
  const got = await take(topic.consume(), 4);
  assert.deepEqual(got.map(({ value }) => value).toSorted(), ["a", "b", "c", "d"]);
});

test("through connections that are cut everywhere, each record is stored once and read once", async () => {
  const random = seededRandom(7);
  const proxy = await cuttingProxy(broker.http.url, () => 200 + Math.floor(random.float() * 1_500));
  try {
    await client.topics.create({ name: "cut", partitions: 3 });
    const cut = createClient({ url: proxy.url }).topic("cut");
    const values = Array.from({ length: 30 }, (_, i) => String(i));
    const reading = take(cut.consume(), values.length);
    for (const value of values) await cut.produce({ key: `k${Number(value) % 7}`, value });
    // A page that is cut in the middle comes as nothing at all: some hosts drop what they have of it.
    proxy.spare();
    const got = await reading;
    assert.ok(proxy.cuts > 5, `${proxy.cuts} cuts`);
    const numbers = got.map(({ value }) => Number(value)).toSorted((a, b) => a - b);
    assert.deepEqual(numbers.map(String), values);
    for (const partition of [0, 1, 2]) {
      const offsets = got.filter((one) => one.partition === partition).map(({ offset }) => offset);
      assert.deepEqual(offsets, offsets.map((_, i) => i), `partition ${partition}`);
    }
  } finally {
    await proxy.close();
  }
});

/** Requests are refused, lost on their way, or answered in vain; pauses are nothing, and nothing is late. */
function losingHost(fates: readonly string[]): Host {
  let next = 0;
  return {
    ...systemHost(),
    after: (delayMs, work) => {
      if (delayMs < 20_000) setImmediate(work);
      return () => {};
    },
    async fetch(url, init) {
      const fate = fates[next++];
      if (fate === "refused") throw new TypeError("refused");
      if (fate === "busy") return new Response("{}", { status: 503 });
      const answering = broker.fetch(new Request(url, init));
      // Still at work when the next attempt comes.
      if (fate === "hasty") {
        answering.catch(() => {});
        throw new TypeError("reset");
      }
      const answer = await answering;
      if (fate === "lost") throw new TypeError("reset");
      return fate === "cut" ? new Response((await answer.text()).slice(0, 20)) : answer;
    },
  };
}

test("whatever gets lost, each record is stored once and in the order of the calls", async () => {
  let runs = 0;
  const fate = fc.constantFrom("refused", "busy", "lost", "hasty", "cut", "fine");
  const call = fc.record({ records: fc.integer({ min: 1, max: 5 }), pause: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fate, { maxLength: 30 }),
      fc.array(call, { minLength: 1, maxLength: 12 }),
      async (fates, calls) => {
        const name = `lossy-${runs++}`;
        const topic = new Topic(new Http(losingHost(fates), { url: "http://node" }), name, {});
        const values: string[] = [];
        const produced = [];
        for (const { records, pause } of calls) {
          const some = Array.from({ length: records }, () => `v${values.push("") - 1}`);
          produced.push(topic.produce(some.map((value) => ({ value, partition: 1 }))));
          if (pause) await new Promise((done) => setImmediate(done));
        }
        const places = (await Promise.all(produced)).flat();
        assert.deepEqual(places.map(({ offset }) => offset), values.map((_, i) => i));
        const got = await take(client.topic(name).consume(), values.length);
        assert.deepEqual(got.map(({ value }) => value), values.map((_, i) => `v${i}`));
        const page = await fetch(
          `${broker.http.url}/v1/topics/${name}/partitions/1/records?offset=latest`,
        );
        assert.equal((await page.json() as { next: number }).next, values.length);
      },
    ),
    { numRuns: 25 },
  );
});

test("groups: leases, acknowledgements, and what is given back comes again", async () => {
  const topic = client.topic("jobs");
  await client.topics.create({ name: "jobs", partitions: 1 });
  await topic.produce(Array.from({ length: 6 }, (_, i) => ({ value: `job ${i}`, partition: 0 })));
  const one = client.group("workers");
  const other = client.group("workers");
  const batch = await one.poll({ topics: ["jobs"], max: 4 });
  assert.deepEqual(batch.records.map(({ value }) => value), ["job 0", "job 1", "job 2", "job 3"]);
  assert.deepEqual((await other.poll({ topics: ["jobs"] })).records, [], "its partition is leased");
  assert.deepEqual(await batch.extend(60_000), []);
  assert.deepEqual(await batch.ack({ nack: [batch.records[2]!] }), []);
  const again = await other.poll({ topics: ["jobs"], max: 10, order: "none" });
  assert.deepEqual(again.records.map(({ offset, deliveryCount }) => [offset, deliveryCount]), [
    [2, 2],
  ]);
  // Acknowledged is acknowledged: a repeat says nothing new.
  assert.equal((await batch.ack()).length, 1, "the one that was given back is another's");
  await again.ack();
  const rest: string[] = [];
  for await (const { records } of other.consume<string>({ topics: ["jobs"], encoding: "json" })) {
    rest.push(...records.map(({ offset }) => String(offset)));
    if (rest.length === 2) break;
  }
  assert.deepEqual(rest, ["4", "5"]);
});

test("a loop over a group acknowledges what it has done, and gives back what it left", async () => {
  const topic = client.topic("steps");
  await topic.produce(Array.from({ length: 3 }, (_, i) => ({ value: `${i}`, partition: 0 })));
  const seen: string[] = [];
  for await (const { records } of client.group("steps").consume({ topics: ["steps"], max: 1 })) {
    seen.push(String(records[0]!.value));
    if (seen.length === 3) break;
  }
  assert.deepEqual(seen, ["0", "1", "2"]);
  // The last one was left: it is leased for a second more, then it is anybody's.
  const next = await client.group("steps").poll({ topics: ["steps"], waitMs: 5_000 });
  assert.deepEqual(next.records.map(({ value, deliveryCount }) => [value, deliveryCount]), [[
    "2",
    2,
  ]]);
});

test("it needs no socket: any function from request to response will do", async () => {
  const local = createClient({
    url: "http://broker",
    fetch: (url, init) => broker.fetch(new Request(url, init)),
  });
  await local.topic("inside").produce({ value: "hello" });
  const [record] = await take(local.topic("inside").consume(), 1);
  assert.equal(record!.value, "hello");
  await assert.rejects(
    take(local.topic("nowhere").consume(), 1),
    (error) => error instanceof SkerryError && error.status === 404,
  );
});
