import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import * as fc from "fast-check";
import { PROPERTY_CHARS_MAX } from "../lib/limits.ts";
import { brokerConfig } from "../../tests/support/broker_world.ts";
import { parseBrokerConfig } from "./broker_config.ts";
import { BROKER_PROPERTIES } from "./broker_properties.ts";
import { GROUP_PROPERTIES } from "./group_properties.ts";
import { checkProperty, type Property } from "./property.ts";
import { checkTopicConfigs, effectiveConfig, logConfigOf, topicProperty } from "./topic_config.ts";
import { collisionKey, topicNameProblem } from "./topic_name.ts";
import { TOPIC_PROPERTIES } from "./topic_properties.ts";

test("values that are accepted, with their canonical form, and those that are not", () => {
  const cases: [string, string, string | null][] = [
    ["cleanup.policy", "compact,delete", "compact,delete"],
    ["cleanup.policy", " compact , delete ", "compact,delete"],
    ["cleanup.policy", "", ""],
    ["cleanup.policy", "shred", null],
    ["retention.ms", "-1", "-1"],
    ["retention.ms", "-2", null],
    ["retention.ms", "9223372036854775807", "9223372036854775807"],
    ["retention.ms", "9223372036854775808", null],
    ["retention.ms", "1.5", null],
    ["retention.ms", "1e3", null],
    ["retention.ms", "", null],
    ["segment.bytes", "1048575", null],
    ["segment.bytes", "1048576", "1048576"],
    ["max.message.bytes", "67108807", "67108807"],
    ["max.message.bytes", "67108808", null],
    ["max.message.bytes", "-1", null],
    ["message.timestamp.type", "LogAppendTime", "LogAppendTime"],
    ["message.timestamp.type", "logappendtime", null],
    ["compression.type", "zstd", "zstd"],
    ["compression.type", "none", null],
    ["min.cleanable.dirty.ratio", "0.25", "0.25"],
    ["min.cleanable.dirty.ratio", "1.1", null],
    ["min.cleanable.dirty.ratio", "1e-1", "1e-1"],
    ["min.cleanable.dirty.ratio", "0x1", null],
    ["preallocate", "TRUE", "true"],
    ["preallocate", "yes", null],
    ["remote.storage.enable", "false", "false"],
    ["remote.storage.enable", "true", null],
    ["compression.gzip.level", "-1", "-1"],
    ["compression.gzip.level", "0", null],
    ["compression.gzip.level", "9", "9"],
    ["compression.gzip.level", "10", null],
    ["compression.zstd.level", "-131072", "-131072"],
    ["compression.zstd.level", "23", null],
    ["compression.lz4.level", "17", "17"],
    ["compression.lz4.level", "18", null],
    ["compression.lz4.level", "0", null],
    ["skerry.produce.validate", "full", "full"],
    ["skerry.produce.validate", "none", null],
  ];
  for (const [name, text, expected] of cases) {
    const checked = checkTopicConfigs([[name, text]]);
    assert.equal(checked.ok ? checked.configs[name] : null, expected, `${name}=${text}`);
  }
});

test("no value is so long that metadata entries are not bounded", () => {
  const long: [string, string][] = [
    ["min.cleanable.dirty.ratio", `0.${"5".repeat(PROPERTY_CHARS_MAX)}`],
    ["cleanup.policy", "compact,".repeat(PROPERTY_CHARS_MAX)],
    ["leader.replication.throttled.replicas", "0:1,".repeat(PROPERTY_CHARS_MAX)],
  ];
  for (const [name, text] of long) {
    const checked = checkTopicConfigs([[name, text]]);
    assert.ok(!checked.ok && checked.message.length < 300, name);
  }
  const most = "0:1,".repeat(PROPERTY_CHARS_MAX / 4);
  assert.ok(checkTopicConfigs([["leader.replication.throttled.replicas", most]]).ok);
});

test("unknown keys and null are refused, removed keys are dropped", () => {
  assert.equal(checkTopicConfigs([["nonsense", "1"]]).ok, false);
  assert.equal(checkTopicConfigs([["retention.ms", null]]).ok, false);
  const removed = checkTopicConfigs([["message.format.version", "3.0-IV1"]]);
  assert.deepEqual(removed, { ok: true, configs: {} });
});

test("every default passes its own check", () => {
  const all = [...TOPIC_PROPERTIES, ...BROKER_PROPERTIES.values()];
  for (const property of all.filter(({ fallback }) => fallback !== "")) {
    assert.deepEqual(checkProperty(property, property.fallback), {
      ok: true,
      value: property.fallback,
    }, property.name);
  }
});

test("defaults come from the most specific synonym, in the key's unit", () => {
  const retention = topicProperty("retention.ms")!;
  const values = (properties: Record<string, string>, overrides: Record<string, string> = {}) =>
    effectiveConfig(retention, overrides, brokerConfig(properties)).synonyms
      .map(({ name, value, source }) => `${source} ${name}=${value}`);
  const fallback = "default log.retention.ms=604800000";
  assert.deepEqual(values({}), [fallback]);
  assert.deepEqual(values({ "log.retention.hours": "2" }), [
    "staticBroker log.retention.hours=7200000",
    fallback,
  ]);
  assert.deepEqual(
    values(
      { "log.retention.hours": "2", "log.retention.minutes": "5", "log.retention.ms": "-1" },
      { "retention.ms": "7" },
    ),
    [
      "topic retention.ms=7",
      "staticBroker log.retention.ms=-1",
      "staticBroker log.retention.minutes=300000",
      "staticBroker log.retention.hours=7200000",
      fallback,
    ],
  );
});

