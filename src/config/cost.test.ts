import assert from "node:assert/strict";
import { test } from "node:test";
import { createMetrics } from "../env/metrics.ts";
import { costLines, costOf, readUsage } from "./cost.ts";

const PRICES = [{
  store: "S",
  perMillionWrites: 5,
  perMillionReads: 0.4,
  perGibIn: 0,
  perGibOut: 0.5,
}];
const GIB = 2 ** 30;

function rendered(times: number): string {
  const metrics = createMetrics();
  const count = (name: string, op: string, by: number, outcome?: string) =>
    metrics.count(name, outcome === undefined ? { op } : { op, outcome }, by * times);
  count("skerry_object_store_requests_total", "put", 900_000, "ok");
  count("skerry_object_store_requests_total", "put", 50_000, "exists");
  count("skerry_object_store_requests_total", "list", 50_000, "ok");
  count("skerry_object_store_requests_total", "get", 1_000_000, "ok");
  count("skerry_object_store_requests_total", "delete", 3, "ok");
  count("skerry_object_store_bytes_total", "put", 8 * GIB);
  count("skerry_object_store_bytes_total", "get", 2 * GIB);
  metrics.count("skerry_append_bytes_total", {}, 4 * GIB * times);
  metrics.observe("skerry_object_store_request_seconds", 1, { op: "put" });
  return metrics.render();
}

test("requests are counted by class, and cost what the table says", () => {
  const usage = readUsage(rendered(1))!;
  assert.equal(usage.writes, 1_000_000);
  assert.equal(usage.reads, 1_000_000);
  assert.equal(usage.deletes, 3);
  const report = costOf({ before: null, usage, prices: PRICES });
  const money = { total: 6.4, perGib: 1.6, perMonth: null };
  assert.deepEqual(report.costs, [{ store: "S", ...money, byClass: { other: money } }]);
  assert.equal(report.rate, null);
  assert.ok(costLines(report).some((line) => /^S +\$6\.40 +\$1\.60 +-$/.test(line)));
});

test("each class has its requests and its money, and they add up", () => {
  const page = (times: number) => {
    const metrics = createMetrics();
    const count = (kind: string, op: string, by: number) =>
      metrics.count("skerry_object_store_requests_total", { class: kind, op, outcome: "ok" }, by);
    count("wal", "put", 1_000_000 * times);
    count("upload", "put", 200_000 * times);
    count("cold_read", "get", 5_000_000 * times);
    count("garbage", "delete", 7 * times);
    const read = { class: "cold_read", op: "get" };
    metrics.count("skerry_object_store_bytes_total", read, 2 * GIB * times);
    metrics.count("skerry_append_bytes_total", {}, 4 * GIB * times);
    return readUsage(metrics.render())!;
  };
  const report = costOf({
    before: { usage: page(1), seconds: 3_600 },
    usage: page(2),
    prices: PRICES,
  });
  const { wal, cold_read: cold } = report.usage.byClass;
  assert.deepEqual(wal, { writes: 2_000_000, reads: 0, deletes: 0, bytesIn: 0, bytesOut: 0 });
  assert.deepEqual([cold?.reads, cold?.bytesOut], [10_000_000, 4 * GIB]);
  const [cost] = report.costs;
  // 5 dollars for a million PUTs; 0.4 for a million GETs and 0.5 for a GiB read.
  const totals = Object.entries(cost!.byClass).map(([kind, { total }]) => [kind, total]);
  assert.deepEqual(totals, [["wal", 10], ["upload", 2], ["cold_read", 6], ["garbage", 0]]);
  assert.deepEqual([cost!.total, cost!.perGib], [18, 18 / 8]);
  assert.deepEqual(cost!.byClass["wal"], { total: 10, perGib: 10 / 8, perMonth: 5 * 730 });
  const lines = costLines(report);
  const order = lines.map((line) => /^(wal|upload|cold_read|garbage) /.exec(line)?.[1])
    .filter((one) => one !== undefined);
  assert.deepEqual(order, ["wal", "cold_read", "upload", "garbage"], "the dearest first");
  assert.match(lines.join("\n"), /^wal +2000000 +0 +0 +\$10\.00 +\$1\.25 +\$3650\.00$/m);
});

test("two looks give a rate and a month", () => {
  const [first, second] = [readUsage(rendered(1))!, readUsage(rendered(2))!];
  const report = costOf({
    before: { usage: first, seconds: 3_600 },
    usage: second,
    prices: PRICES,
  });
  assert.equal(report.rate?.usage.byOp["put"], 950_000);
  assert.ok(Math.abs(report.costs[0]!.perMonth! - 6.4 * 730) < 1e-6);
  assert.match(costLines(report).join("\n"), /1000000 writes, 1000000 reads in 3600\.0 s/);
});

test("a node that was started anew between the looks gives no rate; an idle one costs nothing per GiB", () => {
  const [first, second] = [readUsage(rendered(2))!, readUsage(rendered(1))!];
  assert.equal(
    costOf({ before: { usage: first, seconds: 1 }, usage: second, prices: PRICES }).rate,
    null,
  );
  const idle = { ...second, produced: 0 };
  assert.equal(costOf({ before: null, usage: idle, prices: PRICES }).costs[0]!.perGib, null);
});

test("other texts are no metrics of a node", () => {
  for (const text of ["", "<html></html>", "skerry_append_bytes_total 3\n"]) {
    assert.equal(readUsage(text), null);
  }
});
