import assert from "node:assert/strict";
import { test } from "node:test";
import { type ConfigSources, resolveConfig, resolvePrices } from "./config.ts";
import { hasPrices } from "./prices.ts";

const s3 = { kind: "s3", bucket: "b", prefix: "" } as const;

test("public S3 endpoints have prices; private ones, directories and memory have none", () => {
  const cases: [string | null, boolean][] = [
    [null, true],
    ["https://account.r2.cloudflarestorage.com", true],
    ["https://s3.eu-central-1.amazonaws.com", true],
    ["http://127.0.0.1:9000", false],
    ["http://localhost:9000", false],
    ["http://[::1]:9000", false],
    ["http://10.1.2.3", false],
    ["http://172.20.0.1", false],
    ["http://172.33.0.1", true],
    ["http://minio:9000", false],
    ["http://store.lan", false],
  ];
  for (const [endpoint, priced] of cases) {
    assert.equal(hasPrices(s3, endpoint), priced, String(endpoint));
  }
  assert.equal(hasPrices({ kind: "dir", path: "x" }, null), false);
  assert.equal(hasPrices({ kind: "memory" }, null), false);
});

function file(value: unknown): ConfigSources["file"] {
  return { name: "c.json", value };
}

const OWN = { store: "ours", perMillionWrites: 2, perMillionReads: 0.1, perGibOut: 0.09 };

test("the table of the configuration stands before the list prices, and beats them by name", () => {
  const listed = resolvePrices(null);
  assert.ok(listed.ok && listed.prices.length >= 3);
  const dear = { store: "S3 Standard", perMillionWrites: 6, perMillionReads: 0.5 };
  const found = resolvePrices(file({ "node-id": 2, prices: [OWN, dear] }));
  assert.ok(found.ok, JSON.stringify(found));
  assert.deepEqual(found.prices.slice(0, 2), [
    { ...OWN, perGibIn: 0 },
    { ...dear, perGibIn: 0, perGibOut: 0 },
  ]);
  const others = listed.prices.filter(({ store }) => store !== "S3 Standard");
  assert.deepEqual(found.prices.slice(2), others);
});

test("a broker reads the same file, and passes over the prices", () => {
  const sources = { flags: {}, sets: [], environment: {}, file: file({ prices: [OWN] }) };
  assert.ok(resolveConfig(sources).ok);
});

test("a table with a mistake is refused by both, with its place", () => {
  const cases: [unknown, string][] = [
    [{ prices: 5 }, "prices in c.json"],
    [{ prices: [{ ...OWN, perMillionWrites: -1 }] }, "prices.0.perMillionWrites"],
    [{ prices: [OWN, { ...OWN, perGibIn: "1" }] }, "prices.1.perGibIn"],
    [{ prices: [{ ...OWN, perWrite: 1 }] }, "prices.0.perWrite"],
    [{ prices: [{ store: "x" }] }, "prices.0.perMillionWrites"],
    [{ prices: [], pricess: [] }, "pricess"],
  ];
  for (const [value, place] of cases) {
    for (
      const result of [
        resolvePrices(file(value)),
        resolveConfig({ flags: {}, sets: [], environment: {}, file: file(value) }),
      ]
    ) {
      assert.ok(!result.ok, place);
      assert.equal(result.errors.length, 1, place);
      assert.ok(result.errors[0]!.startsWith(`Cannot use ${place}`), result.errors[0]);
    }
  }
});
