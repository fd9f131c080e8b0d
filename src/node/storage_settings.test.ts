import assert from "node:assert/strict";
import { test } from "node:test";
import { type BrokerConfig, parseBrokerConfig } from "../broker/broker_config.ts";
import { DEFAULT_ENGINE_OPTIONS } from "../storage/engine_options.ts";
import { engineOptionsOf, walPolicyOf } from "./storage_settings.ts";

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
  for (const [name, value] of Object.entries(engineOptionsOf(configOf()))) {
    assert.equal(value, DEFAULT_ENGINE_OPTIONS[name as keyof typeof DEFAULT_ENGINE_OPTIONS], name);
  }
  const set = engineOptionsOf(configOf({
    "skerry.upload.bytes.per.second": "1000000",
    "skerry.upload.interval.ms": "60000",
  }));
  assert.equal(set.uploadBytesPerSecond, 1_000_000);
  assert.equal(set.uploadIntervalMs, 60_000);
});
