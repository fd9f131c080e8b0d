/** The executable's manners: refusals, exit codes, signals, restart, and a second process with the same id. */
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { VERSION } from "../../src/lib/version.ts";
import { metadataApi } from "../../src/protocol/message/03_metadata.ts";
import { type BrokerProcess, runBroker, startBroker, tempDir } from "../support/broker_process.ts";
import { RawClient } from "./raw_client.ts";
import { activeRequests, until } from "./until.ts";

async function produce(broker: BrokerProcess, topic: string, value: string): Promise<number> {
  const response = await fetch(`${broker.http}/v1/topics/${topic}/records`, {
    method: "POST",
    body: value,
  });
  assert.equal(response.status, 200, await response.clone().text());
  return ((await response.json()) as { results: { offset: number }[] }).results[0]!.offset;
}

async function values(broker: BrokerProcess, topic: string): Promise<string[]> {
  const response = await fetch(
    `${broker.http}/v1/topics/${topic}/partitions/0/records?limit=10000`,
  );
  const page = await response.json() as { records: { value: string }[] };
  return page.records.map(({ value }) => value);
}

test("--help and --version", async () => {
  const help = await runBroker(["--help"]);
  assert.equal(help.code, 0);
  assert.match(help.output, /--kafka-listen/);
  assert.deepEqual(await runBroker(["--version"]), { code: 0, output: `skerry ${VERSION}\n` });
});

