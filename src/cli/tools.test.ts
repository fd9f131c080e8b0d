/** The tools as processes: what they print, how they exit, on a directory that a real broker wrote. */
import assert from "node:assert/strict";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  type BrokerProcess,
  runBroker,
  startBroker,
  tempDir,
} from "../../tests/support/broker_process.ts";

const place = tempDir();
const root = join(place.path, "data");
let broker: BrokerProcess;

async function produce(topic: string, text: string): Promise<void> {
  const response = await fetch(`${broker.http}/v1/topics/${topic}/records`, {
    method: "POST",
    body: text,
  });
  assert.ok(response.ok, await response.text());
}

function filesOf(path: string): string[] {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
}

/** A copy of the store as it stands. */
function copied(name: string): string {
  const path = join(place.path, name);
  cpSync(root, path, { recursive: true });
  return path;
}

function flip(file: string, at: number): void {
  const bytes = readFileSync(file);
  bytes[at] = bytes[at]! ^ 1;
  writeFileSync(file, bytes);
}

interface Fsck {
  readonly findings: readonly {
    readonly severity: string;
    readonly kind: string;
    readonly key: string;
  }[];
  readonly summary: { readonly verdict: string; readonly dataObjects: number };
}

async function fsck(path: string, ...words: readonly string[]) {
  const { code, output } = await runBroker(["fsck", "--store", `dir:${path}`, "--json", ...words]);
  return { code, ...JSON.parse(output) as Fsck };
}

before(async () => {
  broker = await startBroker({ args: ["--store", `dir:${root}`] });
  await produce("greetings", "hello");
  await broker.kill9();
});
after(async () => {
  await broker.kill9();
  place.remove();
});

describe("fsck", () => {
  test("is clean after kill -9, restart, kill -9, and after a stop", async () => {
    assert.deepEqual([(await fsck(root)).code, (await fsck(root)).summary.verdict], [0, "clean"]);
    broker = await broker.restart();
    await produce("greetings", "again");
    await broker.kill9();
    const killed = await fsck(root);
    assert.deepEqual([killed.code, killed.findings.filter((one) => one.severity === "damage")], [
      0,
      [],
    ]);
    assert.ok(killed.summary.dataObjects > 0);
    broker = await broker.restart();
    assert.equal(await broker.stop(), 0);
    const text = await runBroker(["fsck", "--store", `dir:${root}`]);
    assert.equal(text.code, 0);
    assert.match(text.output, /\nCLEAN\n$/);
  });

  test("names a damaged object and exits with 5", async () => {
    const path = copied("flipped");
    const file = filesOf(path).find((one) => /_kafka_[^/\\]+[/\\]\d+$/.test(one))!;
    flip(file, 20);
    const { code, output } = await runBroker(["fsck", "--store", `dir:${path}`]);
    assert.equal(code, 5);
    assert.ok(output.includes(file.slice(path.length + 1).replaceAll("\\", "/")));
    assert.match(output, /\nDAMAGED \(\d+ findings\)\n$/);
  });

  test("repairs what it may: orphans, and a WAL once the loss is accepted", async () => {
    const path = copied("broken");
    broker = await startBroker({ args: ["--store", `dir:${path}`] });
    await produce("greetings", "one");
    await produce("greetings", "two");
    await broker.kill9();
    const slot = filesOf(path).filter((one) => one.includes("wal") && readFileSync(one).length > 48)
      .at(-1)!;
    flip(slot, 60);
    assert.equal((await fsck(path)).code, 5);
    assert.equal((await fsck(path, "--repair")).code, 5);
    assert.ok(existsSync(slot), "nothing but orphans goes without --accept-loss");
    const { code, findings } = await fsck(path, "--repair", "--accept-loss");
    assert.equal(code, 0);
    assert.ok(findings.some(({ severity, kind }) => severity === "action" && kind === "deleted"));
    assert.ok(!existsSync(slot));
    broker = await broker.restart();
    assert.equal(await broker.stop(), 0);
    assert.equal((await fsck(path)).code, 0);
  });

  test("a store that is not there, or in memory, or loss without repair, is a mistake", async () => {
    const missing = join(place.path, "nowhere");
    const lines = [
      ["--store", `dir:${missing}`],
      ["--store", "memory:"],
      ["--store", `dir:${root}`, "--accept-loss"],
      ["--store", `dir:${root}`, "--seconds", "3"],
      ["--store", `dir:${root}`, "--repair=yes"],
    ];
    for (const words of lines) {
      assert.equal((await runBroker(["fsck", ...words])).code, 2, words.join(" "));
    }
    assert.ok(!existsSync(missing), "looking creates nothing");
  });
});

/** The newest entry is the end of the log: without it the store is ahead of its metadata, or behind in silence. */
function cutLog(path: string, entries: number): void {
  const log = filesOf(path).filter((one) => /[/\\]log[/\\]\d{20}$/.test(one)).toSorted();
  for (const file of log.slice(-entries)) rmSync(file);
}

