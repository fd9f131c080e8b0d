/**
 * The bucket is full: quota and space errors of an S3 server under a running broker. Producers are told to come
 * again, reads go on, `/readyz` and the metrics say why, and space alone mends it. The same on a full disk:
 * `tests/faults/disk.test.ts`.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { brokerOnS3, pause, post, valuesOf } from "../faults/s3_world.ts";
import { type S3Fault, type S3Server, startS3Server } from "../support/s3_server.ts";
import { readExposition } from "./exposition.ts";

let server: S3Server;
before(async () => void (server = await startS3Server()));
after(() => server.close());

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 400; i++) {
    if (await isSo()) return;
    await pause(25);
  }
  assert.fail(`never: ${what}`);
}

async function readiness(url: string): Promise<string> {
  const response = await fetch(`${url}/readyz`);
  return response.status === 200 ? "" : await response.text();
}

async function fullPuts(url: string): Promise<number> {
  const page = readExposition(await (await fetch(`${url}/metrics`)).text());
  const samples = page.get("skerry_object_store_requests_total")?.samples ?? [];
  return samples.filter(({ labels }) => labels["outcome"] === "store-full")
    .reduce((sum, { value }) => sum + value, 0);
}

for (const [status, code] of [[403, "QuotaExceeded"], [507, "InsufficientStorage"]] as const) {
  test(`a bucket that answers ${status} ${code} to writes, and gets space again`, async () => {
    const broker = await brokerOnS3(server, `full-${status}`);
    const { url } = broker.http;
    assert.equal((await post(url, "t", "before")).status, 200);
    const fault: S3Fault = { refuse: { status, code } };
    server.onCall(({ op }) => op === "put" || op === "multipart" ? fault : undefined);
    const late = post(url, "t", "late");
    await until("it says why", async () => new RegExp(code).test(await readiness(url)));
    assert.deepEqual((await valuesOf(url, "t"))[0], "before", "reads go on");
    assert.ok(await fullPuts(url) > 0);
    server.onCall(() => undefined);
    const { status: answered, retriable } = await late;
    assert.ok(answered === 200 || retriable, String(answered));
    await until("it is ready again", async () => await readiness(url) === "");
    assert.equal((await post(url, "t", "after")).status, 200);
    assert.deepEqual(await valuesOf(url, "t"), ["before", "late", "after"]);
    await broker.close();
  });
}