test("what is refused at once gives exit code 2, one line, and opens no port", async () => {
  const listen = ["--kafka-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"];
  const s3 = ["--store", "s3://bucket/p", "--s3-path-style"];
  const cases: [string[], RegExp][] = [
    [["--store", "ftp://x"], /store = "ftp:\/\/x".*memory:/],
    [["--store", "dir:package.json"], /package\.json/],
    [["--node-id", "x"], /node-id = "x"/],
    [["--set", "num.partitions=x"], /num\.partitions/],
    [["--set", "no.such.property=1"], /no\.such\.property/],
    [["--what", "1"], /--what/],
    [["--config", "no-such-file.json"], /no-such-file\.json/],
    [[...s3, "--s3-endpoint", "127.0.0.1:1"], /s3-endpoint = "127\.0\.0\.1:1"/],
  ];
  for (const [args, line] of cases) {
    const { code, output } = await runBroker(
      ["serve", "--store", "memory:", ...listen, ...args].filter(
        (word, i, all) =>
          !(args.includes("--store") && (all[i - 1] === "--store" || word === "--store") && i < 3),
      ),
      { env: { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" } },
    );
    assert.equal(code, 2, output);
    assert.match(output, line);
    assert.equal(output.trim().split("\n").length, 1, output);
    assert.doesNotMatch(output, /"event":"ready"|is ready/);
  }
});

test("an option wins over its variable, that over the file, that over the default", async () => {
  const dir = tempDir();
  const file = join(dir.path, "skerry.json");
  writeFileSync(
    file,
    JSON.stringify({
      "node-id": 7,
      "cluster-id": "from-the-file",
      store: "memory:",
      "http-listen": "127.0.0.1:1",
      kafka: { "num.partitions": "3" },
    }),
  );
  const broker = await startBroker({
    args: ["--config", file, "--set", "auto.create.topics.enable=true"],
    env: { SKERRY_NODE_ID: "8" },
  });
  const version = await (await fetch(`${broker.http}/version`)).json() as Record<string, unknown>;
  assert.equal(version["nodeId"], 8);
  assert.equal(version["clusterId"], "from-the-file");
  await produce(broker, "t", "v");
  const topic = await (await fetch(`${broker.http}/v1/topics/t`)).json() as Record<string, unknown>;
  assert.equal(topic["partitions"], 3);
  assert.equal(await broker.stop(), 0);
  writeFileSync(file, '{"kafka-listne":"x"}');
  const { code, output } = await runBroker(["serve", "--config", file]);
  assert.equal(code, 2, output);
  assert.match(output, /kafka-listne/);
  dir.remove();
});

test("without a configuration it says where it listens, where data lies and what to try", async () => {
  const dir = tempDir();
  const broker = await startBroker({ args: ["--log-format", "text"], cwd: dir.path });
  const { kafka, http } = broker;
  assert.ok([kafka, http].every((place) => broker.output().includes(place)), broker.output());
  assert.match(broker.output(), /skerry-data/);
  const line = /^ {2}Try +(curl .*)$/m.exec(broker.output())?.[1];
  assert.ok(line?.includes(`${http}/v1/topics/greetings/records`), line);
  await produce(broker, "greetings", "hello");
  assert.equal(await broker.stop(), 0);
  assert.ok(existsSync(join(dir.path, "skerry-data")));
  dir.remove();
});

test("what is advertised is what Metadata shows", async () => {
  const args = ["--store", "memory:", "--advertise", "broker.example:19092"];
  const broker = await startBroker({ args });
  const client = await RawClient.connect(broker.kafka);
  const { brokers } = await client.call(metadataApi, 9, { topics: [] });
  assert.deepEqual([brokers[0]!.host, brokers[0]!.port], ["broker.example", 19092]);
  client.close();
  assert.equal(await broker.stop(), 0);
});

test("SIGTERM with long polls and idle clients does not wait for them", async () => {
  const broker = await startBroker({ args: ["--store", "memory:"] });
  await produce(broker, "t", "v");
  const idle = await RawClient.connect(broker.kafka);
  await idle.call(metadataApi, 9, { topics: [] });
  const polls = Array.from(
    { length: 5 },
    () =>
      fetch(`${broker.http}/v1/topics/t/partitions/0/records?offset=latest&wait=30000`)
        .then((response) => response.status)
        .catch(() => null),
  );
  await until("five long polls", async () => await activeRequests(broker.http) === polls.length);
  assert.equal(await broker.stop(), 0, broker.output());
  assert.match(broker.output(), /"event":"stopped"/);
  // Told to come again: neither answered at their time nor cut off at the end of a drain.
  assert.deepEqual(await Promise.all(polls), polls.map(() => 503));
  await idle.closed;
});

test("a second SIGTERM ends it at once and loses nothing", async () => {
  const dir = tempDir();
  const broker = await startBroker({ args: ["--store", `dir:${dir.path}`] });
  await produce(broker, "t", "v");
  process.kill(broker.pid, "SIGTERM");
  process.kill(broker.pid, "SIGTERM");
  assert.equal(await broker.exited, 0, broker.output());
  const next = await broker.restart();
  assert.deepEqual(await values(next, "t"), ["v"]);
  assert.equal(await next.stop(), 0);
  dir.remove();
});

test("an address that is taken is a configuration error that changes nothing", async () => {
  const taken = createServer();
  await new Promise<void>((done) => void taken.listen(0, "127.0.0.1", done));
  const { port } = taken.address() as { port: number };
  const { code, output } = await runBroker([
    "serve",
    "--store",
    "memory:",
    "--kafka-listen",
    `127.0.0.1:${port}`,
  ]);
  taken.close();
  assert.equal(code, 2, output);
  assert.match(output, new RegExp(String(port)));
});

test("SIGTERM on an idle broker: a clean end, and the data is there after a restart", async () => {
  const dir = tempDir();
  const args = ["--store", `dir:${dir.path}`];
  const first = await startBroker({ args });
  for (let i = 0; i < 10; i++) assert.equal(await produce(first, "t", `v${i}`), i);
  assert.equal(await first.stop(), 0, first.output());
  assert.match(first.output(), /"event":"stopped"/, "nothing was left or cut off");
  const second = await startBroker({ args });
  assert.deepEqual(await values(second, "t"), Array.from({ length: 10 }, (_, i) => `v${i}`));
  assert.equal(await produce(second, "t", "next"), 10);
  assert.equal(await second.stop(), 0);
  dir.remove();
});

test("a second process with the same node id takes over; the first exits 4 and loses nothing", async () => {
  const dir = tempDir();
  const args = ["--store", `dir:${dir.path}`];
  const first = await startBroker({ args });
  for (let i = 0; i < 5; i++) await produce(first, "t", `v${i}`);
  const second = await startBroker({ args });
  const late = await fetch(`${first.http}/v1/topics/t/records`, { method: "POST", body: "late" })
    .catch(() => null);
  assert.notEqual(late?.status, 200, "a fenced process acknowledges nothing");
  assert.equal(await first.exited, 4, first.output());
  assert.deepEqual(await values(second, "t"), ["v0", "v1", "v2", "v3", "v4"]);
  assert.equal(await produce(second, "t", "v5"), 5);
  assert.equal(await second.stop(), 0);
  dir.remove();
});

test("a process that was stopped while another took over finds out and exits 4", async () => {
  const dir = tempDir();
  const args = ["--store", `dir:${dir.path}`];
  const first = await startBroker({ args });
  await produce(first, "t", "before");
  process.kill(first.pid, "SIGSTOP");
  const second = await startBroker({ args });
  await produce(second, "t", "after");
  process.kill(first.pid, "SIGCONT");
  const late = await fetch(`${first.http}/v1/topics/t/records`, { method: "POST", body: "late" })
    .catch(() => null);
  assert.notEqual(late?.status, 200);
  assert.equal(await first.exited, 4, first.output());
  assert.deepEqual(await values(second, "t"), ["before", "after"]);
  assert.equal(await second.stop(), 0);
  dir.remove();
});
