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
  assert.deepEqual(report.costs, [{ store: "S", total: 6.4, perGib: 1.6, perMonth: null }]);
  assert.equal(report.rate, null);
  assert.ok(costLines(report).some((line) => /^S +\$6\.40 +\$1\.60 +-$/.test(line)));
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
