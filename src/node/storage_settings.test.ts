import assert from "node:assert/strict";
import { test } from "node:test";
import { type BrokerConfig, parseBrokerConfig } from "../broker/broker_config.ts";
import { STORAGE_PROPERTIES } from "../broker/storage_properties.ts";
import { DEFAULT_ENGINE_OPTIONS } from "../storage/engine_options.ts";
import { LOG_CACHE_BYTES_MAX } from "../lib/limits.ts";
import { pricedPutSizes } from "../storage/put_sizes.ts";
import { engineOptionsOf, retentionOf, walPolicyOf } from "./storage_settings.ts";

function configOf(properties: Record<string, string> = {}): BrokerConfig {
  const parsed = parseBrokerConfig(properties);
  assert.ok(parsed.ok, JSON.stringify(parsed));
  return parsed.config;
}

function policy(properties: Record<string, string>, storeHasPrices = true) {
  const named = Object.entries(properties).map(([name, value]) => [`skerry.wal.${name}`, value]);
  return walPolicyOf(configOf(Object.fromEntries(named)), storeHasPrices);
}

test("without a word PUTs are metered where they have a price", () => {
  assert.deepEqual(policy({}), { kind: "metered", putsPerHour: 14_400 });
  assert.deepEqual(policy({}, false), { kind: "unmetered" });
});

test("a budget of PUTs holds everywhere, 0 lifts it", () => {
  for (const hasPrices of [true, false]) {
    assert.deepEqual(policy({ "puts.per.hour": "720" }, hasPrices), {
      kind: "metered",
      putsPerHour: 720,
    });
    assert.deepEqual(policy({ "puts.per.hour": "0" }, hasPrices), { kind: "unmetered" });
  }
});

test("a budget of money: 13.14 dollars a month are 3600 PUTs an hour on S3 Standard", () => {
  assert.deepEqual(policy({ "dollars.per.month": "13.14" }), {
    kind: "metered",
    putsPerHour: 3_600,
  });
  const express = { "dollars.per.month": "13.14", "dollars.per.million.puts": "1.25" };
  assert.deepEqual(policy(express), { kind: "metered", putsPerHour: 14_400 });
  const both = { ...express, "puts.per.hour": "100" };
  assert.deepEqual(policy(both), { kind: "metered", putsPerHour: 100 }, "the smaller one");
  assert.deepEqual(policy({ ...express, "dollars.per.million.puts": "0", "puts.per.hour": "0" }), {
    kind: "unmetered",
  });
});

test("the engine gets its own defaults when nothing is set, and what is set", () => {
  for (const [name, value] of Object.entries(engineOptionsOf(configOf(), false))) {
    assert.equal(value, DEFAULT_ENGINE_OPTIONS[name as keyof typeof DEFAULT_ENGINE_OPTIONS], name);
  }
  const set = engineOptionsOf(
    configOf({
      "skerry.upload.bytes.per.second": "1000000",
      "skerry.upload.interval.ms": "60000",
    }),
    true,
  );
  assert.deepEqual(set.puts, pricedPutSizes(LOG_CACHE_BYTES_MAX), "requests cost money");
  assert.equal(set.uploadBytesPerSecond, 1_000_000);
  assert.equal(set.uploadIntervalMs, 60_000);
});

test("each property of log cache and upload sets one option of the engine, to its value", () => {
  const base = { ...engineOptionsOf(configOf(), false) };
  const properties = STORAGE_PROPERTIES.filter(({ name }) => /^skerry\.(log|upload)\./.test(name));
  assert.equal(properties.length, 6);
  for (const { name, fallback } of properties) {
    const value = Number(fallback) + 1;
    const engine = engineOptionsOf(configOf({ [name]: String(value) }), false);
    const changed = Object.entries(engine)
      .filter(([option, found]) => found !== base[option as keyof typeof base]);
    assert.deepEqual(changed.map(([, found]) => found), [value], name);
  }
});

test("what is kept of the past: 15 minutes of destroyed objects, a day of snapshots, 500 entries", () => {
  assert.deepEqual(retentionOf(configOf()), {
    collector: { retainMs: 900_000, intervalMs: 60_000 },
    metadata: { snapshotEntries: 500, trimAgeMs: 86_400_000 },
  });
});

test("metadata is never trimmed before the objects that it destroyed may go", () => {
  const set = { "skerry.objects.retain.ms": "300000", "skerry.metadata.trim.age.ms": "120000" };
  assert.deepEqual(retentionOf(configOf(set)).metadata.trimAgeMs, 300_000);
  const short = { "skerry.objects.retain.ms": "20000", "skerry.metadata.trim.age.ms": "120000" };
  assert.deepEqual(retentionOf(configOf(short)).collector, {
    retainMs: 20_000,
    intervalMs: 20_000,
  });
  assert.equal(retentionOf(configOf(short)).metadata.trimAgeMs, 120_000);
});
