/**
 * SIGTERM with requests under way, with a store that is dead, and during a start that hangs. What was
 * acknowledged is there afterwards, whether the end was clean or cut off.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { after, before, test } from "node:test";
import { runBroker, startBroker, tempDir, within } from "../support/broker_process.ts";
import { type S3Server, startS3Server } from "../support/s3_server.ts";
import { onS3, pause, post, valuesOf } from "./s3_world.ts";

let server: S3Server;
before(async () => void (server = await startS3Server()));
after(() => server.close());

test("SIGTERM under load: exit 0 in good time, nothing acknowledged is lost", async () => {
  const dir = tempDir();
  const args = ["--store", `dir:${dir.path}`];
  const broker = await startBroker({ args });
  const acknowledged: string[] = [];
  let isOver = false;
  const load = Array.from({ length: 8 }, async (_, n) => {
    for (let i = 0; !isOver; i++) {
      const { status, retriable } = await post(broker.http, "t", `${n}-${i}`);
      if (status === 200) acknowledged.push(`${n}-${i}`);
      else if (status === 0) return;
      else assert.ok(retriable, `${status} is final`);
    }
  });
  await pause(500);
  const startedMs = performance.now();
  assert.equal(await broker.stop(), 0, broker.output());
  assert.ok(performance.now() - startedMs < 10_000, "stops in good time");
  isOver = true;
  await Promise.all(load);
  assert.ok(acknowledged.length > 20);
  const again = await startBroker({ args });
  const found = await valuesOf(again.http, "t");
  assert.deepEqual(acknowledged.filter((value) => !found.includes(value)), []);
  assert.equal(await again.stop(), 0);
  dir.remove();
});

test("SIGTERM with a dead store waits; a second one ends it, losing nothing acknowledged", async () => {
  const place = onS3(server, "dead");
  const broker = await startBroker(place);
  for (let i = 0; i < 3; i++) assert.equal((await post(broker.http, "t", `v${i}`)).status, 200);
  server.onCall(() => ({ refuse: { status: 503, code: "SlowDown" } }));
  const pending = post(broker.http, "t", "never acknowledged");
  await pause(200);
  process.kill(broker.pid, "SIGTERM");
  assert.equal(await within(broker.exited.then(String), 1_000), null, "it still tries");
  process.kill(broker.pid, "SIGTERM");
  assert.equal(await within(broker.exited.then(String), 3_000), "0", broker.output());
  assert.notEqual((await pending).status, 200);
  server.onCall(() => undefined);
  const again = await startBroker(place);
  assert.deepEqual((await valuesOf(again.http, "t")).slice(0, 3), ["v0", "v1", "v2"]);
  assert.equal(await again.stop(), 0);
});

test("a store that comes back during the stop still gets everything", async () => {
  const place = onS3(server, "back");
  const broker = await startBroker(place);
  assert.equal((await post(broker.http, "t", "first")).status, 200);
  server.onCall(() => ({ refuse: { status: 503, code: "SlowDown" } }));
  const pending = post(broker.http, "t", "waits");
  await pause(100);
  process.kill(broker.pid, "SIGTERM");
  await pause(500);
  server.onCall(() => undefined);
  assert.equal(await within(broker.exited.then(String), 15_000), "0", broker.output());
  const { status } = await pending;
  const again = await startBroker(place);
  const found = await valuesOf(again.http, "t");
  assert.equal(found[0], "first");
  if (status === 200) assert.deepEqual(found, ["first", "waits"]);
  assert.equal(await again.stop(), 0);
});

test("SIGTERM during a start that hangs ends it at once", async () => {
  const place = onS3(server, "hanging");
  server.onCall(() => ({ delayMs: 20_000 }));
  const calls = server.calls.put;
  const listen = ["--kafka-listen", "127.0.0.1:0", "--http-listen", "off"];
  let pid = 0;
  const running = runBroker(["serve", ...place.args, ...listen], {
    ...place,
    onStart: (started) => void (pid = started),
  });
  while (server.calls.put === calls) await pause(10);
  process.kill(pid, "SIGTERM");
  const ended = await within(running, 3_000);
  server.onCall(() => undefined);
  assert.equal(ended?.code, 0, ended?.output);
});