test("fsck repairs nothing by metadata whose end is lost, and says so", async () => {
  const path = copied("stale");
  cutLog(path, 3);
  const before = filesOf(path);
  const words = ["fsck", "--store", `dir:${path}`, "--repair", "--accept-loss"];
  const { code, output } = await runBroker(words);
  assert.equal(code, 5, output);
  assert.match(output, /^damage +ahead /m);
  assert.match(output, /^action +refused +repair .*its end is lost.*nothing was deleted$/m);
  assert.deepEqual(filesOf(path), before);
});

test("a store that does not answer is exit 2", async () => {
  const s3 = ["--store", "s3://bucket/x", "--s3-endpoint", "http://127.0.0.1:9", "--s3-path-style"];
  const env = { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" };
  for (const words of [["fsck", ...s3], ["inspect", "meta/cluster", ...s3]]) {
    const { code, output } = await runBroker(words, { env });
    assert.equal(code, 2, output);
    assert.match(output, /Cannot (get|head) x\/meta\/cluster/);
  }
});

describe("inspect", () => {
  test("tells a file by its name, and a key of a store", async () => {
    const file = filesOf(root).find((one) => one.includes("wal"))!;
    const text = await runBroker(["inspect", file]);
    assert.equal(text.code, 0);
    assert.match(text.output, /^wal .*\n(header|seal) .*node=1/);
    const json = await runBroker(["inspect", "meta/cluster", "--store", `dir:${root}`, "--json"]);
    assert.equal(json.code, 0);
    const told = JSON.parse(json.output) as {
      kind: string;
      items: { part: string }[];
      damage: null;
    };
    assert.deepEqual([told.kind, told.items[0]!.part, told.damage], ["cluster", "cluster", null]);
  });

  test("damage ends in one line and exit 5, an unknown thing in exit 2", async () => {
    const path = copied("inspected");
    const file = filesOf(path).find((one) => one.includes("wal"))!;
    flip(file, 5);
    const { code, output } = await runBroker(["inspect", file]);
    assert.equal(code, 5);
    assert.match(output, /\nDAMAGED: .+\n$/);
    for (
      const words of [
        ["package.json"],
        ["no/such/key"],
        ["no/such/key", "--store", `dir:${root}`],
        [file, "--repair"],
        [file, "--s3-region", "r"],
        [file, "--set", "num.partitions=2"],
        [file, "--config", "f"],
        [],
      ]
    ) {
      assert.equal((await runBroker(["inspect", ...words])).code, 2);
    }
  });
});

describe("cost", () => {
  test("of a running node, and of a file with its metrics", async () => {
    const path = copied("cost");
    broker = await startBroker({ args: ["--store", `dir:${path}`] });
    await produce("greetings", "paid");
    const live = await runBroker([
      "cost",
      "--metrics",
      `${broker.http}/metrics`,
      "--seconds",
      "0.1",
      "--json",
    ]);
    assert.equal(live.code, 0, live.output);
    const report = JSON.parse(live.output) as {
      usage: { writes: number; produced: number };
      rate: { seconds: number };
      costs: { store: string; total: number; perMonth: number }[];
    };
    assert.ok(report.usage.writes > 0 && report.usage.produced > 0 && report.rate.seconds > 0);
    assert.ok(report.costs.length >= 3 && report.costs[0]!.total > 0);
    const file = join(place.path, "metrics.txt");
    writeFileSync(file, await (await fetch(`${broker.http}/metrics`)).text());
    await broker.kill9();
    const text = await runBroker(["cost", "--metrics", file]);
    assert.equal(text.code, 0);
    assert.match(text.output, /^S3 Standard +\$\d+\.\d+ +\$\d+\.\d+ +-$/m);
    assert.match(text.output, /^wal +\d+ +0 +\d+ +\$/m, "by class");
    const table = join(place.path, "prices.json");
    const ours = { store: "ours", perMillionWrites: 1_000_000, perMillionReads: 0 };
    writeFileSync(table, JSON.stringify({ prices: [ours] }));
    const priced = await runBroker(["cost", "--metrics", file, "--config", table, "--json"]);
    const { usage, costs } = JSON.parse(priced.output) as typeof report;
    assert.deepEqual([costs[0]!.store, costs[0]!.total], ["ours", usage.writes]);
    writeFileSync(table, JSON.stringify({ prices: "none" }));
    for (
      const words of [
        [],
        ["--metrics", "package.json"],
        ["--metrics", file, "--seconds", "x"],
        ["--metrics", file, "--config", table],
        ["--metrics", file, "--store", "memory:"],
      ]
    ) {
      assert.equal((await runBroker(["cost", ...words])).code, 2);
    }
  });
});
