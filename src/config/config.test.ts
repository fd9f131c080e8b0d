import assert from "node:assert/strict";
import { test } from "node:test";
import { type ConfigSources, resolveConfig } from "./config.ts";
import { parseHostPort, parseStore } from "./options.ts";

function resolve(sources: Partial<ConfigSources>) {
  return resolveConfig({ flags: {}, sets: [], environment: {}, file: null, ...sources });
}

function errorsOf(sources: Partial<ConfigSources>): readonly string[] {
  const result = resolve(sources);
  return result.ok ? [] : result.errors;
}

test("nothing given means the embedded defaults", () => {
  const result = resolve({});
  assert.ok(result.ok);
  assert.deepEqual(result.config.store, { kind: "dir", path: "./skerry-data" });
  assert.deepEqual(result.config.kafkaListen, { host: "127.0.0.1", port: 9092 });
  assert.deepEqual(result.config.httpListen, { host: "127.0.0.1", port: 8080 });
  assert.equal(result.config.nodeId, 1);
  assert.equal(result.config.advertise, null);
});

test("a flag beats a variable, which beats the file, which beats the default", () => {
  const file = { name: "skerry.json", value: { "kafka-listen": "127.0.0.1:3", "node-id": 7 } };
  const environment = { SKERRY_KAFKA_LISTEN: "127.0.0.1:2" };
  const port = (sources: Partial<ConfigSources>) => {
    const result = resolve(sources);
    return result.ok ? result.config.kafkaListen.port : result.errors;
  };
  assert.equal(port({ flags: { "kafka-listen": "127.0.0.1:1" }, environment, file }), 1);
  assert.equal(port({ environment, file }), 2);
  assert.equal(port({ file }), 3);
  const fromFile = resolve({ file });
  assert.equal(fromFile.ok && fromFile.config.nodeId, 7);
});

test("every mistake gives one line with the key, the value and what is allowed", () => {
  const cases: [Partial<ConfigSources>, RegExp][] = [
    [
      { flags: { "kafka-listen": "nope" } },
      /kafka-listen = "nope" \(from --kafka-listen\).*HOST:PORT/,
    ],
    [{ flags: { "http-listen": "127.0.0.1:70000" } }, /http-listen.*70000.*or off/],
    [{ flags: { "node-id": "-1" } }, /node-id = "-1".*0 to 2147483647/],
    [{ flags: { "node-id": "2147483648" } }, /node-id/],
    [{ flags: { "log-format": "xml" } }, /log-format = "xml".*text or json/],
    [{ flags: { "stor": "memory:" } }, /--stor: unknown option.*--store/],
    [
      { environment: { SKERRY_STORE: "ftp://x" } },
      /store = "ftp:\/\/x" \(from SKERRY_STORE\).*memory:/,
    ],
    [{ sets: ["novalue"] }, /set = "novalue".*property=value/],
    [
      { file: { name: "f.json", value: { "kafka-lisen": "x" } } },
      /kafka-lisen in f\.json.*allowed are/,
    ],
    [{ file: { name: "f.json", value: [] } }, /f\.json/],
    [{ flags: { store: "s3://bucket/a" } }, /AWS_ACCESS_KEY_ID/],
    [{ flags: { "s3-endpoint": "localhost:9000" } }, /s3-endpoint.*http or https/],
    [{ flags: { "cluster-id": "two\nlines" } }, /cluster-id/],
  ];
  for (const [sources, pattern] of cases) {
    const errors = errorsOf(sources);
    assert.equal(errors.length, 1, JSON.stringify({ sources, errors }));
    assert.match(errors[0]!, pattern);
    assert.ok(!errors[0]!.includes("\n"));
  }
});

test("kafka properties: --set beats the variable, which beats the file", () => {
  const result = resolve({
    file: { name: "f.json", value: { kafka: { "num.partitions": 3, "a": "file", "b": "file" } } },
    environment: { SKERRY_SET: "a=variable;b=variable" },
    sets: ["b=flag", "cleanup.policy=compact,delete"],
  });
  assert.ok(result.ok);
  assert.deepEqual(result.config.kafka, {
    "num.partitions": "3",
    "a": "variable",
    "b": "flag",
    "cleanup.policy": "compact,delete",
  });
});

test("names that every object inherits are unknown options and properties, not ignored", () => {
  for (const name of ["__proto__", "constructor", "prototype", "toString"]) {
    const file = (text: string) => ({ name: "f.json", value: JSON.parse(text) as unknown });
    assert.match(errorsOf({ file: file(`{"${name}":1}`) }).join("\n"), /in f\.json/, name);
    const flags = Object.fromEntries([[name, "x"]]);
    assert.match(errorsOf({ flags }).join("\n"), /unknown option/, name);
    for (
      const result of [
        resolve({ file: file(`{"kafka":{"${name}":1}}`) }),
        resolve({ sets: [`${name}=1`] }),
      ]
    ) {
      assert.ok(result.ok);
      assert.deepEqual(Object.entries(result.config.kafka), [[name, "1"]]);
    }
    assert.match(
      errorsOf({ file: file(`{"kafka":{"${name}":[1]}}`) }).join("\n"),
      /Cannot use kafka\.\w+ in f\.json: \[1\]/,
    );
  }
});

test("the usual AWS variables work and ours win", () => {
  const environment = {
    AWS_ACCESS_KEY_ID: "id",
    AWS_SECRET_ACCESS_KEY: "secret",
    AWS_REGION: "eu-west-1",
    AWS_ENDPOINT_URL: "http://127.0.0.1:9000",
  };
  const result = resolve({ flags: { store: "s3://bucket/some/prefix/" }, environment });
  assert.ok(result.ok);
  assert.deepEqual(result.config.store, { kind: "s3", bucket: "bucket", prefix: "some/prefix" });
  assert.equal(result.config.s3.region, "eu-west-1");
  assert.equal(result.config.s3.endpoint, "http://127.0.0.1:9000");
  const ours = resolve({ environment: { ...environment, SKERRY_S3_REGION: "here" } });
  assert.equal(ours.ok && ours.config.s3.region, "here");
});

test("http can be off, and ports can be 0", () => {
  const result = resolve({ flags: { "http-listen": "off", "kafka-listen": "127.0.0.1:0" } });
  assert.ok(result.ok);
  assert.equal(result.config.httpListen, null);
  assert.equal(result.config.kafkaListen.port, 0);
});

test("addresses and stores", () => {
  assert.deepEqual(parseHostPort("[::1]:9092"), { host: "::1", port: 9092 });
  assert.deepEqual(parseHostPort(":9092"), { host: "0.0.0.0", port: 9092 });
  for (const bad of ["", "host", "host:", "host:x", "a:b:1", "host:65536"]) {
    assert.equal(parseHostPort(bad), null, bad);
  }
  assert.deepEqual(parseStore("s3://my-bucket"), { kind: "s3", bucket: "my-bucket", prefix: "" });
  for (const bad of ["memory", "dir:", "s3://", "s3://B", "file:x"]) {
    assert.equal(parseStore(bad), null, bad);
  }
});
