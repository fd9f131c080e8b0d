/** The cluster object: one creator, everybody else reads, mismatches are said in one line. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { faultOnCall, faultyStore } from "../../tests/support/faulty_store.ts";
import { silentLogger } from "../env/logger.ts";
import { seededRandom } from "../env/random.ts";
import { toUtf8 } from "../lib/bytes.ts";
import { isFault } from "../lib/errors.ts";
import { createMemoryStore } from "../object/memory.ts";
import { CLUSTER_KEY, dataKey, logKey } from "../object/object_key.ts";
import { objectId, position } from "../lib/brand.ts";
import { newClusterId, openCluster, readCluster } from "./cluster.ts";

const clock = createFakeClock();

function options(seed: number, clusterId?: string) {
  const base = { clock, log: silentLogger, random: seededRandom(seed) };
  return clusterId === undefined ? base : { ...base, clusterId };
}

test("the first start names the cluster, later ones read the name", async () => {
  const store = createMemoryStore(clock);
  const first = await openCluster(store, options(1));
  assert.match(first.clusterId, /^[A-Za-z0-9_-]{22}$/);
  assert.deepEqual(await openCluster(store, options(2)), first);
  assert.deepEqual(await openCluster(store, options(2, first.clusterId)), first);
  const named = await openCluster(createMemoryStore(clock), options(1, "edge.7"));
  assert.equal(named.clusterId, "edge.7");
});

test("ids are URL-safe and never look like an option", () => {
  const ids = Array.from({ length: 300 }, (_, seed) => newClusterId(seededRandom(seed)));
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids) assert.match(id, /^[A-Za-z0-9_][A-Za-z0-9_-]{21}$/);
  const zeros = { ...seededRandom(1), bytes: (count: number) => new Uint8Array(count) };
  assert.equal(newClusterId(zeros), "A".repeat(22));
});

test("metadata without its cluster object is a loss, not a new cluster", async () => {
  const store = createMemoryStore(clock);
  await store.put(logKey("Küste 7", position(1)), toUtf8("entry"));
  const lost = (error: unknown) =>
    isFault(error, "corrupt") && /meta\/cluster is missing/.test(String(error));
  await assert.rejects(openCluster(store, options(1)), lost);
  await assert.rejects(openCluster(store, options(1, "another")), lost);
  assert.equal(await store.get(CLUSTER_KEY), null);
  assert.equal((await openCluster(store, options(1, "Küste 7"))).clusterId, "Küste 7");
  assert.equal((await openCluster(store, options(1))).clusterId, "Küste 7");
});

test("data of the cluster that is asked for, without any metadata: a loss, or half a copy", async () => {
  const store = createMemoryStore(clock);
  await store.put(dataKey("copy", objectId(700)), toUtf8("data"));
  await assert.rejects(
    openCluster(store, options(1, "copy")),
    (error) => isFault(error, "corrupt") && /no metadata/.test(String(error)),
  );
  assert.equal(await store.get(CLUSTER_KEY), null);
});

test("a cluster further down in the bucket does not stand in the way of a first start", async () => {
  const store = createMemoryStore(clock);
  for (const key of [dataKey("below", objectId(1)), logKey("below", position(1)), CLUSTER_KEY]) {
    await store.put(`team/${key}`, toUtf8("x"));
  }
  assert.equal((await openCluster(store, options(1, "above"))).clusterId, "above");
});

test("a first start that is behind another one takes its cluster", async () => {
  const store = createMemoryStore(clock);
  const list = store.list.bind(store);
  store.list = (prefix, more) => {
    store.list = list;
    return (async function* () {
      await openCluster(store, options(1, "first"));
      await store.put(logKey("first", position(1)), toUtf8("entry"));
      yield* list(prefix, more);
    })();
  };
  assert.equal((await openCluster(store, options(2))).clusterId, "first");
});

test("starts that race agree, also when an answer is lost", async () => {
  const base = createMemoryStore(clock);
  const lossy = faultyStore(base, clock, faultOnCall(1, { kind: "lose-answer" }, ["put"]));
  const all = [openCluster(lossy, options(1)), openCluster(base, options(2))];
  await clock.advance(5_000);
  const [one, two] = await Promise.all(all);
  assert.deepEqual(one, two);
});

test("another cluster, a newer build, a bad name, a broken object", async () => {
  const store = createMemoryStore(clock);
  const config = (error: unknown) => isFault(error, "config");
  await openCluster(store, options(1, "one"));
  await assert.rejects(
    openCluster(store, options(1, "two")),
    (error: unknown) =>
      config(error) && /cluster-id = two: the store belongs to cluster one/.test(String(error)),
  );
  for (const name of ["", " a", "x".repeat(81), "a\nb"]) {
    const empty = createMemoryStore(clock);
    await assert.rejects(openCluster(empty, options(1, name)), config);
  }
  const write = (json: string) => store.put(CLUSTER_KEY, toUtf8(json));
  await write(`{"clusterId":"one","formatVersion":9,"featureLevel":1}`);
  await assert.rejects(openCluster(store, options(1)), config);
  await write(`{"clusterId":"one","formatVersion":1,"featureLevel":9}`);
  await assert.rejects(openCluster(store, options(1)), config);
  for (const json of ["{", `{"clusterId":"","formatVersion":1,"featureLevel":1}`]) {
    await write(json);
    await assert.rejects(openCluster(store, options(1)), (error) => isFault(error, "corrupt"));
  }
});

test("its checksum: golden bytes, every changed bit, and objects of before it was there", async () => {
  const store = createMemoryStore(clock);
  await openCluster(store, { ...options(1, "one"), featureLevel: 1 });
  const { bytes } = (await store.get(CLUSTER_KEY))!;
  // CRC-32C of the JSON of the first three fields, by another implementation.
  const golden = `{"clusterId":"one","formatVersion":1,"featureLevel":1,"crc32c":3014150480}\n`;
  assert.equal(new TextDecoder().decode(bytes), golden);
  const whole = readCluster(bytes);
  for (let bit = 0; bit < 8 * bytes.length; bit++) {
    const changed = bytes.slice();
    changed[bit >>> 3]! ^= 1 << (bit & 7);
    try {
      // Only what does not belong to the content may change: blanks, and the name of the checksum itself.
      assert.deepEqual(readCluster(changed), whole, `bit ${bit}`);
    } catch (error) {
      assert.ok(isFault(error), `bit ${bit}: ${error}`);
    }
  }
  const old = toUtf8(`{"clusterId":"one","formatVersion":1,"featureLevel":1}\n`);
  assert.equal(readCluster(old).clusterId, "one");
});
