/** What `/metrics` shows: a valid page, every row that the documentation promises, partitions within bounds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { METRICS } from "../../src/env/metric_catalog.ts";
import { createMetrics } from "../../src/env/metrics.ts";
import { batch } from "../quirks/quirks.ts";
import { drive, FaultWorld } from "../faults/world.ts";
import { type Family, readExposition } from "./exposition.ts";

/** What whoever runs a node looks for; a node that has worked shows all of it. */
const ALWAYS = [
  "skerry_partition_log_start_offset",
  "skerry_partition_log_end_offset",
  "skerry_partition_high_watermark",
  "skerry_partition_last_stable_offset",
  "skerry_partition_size_bytes",
  "skerry_log_cache_uncommitted_bytes",
  "skerry_wal_uncommitted_slots",
  "skerry_log_cache_uncommitted_since_seconds",
  "skerry_wal_unacknowledged_bytes",
  "skerry_object_store_requests_total",
  "skerry_object_store_request_seconds",
  "skerry_log_cache_reads_total",
  "skerry_block_cache_blocks_total",
  "skerry_recovery_pending_wals",
  "skerry_compaction_backlog_bytes",
  "skerry_compaction_backlog_objects",
];

async function look(world: FaultWorld): Promise<ReadonlyMap<string, Family>> {
  const response = await world.fetch("/metrics");
  assert.equal(response.headers.get("content-type"), "text/plain; version=0.0.4");
  return readExposition(await response.text());
}

function value(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const wanted = Object.entries(labels);
  return families.get(name)?.samples
    .find((one) => wanted.every(([label, text]) => one.labels[label] === text))?.value;
}

async function produced(world: FaultWorld, topic: string, count = 1): Promise<void> {
  for (let i = 0; i < count; i++) {
    const body = `${topic}-${i}`;
    const posting = world.fetch(`/v1/topics/${topic}/records`, { method: "POST", body });
    assert.equal((await drive(world.clock, posting)).status, 200);
  }
}

test("texts with quotes, backslashes and line ends come back as they were", () => {
  const metrics = createMetrics();
  const strange = 'a "b" \\ c\nd {e},f="g"';
  metrics.count("skerry_kafka_requests_total", { api: strange });
  const families = readExposition(metrics.render());
  assert.deepEqual(families.get("skerry_kafka_requests_total")?.samples, [
    { name: "skerry_kafka_requests_total", labels: { api: strange }, value: 1 },
  ]);
});

test("what is looked up at a rendering is gone when nobody shows it any more", () => {
  const metrics = createMetrics();
  metrics.gauge("skerry_open_streams", 1);
  const hide = metrics.onRender((gauge) => gauge("skerry_partitions_open", 7));
  assert.equal(value(readExposition(metrics.render()), "skerry_partitions_open"), 7);
  hide();
  assert.equal(value(readExposition(metrics.render()), "skerry_partitions_open"), undefined);
});

