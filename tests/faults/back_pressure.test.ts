/**
 * When uploads do not get on, records pile up: in bytes, in WAL slots, in time. Past each bound a client is told to
 * come again, over Kafka and over HTTP; what was acknowledged is readable all the while, and it ends by itself.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { UNCOMMITTED_SLOTS_MAX } from "../../src/lib/limits.ts";
import { batch, Quirks } from "../quirks/quirks.ts";
import type { FaultPlan } from "../support/faulty_store.ts";
import { drive, FaultWorld, readsAtOnce } from "./world.ts";

const MIB = 1024 * 1024;

/** Data objects are not taken; the WAL and the metadata log go on. */
const noUploads: FaultPlan = ({ op, key }) =>
  op.startsWith("put") && !key.includes("/wal/") && !key.startsWith("meta/")
    ? { kind: "fail" }
    : undefined;

interface Bound {
  readonly kafka: Readonly<Record<string, string>>;
  readonly valueBytes: number;
  /** Records that are taken before the refusal. */
  readonly taken: readonly [least: number, most: number];
  /** Between two records. */
  readonly pauseMs: number;
  readonly metric: string;
  readonly least: number;
}

const BOUNDS: Readonly<Record<string, Bound>> = {
  bytes: {
    kafka: { "skerry.log.cache.bytes": String(16 * MIB) },
    valueBytes: MIB - 1_000,
    taken: [14, 17],
    pauseMs: 0,
    metric: "skerry_log_cache_uncommitted_bytes",
    least: 14 * MIB,
  },
  slots: {
    kafka: {},
    valueBytes: 1,
    // The topic's own records take some.
    taken: [UNCOMMITTED_SLOTS_MAX - 20, UNCOMMITTED_SLOTS_MAX],
    pauseMs: 0,
    metric: "skerry_wal_uncommitted_slots",
    least: UNCOMMITTED_SLOTS_MAX,
  },
  time: {
    kafka: { "skerry.upload.interval.ms": "1000", "skerry.upload.age.ms.max": "60000" },
    valueBytes: 1,
    taken: [55, 61],
    pauseMs: 1_000,
    metric: "skerry_log_cache_uncommitted_since_seconds",
    least: 1,
  },
};

for (const [name, bound] of Object.entries(BOUNDS)) {
  test(`past the bound of ${name} clients are told to come again, over Kafka and HTTP`, async () => {
    const world = new FaultWorld({ kafka: bound.kafka, storeKind: "s3" });
    const q = await world.start();
    await drive(world.clock, q.topic("t"));
    world.store.setPlan(noUploads);
    const value = "x".repeat(bound.valueBytes);
    const produce = async () =>
      (await drive(world.clock, q.produce("t", batch([value]), { timeoutMs: 5_000 }))).error;
    let taken = 0;
    for (let error = await produce(); error !== "NOT_ENOUGH_REPLICAS"; error = await produce()) {
      assert.equal(error, "NONE");
      taken += 1;
      assert.ok(taken <= bound.taken[1], `it takes more and more: ${taken}`);
      await world.clock.advance(bound.pauseMs);
    }
    assert.ok(taken >= bound.taken[0], `refused after ${taken}`);
    assert.ok(await world.metric(bound.metric) >= bound.least);

    const post = () => world.fetch("/v1/topics/t/records", { method: "POST", body: value });
    const refused = await drive(world.clock, post());
    assert.equal(refused.status, 503);
    assert.equal(refused.headers.get("retry-after"), "1");
    const { kafka } = await refused.json() as { kafka: { name: string; retriable: boolean } };
    assert.deepEqual([kafka.name, kafka.retriable], ["NOT_ENOUGH_REPLICAS", true]);
    await readsAtOnce(world, new Quirks(q.node), "t");

    world.store.setPlan();
    await world.clock.advance(60_000);
    assert.equal(await produce(), "NONE");
    assert.equal((await drive(world.clock, post())).status, 200);
    assert.equal((await world.values("t")).length, taken + 2, "what was refused is not there");
    await drive(world.clock, q.node.close());
  });
}
