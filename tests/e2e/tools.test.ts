/** `skerry fsck`, `inspect` and `cost` as processes, on a store that a broker wrote to a small S3. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type BrokerProcess, runBroker, startBroker } from "../support/broker_process.ts";
import { type S3Server, startS3Server } from "../support/s3_server.ts";

const PREFIX = "tools/";
const ENV = { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test-secret" };

let s3: S3Server;
let store: string[];
before(async () => {
  s3 = await startS3Server({ pageKeys: 5 });
  store = ["--store", `s3://${s3.bucket}/tools`, "--s3-endpoint", s3.url, "--s3-path-style"];
  const broker = await startBroker({ args: store, env: ENV });
  await produce(broker, "hello");
  await broker.kill9();
  const again = await broker.restart();
  await produce(again, "again");
  const { code, output } = await runBroker(
    ["cost", "--metrics", `${again.http}/metrics`, "--seconds", "0.1", "--json"],
  );
  assert.equal(code, 0, output);
  const { usage } = JSON.parse(output) as { usage: { writes: number; produced: number } };
  assert.ok(usage.writes > 0 && usage.produced > 0, output);
  await again.kill9();
});
after(() => s3.close());

async function produce({ http }: BrokerProcess, body: string): Promise<void> {
  const response = await fetch(`${http}/v1/topics/t/records`, { method: "POST", body });
  assert.ok(response.ok, await response.text());
}

const run = (...words: readonly string[]) => runBroker([...words, ...store], { env: ENV });

/** Keys without the prefix, that is, as the tools name them. */
function keys(pattern: RegExp): string[] {
  return [...s3.objects.keys()].filter((key) => key.startsWith(PREFIX))
    .map((key) => key.slice(PREFIX.length)).filter((key) => pattern.test(key)).toSorted();
}

const bytesOf = (key: string) => s3.objects.get(PREFIX + key)!.bytes;

async function change(key: string, body: Uint8Array | null): Promise<void> {
  const response = await fetch(`${s3.url}/${s3.bucket}/${PREFIX}${key}`, {
    method: body === null ? "DELETE" : "PUT",
    body: body === null ? null : body.slice(),
  });
  assert.ok(response.ok, `${response.status} ${key}`);
}

interface Told {
  readonly findings: readonly { readonly severity: string; readonly kind: string }[];
  readonly summary: { readonly verdict: string; readonly dataObjects: number };
}

test("fsck proves the store, page after page of its listing", async () => {
  const { code, output } = await run("fsck", "--json");
  assert.equal(code, 0, output);
  const { findings, summary } = JSON.parse(output) as Told;
  assert.deepEqual(findings.filter(({ severity }) => severity === "damage"), []);
  assert.equal(summary.verdict, "clean");
  assert.ok(summary.dataObjects > 0);
  const text = await run("fsck");
  assert.equal(text.code, 0);
  assert.match(text.output, /\nCLEAN\n$/);
});

test("inspect tells each object of the store", async () => {
  const all = keys(/./);
  const kinds = new Set<string>();
  const ofEachKind = [/^meta\/cluster$/, /\/log\//, /\/wal\//, /^[0-9a-f]{8,}\/_kafka_[^/]+\/\d+$/]
    .map((pattern) => all.find((key) => pattern.test(key))!);
  for (const key of ofEachKind) {
    const { code, output } = await run("inspect", key, "--json");
    assert.equal(code, 0, `${key}: ${output}`);
    const told = JSON.parse(output) as { kind: string; items: unknown[]; damage: null };
    assert.ok(told.items.length > 0 && told.damage === null, output);
    kinds.add(told.kind);
  }
  assert.deepEqual([...kinds].toSorted(), ["cluster", "data", "entry", "wal"]);
  assert.equal((await run("inspect", "no/such/key")).code, 2);
});

test("a damaged object is exit 5 of both, and repair deletes an orphan only", async () => {
  const key = keys(/\/_kafka_[^/]+\/\d+$/)[0]!;
  const good = bytesOf(key);
  const bad = good.slice();
  bad[bad.length - 1]! ^= 1;
  await change(key, bad);
  const told = await run("fsck");
  assert.equal(told.code, 5);
  assert.ok(told.output.includes(key), told.output);
  assert.equal((await run("inspect", key)).code, 5);
  await change(key, good);
  const before = keys(/./);
  await change("meta/probe/left/over", new Uint8Array(3));
  const repaired = await run("fsck", "--repair");
  assert.equal(repaired.code, 0, repaired.output);
  assert.match(repaired.output, /^action +deleted +meta\/probe\/left\/over/m);
  assert.deepEqual(keys(/./), before);
});

test("with the end of the metadata log lost, repair refuses and deletes nothing", async () => {
  const lost = keys(/\/log\/\d{20}$/).slice(-3).map((key) => ({ key, bytes: bytesOf(key) }));
  for (const { key } of lost) await change(key, null);
  await change("meta/probe/left/over", new Uint8Array(3));
  const before = keys(/./);
  const { code, output } = await run("fsck", "--repair", "--accept-loss");
  assert.equal(code, 5, output);
  assert.match(output, /^action +refused +repair /m);
  assert.deepEqual(keys(/./), before);
  await change("meta/probe/left/over", null);
  for (const { key, bytes } of lost) await change(key, bytes);
  assert.equal((await run("fsck")).code, 0);
});

test("a store that refuses, fails or has no such bucket is exit 2 of both", async () => {
  for (const refuse of [{ status: 403, code: "AccessDenied" }, { status: 503, code: "SlowDown" }]) {
    s3.onCall(() => ({ refuse }));
    for (const words of [["fsck"], ["inspect", "meta/cluster"]] as const) {
      const { code, output } = await run(...words);
      assert.equal(code, 2, output);
      assert.match(output, /^Cannot .+\n$/);
    }
    s3.onCall(() => undefined);
  }
  const elsewhere = store.map((word) => word.replace(s3.bucket, "no-such-bucket"));
  const { code, output } = await runBroker(["fsck", ...elsewhere], { env: ENV });
  assert.equal(code, 2, output);
});