test("the log's settings", () => {
  const config = logConfigOf(
    { "cleanup.policy": "compact,delete", "message.timestamp.type": "LogAppendTime" },
    brokerConfig({ "message.max.bytes": "1000", "compression.type": "lz4", "log.roll.hours": "1" }),
  );
  assert.deepEqual(config, {
    messageBytesMax: 1000,
    timestampType: "log-append",
    timestampBeforeMsMax: 2 ** 63,
    timestampAfterMsMax: 3_600_000,
    compression: "lz4",
    validate: "header",
    cleanup: { delete: true, compact: true },
    cleaning: {
      minDirtyRatio: 0.5,
      minLagMs: 0,
      maxLagMs: 2 ** 63,
      deleteRetentionMs: 86_400_000,
    },
    retentionMs: 604_800_000,
    retentionBytes: -1,
    segmentBytes: 2 ** 30,
    segmentMs: 3_600_000,
    producerExpirationMs: 86_400_000,
    retentionCheckMs: 300_000,
  });
});

/** Another value than the default. */
function otherValue({ type, words, fallback, min = 0n }: Property): string {
  const word = words?.find((each) => each !== fallback);
  if (word !== undefined) return word;
  return type === "boolean" ? String(fallback === "false") : String(min + 1n);
}

/** All code but tests and tables of properties. */
function sourceText(): string {
  return readdirSync("src", { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !/test\.ts$|_properties\.ts$/.test(path))
    .map((path) => readFileSync(`src/${path}`, "utf8")).join("");
}

test("a topic's property changes what its log obeys, or says that it is only stored and shown", () => {
  const settings = (overrides: Record<string, string>) =>
    JSON.stringify(logConfigOf(overrides, brokerConfig()));
  const source = sourceText();
  for (const property of TOPIC_PROPERTIES) {
    const { name, shownOnly = false, documentation } = property;
    if (name.startsWith("skerry.stream.")) {
      assert.ok(source.includes(`"${name}"`), `${name} is read by the gateway`);
      continue;
    }
    const codec = /^compression\.(\w+)\.level$/.exec(name)?.[1];
    const base = codec === undefined ? {} : { "compression.type": codec };
    const obeyed = settings({ ...base, [name]: otherValue(property) }) !== settings(base);
    assert.equal(obeyed, !shownOnly, name);
    assert.equal(documentation.startsWith("Stored and shown"), shownOnly, name);
  }
});

test("a property of the broker is read by what obeys it, or says that it is only stored and shown", () => {
  const source = sourceText();
  const defaults = new Set(
    TOPIC_PROPERTIES.flatMap(({ synonyms }) => synonyms.map(({ name }) => name)),
  );
  // These are read through the settings of single groups, whose names are theirs.
  const ofGroups = new Map(
    [...GROUP_PROPERTIES.values()].flatMap(({ name, broker, bounds }) =>
      [broker, bounds?.min, bounds?.max].map((key) => [key, name])
    ),
  );
  for (const { name } of BROKER_PROPERTIES.values()) {
    if (defaults.has(name)) continue;
    assert.ok(source.includes(`"${ofGroups.get(name) ?? name}"`), name);
  }
});

test("broker properties are checked one by one", () => {
  const parsed = parseBrokerConfig({
    "num.partitions": "0",
    "what.is.this": "1",
    "skerry.acks.one": "memory",
    "auto.create.topics.enable": "false",
  });
  assert.ok(!parsed.ok);
  assert.equal(parsed.errors.length, 3);
  assert.match(
    parsed.errors.join("\n"),
    /num\.partitions.*from 1.*\n.*what\.is\.this.*\n.*log-end/,
  );
});

test("topic names", () => {
  const good = ["a", "A.b_c-9", "x".repeat(249), "..."];
  const bad = ["", ".", "..", "x".repeat(250), "a b", "ü", "a/b", "a\u0000"];
  assert.deepEqual(good.map(topicNameProblem), good.map(() => null));
  assert.ok(bad.every((name) => topicNameProblem(name) !== null));
  assert.equal(collisionKey("a.b_c"), collisionKey("a_b.c"));
});

test("property: checking is idempotent", () => {
  const property = fc.constantFrom(...TOPIC_PROPERTIES);
  const text = fc.oneof(fc.string(), fc.integer().map(String), fc.constantFrom("compact", "true"));
  fc.assert(fc.property(property, text, (one, raw) => {
    const checked = checkProperty(one, raw);
    if (checked.ok) assert.deepEqual(checkProperty(one, checked.value), checked);
  }));
});

test("broker defaults for new topics keep within what CreateTopics allows", () => {
  const cases = {
    "num.partitions": ["10000", "10001"],
    "default.replication.factor": ["32767", "32768"],
    "offsets.topic.num.partitions": ["10000", "99999999"],
  };
  for (const [name, [allowed, refused]] of Object.entries(cases)) {
    assert.ok(parseBrokerConfig({ [name]: allowed! }).ok, name);
    assert.ok(!parseBrokerConfig({ [name]: refused! }).ok, name);
  }
});
