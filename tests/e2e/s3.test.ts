/**
 * The broker as a process on S3: our own server by default, a real one when SKERRY_TEST_S3_ENDPOINT and
 * SKERRY_TEST_S3_BUCKET name it. kill -9, restart, everything acknowledged is there; a prefix is one cluster.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { after, before, test } from "node:test";
import { type BrokerProcess, runBroker, startBroker } from "../support/broker_process.ts";
import { type S3Server, startS3Server } from "../support/s3_server.ts";

const real = process.env["SKERRY_TEST_S3_ENDPOINT"];
let own: S3Server | null = null;
let endpoint = "";
let bucket = process.env["SKERRY_TEST_S3_BUCKET"] ?? "skerry-test";

before(async () => {
  if (real === undefined) {
    own = await startS3Server();
    endpoint = own.url;
    bucket = own.bucket;
  } else endpoint = real;
});
after(() => own?.close());

const credentials = {
  AWS_ACCESS_KEY_ID: process.env["AWS_ACCESS_KEY_ID"] ?? "test",
  AWS_SECRET_ACCESS_KEY: process.env["AWS_SECRET_ACCESS_KEY"] ?? "test-secret",
};

function on(prefix: string): { args: string[]; env: Record<string, string> } {
  const store = ["--store", `s3://${bucket}/${prefix}`];
  return { args: [...store, "--s3-endpoint", endpoint, "--s3-path-style"], env: credentials };
}

async function produce(broker: BrokerProcess, values: readonly string[]): Promise<number[]> {
  const response = await fetch(`${broker.http}/v1/topics/t/records`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(values.map((value) => ({ value }))),
  });
  assert.equal(response.status, 200, await response.clone().text());
  return ((await response.json()) as { results: { offset: number }[] }).results.map(({ offset }) =>
    offset
  );
}

async function values(broker: BrokerProcess): Promise<string[]> {
  const response = await fetch(`${broker.http}/v1/topics/t/partitions/0/records?limit=10000`);
  return ((await response.json()) as { records: { value: string }[] }).records.map(({ value }) =>
    value
  );
}

const unique = `${process.pid}-${Math.floor(performance.now() * 1000)}`;

test("kill -9 and a clean stop on S3 lose nothing", async () => {
  const place = on(`crash-${unique}`);
  const sent: string[] = [];
  for (let round = 0; round < 4; round++) {
    const broker = await startBroker(place);
    assert.deepEqual(round === 0 ? [] : await values(broker), sent);
    for (let i = 0; i < 5; i++) {
      const batch = Array.from({ length: 10 }, (_, n) => `${round}/${i}/${n}`);
      assert.equal((await produce(broker, batch))[0], sent.length);
      sent.push(...batch);
    }
    if (round % 2 === 0) await broker.kill9();
    else assert.equal(await broker.stop(), 0, broker.output());
  }
  const last = await startBroker(place);
  assert.deepEqual(await values(last), sent);
  assert.equal(await last.stop(), 0);
});

test("one prefix is one cluster, and its name must fit", async () => {
  const place = on(`named-${unique}`);
  const first = await startBroker({ ...place, args: [...place.args, "--cluster-id", "first"] });
  assert.equal(await first.stop(), 0);
  const other = await runBroker(
    [
      "serve",
      ...place.args,
      "--cluster-id",
      "other",
      "--kafka-listen",
      "127.0.0.1:0",
      "--http-listen",
      "off",
    ],
    place,
  );
  assert.equal(other.code, 2, other.output);
  assert.match(other.output, /first/);
});

test("a bucket that does not exist is one clear line", async () => {
  const place = on("x");
  const args = place.args.map((word) =>
    word.startsWith("s3://") ? "s3://no-such-bucket-here/x" : word
  );
  const refused = await runBroker([
    "serve",
    ...args,
    "--kafka-listen",
    "127.0.0.1:0",
    "--http-listen",
    "off",
  ], place);
  assert.equal(refused.code, 2, refused.output);
  assert.match(refused.output, /no-such-bucket-here|NoSuchBucket|bucket/);
});
