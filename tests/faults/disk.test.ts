/**
 * A directory store whose disk is full, or that became read-only, under a running broker: clients are told
 * to come again, what is stored can be read, and space or rights that come back are enough.
 * A small tmpfs where we may mount one; else only what a plain directory can show.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { before, test, type TestContext } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { createBroker } from "../../mod.ts";
import { runBroker, tempDir } from "../support/broker_process.ts";
import { pause, post, valuesOf } from "./s3_world.ts";

const SIZE_MIB = 4;

interface Disk {
  readonly path: string;
  remount(options: string): void;
  remove(): void;
}

/** Null where mounting is not allowed. */
function mountDisk(): Disk | null {
  const dir = tempDir();
  const mount = (...args: string[]) => execFileSync("mount", args, { stdio: "ignore" });
  try {
    if (process.getuid?.() !== 0) throw new Error("not root");
    mount("-t", "tmpfs", "-o", `size=${SIZE_MIB}m`, "tmpfs", dir.path);
  } catch {
    dir.remove();
    return null;
  }
  return {
    path: dir.path,
    remount: (options) => mount("-o", `remount,${options}`, dir.path),
    remove() {
      execFileSync("umount", ["-l", dir.path]);
      dir.remove();
    },
  };
}

async function untilReady(url: string, wanted: number): Promise<string> {
  for (let i = 0; i < 400; i++) {
    const response = await fetch(`${url}/readyz`);
    const text = await response.text();
    if (response.status === wanted) return text;
    await pause(25);
  }
  throw new Error(`/readyz never said ${wanted}`);
}

async function trouble(
  disk: Disk,
  begin: () => void,
  end: () => void,
  reason: RegExp,
): Promise<void> {
  const open = () => createBroker({ store: `dir:${join(disk.path, "data")}` });
  const broker = await open();
  const { url } = broker.http;
  const sent: string[] = [];
  const first = await post(url, "t", "first");
  assert.equal(first.status, 200);
  sent.push("first");

  const client = new Kafka({
    brokers: [`${broker.kafka.host}:${broker.kafka.port}`],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, maxRetryTime: 300, retries: 100 },
  });
  const producer = client.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  begin();
  const sending = (async () => {
    for (let i = 0; i < 3; i++) {
      const value = `kafka-${i}-${"x".repeat(64 * 1024)}`;
      await producer.send({ topic: "t", acks: -1, timeout: 1_000, messages: [{ value }] });
      sent.push(value);
    }
  })();
  sending.catch(() => {});
  assert.match(await untilReady(url, 503), reason);
  for (let i = 0; i < 10; i++) {
    assert.deepEqual((await valuesOf(url, "t"))[0], "first", "what is stored can be read");
  }
  end();
  await untilReady(url, 200);
  await sending;
  await producer.disconnect();
  assert.equal((await post(url, "t", "last")).status, 200);
  sent.push("last");
  assert.deepEqual(await valuesOf(url, "t"), sent, "once, in order, without a restart");
  await broker.close();
  const again = await open();
  assert.deepEqual(await valuesOf(again.http.url, "t"), sent);
  await again.close();
}

/** Above Bun's own limit: seconds pass before a stalled WAL counts as trouble. */
const TIMEOUT = { timeout: 30_000 };
type Outcome = "passed" | "cannot mount a tmpfs" | Error;

async function onDisk(work: (disk: Disk) => Promise<void>): Promise<Outcome> {
  const disk = mountDisk();
  if (disk === null) return "cannot mount a tmpfs";
  try {
    await work(disk);
    return "passed";
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    disk.remove();
  }
}

async function whenFull(disk: Disk): Promise<void> {
  const filler = join(disk.path, "filler");
  await trouble(disk, () => fillUp(filler), () => rmSync(filler), /ENOSPC|no space/i);
}

async function whenReadOnly(disk: Disk): Promise<void> {
  await trouble(disk, () => disk.remount("ro"), () => disk.remount("rw"), /EROFS|read-only/i);
}

/** Both at the same time, for they mostly wait; each test looks at its own. */
let full: Promise<Outcome>;
let readOnly: Promise<Outcome>;
before(() => {
  full = onDisk(whenFull);
  readOnly = onDisk(whenReadOnly);
});

function report(t: TestContext, outcome: Outcome): void {
  if (outcome instanceof Error) throw outcome;
  if (outcome !== "passed") t.skip(outcome);
}

test("the disk is full and gets space again", TIMEOUT, async (t) => report(t, await full));

test(
  "the file system becomes read-only and writable again",
  TIMEOUT,
  async (t) => report(t, await readOnly),
);

/** Every byte that is left. */
function fillUp(path: string): void {
  for (let bytes = SIZE_MIB * 1024 * 1024; bytes >= 1024; bytes >>= 1) {
    for (;;) {
      try {
        writeFileSync(path, new Uint8Array(bytes), { flag: "a" });
      } catch {
        break;
      }
    }
  }
}

test("a directory that cannot be written to is refused in one line", async (t) => {
  const ports = ["--kafka-listen", "127.0.0.1:0", "--http-listen", "off"];
  const disk = mountDisk();
  if (disk === null) {
    const dir = tempDir();
    if (process.getuid?.() === 0) return t.skip("root may write anywhere");
    chmodSync(dir.path, 0o500);
    const { code, output } = await runBroker(["serve", "--store", `dir:${dir.path}`, ...ports]);
    chmodSync(dir.path, 0o700);
    dir.remove();
    assert.equal(code, 2, output);
    assert.match(output, /no permission/);
    return;
  }
  try {
    disk.remount("ro");
    const { code, output } = await runBroker(["serve", "--store", `dir:${disk.path}`, ...ports]);
    assert.equal(code, 2, output);
    assert.match(output, /read-only/);
    assert.equal(output.trim().split("\n").length, 1, output);
    disk.remount("rw");
    fillUp(join(disk.path, "filler"));
    const full = await runBroker(["serve", "--store", `dir:${join(disk.path, "d")}`, ...ports]);
    assert.equal(full.code, 2, full.output);
    assert.match(full.output, /no space/i);
  } finally {
    disk.remove();
  }
});