test("a node under work and trouble shows what the documentation lists, with its types and labels", async () => {
  const world = new FaultWorld({ kafka: { "skerry.upload.interval.ms": "1000" } });
  await world.start();
  await produced(world, "t", 3);
  await world.values("t");
  // Uploads, then a kill and a recovery of what was not uploaded.
  await world.clock.advance(2_000);
  await produced(world, "t");
  world.kill();
  const metadata = world.bucket;
  const next = new FaultWorld({ clock: world.clock, bucket: metadata, seed: 7 });
  await next.start();
  await next.values("t");
  await produced(next, "other");
  await next.clock.advance(700_000);
  const families = await look(next);
  for (const [name, { type, help, samples }] of families) {
    const row = METRICS[name];
    assert.ok(row !== undefined, `${name} is not in the documentation`);
    assert.equal(type, row.kind, name);
    assert.equal(help, row.help);
    for (const { labels } of samples) {
      const names: string[] = Object.keys(labels).filter((label) =>
        label !== "le" || type !== "histogram"
      );
      assert.deepEqual(names.toSorted(), row.labels.toSorted(), name);
    }
  }
  for (const name of ALWAYS) assert.ok(families.has(name), `${name} is not shown`);
  const latencies = families.get("skerry_object_store_request_seconds")!.samples;
  const classes = new Set(latencies.map(({ labels }) => labels["class"]));
  for (const one of ["wal", "metadata", "upload", "cold_read", "recovery"]) {
    assert.ok(classes.has(one), `no latency of ${one}`);
  }
  const at = { topic: "t", partition: "0" };
  assert.equal(value(families, "skerry_partition_log_start_offset", at), 0);
  assert.equal(value(families, "skerry_partition_log_end_offset", at), 4);
  assert.equal(value(families, "skerry_partition_high_watermark", at), 4);
  assert.equal(value(families, "skerry_partition_last_stable_offset", at), 4);
  assert.ok(value(families, "skerry_partition_size_bytes", at)! > 0);
  assert.equal(value(families, "skerry_recovery_wals_total"), 1);
  assert.equal(value(families, "skerry_recovery_pending_wals"), 0);
  assert.ok(value(families, "skerry_recovery_slots_total")! >= 1);
  assert.ok(value(families, "skerry_recovery_records_total")! >= 1);
  assert.ok(
    value(families, "skerry_object_store_requests_total", { class: "recovery", op: "get" })! > 0,
  );
  assert.ok(value(families, "skerry_object_store_requests_total", { class: "cold_read" })! > 0);
  assert.ok(value(families, "skerry_log_cache_reads_total", { outcome: "miss" })! > 0);
  assert.equal(value(families, "skerry_metadata_feature_level"), 1);
  assert.equal(value(families, "skerry_garbage_objects"), 0);
  await drive(next.clock, next.q.node.close());
});

test("partitions have rows up to the bound, in order, and none at 0", async () => {
  for (const [bound, listed] of [["2", ["a/0", "b/0"]], ["0", []]] as const) {
    const world = new FaultWorld({ kafka: { "skerry.metrics.partitions.max": bound } });
    await world.start();
    for (const topic of ["c", "b", "a"]) await produced(world, topic);
    const families = await look(world);
    const rows = families.get("skerry_partition_high_watermark")?.samples ?? [];
    assert.deepEqual(rows.map(({ labels }) => `${labels["topic"]}/${labels["partition"]}`), listed);
    assert.equal(value(families, "skerry_partitions_unlisted"), 3 - listed.length);
    await drive(world.clock, world.q.node.close());
  }
});

test("rows of a partition go with its topic", async () => {
  const world = new FaultWorld();
  await world.start();
  await produced(world, "t");
  const deleted = await drive(world.clock, world.fetch("/v1/topics/t", { method: "DELETE" }));
  assert.equal(deleted.status, 204);
  await world.clock.advance(1_000);
  assert.equal((await look(world)).has("skerry_partition_high_watermark"), false);
  await drive(world.clock, world.q.node.close());
});

test("a store that refuses writes shows in retries, refusals, bytes, slots and permits", async () => {
  const world = new FaultWorld();
  await world.start();
  await produced(world, "t");
  world.store.setPlan(({ op, key }) =>
    op === "put" && key.includes("/wal/") ? { kind: "fail", code: "store-full" } : undefined
  );
  const late = world.q.produce("t", batch(["late"]), { timeoutMs: 1_000 });
  assert.equal((await drive(world.clock, late)).error, "REQUEST_TIMED_OUT");
  const families = await look(world);
  const full = { class: "wal", op: "put", outcome: "store-full" };
  assert.ok(value(families, "skerry_object_store_requests_total", full)! > 1);
  assert.ok(value(families, "skerry_object_store_retries_total", { class: "wal" })! > 1);
  assert.ok(value(families, "skerry_wal_unacknowledged_bytes")! > 0);
  const ends = ["skerry_partition_log_end_offset", "skerry_partition_high_watermark"];
  assert.deepEqual(ends.map((name) => value(families, name, { topic: "t" })), [2, 1]);
  world.store.setPlan();
  await world.clock.advance(5_000);
  const after = await look(world);
  assert.deepEqual(ends.map((name) => value(after, name, { topic: "t" })), [2, 2]);
  assert.equal(value(after, "skerry_wal_unacknowledged_bytes"), 0);
  await drive(world.clock, world.q.node.close());
});
