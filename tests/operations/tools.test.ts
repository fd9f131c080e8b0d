/** `skerry copy`, `features` and `--create-cluster` as processes: exit codes, and what they print. */
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Broker, createBroker } from "../../mod.ts";
import { FEATURE_LEVEL } from "../../src/controller/entry.ts";
import { post, valuesOf } from "../faults/s3_world.ts";
import { runBroker, tempDir } from "../support/broker_process.ts";

const PORTS = ["--kafka-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"];
const dir = tempDir();
const data = join(dir.path, "data");
let broker: Broker;

before(async () => {
  broker = await createBroker({ store: `dir:${data}`, clusterId: "original" });
  assert.equal((await post(broker.http.url, "t", "hello")).status, 200);
});
after(async () => {
  await broker.close();
  dir.remove();
});

test("copy takes a store that a broker has open; the copy serves under its own id", async () => {
  const target = join(dir.path, "copy");
  const words = ["copy", "--store", `dir:${data}`, "--to", `dir:${target}`];
  const made = await runBroker([...words, "--cluster-id", "restored", "--json"]);
  assert.equal(made.code, 0, made.output);
  const { from, clusterId, walSlots } = JSON.parse(made.output) as Record<string, unknown>;
  assert.deepEqual([from, clusterId], ["original", "restored"]);
  assert.ok(Number(walSlots) >= 1, "what is not uploaded comes along");
  const again = await runBroker([...words, "--cluster-id", "other"]);
  assert.equal(again.code, 2, again.output);
  assert.match(again.output, /^Cannot copy: the target holds cluster restored\n$/);
  const restored = await createBroker({ store: `dir:${target}`, createCluster: false });
  assert.equal(restored.clusterId, "restored");
  assert.deepEqual(await valuesOf(restored.http.url, "t"), ["hello"]);
  await restored.close();
});

test("copy and features say in one line what they cannot do", async () => {
  const store = ["--store", `dir:${data}`];
  const wrong: readonly (readonly [string[], RegExp])[] = [
    [["copy", ...store], /^Cannot copy: give --to/],
    [["copy", ...store, "--to", "memory:"], /^Cannot copy: give --to/],
    [
      ["copy", ...store, "--to", `dir:${dir.path}/x`, "--cluster-id", "original"],
      /that of the source/,
    ],
    [["features", "--store", `dir:${dir.path}/none`], /there is none/],
  ];
  const answers = await Promise.all(wrong.map(([words]) => runBroker(words)));
  for (const [i, { code, output }] of answers.entries()) {
    assert.equal(code, 2, output);
    assert.match(output, wrong[i]![1]);
    assert.equal(output.trim().split("\n").length, 1, output);
  }
});

test("features tells the cluster's level and the build's", async () => {
  const { code, output } = await runBroker(["features", "--store", `dir:${data}`, "--json"]);
  assert.equal(code, 0, output);
  const { clusterId, level, highest } = JSON.parse(output) as Record<string, unknown>;
  assert.deepEqual([clusterId, level, highest], ["original", FEATURE_LEVEL, FEATURE_LEVEL]);
});

test("with --create-cluster=false an empty or absent directory is refused and stays as it is", async () => {
  const absent = join(dir.path, "absent");
  const serve = (path: string) =>
    runBroker(["serve", ...PORTS, "--store", `dir:${path}`, "--create-cluster=false"]);
  const first = await serve(absent);
  assert.equal(first.code, 2, first.output);
  assert.match(first.output, /Cannot keep data in the directory .*: it does not exist/);
  assert.equal(existsSync(absent), false);
  const empty = tempDir();
  const second = await serve(empty.path);
  assert.equal(second.code, 2, second.output);
  assert.match(second.output, /it holds no cluster \(meta\/cluster is missing\)/);
  assert.deepEqual(readdirSync(empty.path).filter((name) => name.startsWith("meta")), []);
  empty.remove();
});
