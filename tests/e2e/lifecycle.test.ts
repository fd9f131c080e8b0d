/** The executable's manners: refusals, exit codes, signals, restart, and a second process with the same id. */
import assert from "node:assert/strict";
import { createServer } from "node:net";
import process from "node:process";
import { test } from "node:test";
import { VERSION } from "../../src/lib/version.ts";
import { type BrokerProcess, runBroker, startBroker, tempDir } from "../support/broker_process.ts";

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

test("what is refused gives exit code 2, one line, and opens no port", async () => {
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
    [[...s3, "--s3-endpoint", "http://127.0.0.1:1"], /cannot be used/],
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
    assert.doesNotMatch(output, /ready/);
  }
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

test("SIGTERM on an idle broker: exit 0 in good time, and the data is there after a restart", async () => {
  const dir = tempDir();
  const args = ["--store", `dir:${dir.path}`];
  const first = await startBroker({ args });
  for (let i = 0; i < 10; i++) assert.equal(await produce(first, "t", `v${i}`), i);
  const startedMs = performance.now();
  assert.equal(await first.stop(), 0, first.output());
  assert.ok(performance.now() - startedMs < 5000, "an idle broker stops within five seconds");
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
