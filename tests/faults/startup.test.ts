/**
 * Starts that must be refused: each ends with one clear line and its exit code, before a port opens and
 * without touching what is stored. Damage that can be got over is got over.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isFault } from "../../src/lib/errors.ts";
import { METADATA_SNAPSHOT_ENTRIES, WAL_BULKS_IN_FLIGHT_MAX } from "../../src/lib/limits.ts";
import { batch } from "../quirks/quirks.ts";
import { runBroker, startBroker, tempDir } from "../support/broker_process.ts";
import { type S3Call, type S3Fault, type S3Server, startS3Server } from "../support/s3_server.ts";
import { keysOf } from "../support/keys_of.ts";
import { drive, FaultWorld } from "./world.ts";
import { onS3, post, valuesOf } from "./s3_world.ts";

const PORTS = ["--kafka-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"];

let server: S3Server;
before(async () => void (server = await startS3Server()));
after(() => server.close());

async function refused(place: { args: string[]; env?: Record<string, string> }): Promise<string> {
  const { code, output } = await runBroker(["serve", ...PORTS, ...place.args], place);
  assert.equal(code, 2, output);
  assert.equal(output.trim().split("\n").length, 1, output);
  assert.doesNotMatch(output, /ready/);
  return output;
}

function refuseAll(status: number, code: string): (call: S3Call) => S3Fault {
  return () => ({ refuse: { status, code } });
}

test("wrong credentials are named, whatever is wrong with them", async () => {
  const cases: [number, string, RegExp][] = [
    [403, "InvalidAccessKeyId", /access key is not known/],
    [403, "SignatureDoesNotMatch", /secret key is wrong/],
    [403, "AccessDenied", /access denied/],
    [403, "RequestTimeTooSkewed", /clock/],
  ];
  for (const [status, code, line] of cases) {
    server.onCall(refuseAll(status, code));
    assert.match(await refused(onS3(server, "denied")), line);
  }
  server.onCall(() => undefined);
  assert.equal([...server.objects.keys()].filter((key) => key.startsWith("denied")).length, 0);
});

test("an unreachable and a missing bucket are refused", async () => {
  const place = onS3(server, "x");
  const unreachable = place.args.map((word) => word === server.url ? "http://127.0.0.1:1" : word);
  const { code, output } = await runBroker(["serve", ...PORTS, ...unreachable], place);
  const [waits, says, ...more] = output.trim().split("\n");
  assert.equal(code, 2, output);
  assert.match(waits ?? "", /store-waited-for/);
  assert.match(says ?? "", /cannot be used: waited 20 s for s3:\/\/[^ ]+: /);
  assert.deepEqual(more, []);
  const missing = place.args.map((word) => word.startsWith("s3://") ? "s3://nowhere/x" : word);
  assert.match(await refused({ ...place, args: missing }), /bucket does not exist/);
});

test("a store that refuses for two seconds holds up a start, and does not end it", async () => {
  const place = onS3(server, "late");
  const untilMs = performance.now() + 2_000;
  server.onCall(() =>
    performance.now() < untilMs ? { refuse: { status: 503, code: "SlowDown" } } : undefined
  );
  const broker = await startBroker(place);
  assert.match(broker.output(), /store-waited-for/);
  server.onCall(() => undefined);
  assert.equal(await broker.stop(), 0);
});

test("a store that ignores If-None-Match is refused", async () => {
  const careless = await startS3Server({ ignoreConditions: true });
  assert.match(await refused(onS3(careless, "p")), /If-None-Match/);
  const left = [...careless.objects.keys()];
  assert.deepEqual(left, [], "the probe cleans up, and nothing else was written");
  await careless.close();
});

test("a foreign cluster id is refused and fences nobody", async () => {
  const place = onS3(server, "foreign");
  const named = (id: string) => ({ ...place, args: [...place.args, "--cluster-id", id] });
  const running = await startBroker(named("mine"));
  assert.match(await refused(named("other")), /mine/);
  assert.equal((await post(running.http, "t", "still here")).status, 200);
  assert.equal(await running.stop(), 0);
});

test("a damaged WAL slot is exit 5 with its key, and nothing is deleted", async () => {
  const dir = tempDir();
  const args = ["--store", `dir:${dir.path}`];
  const broker = await startBroker({ args });
  for (let i = 0; i < 5; i++) assert.equal((await post(broker.http, "t", `v${i}`)).status, 200);
  await broker.kill9();

  const filesOf = () =>
    readdirSync(dir.path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(dir.path.length + 1))
      .toSorted();
  const slots = filesOf().filter((name) => name.includes("/wal/"));
  assert.ok(slots.length >= 3, slots.join());
  const damaged = slots.find((name) => name.endsWith("/67108864-134217728"))!;
  const whole = readFileSync(join(dir.path, damaged));
  const broken = Uint8Array.from(whole);
  broken[broken.length - 3]! ^= 0xff;
  writeFileSync(join(dir.path, damaged), broken);

  const before = filesOf();
  for (let attempt = 0; attempt < 2; attempt++) {
    const { code, output } = await runBroker(["serve", ...PORTS, ...args]);
    assert.equal(code, 5, output);
    assert.ok(output.includes(damaged), `the key is named: ${output}`);
    const now = filesOf();
    assert.deepEqual(before.filter((name) => !now.includes(name)), [], "nothing is deleted");
    assert.deepEqual(slots.filter((name) => !now.includes(name)), []);
  }
  // With the slot mended all is there.
  writeFileSync(join(dir.path, damaged), whole);
  const mended = await startBroker({ args });
  assert.deepEqual(await valuesOf(mended.http, "t"), ["v0", "v1", "v2", "v3", "v4"]);
  assert.equal(await mended.stop(), 0);
  dir.remove();
});

test("a missing WAL slot below others is data loss, too", async () => {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  // Among the last slots a gap may be a write that never came and was never acknowledged.
  for (let i = 0; i < 2 + WAL_BULKS_IN_FLIGHT_MAX; i++) {
    assert.equal((await drive(world.clock, q.produce("t", batch([`v${i}`])))).error, "NONE");
  }
  world.kill();
  const slots = await keysWith(world, "/wal/");
  await world.bucket.delete([slots.find((key) => key.endsWith("/wal/67108864-134217728"))!]);
  const before = await keysWith(world, "");
  await assert.rejects(world.start(), (error: unknown) => isFault(error, "data-loss"));
  const now = await keysWith(world, "");
  assert.deepEqual(before.filter((key) => !now.includes(key)), []);
});

test("a damaged metadata snapshot is passed over; a damaged log entry is not", async () => {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("first"));
  assert.equal((await drive(world.clock, q.produce("first", batch(["v"])))).error, "NONE");
  // Every topic is an entry at least, until there is a snapshot.
  for (let i = 0; (await keysWith(world, "/snap/")).length === 0; i++) {
    assert.ok(i < METADATA_SNAPSHOT_ENTRIES, "no snapshot is written");
    await drive(world.clock, q.topic(`t${i}`));
  }
  world.kill();
  const [snapshot] = await keysWith(world, "/snap/");
  await damage(world, snapshot!);
  const again = await world.start();
  assert.deepEqual(await world.values("first"), ["v"]);
  assert.equal((await drive(world.clock, again.produce("first", batch(["w"])))).error, "NONE");
  world.kill();

  const entries = await keysWith(world, "/log/");
  await damage(world, entries.at(-1)!);
  await assert.rejects(world.start(), (error: unknown) => isFault(error, "corrupt"));
  assert.deepEqual(await keysWith(world, "/log/"), entries, "nothing is written behind the damage");
});

async function keysWith(world: FaultWorld, part: string): Promise<string[]> {
  return (await keysOf(world.bucket)).filter((key) => key.includes(part));
}

async function damage(world: FaultWorld, key: string): Promise<void> {
  const { bytes } = (await world.bucket.get(key))!;
  bytes[bytes.length >> 1]! ^= 0xff;
  await world.bucket.put(key, bytes);
}
